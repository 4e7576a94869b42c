//! Knobs, and the symptoms that they are turned against.

use crate::hypertune::symptom::Symptom;

/// A setting of a run that the tuner may turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Knob {
    /// Name in records, such as `batch`.
    pub name: String,
    /// The present value.
    pub value: f64,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Which values between them it takes.
    pub kind: KnobKind,
    /// Whether turning it changes results.
    pub effect: Effect,
}

/// Which values a knob takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnobKind {
    /// Whole numbers.
    Integer,
    /// All numbers.
    Real,
    /// 0 is off and 1 is on.
    Switch,
}

/// Whether turning a knob changes the results of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// No: the bits are the same.
    Neutral,
    /// Yes, so the decision has to be recorded durably before the batch that it affects.
    ChangesResults,
}

/// A change that helps against a symptom. The tuner tries those first that are registered first.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// The symptom.
    pub symptom: Symptom,
    /// Name of the knob.
    pub knob: String,
    /// How it is turned.
    pub change: Change,
    /// Whether it puts more work beside what the device has, which only helps while the device has room for it: see
    /// [`Thresholds::enough_fill`](super::Thresholds::enough_fill).
    pub needs_room: bool,
    /// Whether the knob goes back to its value at the start once the symptom is over.
    pub until_recovery: bool,
}

/// How a knob is turned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// By a factor. Against low efficiency it is taken up to three times at once, as far as the measured overhead suggests.
    Multiply(f64),
    /// By a difference.
    Add(f64),
    /// To a value.
    Set(f64),
    /// Back to the value at the start.
    Reset,
}

impl Knob {
    /// The value after a change made `n_times`, within the range and of the right kind; none if that is its value already. `start` is
    /// its value at the start of the run.
    pub(super) fn turned(&self, change: Change, n_times: u32, start: f64) -> Option<f64> {
        let wanted = match change {
            Change::Multiply(factor) => self.value * factor.powi(n_times.try_into().unwrap_or(1)),
            Change::Add(step) => self.value + step,
            Change::Set(value) => value,
            // Where the user put it, even outside of its range.
            Change::Reset => return (start != self.value).then_some(start),
        };
        let new = match self.kind {
            // A factor too small for a step takes one.
            KnobKind::Integer if wanted > self.value => wanted.round().max(self.value + 1.0),
            KnobKind::Integer if wanted < self.value => wanted.round().min(self.value - 1.0),
            KnobKind::Integer => wanted.round(),
            KnobKind::Real => wanted,
            KnobKind::Switch => f64::from(u8::from(wanted >= 0.5)),
        };
        let (low, high) = match self.kind {
            KnobKind::Integer => (self.low.ceil(), self.high.floor()),
            KnobKind::Real | KnobKind::Switch => (self.low, self.high),
        };
        let new = new.max(low).min(high);
        // Outside of its range, such as by hand, it is not turned further away.
        let is_towards = wanted.is_finite() && (new - self.value) * (wanted - self.value) > 0.0;
        is_towards.then_some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn knob(kind: KnobKind, value: f64, low: f64, high: f64) -> Knob {
        Knob { name: "k".into(), value, low, high, kind, effect: Effect::Neutral }
    }

    #[test]
    fn a_knob_stays_in_its_range_and_of_its_kind() {
        let batch = knob(KnobKind::Integer, 100.0, 1.0, 250.5);
        assert_eq!(batch.turned(Change::Multiply(2.0), 1, 0.0), Some(200.0));
        assert_eq!(batch.turned(Change::Multiply(2.0), 3, 0.0), Some(250.0));
        assert_eq!(batch.turned(Change::Multiply(1.001), 1, 0.0), Some(101.0));
        assert_eq!(batch.turned(Change::Multiply(0.999), 1, 0.0), Some(99.0));
        assert_eq!(batch.turned(Change::Multiply(0.001), 1, 0.0), Some(1.0));
        assert_eq!(batch.turned(Change::Add(-1000.0), 1, 0.0), Some(1.0));
        assert_eq!(batch.turned(Change::Set(7.4), 1, 0.0), Some(7.0));
        assert_eq!(batch.turned(Change::Multiply(f64::NAN), 1, 0.0), None);
        assert_eq!(batch.turned(Change::Multiply(f64::INFINITY), 1, 0.0), None);
        assert_eq!(knob(KnobKind::Real, 0.5, 0.0, 1.0).turned(Change::Add(0.2), 1, 0.0), Some(0.7));
        assert_eq!(batch.turned(Change::Reset, 1, 40.0), Some(40.0));
        assert_eq!(batch.turned(Change::Reset, 1, 100.0), None, "it is there already");
    }

    #[test]
    fn at_its_end_there_is_no_room() {
        for (kind, value, change) in [
            (KnobKind::Integer, 8.0, Change::Multiply(2.0)),
            (KnobKind::Integer, 8.0, Change::Set(8.0)),
            (KnobKind::Integer, 1.0, Change::Add(-1.0)),
            (KnobKind::Real, 8.0, Change::Multiply(1.5)),
            // Set by hand beyond its range.
            (KnobKind::Integer, 12.0, Change::Multiply(2.0)),
        ] {
            assert_eq!(knob(kind, value, 1.0, 8.0).turned(change, 1, 0.0), None, "{value} {change:?}");
        }
        assert_eq!(knob(KnobKind::Switch, 1.0, 0.0, 1.0).turned(Change::Set(1.0), 1, 0.0), None);
        assert_eq!(knob(KnobKind::Switch, 0.0, 0.0, 1.0).turned(Change::Set(1.0), 1, 0.0), Some(1.0));
    }
}
