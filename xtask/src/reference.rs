//! Whether what the pages of the repository refer to is there.
//!
//! - **Links and images** name a file or folder of the repository, and a heading of it behind the `#`. Addresses of other sites are
//!   not looked at: this has to work without a network.
//! - **Paths in code** that begin with a top-level folder name a file or folder. Names of source files may be cut short from the
//!   left, as the tables of ARCHITECTURE.md do (`exec/engine.rs`), but have to be the end of a path. In both, `*`, `…` and words in
//!   capitals (`NAME.rs`) stand for anything.
//!
//! Pages that tell of the past may name files that are gone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::markdown::{Page, Target};
use crate::repository::Repository;

/// Endings of names that are looked for also where they are cut short.
const SOURCES: [&str; 3] = [".rs", ".cu", ".cuh"];

/// Everything that the pages refer to and that is not there, in words.
pub fn check(root: &Path, repository: &Repository) -> Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for file in repository.files.iter().filter(|file| file.ends_with(".md")) {
        let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
        pages.insert(file.as_str(), Page::read(&text));
    }
    Ok(compare(repository, &pages))
}

fn compare(repository: &Repository, pages: &BTreeMap<&str, Page>) -> Vec<String> {
    let mut problems = Vec::new();
    for (file, page) in pages {
        for reference in &page.references {
            let reason = match &reference.target {
                Target::Link(to) => {
                    link_problem(repository, pages, file, to).map(|why| format!("the link `{to}` {why}"))
                }
                Target::Image(to) => {
                    link_problem(repository, pages, file, to).map(|why| format!("the image `{to}` {why}"))
                }
                Target::Word(word) if !tells_of_the_past(file) => path_problem(repository, word),
                Target::Word(_) => None,
            };
            problems.extend(reason.map(|reason| format!("{file}:{}: {reason}", reference.line)));
        }
    }
    problems
}

fn tells_of_the_past(page: &str) -> bool {
    page == "CHANGELOG.md" || page.starts_with("bench-runs/")
}

fn link_problem(
    repository: &Repository,
    pages: &BTreeMap<&str, Page>,
    from: &str,
    to: &str,
) -> Option<&'static str> {
    if to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = to.split_once('#').map_or((to, None), |(path, anchor)| (path, Some(anchor)));
    let Some(path) = (if path.is_empty() { Some(from.to_owned()) } else { resolve(from, path) }) else {
        return Some("leads out of the repository");
    };
    if !repository.holds(&path) {
        return Some("leads to nothing in the repository");
    }
    match (anchor, pages.get(path.as_str())) {
        (Some(anchor), Some(page)) if !page.anchors.contains(anchor) => {
            Some("names a heading that is not there")
        }
        _ => None,
    }
}

/// A path from the root for one that is relative to the folder of a page, unless it leaves the repository.
fn resolve(page: &str, path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

fn path_problem(repository: &Repository, word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| "\"'`()[],;:".contains(c));
    // `main.rs:12` names a line.
    let word = match word.rsplit_once(':') {
        Some((path, line)) if line.bytes().all(|byte| byte.is_ascii_digit()) => path,
        _ => word,
    };
    let is_path = |c: char| c.is_alphanumeric() || "_-./*…".contains(c);
    if word.is_empty() || !word.chars().all(is_path) || word.contains("..") {
        return None;
    }
    let pattern: Vec<&str> = word.trim_end_matches('/').split('/').collect();
    let begins_at_the_root = word.contains('/') && repository.root_folders().contains(pattern[0]);
    let is_source =
        SOURCES.iter().any(|ending| word.strip_suffix(ending).is_some_and(|stem| !stem.is_empty()));
    let is_found = if begins_at_the_root {
        repository.files.iter().any(|file| is_beginning(&pattern, file))
    } else if is_source {
        repository.files.iter().any(|file| is_end(&pattern, file))
    } else {
        true
    };
    (!is_found).then(|| format!("`{word}` is no path in the repository"))
}

fn is_beginning(pattern: &[&str], file: &str) -> bool {
    let parts: Vec<&str> = file.split('/').collect();
    parts.len() >= pattern.len() && pattern.iter().zip(&parts).all(|(pattern, part)| fits(pattern, part))
}

fn is_end(pattern: &[&str], file: &str) -> bool {
    let parts: Vec<&str> = file.split('/').collect();
    parts.len() >= pattern.len()
        && pattern.iter().rev().zip(parts.iter().rev()).all(|(pattern, part)| fits(pattern, part))
}

/// Whether a part of a path is what a pattern says.
fn fits(pattern: &str, part: &str) -> bool {
    // A word in capitals stands for a name: `NAME.rs`.
    let stem = pattern.split('.').next().unwrap_or_default();
    let is_placeholder = stem.len() > 1 && stem.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if pattern == part || (is_placeholder && part.ends_with(&pattern[stem.len()..])) {
        return true;
    }
    let pieces: Vec<&str> = pattern.split(['*', '…']).collect();
    let (first, last) = (pieces[0], pieces[pieces.len() - 1]);
    let Some(mut rest) = part.strip_prefix(first).and_then(|rest| rest.strip_suffix(last)) else {
        return false;
    };
    if pieces.len() == 1 {
        return false;
    }
    for piece in &pieces[1..pieces.len() - 1] {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::of;

    const FILES: [&str; 7] = [
        "CHANGELOG.md",
        "README.md",
        "bench-runs/2026.md",
        "crates/gpu/src/stream.rs",
        "crates/gpu/src/stream/lane.cu",
        "docs/gpu.md",
        "docs/img/monitor.svg",
    ];

    fn problems(page: &str, text: &str) -> Vec<String> {
        let mut pages = BTreeMap::from([("docs/gpu.md", Page::read("# On a GPU\n\n## What it needs\n"))]);
        pages.insert(page, Page::read(text));
        compare(&of(&[&FILES[..], &[page]].concat()), &pages)
    }

    #[test]
    fn what_is_there_passes() {
        let text = "# Top\n[a](docs/gpu.md#what-it-needs) [b](#top) [c](docs) [d](./docs/img/) [e](https://example.org/x#y)
            ![f](docs/img/monitor.svg) `crates/gpu/src/stream.rs` `crates/gpu` `stream/lane.cu` `lane.cu:12` `runs/x.rs.csv`
            `crates/*/src/stream.rs` `crates/NAME/src/NAME.rs` `src/*.rs` `docs/….md` `a/b.toml` `tidemill x` `../x.rs` `.rs`\n";
        assert_eq!(problems("README.md", text), Vec::<String>::new());
    }

    #[test]
    fn broken_links_and_images_are_named_with_their_place() {
        let text = "[a](gone.md)\n[b](gpu.md#gone)\n[c](#gone)\n![d](images/monitor.svg)\n[e](../../shared/x)\n[f](/docs/gpu.md)\n[g](img/Monitor.svg)\n";
        assert_eq!(
            problems("docs/page.md", text),
            [
                "docs/page.md:1: the link `gone.md` leads to nothing in the repository",
                "docs/page.md:2: the link `gpu.md#gone` names a heading that is not there",
                "docs/page.md:3: the link `#gone` names a heading that is not there",
                "docs/page.md:4: the image `images/monitor.svg` leads to nothing in the repository",
                "docs/page.md:5: the link `../../shared/x` leads out of the repository",
                "docs/page.md:6: the link `/docs/gpu.md` leads out of the repository",
                "docs/page.md:7: the link `img/Monitor.svg` leads to nothing in the repository",
            ]
        );
    }

    #[test]
    fn paths_in_code_have_to_exist_unless_the_page_tells_of_the_past() {
        let text = "`crates/gpu/src/gone.rs` `stream/gone.cu` `gpu/stream.rs` `crates/gone/` `docs/NAME.txt` `src/*.cu`\n\n```sh\npython docs/gone.py\n```\n";
        assert_eq!(
            problems("README.md", text),
            [
                "README.md:1: `crates/gpu/src/gone.rs` is no path in the repository",
                "README.md:1: `stream/gone.cu` is no path in the repository",
                "README.md:1: `gpu/stream.rs` is no path in the repository",
                "README.md:1: `crates/gone/` is no path in the repository",
                "README.md:1: `docs/NAME.txt` is no path in the repository",
                "README.md:1: `src/*.cu` is no path in the repository",
                "README.md:4: `docs/gone.py` is no path in the repository",
            ]
        );
        assert_eq!(problems("CHANGELOG.md", text), Vec::<String>::new());
        assert_eq!(problems("bench-runs/2026.md", text), Vec::<String>::new());
    }
}
