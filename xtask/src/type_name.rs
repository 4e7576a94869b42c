//! Names of types that do not say what the type holds ([Words](../../CONTRIBUTING.md#words)).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::repository::Repository;

/// Pictures, and words that half of all types could have. With another noun (`SweepRun`, `BatchInFlight`) they are fine.
const BANNED: [&str; 16] = [
    "Course", "Finding", "Flight", "Kept", "Look", "Moment", "Parcel", "Report", "Run", "Scene", "Sense",
    "Standing", "Tuned", "Watch", "Wish", "Witness",
];

const KEYWORDS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

/// Types with a banned name, in words.
pub fn check(root: &Path, repository: &Repository) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in repository.files.iter().filter(|file| file.ends_with(".rs") || file.ends_with(".cu")) {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        for (line_idx, line) in text.lines().enumerate() {
            if let Some(name) = declared(line).filter(|name| BANNED.contains(name)) {
                problems.push(format!(
                    "{file}:{}: a type called `{name}`; add the noun that says what it holds",
                    line_idx + 1
                ));
            }
        }
    }
    Ok(problems)
}

/// The name of the type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        let within = public.strip_prefix('(').and_then(|path| path.split_once(')'));
        rest = within.map_or(public, |(_, after)| after).trim_start();
    }
    let (keyword, rest) = rest.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    KEYWORDS.contains(&keyword).then_some(&rest[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::of;

    #[test]
    fn a_banned_name_is_refused_whatever_its_visibility() {
        let source = "pub struct Run {\n    kind: u8,\n}\npub(crate) enum Watch<'a> {}\ntrait SweepRun {}\n\
                      // struct Look: a comment\n    pub(in crate::a) type Scene = u8;\nstruct Runner;\n";
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.rs"), source).unwrap();
        let found = check(dir.path(), &of(&["a.rs"])).unwrap();
        let places: Vec<&str> = found.iter().map(|problem| problem.split(';').next().unwrap()).collect();
        assert_eq!(
            places,
            ["a.rs:1: a type called `Run`", "a.rs:4: a type called `Watch`", "a.rs:7: a type called `Scene`"]
        );
    }
}
