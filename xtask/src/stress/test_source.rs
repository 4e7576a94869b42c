//! The tests of the workspace as their source shows them: which there are, which are ignored and why, and which deal with time, threads or
//! processes.
//!
//! This reads text, not Rust: a function reaches from its name to the brace that closes it, and calls whatever name stands before a bracket.
//! That is exact enough for tests that rustfmt has formatted.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};

/// What a test uses that sleeps, waits, spawns or races.
const WORDS: &[&str] = &[
    "sleep(",
    "spawn(",
    "thread::scope",
    "Barrier::",
    "recv()",
    "recv_timeout(",
    "try_recv",
    "is_finished()",
    "yield_now",
    "park(",
    "try_wait(",
    "elapsed()",
    "Instant::now",
    // Ours, from files beside the test.
    "until(",
    "caught(",
    "spawn_silent(",
    "hold(stream",
    "hold(&stream",
    "meet(",
    "slow(",
    "Meeting::",
    "Parallel {",
    "Events::open",
    "Dash::start",
    "chromium::open",
];

/// A test function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFn {
    /// The file, from the root of the workspace.
    pub file: String,
    pub name: String,
    /// Why it is ignored, if it is.
    pub ignored: Option<String>,
    /// Whether it sleeps, waits, spawns or races, itself or in a function of its file.
    pub is_timed: bool,
}

impl TestFn {
    /// How people find it.
    pub fn shown(&self) -> String {
        format!("{}: {}", self.file, self.name)
    }

    #[cfg(test)]
    pub fn example(file: &str, name: &str, ignored: Option<&str>) -> Self {
        Self { file: file.into(), name: name.into(), ignored: ignored.map(str::to_owned), is_timed: false }
    }
}

/// All test functions of the workspace, in the order of files and lines.
pub fn test_fns(root: &Path) -> Result<Vec<TestFn>> {
    let mut files = Vec::new();
    crate::source::collect(&root.join("crates"), &mut files)?;
    crate::source::collect(&root.join("xtask"), &mut files)?;
    let mut tests = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs")) {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let shown = path.strip_prefix(root).unwrap_or(path).to_string_lossy().replace('\\', "/");
        tests.extend(tests_of(&shown, &text));
    }
    Ok(tests)
}

struct Function<'a> {
    name: &'a str,
    body: String,
    is_test: bool,
    ignored: Option<String>,
}

fn tests_of(file: &str, text: &str) -> Vec<TestFn> {
    let functions = functions(text);
    let mut timed: BTreeSet<&str> = BTreeSet::new();
    loop {
        let n_before = timed.len();
        for function in &functions {
            let is_timed = WORDS.iter().any(|word| has_word(&function.body, word))
                || timed.iter().any(|name| has_word(&function.body, &format!("{name}(")));
            if is_timed {
                timed.insert(function.name);
            }
        }
        if timed.len() == n_before {
            break;
        }
    }
    let tests = functions.iter().filter(|function| function.is_test);
    tests
        .map(|test| TestFn {
            file: file.to_owned(),
            name: test.name.to_owned(),
            ignored: test.ignored.clone(),
            is_timed: timed.contains(test.name),
        })
        .collect()
}

/// Whether a text has a word that is not the end of another one.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_'))
}

fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    let mut attributes: Vec<&str> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("#[") {
            attributes.push(trimmed);
            continue;
        }
        let Some(name) = function_name(trimmed) else {
            // A comment may stand between an attribute and its function; anything else ends it.
            if !trimmed.starts_with("//") {
                attributes.clear();
            }
            continue;
        };
        // The body ends with the first line that is indented like its first one and closes it.
        let indent = &line[..line.len() - trimmed.len()];
        let end = format!("{indent}}}");
        let is_one_line = trimmed.ends_with('}') || trimmed.ends_with(';');
        let n_lines = match is_one_line {
            true => 0,
            false => lines[at..].iter().position(|line| *line == end).unwrap_or(0),
        };
        let ignored =
            attributes.iter().find_map(|attribute| attribute.strip_prefix("#[ignore")).map(|rest| {
                let reason = rest.trim_start_matches(" = ").trim_end_matches(']');
                reason.trim_matches('"').to_owned()
            });
        functions.push(Function {
            name,
            body: lines[at + 1..=at + n_lines].iter().filter(|line| !is_comment(line)).fold(
                lines[at].split_once('{').map_or(String::new(), |(_, rest)| rest.to_owned()),
                |body, line| body + "\n" + line,
            ),
            is_test: attributes.contains(&"#[test]"),
            ignored,
        });
        attributes.clear();
    }
    functions
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

fn function_name(line: &str) -> Option<&str> {
    let rest = ["pub(crate) ", "pub(super) ", "pub "]
        .iter()
        .find_map(|head| line.strip_prefix(head))
        .unwrap_or(line);
    let rest = rest.strip_prefix("fn ")?;
    let end = rest.find(|sign: char| !(sign.is_alphanumeric() || sign == '_'))?;
    Some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
fn helper() {
    // sleep(1) in a comment is none
    nap();
}

fn nap() {
    std::thread::sleep(LONG);
}

fn short() {}

#[test]
fn by_itself() {
    let _ = Instant::now();
}

#[test]
fn through_a_helper() {
    helper();
}

#[test]
#[ignore = "3 GB"]
fn seldom() {
    oversleep();
    short();
}

mod inner {
    #[test]
    // Why it is here.
    fn neither() {
        kidnap(1);
    }
}

proptest! {
    #[test]
    fn of_a_property(x in 0..3) {
        helper();
    }
}
"#;

    #[test]
    fn tests_are_found_with_what_they_use() {
        let found: Vec<(String, bool, Option<String>)> =
            tests_of("a.rs", TEXT).into_iter().map(|test| (test.name, test.is_timed, test.ignored)).collect();
        let row = |name: &str, is_timed, ignored: Option<&str>| {
            (name.to_owned(), is_timed, ignored.map(str::to_owned))
        };
        assert_eq!(
            found,
            [
                row("by_itself", true, None),
                row("through_a_helper", true, None),
                row("seldom", false, Some("3 GB")),
                row("neither", false, None),
                row("of_a_property", true, None),
            ]
        );
    }
}
