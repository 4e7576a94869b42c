//! Changing a study while it runs.

use crate::sampler::SamplerKnob;
use crate::study::evaluator::EvaluateError;

/// Something that holds from a batch on.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The first batch that it affects.
    pub batch: u64,
    /// `batch`, `lag`, or a knob of the sampler.
    pub knob: String,
    /// Its new value.
    pub value: f64,
}

/// The settings in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Trials of a batch.
    pub batch: usize,
    /// The lag.
    pub lag: usize,
    /// The knobs of the sampler.
    pub knobs: Vec<SamplerKnob>,
}

/// Changes a study between two batches.
///
/// It is asked in the thread of the sampler, so that it should answer at once. Results depend on what it answers, and it may answer as it
/// likes, by the clock for example. So that a resumed study comes to the same results, whatever it answers must be on disk when it does, and
/// be given back to [`Study::changes`](crate::Study::changes) when the study is resumed.
pub trait Controller: Send {
    /// The changes that hold from this batch on, which is about to be asked. `facts` is what the sampler reports of itself.
    fn changes(
        &mut self,
        batch: u64,
        now: &Settings,
        facts: &[(String, f64)],
    ) -> Result<Vec<Change>, EvaluateError>;
}
