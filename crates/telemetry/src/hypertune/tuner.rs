//! The tuner: when it acts, on which knob, and whether that helped.

use serde::{Deserialize, Serialize};

use crate::hypertune::history::{History, Sample};
use crate::hypertune::knob::{Change, Knob, KnobKind, Remedy};
use crate::hypertune::proposal::{Decision, Outcome, Proposal};
use crate::hypertune::signal::Signals;
use crate::hypertune::symptom::{Detection, RuleInput, Symptom};
use crate::hypertune::threshold::Thresholds;
use crate::snapshot::Snapshot;

/// How often a factor may be taken at once.
const MOST_TIMES: u32 = 3;

/// Cool-downs for which a remedy rests that did not help.
const REST: u64 = 10;

/// The most by which a cool-down grows while the same advice is given again and again.
const MOST_PATIENCE: u64 = 64;

/// Batches that may be under way when a knob is turned; more are taken for a fold that missed some.
const MOST_UNDER_WAY: u64 = 64;

/// The rule of a decision that turns a knob back because its symptom is over.
const RECOVERED: &str = "recovered";

/// The mode of a tuner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Nothing.
    Off,
    /// Advise.
    #[default]
    Advise,
    /// Turn knobs.
    On,
}

/// Watches a run between its batches.
#[derive(Clone, Debug)]
pub struct Tuner {
    mode: Mode,
    thresholds: Thresholds,
    signals: Signals,
    knobs: Vec<TunedKnob>,
    remedies: Vec<TunedRemedy>,
    symptoms: Vec<SymptomState>,
    history: History,
    next_id: u64,
}

#[derive(Clone, Debug)]
struct TunedKnob {
    knob: Knob,
    /// Its value at the start of the run.
    start: f64,
    rests: Cooldown,
    /// When it was turned last, in seconds at work.
    turned_s: f64,
    /// Whether the run reads it at present.
    is_read: bool,
}

#[derive(Clone, Debug)]
struct TunedRemedy {
    remedy: Remedy,
    rests: Cooldown,
}

/// Until when a symptom, a knob or a remedy is left alone.
#[derive(Clone, Copy, Debug, Default)]
struct Cooldown {
    until_batch: u64,
    until_s: f64,
}

/// The state of one symptom.
#[derive(Clone, Debug)]
struct SymptomState {
    symptom: Symptom,
    is_there: bool,
    acted_at: u64,
    rests: Cooldown,
    /// The advice given last, and by how much the cool-down has grown since.
    advised: Option<(String, f64)>,
    patience: u64,
    action: Option<ObservedAction>,
    /// Knobs that go back to their start when the symptom is over.
    borrowed: Vec<BorrowedKnob>,
}

/// A knob that was turned until the symptom is over.
#[derive(Clone, Debug)]
struct BorrowedKnob {
    name: String,
    /// The batch, as the fold counts them, after which the symptom may be over.
    since: u64,
}

/// An action under observation.
#[derive(Clone, Debug)]
struct ObservedAction {
    decision: Decision,
    remedy_idx: usize,
    before: Option<f64>,
    /// The batch, as the fold counts them, from which on the action shows.
    from: u64,
}

impl Tuner {
    /// A tuner for a workload with these signals, knobs and remedies. A remedy for a knob that is not there is never taken.
    pub fn new(
        mode: Mode,
        thresholds: Thresholds,
        signals: Signals,
        knobs: Vec<Knob>,
        remedies: Vec<Remedy>,
    ) -> Self {
        let state = |symptom| SymptomState {
            symptom,
            is_there: false,
            acted_at: 0,
            rests: Cooldown::default(),
            advised: None,
            patience: 1,
            action: None,
            borrowed: Vec::new(),
        };
        let tuned = |knob: Knob| TunedKnob {
            start: knob.value,
            knob,
            rests: Cooldown::default(),
            turned_s: 0.0,
            is_read: true,
        };
        Self {
            mode,
            thresholds,
            signals,
            knobs: knobs.into_iter().map(tuned).collect(),
            remedies: remedies
                .into_iter()
                .map(|remedy| TunedRemedy { remedy, rests: Cooldown::default() })
                .collect(),
            symptoms: Symptom::ALL.map(state).into(),
            history: History::default(),
            next_id: 1,
        }
    }

    /// The value of a knob.
    pub fn knob(&self, name: &str) -> Option<f64> {
        self.knobs.iter().find(|tuned| tuned.knob.name == name).map(|tuned| tuned.knob.value)
    }

    /// Says whether the run reads a knob at present; one that nothing reads is left alone. All are read unless this says otherwise.
    pub fn set_read(&mut self, name: &str, is_read: bool) {
        if let Some(tuned) = self.knobs.iter_mut().find(|tuned| tuned.knob.name == name) {
            tuned.is_read = is_read;
        }
    }

    /// Takes over what was decided before the run was interrupted, in the order of the records.
    pub fn restore<'a>(&mut self, decisions: impl IntoIterator<Item = &'a Decision>) {
        for decision in decisions {
            self.next_id = self.next_id.max(decision.id + 1);
            if let Some(tuned) = self.knobs.iter_mut().find(|tuned| tuned.knob.name == decision.knob) {
                tuned.knob.value = decision.new;
            }
            for at in 0..self.symptoms.len() {
                if decision.rule == RECOVERED {
                    self.symptoms[at].borrowed.retain(|borrowed| borrowed.name != decision.knob);
                } else if self.symptoms[at].symptom.rule(&self.signals) == Some(&decision.rule) {
                    self.borrow(at, &decision.knob, decision.batch);
                }
            }
        }
    }

    /// Looks at the run before `batch` is proposed. The caller turns the knobs of the [`Proposal::Apply`]s before it proposes the batch.
    pub fn look(&mut self, snapshot: &Snapshot, batch: u64) -> Vec<Proposal> {
        let mut proposals = Vec::new();
        if self.mode == Mode::Off {
            return proposals;
        }
        self.history.push(Sample::of(snapshot, &self.signals));
        for at in 0..self.symptoms.len() {
            self.conclude(at, snapshot, batch, &mut proposals);
            self.act(at, snapshot, batch, &mut proposals);
        }
        proposals
    }

    /// Reports the effect of the action under observation once it can be measured, and reverts an action that did harm.
    fn conclude(&mut self, at: usize, snapshot: &Snapshot, batch: u64, proposals: &mut Vec<Proposal>) {
        let symptom = self.symptoms[at].symptom;
        let Some(action) = &self.symptoms[at].action else { return };
        let Some(after) = self.measured_since(symptom, snapshot, action.from) else { return };
        let Some(action) = self.symptoms[at].action.take() else { return };
        let before = action.before.unwrap_or(f64::NAN);
        let gain = gain(symptom, snapshot, before, after);
        let measure = self.measure_name(symptom, snapshot);
        let name = &action.decision.knob;
        let words = format!(
            "{name} {} to {}: {measure} {before} to {after}",
            action.decision.old, action.decision.new
        );
        let id = action.decision.id;
        proposals.push(Proposal::Effect(Outcome { id, measure, before, after, words: words.clone(), batch }));
        if gain >= self.thresholds.pays {
            // It pays, so more of it may follow at once.
            self.symptoms[at].rests = Cooldown::default();
            if let Some(tuned) = self.knobs.iter_mut().find(|tuned| tuned.knob.name == *name) {
                tuned.rests = Cooldown::default();
            }
            return;
        }
        self.remedies[action.remedy_idx].rests = self.cooldown(snapshot, batch, REST);
        if symptom.is_of_speed() && gain <= -self.thresholds.worse {
            let decision = Decision {
                id: self.new_id(),
                rule: "revert".to_owned(),
                cause: format!("action {id} made it slower: {words}"),
                knob: action.decision.knob,
                old: action.decision.new,
                new: action.decision.old,
                effect: action.decision.effect,
                batch,
            };
            self.turn(&decision, snapshot);
            self.symptoms[at].rests = self.cooldown(snapshot, batch, 1);
            proposals.push(Proposal::Apply(decision));
        } else if symptom.is_of_speed() {
            // Every second at the wrong speed is lost, so the next remedy has its turn at once.
            self.symptoms[at].rests = Cooldown::default();
        }
    }

    /// Turns a knob against a symptom that is there, or advises to, unless an action is under observation.
    fn act(&mut self, at: usize, snapshot: &Snapshot, batch: u64, proposals: &mut Vec<Proposal>) {
        let state = &self.symptoms[at];
        let expected_since = |phase: &str| self.expected_since(phase, snapshot);
        let input = RuleInput {
            snapshot,
            signals: &self.signals,
            history: &self.history,
            thresholds: &self.thresholds,
            was_there: state.is_there,
            acted_at: state.acted_at,
            expected_since: &expected_since,
        };
        let detection = input.find(state.symptom);
        self.symptoms[at].is_there = detection.is_some();
        let Some(detection) = detection else {
            // The next time it is news again.
            (self.symptoms[at].advised, self.symptoms[at].patience) = (None, 1);
            self.give_back(at, snapshot, batch, proposals);
            return;
        };
        let now_s = snapshot.elapsed_s();
        let state = &self.symptoms[at];
        if state.action.is_some() || state.rests.holds(batch, now_s) {
            return;
        }
        let Some((remedy_idx, knob_idx, new)) = self.choose(state.symptom, &detection, batch, now_s) else {
            return;
        };
        let Some(rule) = state.symptom.rule(&self.signals) else { return };
        let (knob, rule) = (&self.knobs[knob_idx].knob, rule.to_owned());
        let (name, old, effect) = (knob.name.clone(), knob.value, knob.effect);
        let id = self.new_id();
        let decision = Decision { id, rule, cause: detection.cause, knob: name, old, new, effect, batch };
        if self.mode == Mode::Advise {
            self.advise(at, decision, snapshot, proposals);
            return;
        }
        self.turn(&decision, snapshot);
        let before = self.measured(self.symptoms[at].symptom, snapshot);
        let under_way = batch.saturating_sub(snapshot.n_batches);
        let settles = if under_way > MOST_UNDER_WAY { 2 } else { under_way.max(1) };
        let from = snapshot.n_batches + settles;
        let rests = self.cooldown(snapshot, batch, 1);
        let state = &mut self.symptoms[at];
        (state.acted_at, state.rests) = (snapshot.n_batches, rests);
        state.action = Some(ObservedAction { decision: decision.clone(), remedy_idx, before, from });
        self.borrow(at, &decision.knob, from);
        proposals.push(Proposal::Apply(decision));
    }

    /// Remembers to give a knob back once the symptom is over, where its remedy says so.
    fn borrow(&mut self, at: usize, knob: &str, since: u64) {
        let symptom = self.symptoms[at].symptom;
        let is_borrowed = |tuned: &TunedRemedy| {
            tuned.remedy.until_recovery && tuned.remedy.symptom == symptom && tuned.remedy.knob == knob
        };
        if self.remedies.iter().any(is_borrowed) {
            self.symptoms[at].borrowed.retain(|borrowed| borrowed.name != knob);
            self.symptoms[at].borrowed.push(BorrowedKnob { name: knob.to_owned(), since });
        }
    }

    /// Turns the knobs back that were turned until the symptom is over, which it is: it is not there, no action against it is under
    /// observation, and a search that stood still has found something better since.
    fn give_back(&mut self, at: usize, snapshot: &Snapshot, batch: u64, proposals: &mut Vec<Proposal>) {
        let state = &mut self.symptoms[at];
        if state.action.is_some() || state.borrowed.is_empty() {
            return;
        }
        let symptom = state.symptom;
        let is_over = |borrowed: &BorrowedKnob| {
            symptom != Symptom::NoImprovement || snapshot.improved_at_batch >= borrowed.since
        };
        let (over, still) = std::mem::take(&mut state.borrowed).into_iter().partition(is_over);
        state.borrowed = still;
        let over: Vec<BorrowedKnob> = over;
        for borrowed in over {
            let Some(tuned) = self.knobs.iter().find(|tuned| tuned.knob.name == borrowed.name) else {
                continue;
            };
            let (old, effect) = (tuned.knob.value, tuned.knob.effect);
            let Some(new) = tuned.knob.turned(Change::Reset, 1, tuned.start) else { continue };
            let cause = format!("{} is over", symptom.rule(&self.signals).unwrap_or_default());
            let (id, rule, knob) = (self.new_id(), RECOVERED.to_owned(), borrowed.name);
            let decision = Decision { id, rule, cause, knob, old, new, effect, batch };
            self.turn(&decision, snapshot);
            self.symptoms[at].rests = self.cooldown(snapshot, batch, 1);
            proposals.push(Proposal::Apply(decision));
        }
    }

    /// Since when a phase is expected to report: since it was switched on, and not before the run was resumed; none while it is off.
    fn expected_since(&self, phase: &str, snapshot: &Snapshot) -> Option<f64> {
        let is_switch = |tuned: &&TunedKnob| tuned.knob.kind == KnobKind::Switch && tuned.knob.name == phase;
        match self.knobs.iter().find(is_switch) {
            Some(switch) if switch.knob.value == 0.0 => None,
            Some(switch) => Some(snapshot.earlier_s.max(switch.turned_s)),
            None => Some(snapshot.earlier_s),
        }
    }

    fn advise(&mut self, at: usize, decision: Decision, snapshot: &Snapshot, proposals: &mut Vec<Proposal>) {
        let same = Some((decision.knob.clone(), decision.new));
        let state = &mut self.symptoms[at];
        state.patience = if state.advised == same { (state.patience * 2).min(MOST_PATIENCE) } else { 1 };
        state.advised = same;
        let patience = state.patience;
        let rests = self.cooldown(snapshot, decision.batch, patience);
        self.symptoms[at].rests = rests;
        proposals.push(Proposal::Advise(decision));
    }

    /// The first remedy with room left whose knob no other symptom is turning, with the new value.
    fn choose(
        &self,
        symptom: Symptom,
        detection: &Detection,
        batch: u64,
        now_s: f64,
    ) -> Option<(usize, usize, f64)> {
        let is_tried = |name: &str| {
            let mut actions = self.symptoms.iter().filter_map(|state| state.action.as_ref());
            actions.any(|action| action.decision.knob == name)
        };
        let has_room = self.has_room();
        self.remedies.iter().enumerate().find_map(|(remedy_idx, tuned)| {
            let remedy = &tuned.remedy;
            if remedy.needs_room && !has_room {
                return None;
            }
            let knob_idx = self.knobs.iter().position(|tuned| tuned.knob.name == remedy.knob)?;
            let knob = &self.knobs[knob_idx];
            let is_free = !tuned.rests.holds(batch, now_s) && !knob.rests.holds(batch, now_s);
            if remedy.symptom != symptom || !knob.is_read || !is_free || is_tried(&remedy.knob) {
                return None;
            }
            let n_times = n_times(remedy.change, detection.factor);
            let new = knob.knob.turned(remedy.change, n_times, knob.start)?;
            Some((remedy_idx, knob_idx, new))
        })
    }

    /// Whether the device could do more at a time, as far as the run tells.
    fn has_room(&self) -> bool {
        let window = self.history.window(self.thresholds.window_batches, self.thresholds.window_s);
        let fill = window.and_then(|window| window.mean(|sample| sample.fill));
        fill.is_none_or(|fill| fill < self.thresholds.enough_fill)
    }

    fn turn(&mut self, decision: &Decision, snapshot: &Snapshot) {
        let rests = self.cooldown(snapshot, decision.batch, 1);
        if let Some(tuned) = self.knobs.iter_mut().find(|tuned| tuned.knob.name == decision.knob) {
            tuned.knob.value = decision.new;
            (tuned.rests, tuned.turned_s) = (rests, snapshot.elapsed_s());
        }
    }

    /// What shows how bad a symptom is, over the window before now.
    fn measured(&self, symptom: Symptom, snapshot: &Snapshot) -> Option<f64> {
        let window = self.history.window(self.thresholds.window_batches, self.thresholds.window_s)?;
        match symptom {
            Symptom::NoImprovement => snapshot.best,
            Symptom::StalledPhase | Symptom::LowEfficiency => window.rate(),
            Symptom::ManyFailures => window.failures().map(|(share, _)| share),
            Symptom::NotFalling => window.values(|sample| sample.falling).reduce(f64::min),
        }
    }

    /// The same, once a whole window has passed since that batch. A search gets as many batches as it had before.
    fn measured_since(&self, symptom: Symptom, snapshot: &Snapshot, from: u64) -> Option<f64> {
        let n_batches = match symptom {
            Symptom::NoImprovement => self.thresholds.no_improvement_batches,
            Symptom::NotFalling => self.thresholds.falling_batches,
            _ => self.thresholds.window_batches,
        };
        let since = self.history.since(from)?;
        let is_over = since.n_batches() >= n_batches
            && since.last().at_s - since.first().at_s >= self.thresholds.window_s;
        if !is_over {
            return None;
        }
        match symptom {
            // A search without any score gets its next remedy too.
            Symptom::NoImprovement => Some(snapshot.best.unwrap_or(f64::NAN)),
            Symptom::StalledPhase | Symptom::LowEfficiency => since.rate(),
            Symptom::ManyFailures => since.failures().map(|(share, _)| share),
            Symptom::NotFalling => since.values(|sample| sample.falling).reduce(f64::min),
        }
    }

    /// The name of what is measured, as the run calls it.
    fn measure_name(&self, symptom: Symptom, snapshot: &Snapshot) -> String {
        match symptom {
            Symptom::StalledPhase | Symptom::LowEfficiency => format!("{}_per_s", snapshot.progress),
            Symptom::NoImprovement => snapshot.score.clone(),
            Symptom::ManyFailures => self.signals.failures.map_or("", |failures| failures.measure).to_owned(),
            Symptom::NotFalling => self.signals.falling.map_or("", |falling| falling.value).to_owned(),
        }
    }

    fn cooldown(&self, snapshot: &Snapshot, batch: u64, n_times: u64) -> Cooldown {
        Cooldown {
            until_batch: batch.saturating_add(self.thresholds.cooldown_batches.saturating_mul(n_times)),
            until_s: snapshot.elapsed_s() + self.thresholds.cooldown_s * n_times as f64,
        }
    }

    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

impl Cooldown {
    fn holds(self, batch: u64, now_s: f64) -> bool {
        batch < self.until_batch || now_s < self.until_s
    }
}

/// How often a factor is to be taken at once to come near what is wanted.
fn n_times(change: Change, wanted: f64) -> u32 {
    match change {
        Change::Multiply(factor) if factor > 1.0 && wanted > factor => {
            // A hair above a power of the factor is that power.
            ((wanted.ln() / factor.ln() - 1e-9).ceil() as u32).clamp(1, MOST_TIMES)
        }
        _ => 1,
    }
}

/// By which share things got better; negative if they got worse.
fn gain(symptom: Symptom, snapshot: &Snapshot, before: f64, after: f64) -> f64 {
    match symptom {
        Symptom::StalledPhase | Symptom::LowEfficiency => after / before - 1.0,
        Symptom::ManyFailures | Symptom::NotFalling => 1.0 - after / before,
        // Any better score is what was wanted.
        Symptom::NoImprovement if after.is_nan() => 0.0,
        Symptom::NoImprovement if before.is_nan() || snapshot.is_better(after, before) => f64::INFINITY,
        Symptom::NoImprovement => 0.0,
    }
}
