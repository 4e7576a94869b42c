//! Search for Tidemill: a [`Space`] of parameters, [`Sampler`]s that propose [`Points`] of it, and a [`StudyFolder`] that keeps
//! what was tried.
//!
//! A sampler proposes points (`ask`), something else evaluates them, and the sampler learns the scores (`tell`):
//!
//! ```
//! use tidemill_search::{Domain, Param, SamplerKind, SamplerSettings, Score, Scores, Space};
//!
//! let range = Domain::Float { low: -1.0, high: 1.0, step: None, log: false };
//! let space = Space { params: vec![Param::new("x", range, 0.0)] };
//! space.validate().unwrap();
//! let mut sampler = SamplerKind::Sobol.build(&space, &SamplerSettings::new(42)).unwrap();
//! let points = sampler.ask(64);
//! let scores: Vec<Score> = points.column(0).iter().map(|x| Score::new(-x * x)).collect();
//! sampler.tell(&points, &Scores::single(&scores));
//! ```

mod cells;
pub mod condition;
pub mod domain;
pub mod eager;
pub mod folder;
pub mod importance;
pub mod pareto;
pub mod point;
pub mod quality;
pub mod rng;
pub mod sampler;
mod scale;
pub mod score;
pub mod space;
pub mod study;
pub mod value;
mod widest;

pub use condition::Condition;
pub use domain::{Choice, Domain};
pub use folder::{
    ExportFormat, FolderError, StudyFolder, StudyHeader, TrialBatch, TrialsWriter, export, read_trials,
};
pub use importance::{ImportanceCounts, best_trials, importance};
pub use pareto::ParetoFront;
pub use point::Points;
pub use sampler::{
    Enqueue, EnqueueError, Sampler, SamplerError, SamplerKind, SamplerKnob, SamplerSettings, Steered,
};
pub use score::{Score, Scores};
pub use space::{Param, Space, SpaceError};
pub use study::{
    Batch, BatchStart, Change, Controller, EvaluateError, Evaluated, Evaluator, FunctionEvaluator,
    Interrupted, Settings, Study, StudyError, StudyEvent, StudySummary, Timing,
};
pub use value::Value;
