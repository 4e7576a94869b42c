//! Why a fleet cannot go on.

use std::time::Duration;

/// Why a fleet cannot go on. All batches that were finished are kept, as after every error.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// Two workers gave different results for the same trials.
    #[error(
        "the workers {first} and {second} gave different results for trials {from} to {to}; {verdict}\n  hint: results that {liar} gave before \
         may be wrong too: begin again in another folder without it, and check that machine (memory, driver, overclocking)"
    )]
    Differ {
        /// The worker that answered first.
        first: String,
        /// The other one.
        second: String,
        /// The first of these trials.
        from: u64,
        /// The last of them.
        to: u64,
        /// Whom this machine's CPU contradicts, in words.
        verdict: String,
        /// The worker that is not to be trusted.
        liar: String,
    },
    /// There is no worker, and there was none for a while.
    #[error("no worker has been there for {} s{}\n  hint: the same command goes on once there is one", waited.as_secs(), because(last))]
    NoWorker {
        /// For how long.
        waited: Duration,
        /// What became of the last ones.
        last: Vec<String>,
    },
    /// There is no worker, and none will come.
    #[error("no worker is left, and none will come: {reason}{}", because(last))]
    NoneLeft {
        /// Why none will come.
        reason: String,
        /// What became of the last ones.
        last: Vec<String>,
    },
    /// Several workers could not evaluate a shard.
    #[error(
        "trials {from} to {to} could not be evaluated by {n_tries} workers, the last of which said: {reason}"
    )]
    Unanswered {
        /// The first of these trials.
        from: u64,
        /// The last of them.
        to: u64,
        /// How often it was tried.
        n_tries: u32,
        /// The last reason.
        reason: String,
    },
}

fn because(last: &[String]) -> String {
    last.iter().map(|reason| format!("\n  {reason}")).collect()
}
