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

/// Records one run, and passes every event on to `show`.
pub struct RunRecorder<'a> {
    instance: &'a Instance,
    store: &'a RunStore,
    context: RecordContext,
    tuning: Tuning,
    show: &'a mut dyn FnMut(&PassEvent<'_>),
}

impl<'a> RunRecorder<'a> {
    /// Records that the run begins or, if `is_resumed`, resumes with the decisions in its journal.
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
        if let PassEvent::PhaseWorked { report, .. } = event {
            self.tuning.worked(report);
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tidemill_telemetry::hypertune::{Decision, Mode, Thresholds};
    use tidemill_telemetry::{Event, read_journal};

    use super::*;
    use crate::certificate::Certificate;
    use crate::controller::{Ending, Options};
    use crate::event::RecordContext;
    use crate::folder::RunFolder;
    use crate::generate::Family;

    fn config(max_iterations: u64) -> RunConfig {
        RunConfig {
            options: Options { max_iterations: Some(max_iterations), seed: 3, ..Options::default() },
            hypertune: Mode::Off,
            thresholds: Thresholds::default(),
        }
    }

    /// Runs into the store; the outcome, and how many events were shown.
    fn run(instance: &Instance, config: &RunConfig, mut store: RunStore) -> (Outcome, usize) {
        let state = store.take_state();
        let mut n_shown = 0;
        let mut show = |_: &PassEvent<'_>| n_shown += 1;
        let context = RecordContext::new(Instant::now(), None);
        let is_resumed = state.is_some();
        let recorder = RunRecorder::start(instance, config, &store, is_resumed, context, &mut show).unwrap();
        let mut controller = Controller::new(instance, config.options.clone()).unwrap();
        if let Some(state) = state {
            controller = controller.resume(state).unwrap();
        }
        let outcome = recorder.run(controller, &AtomicBool::new(false)).unwrap();
        store.close().unwrap();
        (outcome, n_shown)
    }

    #[test]
    fn a_folder_holds_the_journal_the_best_colouring_and_a_state_to_go_on_from() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run");
        let instance = Family::Random { n: 60, p: 0.5 }.generate(4).unwrap();
        let created = RunFolder::create(&path).unwrap();
        let journal = created.journal_file();
        let store = RunStore::create(created, &instance, &config(50_000)).unwrap();
        let (first, n_shown) = run(&instance, &config(50_000), store);
        let best = Certificate::read(&path.join("best.sol")).unwrap();
        assert_eq!(best.check(&instance).unwrap().k, first.k);
        let longer = config(100_000);
        let folder = RunFolder::open(&path).unwrap();
        let (outcome, _) = run(&instance, &longer, RunStore::resume(folder, &instance, &longer).unwrap());
        assert!(outcome.k <= first.k && outcome.iterations >= 100_000);
        assert_eq!(outcome.ending, Ending::Iterations);
        let events: Vec<Event> = read_journal(&journal).unwrap().map(Result::unwrap).collect();
        let runs = events.iter().filter(|event| event.phase == "run").map(|event| event.step.as_str());
        // On a machine that is busy enough it also says that it is alive.
        let runs = runs.filter(|step| *step != "alive");
        assert_eq!(runs.collect::<Vec<&str>>(), ["start", "end", "resume", "end"]);
        // Beginnings of passes are shown but not recorded.
        let n_recorded = events.iter().position(|event| event.is("run", "end")).unwrap() + 1;
        assert!(n_shown > n_recorded, "{n_shown} {n_recorded}");
        let folder = RunFolder::open(&path).unwrap();
        let other = RunConfig { options: Options { seed: 4, ..longer.options }, ..config(1) };
        assert!(matches!(
            RunStore::resume(folder, &instance, &other),
            Err(ColoringError::OtherConfig { key: "seed", .. })
        ));
    }

    /// Turns the knobs as some decisions say, and takes no note of anything.
    struct Decided(Vec<Decision>);

    impl Observer for Decided {
        fn observe(&mut self, _event: PassEvent<'_>) -> Result<(), ColoringError> {
            Ok(())
        }

        fn changes(&mut self, round: u64, _knobs: &Knobs) -> Result<Vec<(String, f64)>, ColoringError> {
            let decided = self.0.iter().filter(|decision| decision.batch == round);
            Ok(decided.map(|decision| (decision.knob.clone(), decision.new)).collect())
        }
    }

    #[test]
    fn a_tuned_run_that_resumes_after_a_decision_finds_what_it_would_have_found() {
        let dir = tempfile::tempdir().unwrap();
        let instance = Family::Random { n: 40, p: 0.5 }.generate(4).unwrap();
        // Rules that fire soon, however fast the machine is; far fewer colours than possible, so that iterations end the run.
        let tuned = |max_iterations: u64, hypertune: Mode| RunConfig {
            hypertune,
            options: Options { target: Some(2), ..config(max_iterations).options },
            thresholds: Thresholds {
                window_batches: 1,
                window_s: 0.0,
                cooldown_batches: 1,
                cooldown_s: 0.0,
                no_improvement_batches: 2,
                falling_batches: 3,
                short_batch_ms: 1e6,
                ..Thresholds::default()
            },
        };
        let longer = tuned(700_000, Mode::Off);
        // Which decisions are taken depends on the clock: the first length is taken at which some belong to the pass that begins again.
        let interrupted = |at: u64| {
            let path = dir.path().join(at.to_string());
            let first = tuned(400_000 + 10_000 * at, Mode::On);
            let store = RunStore::create(RunFolder::create(&path).unwrap(), &instance, &first).unwrap();
            run(&instance, &first, store);
            let store = RunStore::resume(RunFolder::open(&path).unwrap(), &instance, &longer).unwrap();
            let decisions = store.decisions().unwrap();
            let n_rounds_before = RunFolder::open(&path).unwrap().read_state().unwrap().unwrap().round;
            let is_repeated = decisions.iter().any(|decision| decision.batch >= n_rounds_before);
            let is_wanted = decisions.iter().any(|decision| decision.rule == "low_efficiency");
            (is_repeated && is_wanted).then_some((store, decisions))
        };
        let (store, decisions) = (0..25).find_map(interrupted).expect("a decision in the last pass");
        let (resumed, _) = run(&instance, &longer, store);
        let whole = Controller::new(&instance, longer.options.clone()).unwrap();
        let whole = whole.run(&mut Decided(decisions), &AtomicBool::new(false)).unwrap();
        assert_eq!(
            (resumed.k, resumed.passes, resumed.iterations),
            (whole.k, whole.passes, whole.iterations)
        );
        assert_eq!(resumed.colors, whole.colors);
        let plain = Controller::new(&instance, longer.options.clone()).unwrap();
        let plain = plain.run(&mut crate::Quiet, &AtomicBool::new(false)).unwrap();
        assert_ne!(plain.iterations, whole.iterations, "it was tuned");
    }

    #[test]
    fn a_run_that_cannot_keep_its_colouring_fails_and_records_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("gone").join("best.sol");
        std::fs::create_dir(file.parent().unwrap()).unwrap();
        let instance = Family::Queen { side: 5 }.generate(0).unwrap();
        let store = RunStore::certificate(&file).unwrap();
        std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
        let mut last = None;
        let mut show =
            |event: &PassEvent<'_>| last = event.to_event(&RecordContext::new(Instant::now(), None));
        let config = config(1_000);
        let context = RecordContext::new(Instant::now(), None);
        let recorder = RunRecorder::start(&instance, &config, &store, false, context, &mut show).unwrap();
        let controller = Controller::new(&instance, config.options.clone()).unwrap();
        assert!(recorder.run(controller, &AtomicBool::new(false)).is_err());
        let last = last.unwrap();
        assert!(last.is("run", "end") && last.parameters["outcome"] == "failed", "{last:?}");
    }
}
