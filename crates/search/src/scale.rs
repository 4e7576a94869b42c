//! A domain laid along the unit interval, with everything computed that does not depend on the value.
//!
//! [`Domain::from_unit`] and its relatives build a scale and use it once; samplers build it once per column, which is what makes
//! drawing a value a matter of nanoseconds.

use crate::domain::{Domain, MAX_INT};

/// The map between a domain and the unit interval.
#[derive(Clone, Debug)]
pub(crate) enum Scale {
    /// A continuous range.
    Linear { low: f64, high: f64 },
    /// A continuous range, uniform in the logarithm.
    Log { low: f64, high: f64, log_low: f64, log_high: f64 },
    /// Single values with equal shares.
    Levels(Levels),
    /// Single values on a logarithmic scale: level `v` owns the numbers from `v - step/2` to `v + step/2`, and its share of the
    /// unit interval is the logarithmic width of that cell.
    LogLevels { levels: Levels, log_from: f64, log_to: f64 },
}

impl Scale {
    pub(crate) fn new(domain: &Domain) -> Self {
        let n_values = domain.n_values();
        let (levels, log) = match (domain, n_values) {
            (Domain::Float { low, high, log: false, .. }, None) => {
                return Self::Linear { low: *low, high: *high };
            }
            (Domain::Float { low, high, log: true, .. }, None) => {
                let (log_low, log_high) = (libm::log(*low), libm::log(*high));
                return Self::Log { low: *low, high: *high, log_low, log_high };
            }
            (Domain::Float { low, high, step, log }, Some(n_values)) => {
                (Levels::of_decimals(*low, *high, step.unwrap_or(0.0), n_values), *log)
            }
            (Domain::Int { low, high, step, log }, n_values) => {
                let (low, high, step) = (*low as f64, *high as f64, *step as f64);
                (Levels { low, high, step, divisor: 1.0, n_values: n_values.unwrap_or(1) }, *log)
            }
            (Domain::Choice { .. } | Domain::Bool, n_values) => {
                let n_values = n_values.unwrap_or(1);
                (Levels { low: 0.0, high: n_values as f64, step: 1.0, divisor: 1.0, n_values }, false)
            }
        };
        if log {
            let (low, step) = (levels.low / levels.divisor, levels.step / levels.divisor);
            // The cell of the lowest level must stay positive when the step is wide.
            let from = (low - step / 2.0).max(low / 2.0);
            let to = low + (levels.n_values as f64 - 0.5) * step;
            Self::LogLevels { levels, log_from: libm::log(from), log_to: libm::log(to) }
        } else {
            Self::Levels(levels)
        }
    }

    /// The value at a place of the unit interval.
    pub(crate) fn value(&self, unit: f64) -> f64 {
        let unit = unit.clamp(0.0, 1.0);
        match self {
            // The upper end is exact, not the rounded result of a formula.
            Self::Linear { high, .. } | Self::Log { high, .. } if unit == 1.0 => *high,
            Self::Linear { low, high } => (low + unit * (high - low)).clamp(*low, *high),
            Self::Log { low, high, log_low, log_high } => {
                libm::exp(log_low + unit * (log_high - log_low)).clamp(*low, *high)
            }
            Self::Levels(levels) => levels.value((unit * levels.n_values as f64) as u64),
            Self::LogLevels { levels, log_from, log_to } => {
                levels.value(levels.nearest_idx(libm::exp(log_from + unit * (log_to - log_from))))
            }
        }
    }

    /// The place of a value, the middle of its share if it has one.
    pub(crate) fn unit(&self, value: f64) -> f64 {
        let unit = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { log_low, log_high, .. } => (libm::log(value) - log_low) / (log_high - log_low),
            Self::Levels(levels) | Self::LogLevels { levels, .. } if levels.n_values == 1 => 0.5,
            Self::Levels(levels) => (levels.nearest_idx(value) as f64 + 0.5) / levels.n_values as f64,
            Self::LogLevels { log_from, log_to, .. } => (libm::log(value) - log_from) / (log_to - log_from),
        };
        unit.clamp(0.0, 1.0)
    }

    /// The value at a share of the way from the lowest to the highest one; unlike with `value`, the ends have no width.
    pub(crate) fn spread(&self, share: f64) -> f64 {
        match self {
            Self::Linear { .. } | Self::Log { .. } => self.value(share),
            Self::Levels(levels) => levels.value((share * (levels.n_values - 1) as f64).round() as u64),
            Self::LogLevels { levels, .. } => {
                let (first, last) = (levels.value(0), levels.value(levels.n_values - 1));
                let (log_first, log_last) = (libm::log(first), libm::log(last));
                let value = libm::exp(log_first + share * (log_last - log_first));
                levels.value(levels.nearest_idx(value))
            }
        }
    }

    /// The value of a level, counted from the lowest; the lowest value of a continuous range.
    pub(crate) fn level(&self, level_idx: u64) -> f64 {
        match self {
            Self::Linear { low, .. } | Self::Log { low, .. } => *low,
            Self::Levels(levels) | Self::LogLevels { levels, .. } => levels.value(level_idx),
        }
    }
}

/// Evenly spaced values `(low + level_idx * step) / divisor`.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    low: f64,
    high: f64,
    step: f64,
    divisor: f64,
    n_values: u64,
}

impl Levels {
    /// Levels of a float range, on whole numbers where both start and step are short decimals: the third level of `0.0, step 0.1`
    /// is then the number 0.3 that a person would write, and not 0.30000000000000004.
    fn of_decimals(low: f64, high: f64, step: f64, n_values: u64) -> Self {
        const DIVISORS: [f64; 10] = [1.0, 10.0, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9];
        let as_whole = |number: f64| {
            let whole = number.round();
            ((number - whole).abs() <= 4.0 * f64::EPSILON * whole.abs()).then_some(whole)
        };
        let fits = |whole: f64| whole.abs() <= MAX_INT as f64;
        for divisor in DIVISORS {
            if let (Some(low), Some(step)) = (as_whole(low * divisor), as_whole(step * divisor))
                && fits(low)
                && fits(low + n_values as f64 * step)
            {
                return Self { low, high, step, divisor, n_values };
            }
        }
        Self { low, high, step, divisor: 1.0, n_values }
    }

    fn value(&self, level_idx: u64) -> f64 {
        let level_idx = level_idx.min(self.n_values.saturating_sub(1));
        ((self.low + level_idx as f64 * self.step) / self.divisor).min(self.high)
    }

    fn nearest_idx(&self, value: f64) -> u64 {
        ((value * self.divisor - self.low) / self.step).round().max(0.0) as u64
    }
}
