//! The table *Where is …?* of ARCHITECTURE.md: every concept in alphabetical order, with the file and the symbol where it lives.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

const PAGE: &str = "ARCHITECTURE.md";
const HEADING: &str = "## Where is …?";

/// Rows that are out of order or lead to nothing, in words.
pub fn check(root: &Path) -> Result<Vec<String>> {
    let page = fs::read_to_string(root.join(PAGE)).with_context(|| format!("cannot read {PAGE}"))?;
    Ok(problems(&page, |path| fs::read_to_string(root.join(path)).ok()))
}

fn problems(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let rows: Vec<(usize, &str, &str)> = page
        .lines()
        .enumerate()
        .skip_while(|(_, line)| *line != HEADING)
        .skip(1)
        .take_while(|(_, line)| !line.starts_with("## "))
        .filter_map(|(at, line)| {
            let (concept, place) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
            Some((at + 1, concept, place.strip_prefix('`')?.strip_suffix('`')?))
        })
        .collect();
    let mut problems = Vec::new();
    if rows.is_empty() {
        problems.push(format!("{PAGE}: there is no table below `{HEADING}`"));
    }
    for pair in rows.windows(2) {
        if pair[0].1.to_lowercase() > pair[1].1.to_lowercase() {
            problems.push(format!("{PAGE}:{}: `{}` stands before `{}`", pair[1].0, pair[0].1, pair[1].1));
        }
    }
    for (line, _, place) in rows {
        let found = place.split_once(':').map(|(path, symbol)| (read(path), symbol));
        match found {
            Some((Some(text), symbol)) if has_word(&text, symbol) => {}
            Some((Some(_), symbol)) => {
                problems.push(format!("{PAGE}:{line}: {place}: there is no `{symbol}`"))
            }
            Some((None, _)) => problems.push(format!("{PAGE}:{line}: {place}: there is no such file")),
            None => problems.push(format!("{PAGE}:{line}: {place}: write `path/of/file.rs:symbol`")),
        }
    }
    problems
}

/// Whether a text has a name as a word of its own.
fn has_word(text: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let name = name.rsplit("::").next().unwrap_or(name);
    text.match_indices(name)
        .any(|(at, _)| !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_must_be_in_order_and_lead_somewhere() {
        let read = |path: &str| (path == "a.rs").then(|| "fn fill_price() {}\nstruct Fill;".to_owned());
        let page =
            |rows: &str| format!("# A\n\n{HEADING}\n\n| concept | place |\n|---|---|\n{rows}\n## Next\n");
        let good = page("| a fill | `a.rs:Fill` |\n| the price | `a.rs:fill_price` |");
        assert_eq!(problems(&good, read), Vec::<String>::new());
        let bad = page("| x | `a.rs:fill` |\n| b | `gone.rs:b` |\n| c | `a.rs` |");
        assert_eq!(
            problems(&bad, read),
            [
                "ARCHITECTURE.md:8: `x` stands before `b`",
                "ARCHITECTURE.md:7: a.rs:fill: there is no `fill`",
                "ARCHITECTURE.md:8: gone.rs:b: there is no such file",
                "ARCHITECTURE.md:9: a.rs: write `path/of/file.rs:symbol`",
            ]
        );
        assert_eq!(problems("# A\n", read).len(), 1);
    }
}
