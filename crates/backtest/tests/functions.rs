//! The table of functions and what is written about it: the pages list every function, and adding one touches few files.
//!
//! With `TIDEMILL_BLESS=1` the lists between `<!-- functions -->` and `<!-- end -->` are written into the pages.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidemill_backtest::compile::{Signature, functions};
use tidemill_market::indicator::{FUNCTIONS, Group};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Functions that the pages explain in sentences rather than in the index.
fn is_apart(group: Group) -> bool {
    matches!(group, Group::Time | Group::Pointwise | Group::Elsewhere)
}

/// The groups whose functions are indicators, each with its functions.
fn over_series() -> impl Iterator<Item = (String, Vec<&'static Signature>)> {
    Group::ALL.into_iter().filter(|group| !is_apart(*group)).map(|group| {
        let of_group = functions().iter().filter(|function| function.group == group).collect();
        (format!("{group:?}").to_lowercase(), of_group)
    })
}

/// How a function is written, with the names of its results.
fn usage(function: &Signature) -> String {
    let call = &function.usage[..=function.usage.find(')').expect("a call ends")];
    let fields: Vec<String> = function.fields().iter().map(|field| format!(".{field}")).collect();
    if fields.is_empty() { format!("`{call}`") } else { format!("`{call}` `{}`", fields.join(" ")) }
}

/// Compares the list in a page with this one; gives the rest of the page.
fn check_list(page: &str, list: &str) -> String {
    let path = root().join("docs").join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- functions -->\n\n").expect("the page has a list of functions");
    let (found, after) = rest.split_once("\n<!-- end -->\n").expect("the list ends");
    if found != list && std::env::var_os("TIDEMILL_BLESS").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{before}<!-- functions -->\n\n{list}\n<!-- end -->\n{after}")).unwrap();
    } else {
        assert_eq!(found, list, "{page}: TIDEMILL_BLESS=1 renews the list");
    }
    format!("{before}{after}")
}

#[test]
fn the_index_of_indicators_is_that_of_the_table() {
    let mut list = String::from("| | function | is |\n|---|---|---|\n");
    for (group, functions) in over_series() {
        for (at, function) in functions.iter().enumerate() {
            let group = if at == 0 { group.as_str() } else { "" };
            list += &format!("| {group} | {} | {} |\n", usage(function), function.summary);
        }
    }
    let rest = check_list("indicators.md", &list);
    for function in over_series().flat_map(|(_, functions)| functions) {
        assert!(
            rest.contains(&format!("| `{}(", function.name)),
            "no row tells how `{}` is computed",
            function.name
        );
    }
}

#[test]
fn the_list_of_the_strategy_language_is_that_of_the_table() {
    let mut list = String::from("| | |\n|---|---|\n");
    for (group, functions) in over_series() {
        let usages: Vec<String> = functions.into_iter().map(usage).collect();
        list += &format!("| {group} | {} |\n", usages.join(", "));
    }
    let rest = check_list("strategy-language.md", &list);
    for function in functions().iter().filter(|f| is_apart(f.group)) {
        assert!(rest.contains(&format!("`{}(", function.name)), "`{}` is not on the page", function.name);
    }
}

#[test]
fn names_of_functions_are_unique_and_calls_are_complete() {
    let names: BTreeSet<&str> = functions().iter().map(|function| function.name).collect();
    assert_eq!(names.len(), functions().len());
    let rows: BTreeSet<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    assert_eq!(rows.len(), FUNCTIONS.len());
    for function in functions() {
        let call = &function.usage[..=function.usage.find(')').unwrap()];
        let n_args = call[call.find('(').unwrap() + 1..call.len() - 1]
            .split(", ")
            .filter(|arg| !matches!(*arg, "" | "…"));
        assert_eq!(n_args.count(), function.args.len(), "{call}");
        assert!(!function.summary.is_empty(), "{call}");
    }
    for function in FUNCTIONS {
        assert!(function.passes.iter().any(|(kernel, _)| *kernel == function.name) || function.is_sums());
        assert!(function.twin.1.contains(&format!("KERNEL({}", function.passes[0].0)), "{}", function.name);
    }
}

/// The files that name a function, tables of numbers aside.
fn files_naming(name: &str, folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let file = entry.file_name();
        let file = file.to_string_lossy();
        if entry.file_type().unwrap().is_dir() {
            if !file.starts_with('.') && !matches!(&*file, "target" | "shared" | "__pycache__") {
                files_naming(name, &path, found);
            }
        } else if !file.ends_with(".csv")
            && let Ok(text) = fs::read_to_string(&path)
            && text.to_lowercase().split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name)
        {
            let below = path.strip_prefix(root()).unwrap();
            found.insert(below.to_string_lossy().replace('\\', "/"));
        }
    }
}

/// What CONTRIBUTING.md says an indicator needs is all it needs: one that nothing else is made of stands nowhere else.
#[test]
fn an_indicator_is_named_in_the_files_of_its_recipe_only() {
    // In two parts, or this file would name it as well.
    let name = ["c", "ci"].concat();
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let recipe = text.split("\n## ").find(|section| section.starts_with("Add an indicator\n")).unwrap();
    let steps = recipe.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let listed: BTreeSet<String> = steps
        .map(|line| line.split('`').nth(1).expect("a step names its file").replace("NAME", &name))
        .collect();
    let mut found = BTreeSet::new();
    files_naming(&name, &root(), &mut found);
    assert_eq!(found, listed);
    assert!(found.len() <= 7, "{found:?}");
}
