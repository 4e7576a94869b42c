//! Strategy search as a library: an [`Experiment`] is a strategy on data; from it come a [`Sweep`], a [`WalkForward`] and a back-test, each of
//! which returns its report as data.
//!
//! ```
//! use tidemill_lab::{Dataset, Experiment, open_strategy};
//!
//! let strategy = open_strategy("zscore-dip", &Default::default())?;
//! let experiment = Experiment::new(strategy, Dataset::generated()).split(0.7);
//! let report = experiment.sweep().trials(64).seed(7).verdict(false).run()?;
//! let best = &report.best[0];
//! println!("trial {}: {:?} in sample, {:?} out of sample", best.trial.number, best.objective(), best.test_objective());
//! # assert_eq!(report.summary.n_trials, 64);
//! # Ok::<(), tidemill_lab::LabError>(())
//! ```
//!
//! What decides a result is in [`StudyConfig`], which a study folder stores; what does not is in [`Runtime`]. What happens meanwhile is a
//! [`SweepEvent`], which goes to the journal of the run and to an observer. Nothing here prints.

pub mod backtest;
pub mod batch;
pub mod benchmark;
pub mod cluster;
pub mod config;
pub mod cut;
pub mod dataset;
pub mod device;
pub mod edge;
pub mod enqueue;
pub mod equity;
pub mod error;
pub mod evaluator;
pub mod event;
pub mod experiment;
pub mod file_stamp;
pub mod fill;
pub mod invalid;
pub mod leaderboard;
pub mod loading;
pub mod neighbour;
pub mod number;
pub mod parity;
pub mod part;
pub mod parts;
pub mod record;
pub mod runtime;
pub mod score;
mod search;
pub mod shipped;
pub mod signal;
pub mod stored;
pub mod sweep;
pub mod test_column;
pub mod trades;
pub mod tune;
pub mod verdict;
pub mod walkforward;
pub mod worker;

pub use backtest::BacktestReport;
pub use cluster::Cluster;
pub use config::{ChosenPlan, NamedSet, SearchOptions, StudyConfig};
pub use cut::CutTexts;
pub use dataset::{Dataset, Recipe};
pub use device::{DeviceChoice, Devices};
pub use enqueue::QueuedSets;
pub use error::LabError;
pub use evaluator::StudyEvaluator;
pub use event::SweepEvent;
pub use experiment::Experiment;
pub use file_stamp::FileStamps;
pub use fill::DeviceUse;
pub use invalid::InvalidCounts;
pub use leaderboard::Leaderboard;
pub use parity::{ParityCheck, ParityReport};
pub use part::StudyPart;
pub use parts::{PartFigures, PartName, Parts};
pub use runtime::Runtime;
pub use shipped::open_strategy;
pub use signal::{SignalReport, SignalWatch};
pub use stored::StoredStudy;
pub use sweep::{Sweep, SweepReport, TuneOptions};
pub use walkforward::{Pace, WalkForward, WalkForwardReport};
pub use worker::{WorkerOptions, study_worker};
