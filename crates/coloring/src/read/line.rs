//! What one line of a graph's file says.

/// A line, understood.
pub(super) enum Line {
    /// Nothing that counts: a comment, a blank line.
    Nothing,
    /// The header of a DIMACS file.
    Counts(Counts),
    /// An edge, with the vertices as they are written.
    Edge {
        from: u64,
        to: u64,
        /// Whether more than the two vertices is there.
        is_weighted: bool,
    },
}

/// What a header claims.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    /// Vertices.
    pub(super) n: u64,
    /// Edges.
    pub(super) m: u64,
}

/// What is wrong, and what helps.
type Problem = (String, &'static str);

/// The words of a line.
pub(super) struct Words<'a> {
    words: Vec<&'a [u8]>,
}

impl<'a> Words<'a> {
    /// Words are separated by blanks, tabs, commas or semicolons.
    pub(super) fn new(line: &'a [u8]) -> Self {
        let is_gap = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | 0);
        let mut words: Vec<&[u8]> = line.split(is_gap).filter(|word| !word.is_empty()).collect();
        // A mark at the begin of a file says only that it is UTF-8.
        if let Some(first) = words.first_mut() {
            *first = first.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(first);
        }
        words.retain(|word| !word.is_empty());
        Self { words }
    }

    /// Whether the line says nothing: it is blank, or a comment of any of the forms.
    pub(super) fn is_comment(&self) -> bool {
        match self.words.first() {
            None => true,
            Some(word) => {
                *word == b"c" || word.starts_with(b"#") || word.starts_with(b"%") || word.starts_with(b"//")
            }
        }
    }

    pub(super) fn first_is_number(&self) -> bool {
        self.words.first().is_some_and(|word| word.iter().all(u8::is_ascii_digit))
    }

    fn number(&self, at: usize, what: &str) -> Result<u64, Problem> {
        let hint = "expected a whole number that is not negative";
        let Some(word) = self.words.get(at) else { return Err((format!("{what} is missing"), hint)) };
        let text = shown(word);
        text.parse().map_err(|_| (format!("`{text}` is not {what}"), hint))
    }
}

/// A word for a message; whatever it is, it stays short.
fn shown(word: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(word).chars().filter(|letter| !letter.is_control()).collect();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// A line of a DIMACS file.
pub(super) fn dimacs(words: &Words<'_>) -> Result<Line, Problem> {
    if words.is_comment() {
        return Ok(Line::Nothing);
    }
    match words.words[0] {
        b"p" => {
            if words.words.len() < 4 {
                return Err(("a header of too few words".into(), "expected `p edge N M`"));
            }
            let n = words.number(2, "a number of vertices")?;
            Ok(Line::Counts(Counts { n, m: words.number(3, "a number of edges")? }))
        }
        b"e" | b"a" => edge_of(words, 1),
        // Weights, places and other remarks on vertices, which colourings do not need.
        b"n" | b"d" | b"v" | b"x" => Ok(Line::Nothing),
        word => Err((
            format!("a line that begins with `{}`", shown(word)),
            "expected `c` (comment), `p edge N M` or `e U V`; the binary form has to be converted to text",
        )),
    }
}

/// A line of a list of edges.
pub(super) fn edge(words: &Words<'_>) -> Result<Line, Problem> {
    if words.is_comment() { Ok(Line::Nothing) } else { edge_of(words, 0) }
}

fn edge_of(words: &Words<'_>, at: usize) -> Result<Line, Problem> {
    let (from, to) = (words.number(at, "a vertex")?, words.number(at + 1, "a vertex")?);
    Ok(Line::Edge { from, to, is_weighted: words.words.len() > at + 2 })
}
