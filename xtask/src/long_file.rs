//! A source file above 500 lines holds more than one concept, or says in its first paragraph why it does not.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::repository::Repository;

const MOST_LINES: usize = 500;

/// How the reason begins, in the comment that opens the file.
const REASON: &str = "One file because ";

/// Rust and CUDA files that are long without a reason, in words.
pub fn check(root: &Path, repository: &Repository) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in repository.files.iter().filter(|file| is_source(file)) {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        let n_lines = text.lines().count();
        if n_lines > MOST_LINES && !first_paragraph(&text).contains(REASON) {
            problems.push(format!(
                "{file} has {n_lines} lines; split it by role, or begin its first paragraph's reason with `{}…`",
                REASON
            ));
        }
    }
    Ok(problems)
}

fn is_source(file: &str) -> bool {
    [".rs", ".cu", ".cuh", ".h"].iter().any(|extension| file.ends_with(extension))
}

/// The text of the comment that opens a file, up to its first empty line.
fn first_paragraph(text: &str) -> String {
    let comment = |line: &str| line.trim_start_matches('/').trim_start_matches('!').trim().to_owned();
    let lines = text.lines().take_while(|line| line.starts_with("//"));
    lines.map(comment).take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::of;

    fn long(head: &str) -> String {
        head.to_owned() + &"fn f() {}\n".repeat(MOST_LINES)
    }

    #[test]
    fn a_long_file_needs_a_reason_in_its_first_paragraph() {
        let files = [
            ("reason.rs", long("//! A table. One file because\n//! its rows are read together.\n")),
            ("late.cu", long("// A kernel.\n//\n// One file because it is.\n")),
            ("bare.rs", long("//! A module.\n")),
            ("fits.rs", "fn f() {}\n".repeat(MOST_LINES)),
            ("data.csv", long("")),
        ];
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in &files {
            fs::write(dir.path().join(name), text).unwrap();
        }
        let found = check(dir.path(), &of(&files.each_ref().map(|(name, _)| *name))).unwrap();
        let named: Vec<&str> = found.iter().map(|problem| problem.split(';').next().unwrap()).collect();
        assert_eq!(named, ["bare.rs has 501 lines", "late.cu has 503 lines"]);
    }
}
