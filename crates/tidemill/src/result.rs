//! Results as the documents and pages that commands write, for callers within the process.

use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use tidemill_coloring::{Instance, Outcome};
use tidemill_lab::BacktestReport;

use crate::command::{backtest, color, study};

pub use crate::command::walkforward::{WALK_FILE, WalkedForward, told_pace};

/// What `tidemill backtest --json` prints.
pub fn backtest_document(report: &BacktestReport) -> Value {
    backtest::to_json(report)
}

/// What `tidemill backtest --report` writes.
pub fn backtest_page(report: &BacktestReport) -> Result<String> {
    backtest::report_html(report)
}

/// What `tidemill study show --json` prints.
pub fn study_document(dir: &Path, top: usize) -> Result<Value> {
    study::show::document_of(dir, top)
}

/// What `tidemill study show --html` writes.
pub fn study_page(dir: &Path, top: usize) -> Result<String> {
    study::show::html_of(dir, top)
}

/// What `tidemill color --json` prints; an error if the colouring does not pass the verifier.
pub fn coloring_document(instance: &Instance, outcome: &Outcome, seconds: f64) -> Result<Value> {
    color::output::verified(instance, outcome)?;
    Ok(color::output::answer(instance, outcome, seconds))
}
