//! What was not tested: tests that skipped with a reason, and ignored tests.
//!
//! Tests say it through the crate `tidemill-skip`, which appends to the file that a variable names.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::stress::test_source::{TestFn, test_fns};

/// The variable that names the file.
pub const FILE: &str = "TIDEMILL_SKIPS";

/// Reasons, and the tests that gave them.
type Reasons = BTreeMap<String, BTreeSet<String>>;

/// An empty file for the skips of one run.
pub fn fresh_file(target_dir: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(target_dir)?;
    let file = target_dir.join("skipped-tests");
    std::fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// All that was skipped, as text.
pub fn report(file: &Path, ignored: &[TestFn]) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let mut reasons = reasons(&text);
    for test in ignored {
        let reason = test.ignored.as_deref().unwrap_or("no reason is given");
        reasons.entry(format!("only with --ignored: {reason}")).or_default().insert(test.shown());
    }
    shown(&reasons)
}

/// The tests that are marked as ignored, in all crates.
pub fn ignored(root: &Path) -> Result<Vec<TestFn>> {
    Ok(test_fns(root)?.into_iter().filter(|test| test.ignored.is_some()).collect())
}

fn reasons(text: &str) -> Reasons {
    let mut reasons = Reasons::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, '\t');
        if let (Some(target), Some(test), Some(reason)) = (fields.next(), fields.next(), fields.next()) {
            reasons.entry(reason.to_owned()).or_default().insert(format!("{target}: {test}"));
        }
    }
    reasons
}

fn shown(reasons: &Reasons) -> String {
    let n_tests: BTreeSet<&String> = reasons.values().flatten().collect();
    let mut text = match n_tests.len() {
        0 => "no test was skipped\n".to_owned(),
        1 => "1 test was skipped, in whole or in part\n".to_owned(),
        n => format!("{n} tests were skipped, in whole or in part\n"),
    };
    for (reason, tests) in reasons {
        let _ = writeln!(text, "    {reason}");
        for test in tests {
            let _ = writeln!(text, "        {test}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_listed_once_under_their_reason() {
        let lines = "runtime\tpool::a\tno GPU\nruntime\tpool::a\tno GPU\ngpu\tb\tno GPU: x\tand y\ntorn";
        let dir = tempfile::tempdir().unwrap();
        let file = fresh_file(dir.path()).unwrap();
        assert_eq!(report(&file, &[]), "no test was skipped\n");
        std::fs::write(&file, lines).unwrap();
        let ignored = TestFn::example("crates/a/tests/b.rs", "c", Some("3 GB"));
        assert_eq!(
            report(&file, &[ignored]),
            "3 tests were skipped, in whole or in part\n    no GPU\n        runtime: pool::a\n    \
             no GPU: x\tand y\n        gpu: b\n    only with --ignored: 3 GB\n        crates/a/tests/b.rs: c\n"
        );
        assert_eq!(
            std::fs::read_to_string(fresh_file(dir.path()).unwrap()).unwrap(),
            "",
            "each run begins anew"
        );
    }
}
