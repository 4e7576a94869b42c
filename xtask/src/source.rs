//! Rules about source files that no compiler checks: names, printing, and that each crate takes part in the shared lints.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Names that say nothing about what a file holds, and so attract everything.
const EMPTY_NAMES: [&str; 10] =
    ["util", "utils", "common", "core", "base", "helper", "helpers", "misc", "types", "manager"];

/// Crates that talk to people.
const MAY_PRINT: [&str; 4] = ["tidemill", "tidemill-bench", "tidemill-skip", "xtask"];

const PRINTS: [&str; 4] = ["println!", "eprintln!", "print!", "eprint!"];

/// Everything that contradicts the rules in one crate, in words.
pub fn check(crate_name: &str, crate_dir: &Path) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let manifest = crate_dir.join("Cargo.toml");
    if !has_shared_lints(&read(&manifest)?) {
        problems.push(format!("{crate_name}: Cargo.toml lacks `[lints] workspace = true`"));
    }
    let mut files = Vec::new();
    collect(crate_dir, &mut files)?;
    for file in files {
        let shown = file.strip_prefix(crate_dir).unwrap_or(&file).display().to_string();
        if has_empty_name(&file) {
            problems.push(format!(
                "{crate_name}: {shown} has a name that says nothing; name it after its one concept"
            ));
        }
        let is_library_code = file.starts_with(crate_dir.join("src"))
            && file.file_stem().is_none_or(|stem| stem != "tests")
            && !MAY_PRINT.contains(&crate_name);
        if is_library_code {
            let prints = printing_lines(&read(&file)?);
            problems.extend(prints.iter().map(|line| {
                format!("{crate_name}: {shown}:{line} prints; a library returns or records its messages")
            }));
        }
    }
    Ok(problems)
}

fn has_shared_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.next() == Some("workspace = true")
}

fn has_empty_name(file: &Path) -> bool {
    file.file_stem().and_then(|stem| stem.to_str()).is_some_and(|stem| EMPTY_NAMES.contains(&stem))
}

/// Numbers of the lines that print, from 1; comments and what follows the first test module do not count.
fn printing_lines(source: &str) -> Vec<usize> {
    let prints = |line: &str| {
        let is_comment = line.starts_with("//");
        !is_comment
            && PRINTS.iter().any(|name| {
                line.find(name).is_some_and(|at| {
                    // `my_print!` is another macro.
                    !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
                })
            })
    };
    source
        .lines()
        .enumerate()
        .take_while(|(_, line)| line.trim() != "#[cfg(test)]")
        .filter(|(_, line)| prints(line.trim()))
        .map(|(line_idx, _)| line_idx + 1)
        .collect()
}

/// All Rust files and kernels below a folder, in a fixed order.
pub fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut entries: Vec<PathBuf> = fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .with_context(|| format!("cannot list {}", dir.display()))?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            let is_output = path.file_name().is_some_and(|name| name == "target");
            if !is_output {
                collect(&path, files)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "cu") {
            files.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"x\"\n\n[lints]\nworkspace = true\n";

    fn crate_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, contents) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, contents).unwrap();
        }
        dir
    }

    #[test]
    fn a_quiet_crate_passes() {
        let source =
            "// println!(\"no\")\nfn f() {}\n#[cfg(test)]\nmod tests { fn g() { println!(\"skipped\"); } }\n";
        let dir = crate_with(&[("Cargo.toml", MANIFEST), ("src/lib.rs", source), ("src/ema.rs", "")]);
        assert_eq!(check("tidemill-market", dir.path()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn each_rule_names_the_file() {
        let dir = crate_with(&[
            ("Cargo.toml", "[package]\nname = \"x\"\n"),
            ("src/lib.rs", "fn f() {\n    eprintln!(\"x\");\n}\n"),
            ("src/utils.rs", ""),
            ("kernels/common.cu", ""),
            ("tests/loud.rs", "fn main() { println!(\"fine in a test\"); }"),
        ]);
        assert_eq!(
            check("tidemill-market", dir.path()).unwrap(),
            [
                "tidemill-market: Cargo.toml lacks `[lints] workspace = true`",
                "tidemill-market: kernels/common.cu has a name that says nothing; name it after its one concept",
                "tidemill-market: src/lib.rs:2 prints; a library returns or records its messages",
                "tidemill-market: src/utils.rs has a name that says nothing; name it after its one concept",
            ]
        );
    }

    #[test]
    fn the_application_may_print_and_writing_to_a_string_is_not_printing() {
        let loud = crate_with(&[("Cargo.toml", MANIFEST), ("src/main.rs", "fn main() { println!(\"x\"); }")]);
        assert!(check("tidemill", loud.path()).unwrap().is_empty());
        assert_eq!(printing_lines("write!(f, \"a\");\nmy_print!(1);\nlet x = print!(\"a\");"), [3]);
    }
}
