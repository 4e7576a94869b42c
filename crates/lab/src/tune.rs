//! Tuning: rules watch a running sweep and change its knobs, or record what they would change.
//!
//! A change that affects results is in the journal, durably, before the study proposes the first affected batch; a resumed sweep reads it there.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tidemill_search::{Change, Controller, EvaluateError, SamplerKnob, Settings};
use tidemill_telemetry::find;
use tidemill_telemetry::hypertune::{
    self, BatchSignals, Decision, Effect, FailureSignal, HostSignals, Knob, KnobKind, Mode, Proposal, Remedy,
    Signals, Symptom, Thresholds, Tuner,
};

use crate::error::LabError;
use crate::evaluator::EvaluatorView;
use crate::event::SweepEvent;
use crate::record::Reporter;

/// The shortest time between two reports of the sampler about itself.
const FACTS_EVERY: Duration = Duration::from_millis(500);

/// The most batches in flight that tuning asks for.
const MOST_LAG: f64 = 4.0;

/// The most lanes of a device that tuning asks for.
const MOST_LANES: f64 = 4.0;

/// The values of a sweep's records that the rules read: see [`Work`](crate::event::Work) and [`BatchCounts`](crate::event::BatchCounts).
const SIGNALS: Signals = Signals {
    busy: Some("busy"),
    fill: Some("fill"),
    batch: Some(BatchSignals {
        work: "evaluate_ms",
        work_words: "the evaluation",
        idle: "idle_ms",
        host: Some(HostSignals {
            times: ["ask_ms", "tell_ms"],
            words: "asking and telling",
            hidden: "overlap_ms",
        }),
    }),
    failures: Some(FailureSignal {
        rule: "many_invalid",
        succeeded: "valid",
        measure: "invalid",
        words: "trials have no score",
    }),
    falling: None,
    occasional: &[],
};

/// What was decided in earlier runs of the study in this folder.
pub fn decisions(journal: &Path) -> Result<Vec<Decision>, LabError> {
    if !journal.exists() {
        return Ok(Vec::new());
    }
    let events = find(journal, "hypertune").map_err(LabError::Decisions)?;
    Ok(events.iter().filter_map(Decision::from_event).collect())
}

/// Those of them that change results.
pub fn changes(decisions: &[Decision]) -> Vec<Change> {
    let changing = decisions.iter().filter(|decision| decision.effect == Effect::ChangesResults);
    changing
        .map(|decision| Change { batch: decision.batch, knob: decision.knob.clone(), value: decision.new })
        .collect()
}

/// The knobs of a sweep, and the remedies for each symptom.
pub struct TuningConfig {
    /// The mode.
    pub mode: Mode,
    /// When rules fire.
    pub thresholds: Thresholds,
    /// Trials of a batch at the start.
    pub batch: usize,
    /// The most that it may become.
    pub most_batch: usize,
    /// The lag at the start.
    pub lag: usize,
    /// Whether the sampler learns from scores.
    pub learns: bool,
    /// Knobs of the sampler.
    pub knobs: Vec<SamplerKnob>,
}

impl TuningConfig {
    fn tuner(&self, lanes: Option<usize>) -> Tuner {
        let knob = |name: &str, value: f64, low: f64, high: f64, kind, effect| Knob {
            name: name.into(),
            value,
            low,
            high: high.max(value),
            kind,
            effect,
        };
        let (integer, changes) = (KnobKind::Integer, Effect::ChangesResults);
        let mut knobs = vec![
            knob("batch", self.batch as f64, 1.0, self.most_batch as f64, integer, changes),
            knob("lag", self.lag as f64, 0.0, MOST_LAG, integer, changes),
        ];
        if let Some(lanes) = lanes {
            knobs.push(knob("streams", lanes as f64, 1.0, MOST_LANES, integer, Effect::Neutral));
        }
        for own in &self.knobs {
            let kind = if own.name == "restart" { integer } else { KnobKind::Real };
            knobs.push(knob(own.name, own.value, own.low, own.high, kind, changes));
        }
        let remedy = |symptom, knob: &str, change| Remedy {
            symptom,
            knob: knob.into(),
            change,
            // Another stream runs beside the others; a larger batch or a longer lag also hides what a batch costs on the host.
            needs_room: knob == "streams",
            // Random trials lead out of a basin; once something better is found, they would only take trials from the search there.
            until_recovery: knob == "random_share" && symptom == Symptom::NoImprovement,
        };
        let mut remedies = vec![
            remedy(Symptom::LowEfficiency, "batch", hypertune::Change::Multiply(4.0)),
            remedy(Symptom::LowEfficiency, "streams", hypertune::Change::Add(1.0)),
            remedy(Symptom::LowEfficiency, "lag", hypertune::Change::Add(1.0)),
        ];
        if self.learns {
            let restart = (2 * self.batch) as f64;
            remedies.extend([
                remedy(Symptom::NoImprovement, "restart", hypertune::Change::Set(restart)),
                remedy(Symptom::NoImprovement, "random_share", hypertune::Change::Add(0.3)),
                remedy(Symptom::NoImprovement, "gamma", hypertune::Change::Multiply(2.0)),
                remedy(Symptom::NoImprovement, "prior_weight", hypertune::Change::Multiply(2.0)),
                remedy(Symptom::ManyFailures, "gamma", hypertune::Change::Multiply(0.5)),
                remedy(Symptom::ManyFailures, "random_share", hypertune::Change::Add(-0.3)),
            ]);
        }
        Tuner::new(self.mode, self.thresholds.clone(), SIGNALS, knobs, remedies)
    }
}

/// The newest sentences of a tuner, for the people who run the sweep.
#[derive(Clone, Debug, Default)]
pub struct Advice(Arc<Mutex<Vec<Advised>>>);

/// A sentence, and the knob that it is about.
#[derive(Clone, Debug)]
struct Advised {
    knob: String,
    is_applied: bool,
    sentence: String,
}

impl Advice {
    /// The sentences so far: for each knob one of what was done, and one of what is advised.
    pub fn sentences(&self) -> Vec<String> {
        let advised = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        advised.iter().map(|advised| advised.sentence.clone()).collect()
    }

    fn keep(&self, proposal: &Proposal) {
        let (Proposal::Apply(decision) | Proposal::Advise(decision)) = proposal else { return };
        let Some(sentence) = proposal.sentence() else { return };
        let is_applied = matches!(proposal, Proposal::Apply(_));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.iter_mut().find(|known| known.knob == decision.knob && known.is_applied == is_applied) {
            Some(known) => known.sentence = sentence,
            None => all.push(Advised { knob: decision.knob.clone(), is_applied, sentence }),
        }
    }
}

/// Asks the tuner before each batch.
pub struct Tuning {
    reporter: Reporter,
    tuner: Tuner,
    view: Arc<EvaluatorView>,
    advice: Advice,
    facts_at: Option<Instant>,
}

impl Tuning {
    /// For a sweep; what was decided earlier is where the knobs stand.
    pub fn new(
        tuned: &TuningConfig,
        earlier: &[Decision],
        reporter: Reporter,
        view: Arc<EvaluatorView>,
    ) -> Self {
        let mut tuner = tuned.tuner(view.lanes());
        tuner.restore(earlier);
        // The sampler's changes are replayed with the study; lanes are set here, so that the knob is where the tuner believes it is.
        if let Some(lanes) = tuner.knob("streams").filter(|_| tuned.mode != Mode::Off) {
            view.set_lanes(lanes as usize);
        }
        Self { reporter, tuner, view, advice: Advice::default(), facts_at: None }
    }

    /// Its sentences for users.
    pub fn advice(&self) -> Advice {
        self.advice.clone()
    }

    fn report(&mut self, batch: u64, facts: &[(String, f64)]) {
        if facts.is_empty() || self.facts_at.is_some_and(|at| at.elapsed() < FACTS_EVERY) {
            return;
        }
        self.facts_at = Some(Instant::now());
        self.reporter.report(SweepEvent::SamplerFacts { batch, facts: facts.to_vec() });
    }
}

impl Controller for Tuning {
    fn changes(
        &mut self,
        batch: u64,
        _now: &Settings,
        facts: &[(String, f64)],
    ) -> Result<Vec<Change>, EvaluateError> {
        self.report(batch, facts);
        let (reporter, tuner) = (&self.reporter, &mut self.tuner);
        let proposals = reporter.journal().look(|snapshot| tuner.look(snapshot, batch));
        let mut changes = Vec::new();
        for proposal in proposals {
            self.advice.keep(&proposal);
            match &proposal {
                Proposal::Apply(decision) => {
                    if decision.effect == Effect::ChangesResults {
                        let (knob, value) = (decision.knob.clone(), decision.new);
                        changes.push(Change { batch, knob, value });
                        self.reporter.report_durable(SweepEvent::TuningConfig(proposal))?;
                        continue;
                    }
                    if decision.knob == "streams" {
                        self.view.set_lanes(decision.new as usize);
                    }
                }
                Proposal::Advise(_) | Proposal::Effect(_) => {}
            }
            self.reporter.report(SweepEvent::TuningConfig(proposal));
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod lanes;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use tidemill_search::{
        Batch, Domain, Evaluated, FunctionEvaluator, Param, SamplerKind, SamplerSettings, Score, Scores,
        Space, Steered, Study, StudyEvent, Timing,
    };
    use tidemill_telemetry::{Action, DeviceMode, Event, Journal, SmolStr, Timestamp};

    use super::*;
    use crate::event::{BatchCounts, Totals, Work};
    use crate::record::BatchRecorder;

    fn space(n_params: usize) -> Space {
        let domain = Domain::Float { low: 0.0, high: 1.0, step: None, log: false };
        Space { params: (0..n_params).map(|at| Param::new(format!("x{at}"), domain.clone(), 0.5)).collect() }
    }

    struct RunResult {
        /// What the evaluations cost.
        seconds: f64,
        best: f64,
        n_actions: u64,
        /// Rule, knob and new value of what was done last.
        actions: Vec<(String, String, f64)>,
    }

    /// A study of a function, watched by rules. A manual clock advances by a fixed time for each batch, and rules see all
    /// that happened before they look: what comes of it depends on no machine.
    fn run(
        kind: SamplerKind,
        n_params: usize,
        (trials, batch, most_batch): (u64, usize, usize),
        (mode, thresholds): (Mode, Thresholds),
        (per_batch, per_trial): (Duration, Duration),
        height: impl Fn(&[f64]) -> f64,
    ) -> RunResult {
        let space = space(n_params);
        let settings = SamplerSettings { n_trials: Some(trials), batch, ..SamplerSettings::new(1) };
        let mut sampler = Steered::new(&space, 1, kind.build(&space, &settings).unwrap());
        let journal = Arc::new(Journal::without_file().unwrap());
        let view = Arc::new(EvaluatorView::of_cpu());
        let knobs = tidemill_search::Sampler::knobs(&sampler);
        let tuned =
            TuningConfig { mode, thresholds, batch, most_batch, lag: 1, learns: kind.learns(), knobs };
        // Ahead of the time of this machine, so that records of others do not move it.
        let epoch_ms = Timestamp::now().as_ms() + 1_000_000_000_000;
        let passed_us = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&passed_us);
        let clock = move || Timestamp::from_ms(epoch_ms + (clock.load(Ordering::SeqCst) / 1000) as i64);
        let silent = Reporter::new(journal.clone(), "test".into(), Arc::new(|_| ()));
        let mut tuning = Tuning::new(&tuned, &[], silent.clone(), view.clone());
        let reporter = silent.with_clock(clock);
        reporter.report(SweepEvent::Started {
            is_resumed: false,
            workload: "sweep",
            title: "a function".into(),
            n_trials: trials,
            device: view.mode(),
            config: serde_json::Map::new(),
        });
        let mut recorder = BatchRecorder::new(reporter, SmolStr::default(), &space, view, false);
        let mut best = f64::NEG_INFINITY;
        // Of batches that are evaluated and not yet told, what they cost.
        let (mut cost, mut untold) = (Duration::ZERO, VecDeque::new());
        let mut evaluator = FunctionEvaluator::new(|batch: &Batch| {
            let mut row = vec![0.0; n_params];
            let score = |at: usize| {
                batch.points.read_row(at, &mut row);
                Score::new(height(&row))
            };
            let scores: Vec<Score> = (0..batch.points.len()).map(score).collect();
            Ok(Evaluated { scores: Scores::single(&scores), metrics: vec![] })
        });
        let study = Study::new(&space, &mut sampler).trials(trials).batch(batch).pipeline(false);
        let study = study.control(&mut tuning);
        let study = study.observe(|event| match event {
            StudyEvent::Finished { batch, evaluated, is_replayed } => {
                best = evaluated.scores.column(0).iter().copied().fold(best, f64::max);
                let lasts = per_batch + per_trial * batch.points.len() as u32;
                cost += lasts;
                untold.push_back(lasts);
                recorder.finished(batch, &evaluated.scores, is_replayed);
            }
            StudyEvent::Timed { index, began, .. } => {
                // A sampler that is quick and hidden, and hardly a pause between batches.
                let (quick, idle) = (Duration::from_micros(20), Duration::from_micros(100));
                let lasts: Duration = untold.pop_front().unwrap();
                let timing = Timing { ask: quick, tell: quick, evaluate: lasts, overlap: 2 * quick, idle };
                passed_us.fetch_add((lasts + idle).as_micros() as u64, Ordering::SeqCst);
                recorder.timed(index, &timing, &began);
                // Returns once everything before it is folded.
                journal.record_durable(Event::new("test", "test", "folded")).unwrap();
            }
        });
        study.run(&mut evaluator).unwrap();
        let snapshot = journal.snapshot();
        let action = |it: &Action| (it.rule.clone(), it.knob.clone(), it.new.as_f64().unwrap_or(f64::NAN));
        let actions = snapshot.actions.iter().map(action).collect();
        RunResult { seconds: cost.as_secs_f64(), best, n_actions: snapshot.n_actions, actions }
    }

    #[test]
    fn the_record_of_a_batch_has_every_value_that_the_rules_read() {
        let batch = BatchCounts {
            totals: Totals { trials: 8, valid: 5, best: None },
            timing: Timing::default(),
            busy: 0.9,
            fill: 0.3,
        };
        let work = Work {
            phase: "kernel",
            step: "batch_0".into(),
            start_ms: None,
            duration_ms: 1.0,
            device: DeviceMode::Cpu,
            batch: Some(batch),
        };
        let record = SweepEvent::StageEnded(work).to_event(&"run".into()).unwrap();
        let (times, failures) = (SIGNALS.batch.unwrap(), SIGNALS.failures.unwrap());
        let host = times.host.unwrap();
        let names = [times.work, times.idle, host.times[0], host.times[1], host.hidden, failures.succeeded];
        for name in names.into_iter().chain(SIGNALS.busy).chain(SIGNALS.fill) {
            assert!(record.values.get(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_study_in_far_too_small_batches_soon_runs_as_though_it_had_been_tuned_by_hand() {
        let cost = (Duration::from_millis(4), Duration::from_micros(40));
        let flat = |row: &[f64]| row[0];
        let of = |batch, mode| {
            let thresholds = Thresholds::default();
            run(SamplerKind::Sobol, 2, (80_000, batch, 4096), (mode, thresholds), cost, flat).seconds
        };
        let (by_hand, tuned) = (of(2048, Mode::Off), of(16, Mode::On));
        // Left alone it would take 5,000 batches of 4.6 ms, 23 s.
        println!("by hand {by_hand:.2} s, tuned {tuned:.2} s");
        assert!(tuned < 1.3 * by_hand, "by hand {by_hand:.2} s, tuned {tuned:.2} s");
    }

    #[test]
    fn a_search_that_stagnates_is_led_out_of_its_basin() {
        // A wide hill of 0.5, and far from it a narrow peak of 1.
        let two_hills = |row: &[f64]| {
            let distance = |middle: f64| row.iter().map(|x| (x - middle).powi(2)).sum::<f64>().sqrt();
            (0.5 - 0.4 * distance(0.75)).max(1.0 - 3.5 * distance(0.2))
        };
        let thresholds = Thresholds {
            no_improvement_batches: 15,
            cooldown_batches: 5,
            cooldown_s: 0.0,
            window_batches: 2,
            window_s: 0.0,
            // Only the search is measured.
            low_busy: 0.0,
            low_overlap: 0.0,
            short_batch_ms: 0.0,
            ..Thresholds::default()
        };
        let of = |mode| {
            let thresholds = (mode, thresholds.clone());
            run(
                SamplerKind::Tpe,
                4,
                (10_000, 32, 32),
                thresholds,
                (Duration::from_millis(4), Duration::ZERO),
                two_hills,
            )
        };
        let (alone, led) = (of(Mode::Off), of(Mode::On));
        assert!(alone.best <= 0.5 && alone.n_actions == 0, "alone {}", alone.best);
        assert!(led.best > 0.8 && led.n_actions > 0, "led {} by {} actions", led.best, led.n_actions);
        let of_share: Vec<(&str, f64)> = (led.actions.iter())
            .filter(|(_, knob, _)| knob == "random_share")
            .map(|(rule, _, new)| (rule.as_str(), *new))
            .collect();
        let raised = of_share.iter().position(|(rule, new)| *rule == "no_improvement" && *new > 0.0);
        let taken_back = of_share.iter().position(|(rule, new)| *rule == "recovered" && *new == 0.0);
        assert!(
            raised.is_some() && taken_back > raised,
            "random trials end with the basin: {:?}",
            led.actions
        );
    }
}
