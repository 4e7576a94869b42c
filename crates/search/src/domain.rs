//! The values that one parameter may take, and the maps between them and the unit interval.
//!
//! Every sampler works on numbers in `0..1`; a [`Domain`] turns them into values and back, so that steps, logarithms and
//! options are handled in one place. Logarithms come from a pure-Rust library, not from the platform, so that a seed gives the
//! same bits everywhere.

use std::fmt;

use crate::scale::Scale;
use crate::value::Value;

/// The values that one parameter may take.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// A real number in `low..=high`; on a grid from `low` if `step` is set; uniform in the logarithm if `log`.
    Float {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
        /// Distance of the grid from `low`, if any.
        step: Option<f64>,
        /// Uniform in the logarithm.
        log: bool,
    },
    /// An integer in `low..=high`, in steps of `step` from `low`.
    Int {
        /// Smallest value.
        low: i64,
        /// Largest value.
        high: i64,
        /// Distance of the grid from `low`, at least 1.
        step: i64,
        /// Uniform in the logarithm.
        log: bool,
    },
    /// One of several options, encoded by index.
    Choice {
        /// The options, in the order written.
        options: Vec<Choice>,
    },
    /// A switch, encoded 0 or 1.
    Bool,
}

/// One option of a choice.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// A name.
    Text(String),
    /// A number.
    Number(f64),
}

/// The largest magnitude of an integer parameter; the width of its range is then exact in an `f64` too.
pub const MAX_INT: i64 = 1 << 52;

/// How far a value may lie from its grid level, in steps, and still count as that level.
const STEP_TOLERANCE: f64 = 1e-9;

impl Domain {
    /// Whether its values have an order; options have none.
    pub fn is_ordered(&self) -> bool {
        matches!(self, Self::Float { .. } | Self::Int { .. })
    }

    /// Number of distinct values; `None` if there is a continuum of them.
    pub fn n_values(&self) -> Option<u64> {
        match self {
            Self::Float { low, high, step: None, .. } => (low == high).then_some(1),
            Self::Float { low, high, step: Some(step), .. } => {
                Some(((high - low) / step + STEP_TOLERANCE).floor().max(0.0) as u64 + 1)
            }
            Self::Int { low, high, step, .. } => {
                Some((i128::from(*high) - i128::from(*low)).max(0) as u64 / (*step).max(1) as u64 + 1)
            }
            Self::Choice { options } => Some(options.len() as u64),
            Self::Bool => Some(2),
        }
    }

    /// Whether an encoded value belongs to the domain.
    pub fn contains(&self, value: f64) -> bool {
        match self {
            Self::Float { low, high, step: None, .. } => *low <= value && value <= *high,
            Self::Float { low, step: Some(step), .. } => {
                let level_idx = ((value - low) / step).round();
                level_idx >= 0.0
                    && self.n_values().is_some_and(|n| level_idx < n as f64)
                    && (value - Scale::new(self).level(level_idx as u64)).abs() <= STEP_TOLERANCE * step
            }
            Self::Int { low, high, step, .. } => {
                value == value.trunc()
                    && *low as f64 <= value
                    && value <= *high as f64
                    && (value as i128 - i128::from(*low)) % i128::from((*step).max(1)) == 0
            }
            Self::Choice { options } => {
                value == value.trunc() && 0.0 <= value && value < options.len() as f64
            }
            Self::Bool => value == 0.0 || value == 1.0,
        }
    }

    /// The value that an encoded number stands for; `None` if it stands for none, as NaN does for an inactive parameter.
    pub fn decode(&self, value: f64) -> Option<Value> {
        if !value.is_finite() {
            return None;
        }
        match self {
            Self::Float { .. } => Some(Value::Float(value)),
            Self::Int { .. } => Some(Value::Int(value as i64)),
            Self::Choice { options } => {
                let option = if value >= 0.0 { options.get(value as usize)? } else { return None };
                Some(match option {
                    Choice::Text(text) => Value::Text(text.clone()),
                    Choice::Number(number) => Value::Float(*number),
                })
            }
            Self::Bool => Some(Value::Bool(value != 0.0)),
        }
    }

    /// Whether an encoded value is of the right kind, whatever the range.
    pub fn is_kind_of(&self, value: f64) -> bool {
        match self {
            Self::Float { .. } => value.is_finite(),
            Self::Int { .. } => value.is_finite() && value.fract() == 0.0,
            Self::Choice { .. } | Self::Bool => self.contains(value),
        }
    }

    /// The number that encodes a value; `None` if the value is of the wrong kind or outside the domain.
    pub fn encode(&self, value: &Value) -> Option<f64> {
        let encoded = match (self, value) {
            (Self::Float { .. } | Self::Int { .. }, Value::Float(number)) => *number,
            (Self::Float { .. } | Self::Int { .. }, Value::Int(number)) => *number as f64,
            (Self::Choice { options }, value) => options.iter().position(|option| option.is(value))? as f64,
            (Self::Bool, Value::Bool(on)) => f64::from(u8::from(*on)),
            _ => return None,
        };
        self.contains(encoded).then_some(encoded)
    }

    /// Maps `0..1` onto the domain: each integer, grid level and option gets an equal share, or, with `log`, a share equal to
    /// the logarithmic width of its cell. Numbers outside are clamped.
    pub fn from_unit(&self, unit: f64) -> f64 {
        Scale::new(self).value(unit)
    }

    /// The inverse of [`Domain::from_unit`]: the place of a value in `0..=1`, the middle of its share if it has one.
    pub fn to_unit(&self, value: f64) -> f64 {
        Scale::new(self).unit(value)
    }

    /// At most `max_points` values in ascending order, spread evenly (in the logarithm if `log`) with both ends among them; all
    /// values if they are no more than that. Choices and switches are never thinned, since no order relates their values.
    pub fn grid_values(&self, max_points: usize) -> Vec<f64> {
        let scale = Scale::new(self);
        let is_ordered = self.is_ordered();
        match self.n_values() {
            Some(n_values) if !is_ordered || n_values <= max_points.max(1) as u64 => {
                (0..n_values).map(|level_idx| scale.level(level_idx)).collect()
            }
            _ if max_points <= 1 => vec![scale.value(0.5)],
            _ => {
                let last = (max_points - 1) as f64;
                let mut values: Vec<f64> =
                    (0..max_points).map(|point_idx| scale.spread(point_idx as f64 / last)).collect();
                values.dedup();
                values
            }
        }
    }
}

impl Choice {
    /// Whether a decoded value names this option.
    pub fn is(&self, value: &Value) -> bool {
        match (self, value) {
            (Self::Text(text), Value::Text(name)) => text == name,
            (Self::Number(number), Value::Float(value)) => number == value,
            (Self::Number(number), Value::Int(value)) => *number == *value as f64,
            _ => false,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Number(number) => number.fmt(f),
        }
    }
}

/// The domain in words that continue "the value is not …".
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Float { low, high, step: None, .. } => write!(f, "a number from {low} to {high}"),
            Self::Float { low, high, step: Some(step), .. } => {
                write!(f, "a number from {low} to {high} in steps of {step}")
            }
            Self::Int { low, high, step: 1, .. } => write!(f, "an integer from {low} to {high}"),
            Self::Int { low, high, step, .. } => {
                write!(f, "an integer from {low} to {high} in steps of {step}")
            }
            Self::Choice { options } => {
                let names: Vec<String> = options.iter().map(ToString::to_string).collect();
                write!(f, "one of {}", names.join(", "))
            }
            Self::Bool => f.write_str("true or false"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(low: i64, high: i64, step: i64, log: bool) -> Domain {
        Domain::Int { low, high, step, log }
    }

    fn float(low: f64, high: f64, step: Option<f64>, log: bool) -> Domain {
        Domain::Float { low, high, step, log }
    }

    fn choice() -> Domain {
        Domain::Choice { options: vec![Choice::Text("tight".into()), Choice::Number(2.5)] }
    }

    #[test]
    fn equal_shares_of_the_unit_interval_give_each_integer_equally_often() {
        for domain in [int(5, 60, 5, false), int(-3, 3, 1, false), choice(), Domain::Bool] {
            let n_values = domain.n_values().unwrap() as usize;
            let n_draws = n_values * 1000;
            let mut counts = std::collections::BTreeMap::new();
            for draw in 0..n_draws {
                let value = domain.from_unit((draw as f64 + 0.5) / n_draws as f64);
                *counts.entry(value as i64).or_insert(0) += 1;
            }
            assert_eq!(counts.len(), n_values, "{domain:?}");
            assert!(counts.values().all(|&count| count == 1000), "{domain:?}: {counts:?}");
        }
    }

    #[test]
    fn a_million_integers_are_all_reached() {
        let domain = int(0, 999_999, 1, false);
        for value in 0..1_000_000_u32 {
            let unit = (f64::from(value) + 0.5) / 1e6;
            assert_eq!(domain.from_unit(unit), f64::from(value));
        }
    }

    #[test]
    fn a_step_that_does_not_divide_the_range_stops_below_the_top() {
        assert_eq!(int(1, 10, 4, false).grid_values(99), [1.0, 5.0, 9.0]);
        assert_eq!(float(0.0, 1.0, Some(0.4), false).grid_values(99), [0.0, 0.4, 0.8]);
        assert!(!int(1, 10, 4, false).contains(10.0));
    }

    #[test]
    fn decimal_steps_give_the_decimals_that_people_write() {
        let values = float(0.1, 0.7, Some(0.1), false).grid_values(99);
        assert_eq!(values, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
        let third = float(0.0, 1.0, Some(1.0 / 3.0), false).grid_values(99);
        assert_eq!(third, [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]);
    }

    #[test]
    fn logarithmic_halves_meet_at_the_geometric_mean() {
        let domain = float(0.01, 100.0, None, true);
        assert!((domain.from_unit(0.5) - 1.0).abs() < 1e-14);
        assert_eq!(domain.from_unit(0.0), 0.01);
        assert_eq!(domain.from_unit(1.0), 100.0);
    }

    #[test]
    fn logarithmic_integers_favour_the_small_ones_and_reach_all() {
        let domain = int(1, 100, 1, true);
        let mut counts = [0_u32; 101];
        for draw in 0..100_000 {
            counts[domain.from_unit((f64::from(draw) + 0.5) / 1e5) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|&count| count > 0));
        assert!(counts[1..].windows(2).all(|pair| pair[0] + 1 >= pair[1]), "{counts:?}");
        // The cell of 1 spans 0.5..1.5, that of all levels 0.5..100.5.
        let expected = 1e5 * (1.5_f64 / 0.5).ln() / (100.5_f64 / 0.5).ln();
        assert!((f64::from(counts[1]) - expected).abs() < 2.0);
    }

    #[test]
    fn grids_reach_both_ends_and_never_thin_options() {
        assert_eq!(float(1.0, 3.0, None, false).grid_values(5), [1.0, 1.5, 2.0, 2.5, 3.0]);
        assert_eq!(float(1.0, 3.0, None, false).grid_values(1), [2.0]);
        assert_eq!(int(5, 60, 1, false).grid_values(3), [5.0, 33.0, 60.0]);
        assert_eq!(int(1, 1000, 1, true).grid_values(4), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(choice().grid_values(1), [0.0, 1.0]);
        assert_eq!(Domain::Bool.grid_values(1), [0.0, 1.0]);
    }

    #[test]
    fn decoding_names_the_option_and_refuses_what_is_not_encoded() {
        assert_eq!(choice().decode(0.0), Some(Value::Text("tight".into())));
        assert_eq!(choice().decode(1.0), Some(Value::Float(2.5)));
        assert_eq!(choice().decode(2.0), None);
        assert_eq!(choice().decode(-1.0), None);
        assert_eq!(int(1, 9, 1, false).decode(f64::NAN), None);
        assert_eq!(int(1, 9, 1, false).decode(4.0), Some(Value::Int(4)));
        assert_eq!(Domain::Bool.decode(1.0), Some(Value::Bool(true)));
    }

    #[test]
    fn encoding_refuses_the_wrong_kind_and_the_outside() {
        assert_eq!(choice().encode(&Value::Text("tight".into())), Some(0.0));
        assert_eq!(choice().encode(&Value::Float(2.5)), Some(1.0));
        assert_eq!(choice().encode(&Value::Text("wide".into())), None);
        assert_eq!(int(1, 9, 2, false).encode(&Value::Int(3)), Some(3.0));
        assert_eq!(int(1, 9, 2, false).encode(&Value::Int(4)), None);
        assert_eq!(int(1, 9, 2, false).encode(&Value::Float(3.5)), None);
        assert_eq!(float(0.0, 1.0, None, false).encode(&Value::Int(1)), Some(1.0));
        assert_eq!(float(0.0, 1.0, None, false).encode(&Value::Float(f64::NAN)), None);
        assert_eq!(Domain::Bool.encode(&Value::Int(1)), None);
    }

    #[test]
    fn a_range_of_one_value_is_not_a_continuum() {
        let domain = float(2.0, 2.0, None, false);
        assert_eq!(domain.n_values(), Some(1));
        assert_eq!(domain.from_unit(0.3), 2.0);
        assert_eq!(domain.to_unit(2.0), 0.5);
        assert_eq!(float(1.0, 1.5, Some(1.0), true).grid_values(9), [1.0]);
    }
}
