//! Searches the parameters of a strategy, and says how the best did on data that the search did not see.
//!
//! `cargo run --release -p tidemill-lab --example sweep`

use tidemill_lab::{Dataset, Experiment, LabError, SweepEvent, open_strategy};

pub(crate) fn main() -> Result<(), LabError> {
    let strategy = open_strategy("zscore-dip", &Default::default())?;
    let experiment = Experiment::new(strategy, Dataset::generated()).split(0.7);
    let report = experiment
        .sweep()
        .trials(256)
        .seed(7)
        .top(3)
        .verdict(false)
        .observe(|event| {
            if let SweepEvent::Improved { trial, best, .. } = event {
                println!("trial {trial} is worth {best:.3}");
            }
        })
        .run()?;
    for best in &report.best {
        let (seen, unseen) = (best.objective(), best.test_objective());
        println!("trial {}: {seen:?} in sample, {unseen:?} out of sample", best.trial.number);
    }
    Ok(())
}
