//! Reports that a test cannot run on this machine: [`skipped`], with the reason.
//!
//! The test harness knows no such thing and shows nothing that a passing test prints. So the reason is also appended to the file that
//! [`FILE`] names, if it does; `cargo xtask test` names one and ends with what stands in it.

pub mod turn;

use std::fmt::Display;
use std::io::Write;
use std::panic::Location;
use std::path::Path;

/// The variable that names the file for lines of target, test and reason, separated by tabs.
pub const FILE: &str = "TIDEMILL_SKIPS";

/// Says that the test that is running is skipped, in whole or in part, and why.
///
/// # Panics
/// If the named file cannot be written.
#[track_caller]
pub fn skipped(reason: impl Display) {
    let reason = one_line(&reason.to_string());
    eprintln!("skipped: {reason}");
    if let Some(file) = std::env::var_os(FILE).filter(|file| !file.is_empty()) {
        append(Path::new(&file), &line(&target(), &test(Location::caller()), &reason));
    }
}

/// The same, unless this variable is 1: then what is missing is a failure.
///
/// # Panics
/// If the variable is 1.
#[track_caller]
pub fn skipped_unless_required(variable: &str, reason: impl Display) {
    let is_required = std::env::var_os(variable).is_some_and(|value| value == "1");
    assert!(!is_required, "{variable}=1, but: {reason}");
    skipped(reason);
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The test binary, without the hash that cargo adds.
fn target() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem.rsplit_once('-').map_or(stem.clone(), |(name, _)| name.to_owned())
}

/// The harness runs each test on a thread of its name, or all of them on the main thread if one thread was asked for; then the place in
/// the source has to do.
fn test(caller: &Location<'_>) -> String {
    match std::thread::current().name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("a test at {}:{}", caller.file(), caller.line()),
    }
}

fn line(target: &str, test: &str, reason: &str) -> String {
    format!("{target}\t{test}\t{reason}\n")
}

/// In one write, so that lines of several processes do not mix.
fn append(file: &Path, line: &str) {
    let opened = std::fs::OpenOptions::new().create(true).append(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}, named by {FILE}: {error}", file.display()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_target_test_and_reason() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("skips");
        for reason in ["no GPU:\n  hint: install one", "no\tcompiler"] {
            append(&file, &line(&target(), &test(Location::caller()), &one_line(reason)));
        }
        let text = std::fs::read_to_string(file).unwrap();
        let fields: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        assert_eq!(fields.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3], "{text}");
        assert_eq!((fields[0][0], fields[0][2]), ("tidemill_skip", "no GPU: hint: install one"));
        let this = ["tests::a_line_names_target_test_and_reason", "a test at crates/skip/src/lib.rs"];
        assert!(this.iter().any(|name| fields[1][1].starts_with(name)), "{text}");
        assert_eq!(fields[1][2], "no compiler");
    }
}
