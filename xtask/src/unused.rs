//! What the device runtime offers and nobody takes: public items of `crates/gpu` that no other crate of the product uses.
//!
//! A runtime grows ornaments easily, because each looks useful where it stands. Tests are no users. The comparison is by name, so
//! an item that shares its name with another one in use is not found; none that is found is in use.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::repository::Repository;

const RUNTIME: &str = "crates/gpu/src/";

/// What only tests look at, because they can see from outside what the product relies on without asking.
const FOR_TESTS: [&str; 5] = [
    // What pipelines submit through.
    "coordinator",
    // Every kernel has run under the sanitizers.
    "launched",
    // Why a device failed.
    "is_lost",
    // What fill is counted from.
    "resident_blocks",
    // Machine code for architectures that this machine does not have.
    "compile_kept",
];

/// Public items without a user, in words.
pub fn check(root: &Path, repository: &Repository) -> Result<Vec<String>> {
    let mut offered = Vec::new();
    let (mut signatures, mut users) = (String::new(), String::new());
    for file in repository.files.iter().filter(|file| is_product(file)) {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        let code = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
        for (line_idx, line) in code.enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            if !file.starts_with(RUNTIME) {
                users.push_str(line);
                users.push('\n');
                continue;
            }
            offered.extend(declared(line).map(|item| (format!("{file}:{}", line_idx + 1), item)));
            if !line.trim_start().starts_with("pub use") && !is_declared_type(line) {
                signatures.push_str(line);
                signatures.push('\n');
            }
        }
    }
    let lacks_user = |item: &Item| match item {
        Item::Function(name) => !has_word(&users, name) && !FOR_TESTS.contains(&name.as_str()),
        // What a function takes or gives has the users of the function.
        Item::Type(name) => !has_word(&users, name) && !has_word(&signatures, name),
    };
    Ok(offered
        .into_iter()
        .filter(|(_, item)| lacks_user(item))
        .map(|(place, Item::Function(name) | Item::Type(name))| {
            format!("{place}: `{name}` is public and no other crate uses it: hide it, or remove it")
        })
        .collect())
}

/// Code of crates, without what is only for tests.
fn is_product(file: &str) -> bool {
    let is_test = file.contains("/tests/") || file.ends_with("/tests.rs");
    file.starts_with("crates/") && file.contains("/src/") && file.ends_with(".rs") && !is_test
}

#[derive(Debug, PartialEq)]
enum Item {
    Function(String),
    Type(String),
}

/// The public item that a line declares.
fn declared(line: &str) -> Option<Item> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let rest = ["unsafe ", "const fn "].iter().find_map(|word| rest.strip_prefix(word)).unwrap_or(rest);
    let (keyword, rest) = rest.split_once(' ').unwrap_or(("fn", rest));
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let name = rest[..end].to_owned();
    match keyword {
        "fn" => Some(Item::Function(name)),
        "struct" | "enum" | "trait" | "type" | "const" => Some(Item::Type(name)),
        _ => None,
    }
}

fn is_declared_type(line: &str) -> bool {
    matches!(declared(line), Some(Item::Type(_))) || line.starts_with("impl")
}

/// Whether a text has a name as a whole word.
fn has_word(text: &str, name: &str) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(joins) && !text[at + name.len()..].starts_with(joins))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::of;

    #[test]
    fn what_only_tests_or_the_runtime_use_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            (
                "crates/gpu/src/stream.rs",
                "pub struct Stream;\nimpl Stream {\n    pub fn record(&self) -> Event {}\n    pub fn ornament(&self) {}\n    \
                 pub(crate) fn own(&self) {}\n}\npub struct Event;\npub struct Lonely;\nimpl Lonely {}\n",
            ),
            (
                "crates/scan/src/lane.rs",
                "use tidemill_gpu::Stream;\nfn f(s: &Stream) { s.record(); }\n// ornament\n#[cfg(test)]\nmod tests { fn g() { ornament() } }\n",
            ),
            ("crates/scan/tests/lane.rs", "fn f(s: &Stream) { s.ornament(); }\n"),
        ];
        for (file, text) in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = check(dir.path(), &of(&files.map(|(file, _)| file))).unwrap();
        let places: Vec<&str> = found.iter().map(|problem| problem.split(" is").next().unwrap()).collect();
        assert_eq!(
            places,
            ["crates/gpu/src/stream.rs:4: `ornament`", "crates/gpu/src/stream.rs:8: `Lonely`"]
        );
    }
}
