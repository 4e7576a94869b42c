//! `--out` and `--journal`: where results and events are kept.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tidemill_scan::{RecordContext, ScanEvent, write_history, write_rows};
use tidemill_telemetry::Journal;

use super::output::ScanReport;

/// Files that a scan writes.
pub struct Store {
    rows: Option<PathBuf>,
    history: Option<PathBuf>,
    journals: Vec<Journal>,
}

impl Store {
    /// Checks the paths and opens the journals.
    pub fn open(out: Option<&Path>, journal: Option<&Path>, history: bool) -> Result<Self> {
        let mut store = Self { rows: None, history: None, journals: Vec::new() };
        if let Some(out) = out {
            let is_file = out.extension().is_some_and(|end| end.eq_ignore_ascii_case("parquet"));
            if is_file {
                tidemill_market::check_output(out).context("--out")?;
                store.rows = Some(out.to_owned());
                store.history = history.then(|| out.with_extension("history.parquet"));
            } else if out.extension().is_some() && !out.is_dir() {
                bail!(
                    "--out {}: expected a .parquet file or a folder\n  hint: for JSON write --json > {}",
                    out.display(),
                    out.with_extension("json").display()
                );
            } else {
                std::fs::create_dir_all(out).with_context(|| format!("--out {}", out.display()))?;
                store.rows = Some(out.join("results.parquet"));
                store.history = history.then(|| out.join("history.parquet"));
                store.journals.push(Journal::open_append(&out.join("journal.jsonl"))?);
            }
        }
        if let Some(journal) = journal {
            store.journals.push(Journal::open_append(journal).context("--journal")?);
        }
        Ok(store)
    }

    /// Records an event in all journals.
    pub fn record(&self, event: &ScanEvent, context: &RecordContext) {
        for record in event.to_events(context) {
            for journal in &self.journals {
                journal.record(record.clone());
            }
        }
    }

    /// Writes the rows and, if requested, the history; those of the scan before are replaced.
    pub fn write(&self, report: &ScanReport<'_>) -> Result<()> {
        let (rows, times_ms) = (report.rows(), report.market.times_ms());
        if let Some(path) = &self.rows {
            write_rows(path, &rows, &times_ms)?;
        }
        if let Some(path) = &self.history {
            write_history(path, &rows, &report.market.symbols(), &times_ms)?;
        }
        for path in [&self.rows, &self.history].into_iter().flatten() {
            eprintln!("wrote {}", path.display());
        }
        Ok(())
    }

    /// Closes the journals.
    pub fn close(self) -> Result<()> {
        for journal in self.journals {
            journal.close()?;
        }
        Ok(())
    }
}
