//! Problems of a strategy file, collected and shown together, each with line, column and caret.

use std::fmt;
use std::ops::Range;

/// One problem at one place of a source text.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnostic {
    /// Byte range in the source text; empty at the end of the text if the place is unknown.
    pub span: Range<usize>,
    /// What is wrong and what was expected.
    pub message: String,
    /// The cure, where it is known.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A problem without a known cure.
    pub fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), hint: None }
    }

    /// Adds the cure.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// All problems of one source text, ready to be shown.
#[derive(Clone, Debug)]
pub struct SourceErrors {
    /// File name, or what stands for it.
    pub file: String,
    /// The text that the spans point into.
    pub source: String,
    /// The problems, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

impl SourceErrors {
    /// Orders the problems by place and drops repeats.
    pub fn new(file: impl Into<String>, source: impl Into<String>, mut diagnostics: Vec<Diagnostic>) -> Self {
        diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
        diagnostics.dedup();
        Self { file: file.into(), source: source.into(), diagnostics }
    }

    /// The problems with their lines and columns, both from 1.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize, &Diagnostic)> {
        self.diagnostics.iter().map(|problem| {
            let (line, column, _) = self.position(problem.span.start);
            (line, column, problem)
        })
    }

    /// Line and column, both from 1, columns in characters.
    fn position(&self, offset: usize) -> (usize, usize, &str) {
        let mut offset = offset.min(self.source.len());
        while !self.source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = &self.source[..offset];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = self.source[start..].lines().next().unwrap_or("");
        (line_of(&self.source, offset), self.source[start..offset].chars().count() + 1, line)
    }
}

/// The line of a place in a text, from 1.
pub(crate) fn line_of(source: &str, offset: usize) -> usize {
    source.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Problems shown at most; the rest is counted.
const SHOWN: usize = 20;
/// Characters of a source line shown at most.
const LINE_WIDTH: usize = 160;

impl fmt::Display for SourceErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, diagnostic) in self.diagnostics.iter().take(SHOWN).enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            let (line, column, text) = self.position(diagnostic.span.start);
            writeln!(f, "{}:{line}:{column}: {}", self.file, diagnostic.message)?;
            if !text.trim().is_empty() {
                let gutter = line.to_string();
                let skip = if column > LINE_WIDTH { column - LINE_WIDTH / 2 } else { 0 };
                let visible: String = text
                    .chars()
                    .skip(skip)
                    .take(LINE_WIDTH)
                    .map(|c| if c.is_control() { ' ' } else { c })
                    .collect();
                let width = self
                    .source
                    .get(diagnostic.span.clone())
                    .map_or(1, |s| s.lines().next().unwrap_or("").chars().count())
                    .clamp(1, LINE_WIDTH);
                writeln!(f, "  {gutter} | {visible}")?;
                write!(
                    f,
                    "  {} | {}{}",
                    " ".repeat(gutter.len()),
                    " ".repeat(column - 1 - skip),
                    "^".repeat(width)
                )?;
            }
            if let Some(hint) = &diagnostic.hint {
                write!(f, "\n  hint: {hint}")?;
            }
        }
        if self.diagnostics.len() > SHOWN {
            write!(f, "\n… and {} more problems", self.diagnostics.len() - SHOWN)?;
        }
        Ok(())
    }
}

impl std::error::Error for SourceErrors {}

/// The candidate nearest to `name`, for "did you mean".
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(d, _)| *d <= limit)
        .min_by_key(|(d, _)| *d)
        .map(|(_, candidate)| candidate)
}

/// Edit distance of the first 64 characters, in whatever case.
fn distance(a: &str, b: &str) -> usize {
    let folded = |text: &str| text.chars().take(64).flat_map(char::to_lowercase).collect::<String>();
    strsim::levenshtein(&folded(a), &folded(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_line_column_caret_and_hint() {
        let errors = SourceErrors::new(
            "a.toml",
            "x = 1\ny = foo\n",
            vec![Diagnostic::new(10..13, "bad").hint("do good")],
        );
        assert_eq!(errors.to_string(), "a.toml:2:5: bad\n  2 | y = foo\n    |     ^^^\n  hint: do good");
    }

    #[test]
    fn nearest_finds_a_typo_and_nothing_far_away() {
        assert_eq!(nearest("cloze", ["open", "close"]), Some("close"));
        assert_eq!(nearest("volume", ["open", "close"]), None);
    }
}
