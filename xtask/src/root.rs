//! What belongs into the root folder. It is the first thing that a visitor sees, and where stray files end up.

use crate::repository::Repository;

/// Every file and folder of the root. What is added there is added here, on purpose.
const KEPT: &[&str] = &[
    ".cargo",
    ".ci",
    ".github",
    ".gitignore",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "bench-runs",
    "benches",
    "crates",
    "docs",
    "pyproject.toml",
    "python",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "strategies",
    "xtask",
];

/// What is in the root and not in the list, or the other way round, in words.
pub fn check(repository: &Repository) -> Vec<String> {
    compare(repository, KEPT)
}

fn compare(repository: &Repository, kept: &[&str]) -> Vec<String> {
    let entries = repository.root_entries();
    let unknown = entries.iter().filter(|entry| !kept.contains(entry)).map(|entry| {
        format!("{entry} does not belong into the root; move it, or add it to the list in xtask/src/root.rs")
    });
    let missing = kept
        .iter()
        .filter(|name| !entries.contains(*name))
        .map(|name| format!("{name} is in the list of xtask/src/root.rs and not in the root"));
    unknown.chain(missing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::of;

    #[test]
    fn what_is_listed_passes() {
        assert_eq!(
            compare(&of(&["Cargo.toml", "docs/a.md", "docs/b.md"]), &["Cargo.toml", "docs"]),
            Vec::<String>::new()
        );
    }

    #[test]
    fn strays_and_missing_ones_are_named() {
        assert_eq!(
            compare(&of(&["Cargo.toml", "numpy.whl", "scratch/a.md"]), &["Cargo.toml", "docs"]),
            [
                "numpy.whl does not belong into the root; move it, or add it to the list in xtask/src/root.rs",
                "scratch does not belong into the root; move it, or add it to the list in xtask/src/root.rs",
                "docs is in the list of xtask/src/root.rs and not in the root",
            ]
        );
    }
}
