//! The [`Study`]: asks a sampler for points, evaluates them, tells it the scores and stores the trials; sampler and evaluator run in parallel.
//!
//! **The lag contract.** Batch `b` is asked after exactly the batches `0 … b − 1 − L` were told, in order, where L is the lag. L = 0
//! is strictly serial; with L = 1, the default, the sampler learns from one batch and proposes the next while the evaluator works on
//! the one in between. For every L the points and scores are the same bit for bit, whether the study is pipelined or runs on one
//! thread, whatever the timing, and whether or not it was interrupted and resumed on the way.
//!
//! ```
//! use tidemill_search::{
//!     Batch, Domain, Evaluated, FunctionEvaluator, Param, SamplerKind, SamplerSettings, Score, Scores, Space, Study,
//! };
//!
//! let range = Domain::Float { low: -1.0, high: 1.0, step: None, log: false };
//! let space = Space { params: vec![Param::new("x", range, 0.0)] };
//! let mut sampler = SamplerKind::Sobol.build(&space, &SamplerSettings::new(42)).unwrap();
//! let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
//!     let scores: Vec<Score> = batch.points.column(0).iter().map(|x| Score::new(-x * x)).collect();
//!     Ok(Evaluated { scores: Scores::single(&scores), metrics: vec![] })
//! });
//! let summary = Study::new(&space, &mut *sampler).trials(1000).batch(64).run(&mut evaluator).unwrap();
//! assert_eq!(summary.n_trials, 1000);
//! ```

mod control;
mod error;
mod evaluator;
mod in_flight;
mod monitor;
mod pipeline;
mod replay;
mod schedule;
mod serial;
mod store;
mod timing;

pub use control::{Change, Controller, Settings};
pub use error::StudyError;
pub use evaluator::{Batch, EvaluateError, Evaluated, Evaluator, FunctionEvaluator, Interrupted};
pub use monitor::StudyEvent;
pub use timing::{BatchStart, Timing};

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::folder::{ROWS_PER_PART, StudyFolder};
use crate::sampler::Sampler;
use crate::space::Space;
use crate::study::in_flight::InFlight;
use crate::study::monitor::{Observer, StudyMonitor};
use crate::study::replay::Replayed;
use crate::study::schedule::Schedule;
use crate::study::store::Store;
use crate::study::timing::BusyClock;

/// A search that is ready to run: what to ask, how often, in which steps, and where to keep it.
pub struct Study<'a> {
    space: &'a Space,
    sampler: &'a mut dyn Sampler,
    n_trials: u64,
    batch: usize,
    lag: usize,
    is_pipelined: bool,
    n_objectives: usize,
    metric_names: Vec<&'a str>,
    folder: Option<&'a StudyFolder>,
    rows_per_part: usize,
    stop: Option<&'a AtomicBool>,
    observer: Option<Observer<'a>>,
    recorded: Vec<Change>,
    controller: Option<&'a mut dyn Controller>,
}

/// How a study went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StudySummary {
    /// Number of finished trials, those read back included.
    pub n_trials: u64,
    /// Number of finished batches, those read back included.
    pub n_batches: u64,
    /// Number of trials that were read back from the folder.
    pub n_replayed: u64,
    /// Whether nothing is left to do: all trials are finished, or a finite sampler has run out.
    pub is_complete: bool,
    /// Whether the sampler ran out of points before all trials were done: each point of the space, or of the grid, was tried.
    pub is_exhausted: bool,
    /// Where the time of the batches that were evaluated now went.
    pub timing: Timing,
    /// Time from start to end.
    pub wall: Duration,
}

impl<'a> Study<'a> {
    /// A study of a space by a fresh sampler: 1,000 trials in batches of 64 with a lag of 1, pipelined, one objective, no folder.
    pub fn new(space: &'a Space, sampler: &'a mut dyn Sampler) -> Self {
        Self {
            space,
            sampler,
            n_trials: 1000,
            batch: 64,
            lag: 1,
            is_pipelined: true,
            n_objectives: 1,
            metric_names: Vec::new(),
            folder: None,
            rows_per_part: ROWS_PER_PART,
            stop: None,
            observer: None,
            recorded: Vec::new(),
            controller: None,
        }
    }

    /// How many trials there are in total, those of earlier runs in the same folder included. A finite sampler may end earlier.
    ///
    /// A study in a folder may be given more of them later: it then equals one that had so many from the start, with the same sampler.
    pub fn trials(mut self, n_trials: u64) -> Self {
        self.n_trials = n_trials;
        self
    }

    /// How many trials are asked and evaluated at a time, at least 1; of the last batch fewer may be evaluated. Results depend on it.
    pub fn batch(mut self, batch: usize) -> Self {
        self.batch = batch.max(1);
        self
    }

    /// By how many batches what the sampler knows lags behind. Results depend on it.
    pub fn lag(mut self, lag: usize) -> Self {
        self.lag = lag;
        self
    }

    /// Whether the sampler, the evaluator and the disk each have a thread. Results do not depend on it.
    pub fn pipeline(mut self, is_pipelined: bool) -> Self {
        self.is_pipelined = is_pipelined;
        self
    }

    /// How many objectives the evaluator scores, at least 1.
    pub fn objectives(mut self, n_objectives: usize) -> Self {
        self.n_objectives = n_objectives.max(1);
        self
    }

    /// Names of the metrics that the evaluator returns.
    pub fn metrics(mut self, names: &[&'a str]) -> Self {
        self.metric_names = names.to_vec();
        self
    }

    /// Stores every finished batch in this folder, and resumes after those that are there.
    pub fn folder(mut self, folder: &'a StudyFolder) -> Self {
        self.folder = Some(folder);
        self
    }

    /// How many trials a part of the folder holds.
    pub fn rows_per_part(mut self, rows_per_part: usize) -> Self {
        self.rows_per_part = rows_per_part;
        self
    }

    /// Ends the study early once this is set: batches in flight are still collected and kept, no others are begun.
    pub fn stop(mut self, stop: &'a AtomicBool) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Hears of every batch, in the thread that runs the study.
    pub fn observe(mut self, observer: impl FnMut(StudyEvent<'_>) + 'a) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Asks a controller before each batch what is to change.
    pub fn control(mut self, controller: &'a mut dyn Controller) -> Self {
        self.controller = Some(controller);
        self
    }

    /// Changes that controllers made in earlier runs of the study, as recorded; they apply again at the same batches.
    pub fn changes(mut self, mut recorded: Vec<Change>) -> Self {
        // A run that was killed may have decided on a batch that it did not come to, and the next one on earlier batches.
        recorded.sort_by_key(|change| change.batch);
        self.recorded = recorded;
        self
    }

    /// Runs the study to its end, or until it is stopped.
    ///
    /// If the folder holds trials, the study first replays them through the sampler. After an error all batches that were finished are
    /// in the folder, and running again with a fresh sampler resumes after them.
    pub fn run(self, evaluator: &mut dyn Evaluator) -> Result<StudySummary, StudyError> {
        let began = Instant::now();
        let mut watch = StudyMonitor {
            observer: self.observer,
            stop: self.stop,
            n_trials: 0,
            n_batches: 0,
            timing: Timing::default(),
        };
        let mut schedule =
            Schedule::new(self.sampler, self.space.len(), self.n_trials, self.batch, self.lag, self.recorded);
        let mut replayed = Replayed::default();
        let mut store = None;
        if let Some(folder) = self.folder {
            let folder = folder.locked()?;
            let writer = folder.writer(self.space, &self.metric_names, self.n_objectives)?;
            let stop = self.stop;
            let is_stopped = || stop.is_some_and(|stop| stop.load(std::sync::atomic::Ordering::SeqCst));
            replayed = replay::replay(&mut schedule, &folder, self.space, is_stopped, |finished| {
                watch.finished(finished, true);
            })?;
            store = Some(Store::new(folder, writer.with_rows_per_part(self.rows_per_part)));
        }
        schedule.control(self.controller);
        let n_replayed = replayed.n_trials;
        let clock = BusyClock::default();
        let is_complete = if replayed.is_stopped {
            Ok(false)
        } else {
            let in_flight = InFlight::new(evaluator, &clock, self.n_objectives, self.metric_names.len());
            if self.is_pipelined {
                pipeline::run(&mut schedule, replayed, in_flight, &clock, &mut store, &mut watch)
            } else {
                serial::run(&mut schedule, replayed, in_flight, &clock, &mut store, &mut watch)
            }
        };
        if let Some(store) = store {
            store.close(matches!(is_complete, Ok(true)))?;
        }
        Ok(StudySummary {
            n_trials: watch.n_trials,
            n_batches: watch.n_batches,
            n_replayed,
            is_complete: is_complete?,
            is_exhausted: schedule.is_exhausted(),
            timing: watch.timing,
            wall: began.elapsed(),
        })
    }
}
