//! The controller: passes with fewer and fewer colours, each begun from the best colouring so far.
//!
//! A run is first colourings, then passes. A pass has a number of colours, takes out what does not matter for it, and lets the searches
//! race until one succeeds or the pass is given up. Nothing depends on the clock but when the run ends, so that a seed and a number of
//! iterations are an answer; an interrupted run resumes at the beginning of its last pass and finds the same.

mod descent;
mod option;
mod outcome;
mod place;
mod plan;
mod state;
mod stop;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tidemill_gpu::Device;

pub use option::Options;
pub use outcome::{Ending, Outcome, PhaseTotal};
pub use state::State;

use crate::bound::lower_bound;
use crate::error::ColoringError;
use crate::event::PassEvent;
use crate::graph::Graph;
use crate::instance::Instance;
use crate::knob::Knobs;
use descent::Descent;
use place::DevicePlaces;
use stop::Halt;

/// Follows a run, and may turn its knobs.
pub trait Observer {
    /// Takes note of an event; an error ends the run.
    fn observe(&mut self, event: PassEvent<'_>) -> Result<(), ColoringError>;

    /// Knobs to turn before a round, by name.
    fn changes(&mut self, round: u64, knobs: &Knobs) -> Result<Vec<(String, f64)>, ColoringError> {
        let _ = (round, knobs);
        Ok(Vec::new())
    }
}

/// An observer that ignores all events.
pub struct Quiet;

impl Observer for Quiet {
    fn observe(&mut self, _event: PassEvent<'_>) -> Result<(), ColoringError> {
        Ok(())
    }
}

/// Colours one graph.
pub struct Controller<'a> {
    instance: &'a Instance,
    graph: Graph,
    options: Options,
    state: Option<State>,
    devices: Vec<Device>,
    may_fall_back: bool,
}

impl<'a> Controller<'a> {
    /// For a graph.
    pub fn new(instance: &'a Instance, options: Options) -> Result<Self, ColoringError> {
        options.check()?;
        Ok(Self {
            instance,
            graph: instance.graph(),
            options,
            state: None,
            devices: Vec::new(),
            may_fall_back: false,
        })
    }

    /// Lets searches run on a device, beside those that were given before. Where `may_fall_back`, the CPU takes over if one fails.
    pub fn on(mut self, device: Device, may_fall_back: bool) -> Self {
        self.devices.push(device);
        self.may_fall_back = may_fall_back;
        self
    }

    /// Continues an interrupted run.
    pub fn resume(mut self, state: State) -> Result<Self, ColoringError> {
        state.check(self.instance)?;
        self.state = Some(state);
        Ok(self)
    }

    /// Runs until one of the options ends it, or `stop` is set. The outcome holds the best colouring by then, which passed
    /// the verifier.
    pub fn run(self, observer: &mut dyn Observer, stop: &AtomicBool) -> Result<Outcome, ColoringError> {
        let began = Instant::now();
        let deadline = self.options.time.map(|time| began + time);
        Halt::watch(stop, deadline, |halt| {
            let bound = lower_bound(&self.graph, self.options.seed);
            let mut descent = Descent {
                instance: self.instance,
                graph: &self.graph,
                options: &self.options,
                bound,
                is_beyond: false,
                state: self.state.clone().unwrap_or_else(|| State::new(&self.options)),
                totals: Vec::new(),
                devices: Arc::new(DevicePlaces::new(&self.devices, &self.options, self.may_fall_back)?),
                halt,
                began,
                round_over: began,
                earlier_s: self.state.as_ref().map_or(0.0, |state| state.seconds),
                observer,
            };
            if self.state.is_none() {
                descent.begin()?;
            }
            let ending = descent.passes()?;
            Ok(descent.outcome(ending))
        })
    }
}

#[cfg(test)]
mod tests;
