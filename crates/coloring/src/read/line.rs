//! One line of a graph's file.

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

/// Words of a line that can matter.
const MOST_WORDS: usize = 4;

/// The first words of a line.
pub(super) struct Words<'a> {
    words: [&'a [u8]; MOST_WORDS],
    len: usize,
}

impl<'a> Words<'a> {
    /// Words are separated by blanks, tabs, commas or semicolons.
    pub(super) fn new(line: &'a [u8]) -> Self {
        let is_gap = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | 0);
        // A byte-order mark at the beginning only marks the file as UTF-8.
        let line = line.strip_prefix(&[0xef, 0xbb, 0xbf]).unwrap_or(line);
        let (mut words, mut len) = ([&[][..]; MOST_WORDS], 0);
        for word in line.split(is_gap).filter(|word| !word.is_empty()).take(MOST_WORDS) {
            words[len] = word;
            len += 1;
        }
        Self { words, len }
    }

    fn get(&self, at: usize) -> Option<&'a [u8]> {
        self.words[..self.len].get(at).copied()
    }

    /// Whether the line has no content: it is blank, or a comment of any of the forms.
    pub(super) fn is_comment(&self) -> bool {
        match self.get(0) {
            None => true,
            Some(word) => {
                word == b"c" || word.starts_with(b"#") || word.starts_with(b"%") || word.starts_with(b"//")
            }
        }
    }

    pub(super) fn first_is_number(&self) -> bool {
        self.get(0).is_some_and(|word| word.iter().all(u8::is_ascii_digit))
    }

    fn number(&self, at: usize, what: &str) -> Result<u64, Problem> {
        let hint = "expected a whole number that is not negative";
        let Some(word) = self.get(at) else { return Err((format!("{what} is missing"), hint)) };
        let number = std::str::from_utf8(word).ok().and_then(|word| word.parse().ok());
        number.ok_or_else(|| {
            let is_too_large = word.iter().all(u8::is_ascii_digit);
            let hint = if is_too_large { "the number is too large for any graph" } else { hint };
            (format!("`{}` is not {what}", shown(word)), hint)
        })
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
            if words.len < 4 {
                return Err(("the header has too few words".into(), "expected `p edge N M`"));
            }
            let n = words.number(2, "a number of vertices")?;
            Ok(Line::Counts(Counts { n, m: words.number(3, "a number of edges")? }))
        }
        b"e" | b"a" => edge_of(words, 1),
        // Weights, places and other remarks on vertices, which colourings do not need.
        b"n" | b"d" | b"v" | b"x" => Ok(Line::Nothing),
        word => Err((
            format!("a line that begins with `{}`", shown(word)),
            "expected `c` (comment), `p edge N M` or `e U V`, or a list of edges: two numbers per line, no heading",
        )),
    }
}

/// A line of a list of edges.
pub(super) fn edge(words: &Words<'_>) -> Result<Line, Problem> {
    if words.is_comment() { Ok(Line::Nothing) } else { edge_of(words, 0) }
}

fn edge_of(words: &Words<'_>, at: usize) -> Result<Line, Problem> {
    let (from, to) = (words.number(at, "a vertex")?, words.number(at + 1, "a vertex")?);
    Ok(Line::Edge { from, to, is_weighted: words.len > at + 2 })
}
