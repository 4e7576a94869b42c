//! Whether the winner of a search holds up: here on a random walk, where there is nothing to find.
//!
//! `cargo run --release -p tidemill-lab --example verdict`

use tidemill_lab::{Dataset, Experiment, LabError, open_strategy};
use tidemill_market::synth;

pub(crate) fn main() -> Result<(), LabError> {
    let strategy = open_strategy("ema-cross", &Default::default())?;
    let experiment = Experiment::new(strategy, Dataset::of(synth::walk(1, 1, 8_000))).split(0.7);
    let report = experiment.sweep().trials(256).run()?;
    let Some(verdict) = report.verdict else { return Ok(()) };
    for winner in verdict.winners.iter().take(1) {
        println!("trial {} {}", winner.trial, winner.sentence);
        for check in &winner.verdict.checks {
            println!("  {} {}: {}", if check.survived { "+" } else { "-" }, check.name, check.words);
        }
    }
    Ok(())
}
