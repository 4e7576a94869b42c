//! Proposals of the tuner, and their records.

use serde_json::Value;
use smol_str::SmolStr;

use crate::event::Event;
use crate::hypertune::knob::Effect;

/// A proposal of the tuner.
#[derive(Clone, Debug, PartialEq)]
pub enum Proposal {
    /// In advise mode: a knob that should be turned.
    Advise(Decision),
    /// The knob is to be turned.
    Apply(Decision),
    /// The measured effect of an action.
    Effect(Outcome),
}

/// A knob and its new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Its number within the run.
    pub id: u64,
    /// The rule that fired, or `revert`.
    pub rule: String,
    /// Why, as a sentence with numbers.
    pub cause: String,
    /// Which knob.
    pub knob: String,
    /// Its value before.
    pub old: f64,
    /// Its value after.
    pub new: f64,
    /// Whether results change with it.
    pub effect: Effect,
    /// The first batch that it affects.
    pub batch: u64,
}

/// The measured effect of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The number of the action.
    pub id: u64,
    /// What was measured, such as `trials_per_s`.
    pub measure: String,
    /// Over the batches before the action; NaN if it was not known.
    pub before: f64,
    /// Over as many after it.
    pub after: f64,
    /// The effect as a sentence.
    pub words: String,
    /// The batch that is proposed next.
    pub batch: u64,
}

impl Proposal {
    /// The record of the journal.
    pub fn event(&self, run: impl Into<SmolStr>) -> Event {
        match self {
            Proposal::Advise(decision) => decision.event(run, "advise"),
            Proposal::Apply(decision) => decision.event(run, "apply"),
            Proposal::Effect(outcome) => Event::new(run, "hypertune", "effect")
                .value("id", outcome.id as f64)
                .value("batch", outcome.batch as f64)
                .value("before", outcome.before)
                .value("after", outcome.after)
                .parameter("measure", outcome.measure.as_str())
                .note(outcome.words.as_str()),
        }
    }
}

impl Proposal {
    /// The proposal as a sentence, such as `hypertune changed batch 64 → 256: …`; none for an effect.
    pub fn sentence(&self) -> Option<String> {
        let (verb, decision) = match self {
            Proposal::Apply(decision) => ("changed", decision),
            Proposal::Advise(decision) => ("would change", decision),
            Proposal::Effect(_) => return None,
        };
        let Decision { knob, old, new, cause, .. } = decision;
        Some(format!("hypertune {verb} {knob} {old} → {new}: {cause}"))
    }
}

impl Decision {
    fn event(&self, run: impl Into<SmolStr>, step: &'static str) -> Event {
        let effect = match self.effect {
            Effect::Neutral => "neutral",
            Effect::ChangesResults => "changes_results",
        };
        Event::new(run, "hypertune", step)
            .value("id", self.id as f64)
            .value("batch", self.batch as f64)
            .parameter("rule", self.rule.as_str())
            .parameter("knob", self.knob.as_str())
            .parameter("old", number(self.old))
            .parameter("new", number(self.new))
            .parameter("effect", effect)
            .note(self.cause.as_str())
    }

    /// The decision of a record; none if the record is no `hypertune`, `apply`.
    pub fn from_event(event: &Event) -> Option<Self> {
        if !event.is("hypertune", "apply") {
            return None;
        }
        let count = |name: &str| event.values.get(name).map(|value| *value as u64);
        let text = |name: &str| event.parameters.get(name).and_then(Value::as_str);
        let value = |name: &str| event.parameters.get(name).and_then(Value::as_f64);
        Some(Self {
            id: count("id")?,
            rule: text("rule")?.to_owned(),
            cause: event.notes.clone().unwrap_or_default(),
            knob: text("knob")?.to_owned(),
            old: value("old")?,
            new: value("new")?,
            effect: if text("effect") == Some("neutral") { Effect::Neutral } else { Effect::ChangesResults },
            batch: count("batch")?,
        })
    }
}

/// Whole numbers without a decimal point.
fn number(value: f64) -> Value {
    if value == value.trunc() && value.abs() < 1e15 { Value::from(value as i64) } else { Value::from(value) }
}
