//! Whether a command printed what a page shows.
//!
//! Times, speeds and the number of threads are those of a machine and do not count. A line `…` stands for any lines, none included.

use std::sync::LazyLock;

use regex_lite::Regex;

/// What depends on the machine, and what stands for it.
static FILTERS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"[0-9][0-9.,e+]* (trials|bar-evaluations|symbols|iterations|it)/s", "SPEED"),
        (r"[0-9][0-9.,]* (µs|ms|s|min|h)\b( [0-9]+ (s|min)\b)?", "TIME"),
        (r"on the CPU, [0-9]+ threads?( \([^)]*\))?", "DEVICE"),
        (
            r"evaluating [0-9]+ % of the time(, devices? [0-9]+ % full)?, sampler [0-9]+ % \([0-9]+ % of it beside the evaluation\)",
            "SHARES",
        ),
    ]
    .into_iter()
    .map(|(pattern, name)| (Regex::new(pattern).unwrap(), name))
    .collect()
});

/// A line that stands for any lines.
pub const ANYTHING: &str = "…";

/// Where an output departs from what is shown.
#[derive(Debug, PartialEq)]
pub struct Mismatch {
    /// Line of the block, from 0.
    pub line_idx: usize,
    /// What is shown; none where the output is longer.
    pub shown: Option<String>,
    /// What was printed; none where the output is shorter.
    pub printed: Option<String>,
}

/// The first difference that counts.
pub fn departure(shown: &str, printed: &str) -> Option<Mismatch> {
    let shown: Vec<&str> = lines(shown);
    let printed: Vec<&str> = lines(printed);
    let parts = parts(&shown);
    let mut from = 0;
    let mut line_idx = 0;
    for (part_idx, part) in parts.iter().enumerate() {
        let is_last = part_idx + 1 == parts.len();
        let starts = match (part_idx, is_last) {
            (0, _) => 0..=0,
            (_, false) => from..=printed.len().max(from),
            // The last part has to be the end, unless `…` is.
            (_, true) if part.is_empty() => return None,
            (_, true) => {
                let start = printed.len().saturating_sub(part.len()).max(from);
                start..=start
            }
        };
        let is_at = |start: usize| {
            part.iter().enumerate().find_map(|(at, line)| {
                let found = printed.get(start + at);
                (found.map(|found| filtered(found)) != Some(filtered(line))).then_some((at, found))
            })
        };
        let Some(start) = starts.clone().find(|start| is_at(*start).is_none()) else {
            let start = locate(part, &printed, from).unwrap_or(from);
            let start = if part_idx == 0 { 0 } else { start };
            let (at, found) = is_at(start).unwrap_or((0, None));
            return Some(Mismatch {
                line_idx: line_idx + at,
                shown: part.get(at).map(|line| (*line).to_owned()),
                printed: found.map(|found| (*found).to_owned()),
            });
        };
        from = start + part.len();
        line_idx += part.len() + 1;
        if is_last && from < printed.len() {
            return Some(Mismatch {
                line_idx: line_idx - 1,
                shown: None,
                printed: Some(printed[from].to_owned()),
            });
        }
    }
    None
}

/// The lines without what cannot be seen.
pub fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

/// What stands between the lines that stand for anything.
pub fn parts<'t, 'l>(shown: &'l [&'t str]) -> Vec<&'l [&'t str]> {
    shown.split(|line| line.trim() == ANYTHING).collect()
}

/// Where a part of an output most likely begins now, from a line on: by the beginning of its first line, numbers aside.
pub fn locate(part: &[&str], printed: &[&str], from: usize) -> Option<usize> {
    let first = part.iter().position(|line| !line.is_empty())?;
    let wanted = shape(part[first]);
    let likeness = |line: &str| wanted.chars().zip(shape(line).chars()).take_while(|(a, b)| a == b).count();
    let best = (from..printed.len()).max_by_key(|at| (likeness(printed[*at]), usize::MAX - at))?;
    (likeness(printed[best]) >= 4).then(|| best.saturating_sub(first).max(from))
}

/// A line with every number the same and no more than one blank at a time.
pub fn shape(line: &str) -> String {
    let mut shape = String::new();
    for c in line.trim().chars() {
        let c = if c.is_ascii_digit() { '0' } else { c };
        if !((c == '0' || c == ' ') && shape.ends_with(c)) {
            shape.push(c);
        }
    }
    shape
}

/// A line without what the machine decides.
pub fn filtered(line: &str) -> String {
    FILTERS
        .iter()
        .fold(line.to_owned(), |line, (pattern, name)| pattern.replace_all(&line, *name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(shown: &str, printed: &str) -> Option<(usize, Option<String>, Option<String>)> {
        departure(shown, printed).map(|found| (found.line_idx, found.shown, found.printed))
    }

    fn some(line: &str) -> Option<String> {
        Some(line.to_owned())
    }

    #[test]
    fn equal_outputs_do_not_differ_and_blanks_at_ends_do_not_count() {
        assert_eq!(at("a\nb\n", "a  \nb\n\n"), None);
        assert_eq!(at("", "\n"), None);
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(at("a\nb\nc\n", "a\nx\nc\n"), Some((1, some("b"), some("x"))));
        assert_eq!(at("a\nb\n", "a\n"), Some((1, some("b"), None)));
        assert_eq!(at("a\n", "a\nb\n"), Some((1, None, some("b"))));
        assert_eq!(at("a 1\n", "a 2\n"), Some((0, some("a 1"), some("a 2"))));
    }

    #[test]
    fn an_ellipsis_stands_for_any_lines() {
        for printed in ["a\nz\n", "a\nb\nz\n", "a\nb\nc\nz\n"] {
            assert_eq!(at("a\n…\nz\n", printed), None, "{printed}");
        }
        assert_eq!(at("…\nm\n…\n", "a\nm\nz\n"), None);
        assert_eq!(at("…\nmean 1\n…\n", "a\nmean 2\nz\n"), Some((1, some("mean 1"), some("mean 2"))));
        assert_eq!(at("a\n…\nzebra 1\nb\n", "a\nc\nzebra 1\nd\n"), Some((3, some("b"), some("d"))));
        assert_eq!(at("…\nz\n", "z\na\n"), Some((1, some("z"), None)), "it has to be the end");
    }

    #[test]
    fn what_the_machine_decides_does_not_count() {
        let shown = "on the CPU, 2 threads (there is no GPU driver)\n10 trials in 2.85 s (3,508 trials/s, 2.81e8 bar-evaluations/s), 9 valid; evaluating 99 % of the time, sampler 30 % (99 % of it beside the evaluation)\n";
        let printed = "on the CPU, 16 threads\n10 trials in 12.10 s (1 trials/s, 1e+9 bar-evaluations/s), 9 valid; evaluating 8 % of the time, sampler 100 % (9 % of it beside the evaluation)\n";
        assert_eq!(at(shown, printed), None);
        assert!(at(shown, &printed.replace("9 valid", "8 valid")).is_some());
        assert!(at("bars of 15m", "bars of 16m").is_some());
        assert!(at("Sharpe 2.85", "Sharpe 2.86").is_some());
    }
}
