//! What happens to a fleet while a study runs.

use std::fmt;
use std::time::{Duration, Instant};

/// Something that happened. Workers are named as people know them: host and process.
#[derive(Clone, Debug)]
pub enum FleetEvent {
    /// A worker has shown that it evaluates with the right bits, and takes part from here on.
    Joined {
        /// Its number among those of the run, from 0: its lane.
        lane: usize,
        /// Its name.
        name: String,
        /// Where it evaluates, in words.
        device: String,
    },
    /// A worker cannot take part.
    Refused {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// A worker is gone.
    Lost {
        /// Its lane, if it took part.
        lane: Option<usize>,
        /// Its name.
        name: String,
        /// Why.
        reason: String,
        /// Shards that it had and that are sent again.
        n_shards: usize,
    },
    /// A shard was answered.
    ShardDone(ShardRecord),
    /// A shard is late and goes to a second worker too.
    Hedged {
        /// The worker that is late.
        late: String,
        /// The worker that got a copy.
        name: String,
        /// Trials of the shard.
        n_trials: usize,
    },
    /// A worker could not evaluate a shard, which goes to another one.
    Failed {
        /// Its name.
        name: String,
        /// Why.
        reason: String,
    },
    /// Workers have too little to do.
    Hungry(Hunger),
    /// There is work and no worker.
    Waiting {
        /// For how long already.
        since: Duration,
    },
}

/// How a shard went.
#[derive(Clone, Copy, Debug)]
pub struct ShardRecord {
    /// Lane of the worker.
    pub lane: usize,
    /// Number of the batch.
    pub batch: u64,
    /// Trials of the shard.
    pub n_trials: usize,
    /// When it was sent.
    pub sent: Instant,
    /// How long the worker worked on it.
    pub took: Duration,
    /// Whether its rows were known already, because it was a copy.
    pub is_copy: bool,
}

/// A study that cannot feed its workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hunger {
    /// For which share of their time they had nothing to do.
    pub idle: f64,
    /// How many there are.
    pub n_workers: usize,
    /// What would help.
    pub feeding: Feeding,
}

/// What feeds workers that have too little to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Feeding {
    /// More trials at a time, in a study of its own: results depend on both.
    Larger {
        /// Trials of a batch.
        batch: usize,
        /// Batches by which the sampler lags behind.
        lag: u64,
    },
    /// Nothing of the kind: what the coordinator does takes longer than what they do.
    Proposing {
        /// To propose a batch, learn from it and store it.
        ask: Duration,
        /// To evaluate it, all of them together.
        evaluate: Duration,
    },
}

impl fmt::Display for Hunger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { idle, n_workers, feeding } = self;
        let workers = if *n_workers == 1 { "the worker".into() } else { format!("the {n_workers} workers") };
        write!(f, "{workers} had nothing to do for {:.0} % of the time: ", 100.0 * idle)?;
        match feeding {
            Feeding::Larger { batch, lag } => write!(
                f,
                "the batches of this study are too small for them, or its lag is too short\n  hint: a new study with --batch {batch} --lag \
                 {lag} would feed them; results depend on both, so this one keeps its own"
            ),
            Feeding::Proposing { ask, evaluate } => write!(
                f,
                "a batch is proposed and stored in {:.1} ms and evaluated in {:.1} ms\n  hint: run several studies at a time, or take a \
                 sampler that does not learn",
                1e3 * ask.as_secs_f64(),
                1e3 * evaluate.as_secs_f64()
            ),
        }
    }
}
