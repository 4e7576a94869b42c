//! Who may import whom.
//!
//! The table is the map of ARCHITECTURE.md: imports point upwards only. Dependencies for tests count too, because a test that needs
//! a forbidden crate belongs into another crate.

use std::collections::BTreeSet;

/// Everybody's tests may say why they skip.
const SKIP: &str = "tidemill-skip";

/// One workspace crate and what it may import of the others.
struct Row {
    name: &'static str,
    may_import: &'static [&'static str],
}

const TABLE: &[Row] = &[
    Row { name: SKIP, may_import: &[] },
    Row { name: "tidemill-telemetry", may_import: &[] },
    Row { name: "tidemill-page", may_import: &[] },
    Row { name: "tidemill-gpu", may_import: &["tidemill-telemetry"] },
    Row { name: "tidemill-search", may_import: &["tidemill-telemetry"] },
    Row { name: "tidemill-fleet", may_import: &["tidemill-search"] },
    Row { name: "tidemill-verdict", may_import: &["tidemill-search"] },
    Row { name: "tidemill-market", may_import: &["tidemill-gpu", "tidemill-telemetry"] },
    Row {
        name: "tidemill-backtest",
        may_import: &["tidemill-market", "tidemill-gpu", "tidemill-search", "tidemill-telemetry"],
    },
    Row { name: "tidemill-scan", may_import: &["tidemill-market", "tidemill-gpu", "tidemill-telemetry"] },
    Row { name: "tidemill-coloring", may_import: &["tidemill-gpu", "tidemill-search", "tidemill-telemetry"] },
    Row {
        name: "tidemill-lab",
        may_import: &[
            "tidemill-backtest",
            "tidemill-fleet",
            "tidemill-search",
            "tidemill-verdict",
            "tidemill-market",
            "tidemill-gpu",
            "tidemill-telemetry",
        ],
    },
    Row { name: "tidemill-dash", may_import: &["tidemill-telemetry", "tidemill-page"] },
    Row {
        name: "tidemill",
        may_import: &[
            "tidemill-telemetry",
            "tidemill-gpu",
            "tidemill-fleet",
            "tidemill-search",
            "tidemill-verdict",
            "tidemill-market",
            "tidemill-backtest",
            "tidemill-lab",
            "tidemill-scan",
            "tidemill-coloring",
            "tidemill-page",
            "tidemill-dash",
        ],
    },
    Row {
        name: "tidemill-bench",
        may_import: &[
            "tidemill",
            "tidemill-telemetry",
            "tidemill-gpu",
            "tidemill-fleet",
            "tidemill-search",
            "tidemill-verdict",
            "tidemill-market",
            "tidemill-backtest",
            "tidemill-lab",
            "tidemill-scan",
            "tidemill-coloring",
        ],
    },
    Row {
        name: "tidemill-py",
        may_import: &[
            "tidemill",
            "tidemill-telemetry",
            "tidemill-gpu",
            "tidemill-fleet",
            "tidemill-search",
            "tidemill-market",
            "tidemill-backtest",
            "tidemill-lab",
            "tidemill-scan",
            "tidemill-coloring",
        ],
    },
    Row { name: "xtask", may_import: &[] },
];

/// An outside crate that only some may use, and the reason.
struct Reserved {
    name: &'static str,
    users: &'static [&'static str],
    reason: &'static str,
}

const RESERVED: &[Reserved] = &[
    Reserved {
        name: "cudarc",
        users: &["tidemill-gpu"],
        reason: "the device is reached through one runtime",
    },
    Reserved {
        name: "anyhow",
        users: &["tidemill", "tidemill-bench", "tidemill-py", "xtask"],
        reason: "the errors of a library are data",
    },
    Reserved {
        name: "clap",
        users: &["tidemill", "tidemill-bench"],
        reason: "only programs have a command line",
    },
    Reserved { name: "indicatif", users: &["tidemill", "tidemill-bench"], reason: "libraries never print" },
    Reserved { name: "pyo3", users: &["tidemill-py"], reason: "Python is one thin shell" },
];

/// A workspace crate and the names of all crates it depends on.
pub struct Crate {
    pub name: String,
    /// What it depends on, for building and for tests.
    pub dependencies: BTreeSet<String>,
}

impl From<&cargo_metadata::Package> for Crate {
    fn from(package: &cargo_metadata::Package) -> Self {
        Self {
            name: package.name.to_string(),
            dependencies: package.dependencies.iter().map(|dependency| dependency.name.clone()).collect(),
        }
    }
}

/// Everything that contradicts the tables, in words.
pub fn check(crates: &[Crate]) -> Vec<String> {
    let members: BTreeSet<&str> = crates.iter().map(|member| member.name.as_str()).collect();
    let mut problems = Vec::new();
    for member in crates {
        let name = &member.name;
        let Some(row) = TABLE.iter().find(|row| row.name == name) else {
            problems.push(format!(
                "{name} is not in the import table; add its row to xtask/src/import.rs and to ARCHITECTURE.md"
            ));
            continue;
        };
        for dependency in &member.dependencies {
            let is_allowed = dependency == SKIP || row.may_import.contains(&dependency.as_str());
            if members.contains(dependency.as_str()) && !is_allowed {
                let allowed = match row.may_import {
                    [] => "no crate of the workspace".to_owned(),
                    names => names.join(", "),
                };
                problems.push(format!("{name} imports {dependency}, but its row allows {allowed}"));
            }
            if let Some(reserved) = RESERVED.iter().find(|reserved| reserved.name == dependency)
                && !reserved.users.contains(&name.as_str())
            {
                let users = reserved.users.join(", ");
                problems.push(format!(
                    "{name} imports {dependency}, which is for {users} alone: {}",
                    reserved.reason
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, dependencies: &[&str]) -> Crate {
        Crate {
            name: name.into(),
            dependencies: dependencies.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn imports_that_point_upwards_pass() {
        let crates = [
            member("tidemill-telemetry", &["serde"]),
            member("tidemill-search", &["tidemill-telemetry", "serde"]),
            member("tidemill-market", &["tidemill-telemetry"]),
            member("tidemill-backtest", &["tidemill-market", "tidemill-search"]),
            member("tidemill", &["tidemill-backtest", "tidemill-search", "anyhow", "clap"]),
            member("xtask", &["anyhow"]),
        ];
        assert_eq!(check(&crates), Vec::<String>::new());
    }

    #[test]
    fn a_downward_import_names_the_edge_and_the_row() {
        let crates = [
            member("tidemill-telemetry", &["tidemill-search"]),
            member("tidemill-search", &["tidemill-market"]),
            member("tidemill-market", &[]),
        ];
        assert_eq!(
            check(&crates),
            [
                "tidemill-telemetry imports tidemill-search, but its row allows no crate of the workspace",
                "tidemill-search imports tidemill-market, but its row allows tidemill-telemetry",
            ]
        );
    }

    #[test]
    fn reserved_crates_are_for_their_users_alone() {
        let crates = [
            member("tidemill-gpu", &["cudarc"]),
            member("tidemill-backtest", &["cudarc"]),
            member("tidemill-search", &["anyhow"]),
        ];
        assert_eq!(
            check(&crates),
            [
                "tidemill-backtest imports cudarc, which is for tidemill-gpu alone: the device is reached through one runtime",
                "tidemill-search imports anyhow, which is for tidemill, tidemill-bench, tidemill-py, xtask alone: the errors of a library are data",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_row_is_a_problem() {
        let problems = check(&[member("tidemill-utils", &[])]);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("tidemill-utils is not in the import table"));
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        for (row_idx, row) in TABLE.iter().enumerate() {
            for name in row.may_import {
                let imported_idx = TABLE.iter().position(|row| row.name == *name);
                assert!(imported_idx.is_some_and(|idx| idx < row_idx), "{} may import {name}", row.name);
            }
        }
    }
}
