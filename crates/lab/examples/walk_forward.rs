//! Searches again and again through time, and trades each winner on the time that follows.
//!
//! `cargo run --release -p tidemill-lab --example walk_forward`

use tidemill_lab::{Dataset, Experiment, LabError, Pace, open_strategy};

const DAY_MS: i64 = 86_400_000;

pub(crate) fn main() -> Result<(), LabError> {
    let strategy = open_strategy("zscore-dip", &Default::default())?;
    let experiment = Experiment::new(strategy, Dataset::generated());
    let pace = Pace { train_ms: 90 * DAY_MS, test_ms: 45 * DAY_MS, anchored: false };
    let report = experiment.walk_forward(pace).trials(64).run()?;
    if let Some(summary) = report.summary {
        for window in &summary.windows {
            println!("{}", window.sentence());
        }
        println!("{}", summary.line());
    }
    Ok(())
}
