//! Runs a controller and records what happens: events in the journal, colourings in the store, decisions of the tuning rules in both.

use std::sync::atomic::AtomicBool;

use tidemill_telemetry::hypertune::Proposal;

use crate::config::RunConfig;
use crate::controller::{Controller, Observer, Outcome};
use crate::error::ColoringError;
use crate::event::{PassEvent, RecordContext};
use crate::instance::Instance;
use crate::knob::Knobs;
use crate::store::RunStore;
use crate::tune::Tuning;

/// Records one run, and shows every event of it to somebody else.
pub struct RunRecorder<'a> {
    instance: &'a Instance,
    store: &'a RunStore,
    context: RecordContext,
    tuning: Tuning,
    show: &'a mut dyn FnMut(&PassEvent<'_>),
}

impl<'a> RunRecorder<'a> {
    /// Records that the run begins or, if `is_resumed`, goes on with the decisions in its journal.
    pub fn start(
        instance: &'a Instance,
        config: &RunConfig,
        store: &'a RunStore,
        is_resumed: bool,
        context: RecordContext,
        show: &'a mut dyn FnMut(&PassEvent<'_>),
    ) -> Result<Self, ColoringError> {
        let earlier = if is_resumed { store.decisions()? } else { Vec::new() };
        let tuning = Tuning::new(config, &earlier);
        let mut recorder = Self { instance, store, context, tuning, show };
        let max_iterations = config.options.max_iterations;
        let config = &config.to_json();
        recorder.report(&PassEvent::Started { instance, is_resumed, max_iterations, config });
        for text in &instance.remarks {
            recorder.report(&PassEvent::Warning { step: "graph", text });
        }
        Ok(recorder)
    }

    /// Runs the controller, and records how the run ended.
    pub fn run(mut self, controller: Controller<'_>, stop: &AtomicBool) -> Result<Outcome, ColoringError> {
        let result = controller.run(&mut self, stop);
        match &result {
            Ok(outcome) => self.report(&PassEvent::Ended(outcome)),
            Err(error) => self.report(&PassEvent::Failed { reason: &error.to_string() }),
        }
        result
    }

    fn report(&mut self, event: &PassEvent<'_>) {
        if let Some(record) = event.to_event(&self.context) {
            self.store.record(record);
        }
        (self.show)(event);
    }
}

impl Observer for RunRecorder<'_> {
    fn observe(&mut self, event: PassEvent<'_>) -> Result<(), ColoringError> {
        // Files first: a record of a colouring that could not be written would promise too much.
        match event {
            PassEvent::Improved { k, colors, .. } => self.store.write_best(self.instance, k, colors)?,
            PassEvent::PassBegan { state, .. } => self.store.write_state(state)?,
            _ => {}
        }
        self.report(&event);
        Ok(())
    }

    fn changes(&mut self, round: u64, _knobs: &Knobs) -> Result<Vec<(String, f64)>, ColoringError> {
        if let Some(changes) = self.tuning.replayed(round) {
            return Ok(changes);
        }
        let mut changes = Vec::new();
        for proposal in self.tuning.look(self.store.journal(), round) {
            let event = PassEvent::Tuned(&proposal);
            match &proposal {
                Proposal::Apply(decision) => {
                    if let Some(record) = event.to_event(&self.context) {
                        self.store.record_durable(record)?;
                    }
                    (self.show)(&event);
                    changes.push((decision.knob.clone(), decision.new));
                }
                Proposal::Advise(_) | Proposal::Effect(_) => self.report(&event),
            }
        }
        Ok(changes)
    }
}
