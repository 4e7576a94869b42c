//! Splitting text into lines and cells.
//!
//! A quote never reaches beyond its line: market data has no cells with line breaks, and a single stray quote
//! must cost one line, not the rest of the file.

/// A line's number (from 1) and its text without the line end.
pub(crate) type Line<'a> = (u32, &'a [u8]);

/// The lines that hold anything but white space.
pub(crate) fn lines(text: &[u8]) -> impl Iterator<Item = Line<'_>> {
    lines_from(text, 1)
}

/// The same of a text that begins with this line.
pub(crate) fn lines_from(text: &[u8], first_line: u32) -> impl Iterator<Item = Line<'_>> {
    let mut rest = Some(text);
    let mut next = first_line;
    std::iter::from_fn(move || {
        let text = rest?;
        let number = next;
        next = next.saturating_add(1);
        let end = memchr::memchr(b'\n', text);
        rest = end.map(|end| &text[end + 1..]);
        let line = &text[..end.unwrap_or(text.len())];
        Some((number, line.strip_suffix(b"\r").unwrap_or(line)))
    })
    .filter(|(_, line)| !line.trim_ascii_start().is_empty())
}

/// Cell boundaries of one line, reused from line to line.
#[derive(Default)]
pub(crate) struct Cells {
    bounds: Vec<(usize, usize)>,
}

impl Cells {
    /// Splits a line; quotes around a cell are removed.
    pub(crate) fn split(&mut self, line: &[u8], delimiter: u8) {
        self.bounds.clear();
        let mut start = 0;
        let mut is_plain = true;
        for index in memchr::memchr2_iter(delimiter, b'"', line) {
            if line[index] == b'"' {
                is_plain = false;
                break;
            }
            self.bounds.push((start, index));
            start = index + 1;
        }
        if is_plain {
            self.bounds.push((start, line.len()));
            return;
        }
        self.bounds.clear();
        let mut start = 0;
        let mut quoted = false;
        for (index, &byte) in line.iter().enumerate() {
            match byte {
                b'"' => quoted = !quoted,
                _ if byte == delimiter && !quoted => {
                    self.push_unquoted(line, start, index);
                    start = index + 1;
                }
                _ => {}
            }
        }
        self.push_unquoted(line, start, line.len());
    }

    fn push_unquoted(&mut self, line: &[u8], start: usize, end: usize) {
        let cell = &line[start..end];
        let trimmed_start = start + (cell.len() - cell.trim_ascii_start().len());
        let cell = cell.trim_ascii();
        let is_quoted = cell.len() >= 2 && cell[0] == b'"' && cell[cell.len() - 1] == b'"';
        let inset = usize::from(is_quoted);
        self.bounds.push((trimmed_start + inset, trimmed_start + cell.len() - inset));
    }

    pub(crate) fn len(&self) -> usize {
        self.bounds.len()
    }

    /// A cell of the line that was split last; empty if the line is too short.
    pub(crate) fn get<'a>(&self, line: &'a [u8], column: usize) -> &'a [u8] {
        self.bounds.get(column).map_or(&[], |&(start, end)| &line[start..end])
    }

    pub(crate) fn iter<'a>(&self, line: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.bounds.iter().map(move |&(start, end)| &line[start..end])
    }
}

/// The delimiter that cuts the first lines into the most cells; `None` if none yields `fewest`.
pub(crate) fn sniff_delimiter(text: &[u8], fewest: usize) -> Option<u8> {
    // A decimal comma makes commas as frequent as semicolons, so the comma has to win outright.
    const CANDIDATES: [u8; 4] = [b'\t', b';', b'|', b','];
    let sample: Vec<&[u8]> = lines(text).take(64).map(|(_, line)| line).collect();
    let mut best: Option<(usize, u8)> = None;
    for delimiter in CANDIDATES {
        let mut counts: Vec<usize> = sample
            .iter()
            .map(|line| {
                let mut quoted = false;
                line.iter()
                    .filter(|&&byte| {
                        quoted ^= byte == b'"';
                        byte == delimiter && !quoted
                    })
                    .count()
            })
            .collect();
        counts.sort_unstable();
        let median = counts.get(counts.len() / 2).copied().unwrap_or(0);
        if median + 1 >= fewest && best.is_none_or(|(count, _)| median > count) {
            best = Some((median, delimiter));
        }
    }
    best.map(|(_, delimiter)| delimiter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(line: &str, delimiter: u8) -> Vec<String> {
        let mut cells = Cells::default();
        cells.split(line.as_bytes(), delimiter);
        cells.iter(line.as_bytes()).map(|cell| String::from_utf8_lossy(cell).into_owned()).collect()
    }

    #[test]
    fn quotes_guard_delimiters_within_one_line_only() {
        assert_eq!(split("a,\"1,234\",c", b','), ["a", "1,234", "c"]);
        assert_eq!(split("a, \"b\" ,", b','), ["a", "b", ""]);
        assert_eq!(split("a,\"b,c", b','), ["a", "\"b,c"]);
        assert_eq!(split("", b','), [""]);
    }

    #[test]
    fn blank_lines_are_skipped_but_counted() {
        let found: Vec<(u32, &[u8])> = lines(b"a\r\n\n  \nb").collect();
        assert_eq!(found, [(1, b"a".as_slice()), (4, b"b".as_slice())]);
    }

    #[test]
    fn the_delimiter_is_the_one_that_cuts_most() {
        assert_eq!(sniff_delimiter(b"t,o,h,l,c\n1,2,3,4,5\n", 5), Some(b','));
        assert_eq!(sniff_delimiter(b"t;o;h;l;c\n1;2,0;3,0;4,0;5,0\n", 5), Some(b';'));
        assert_eq!(sniff_delimiter(b"<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\n", 5), Some(b'\t'));
        assert_eq!(sniff_delimiter(b"hello, world\n", 5), None);
        assert_eq!(sniff_delimiter(b"", 5), None);
    }
}
