//! What a search varies: a list of named parameters with ranges and conditions.

use std::collections::BTreeSet;
use std::fmt;

use rayon::prelude::*;

use crate::condition::{Condition, Judge};
use crate::domain::{Choice, Domain, MAX_INT};
use crate::point::Points;
use crate::scale::Scale;

/// Values that a thread draws at a time, at least: fewer are drawn before another thread is awake.
const MIN_DRAWN: usize = 1 << 11;

/// How many columns of `n_points` are worth a thread.
pub(crate) fn min_columns(n_points: usize) -> usize {
    (MIN_DRAWN / n_points.max(1)).max(1)
}

/// One parameter of a space.
#[derive(Clone)]
pub struct Param {
    /// Its name, unique in the space.
    pub name: String,
    /// The values it may take.
    pub domain: Domain,
    /// Encoded default; what an inactive parameter is taken to be.
    pub default: f64,
    /// Encoded value if the user fixed it; a fixed parameter is not searched.
    pub fixed: Option<f64>,
    /// Active only where this holds. It may look only at parameters listed before this one.
    pub when: Option<Condition>,
}

impl fmt::Debug for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Param")
            .field("name", &self.name)
            .field("domain", &self.domain)
            .field("default", &self.default)
            .field("fixed", &self.fixed)
            .field("conditional", &self.when.is_some())
            .finish()
    }
}

/// All parameters of a search, in an order where conditions look backwards only.
#[derive(Clone, Debug, Default)]
pub struct Space {
    /// The parameters.
    pub params: Vec<Param>,
}

/// What is wrong with one parameter of a space.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SpaceError {
    /// Two parameters share a name.
    #[error("parameter `{name}` is defined twice")]
    DuplicateName {
        /// The name.
        name: String,
    },
    /// The bounds are in the wrong order.
    #[error("parameter `{name}`: the lower bound {low} is above the upper bound {high}")]
    EmptyRange {
        /// The parameter.
        name: String,
        /// Its lower bound.
        low: f64,
        /// Its upper bound.
        high: f64,
    },
    /// A bound is NaN or infinite, or the range is wider than a float can hold.
    #[error("parameter `{name}`: the range {low} to {high} is not finite")]
    NotFinite {
        /// The parameter.
        name: String,
        /// Its lower bound.
        low: f64,
        /// Its upper bound.
        high: f64,
    },
    /// An integer bound is too large for its range to be exact.
    #[error("parameter `{name}`: {bound} is beyond the largest integer parameter, ±2^52")]
    IntTooLarge {
        /// The parameter.
        name: String,
        /// The bound.
        bound: i64,
    },
    /// The step is not a positive number.
    #[error("parameter `{name}`: the step {step} is not positive")]
    BadStep {
        /// The parameter.
        name: String,
        /// The step as configured.
        step: f64,
    },
    /// The step is so small that its levels cannot be told apart.
    #[error(
        "parameter `{name}`: the step {step} is too fine for its range; leave it out for a continuous parameter"
    )]
    StepTooFine {
        /// The parameter.
        name: String,
        /// The step as configured.
        step: f64,
    },
    /// A logarithmic range that is not positive.
    #[error("parameter `{name}`: `log` needs a lower bound above 0, and it is {low}")]
    LogOfNonPositive {
        /// The parameter.
        name: String,
        /// Its lower bound.
        low: f64,
    },
    /// A choice without options.
    #[error("parameter `{name}`: the list of choices is empty")]
    NoOptions {
        /// The parameter.
        name: String,
    },
    /// A choice that lists an option twice.
    #[error("parameter `{name}`: the choice {option} is listed twice")]
    DuplicateOption {
        /// The parameter.
        name: String,
        /// The option.
        option: String,
    },
    /// A numeric option that is NaN or infinite.
    #[error("parameter `{name}`: the choice {option} is not a finite number")]
    OptionNotFinite {
        /// The parameter.
        name: String,
        /// The option.
        option: f64,
    },
    /// A default or fixed value outside the domain.
    #[error("parameter `{name}`: the {role} {value} is not {domain}")]
    OutsideDomain {
        /// The parameter.
        name: String,
        /// `default` or `fixed value`.
        role: &'static str,
        /// The value, decoded where possible.
        value: String,
        /// The domain in words.
        domain: String,
    },
}

impl Space {
    /// Checks every parameter and reports all that is wrong.
    pub fn validate(&self) -> Result<(), Vec<SpaceError>> {
        let mut errors = Vec::new();
        let mut names = BTreeSet::new();
        for param in &self.params {
            if !names.insert(param.name.as_str()) {
                errors.push(SpaceError::DuplicateName { name: param.name.clone() });
            }
            let n_before = errors.len();
            param.check_domain(&mut errors);
            // Whether a value lies inside a broken domain means nothing.
            if errors.len() == n_before {
                param.check_value("default", param.default, &mut errors);
                // A fixed value is not searched, so it may lie outside the range; but it must be of the right kind.
                if let Some(fixed) = param.fixed
                    && !param.domain.is_kind_of(fixed)
                {
                    param.check_value("fixed value", fixed, &mut errors);
                }
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Number of parameters.
    pub fn len(&self) -> usize {
        self.params.len()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.params.is_empty()
    }

    /// Number of parameters that a search varies.
    pub fn n_free(&self) -> usize {
        self.params.iter().filter(|param| param.fixed.is_none()).count()
    }

    /// Place of a parameter by its name.
    pub fn param_idx(&self, name: &str) -> Option<usize> {
        self.params.iter().position(|param| param.name == name)
    }

    /// Number of combinations of the free parameters, as if all were active; `None` if one is continuous. Stays at the largest
    /// number there is if there are more.
    pub fn cardinality(&self) -> Option<u128> {
        self.params.iter().filter(|param| param.fixed.is_none()).try_fold(1_u128, |product, param| {
            Some(product.saturating_mul(u128::from(param.domain.n_values()?)))
        })
    }

    /// The point where every parameter has its fixed value or its default, and inactive ones are NaN.
    pub fn default_point(&self) -> Vec<f64> {
        let columns = self.params.iter().map(|param| vec![param.fixed.unwrap_or(param.default)]).collect();
        let mut points = Points::from_columns(1, columns);
        self.deactivate(&mut points);
        let mut row = vec![0.0; self.len()];
        points.read_row(0, &mut row);
        row
    }

    /// Replaces NaN by the parameter's default, which is what an inactive parameter is taken to be.
    pub fn fill_inactive(&self, row: &mut [f64]) {
        for (value, param) in row.iter_mut().zip(&self.params) {
            if value.is_nan() {
                *value = param.default;
            }
        }
    }

    /// Sets to NaN every value whose condition does not hold. Conditions are judged in the order of the parameters; they see an
    /// inactive parameter as its default.
    pub fn deactivate(&self, points: &mut Points) {
        if self.params.iter().all(|param| param.when.is_none()) {
            return;
        }
        if Judge::new(&self.params).is_some_and(|judge| judge.deactivate(points)) {
            return;
        }
        let defaults: Vec<f64> = self.params.iter().map(|param| param.default).collect();
        let all: Vec<usize> = (0..points.len()).collect();
        let inactive_of = |chunk: &[usize]| {
            let mut inactive: Vec<(usize, usize)> = Vec::new();
            let mut row = defaults.clone();
            for point_idx in chunk {
                row.copy_from_slice(&defaults);
                for (param_idx, param) in self.params.iter().enumerate() {
                    if param.is_active(&row) {
                        let value = points.value(*point_idx, param_idx);
                        if !value.is_nan() {
                            row[param_idx] = value;
                        }
                    } else {
                        inactive.push((param_idx, *point_idx));
                    }
                }
            }
            inactive
        };
        let inactive: Vec<Vec<(usize, usize)>> = all.par_chunks(64).map(inactive_of).collect();
        for (param_idx, point_idx) in inactive.into_iter().flatten() {
            points.column_mut(param_idx)[point_idx] = f64::NAN;
        }
    }

    /// `n_points` points of which `fill` draws the free parameters as numbers in `0..1`, one column at a time and on all threads.
    /// It is given the place of the parameter among all and among the free ones.
    pub(crate) fn points_from_units(
        &self,
        n_points: usize,
        fill: impl Fn(usize, usize, &mut [f64]) + Sync,
    ) -> Points {
        let mut n_free = 0;
        let free_idxs: Vec<usize> = self
            .params
            .iter()
            .map(|param| {
                let free_idx = n_free;
                n_free += usize::from(param.fixed.is_none());
                free_idx
            })
            .collect();
        let column_of = |param_idx: usize| {
            let param = &self.params[param_idx];
            if let Some(value) = param.fixed {
                return vec![value; n_points];
            }
            let mut column = vec![0.0; n_points];
            fill(param_idx, free_idxs[param_idx], &mut column);
            let scale = Scale::new(&param.domain);
            for value in &mut column {
                *value = scale.value(*value);
            }
            column
        };
        let columns =
            (0..self.len()).into_par_iter().with_min_len(min_columns(n_points)).map(column_of).collect();
        let mut points = Points::from_columns(n_points, columns);
        self.deactivate(&mut points);
        points
    }
}

impl Param {
    /// A parameter that is searched and always active.
    pub fn new(name: impl Into<String>, domain: Domain, default: f64) -> Self {
        Self { name: name.into(), domain, default, fixed: None, when: None }
    }

    /// Whether its condition holds for the values of one point.
    pub fn is_active(&self, row: &[f64]) -> bool {
        self.when.as_ref().is_none_or(|condition| condition.holds(row))
    }

    fn check_domain(&self, errors: &mut Vec<SpaceError>) {
        let name = || self.name.clone();
        match &self.domain {
            Domain::Float { low, high, step, log } => {
                let (low, high) = (*low, *high);
                if !low.is_finite() || !high.is_finite() || !(high - low).is_finite() {
                    errors.push(SpaceError::NotFinite { name: name(), low, high });
                } else if low > high {
                    errors.push(SpaceError::EmptyRange { name: name(), low, high });
                }
                if *log && low <= 0.0 {
                    errors.push(SpaceError::LogOfNonPositive { name: name(), low });
                }
                match *step {
                    Some(step) if step.is_nan() || step <= 0.0 || step.is_infinite() => {
                        errors.push(SpaceError::BadStep { name: name(), step });
                    }
                    Some(step) if (high - low) / step >= 1e9 || low + step == low || high + step == high => {
                        errors.push(SpaceError::StepTooFine { name: name(), step });
                    }
                    _ => {}
                }
            }
            Domain::Int { low, high, step, log } => {
                for bound in [*low, *high] {
                    if bound.unsigned_abs() > MAX_INT.unsigned_abs() {
                        errors.push(SpaceError::IntTooLarge { name: name(), bound });
                    }
                }
                if low > high {
                    let (low, high) = (*low as f64, *high as f64);
                    errors.push(SpaceError::EmptyRange { name: name(), low, high });
                }
                if *step < 1 {
                    errors.push(SpaceError::BadStep { name: name(), step: *step as f64 });
                }
                if *log && *low < 1 {
                    errors.push(SpaceError::LogOfNonPositive { name: name(), low: *low as f64 });
                }
            }
            Domain::Choice { options } => {
                if options.is_empty() {
                    errors.push(SpaceError::NoOptions { name: name() });
                }
                for (option_idx, option) in options.iter().enumerate() {
                    if let Choice::Number(number) = option
                        && !number.is_finite()
                    {
                        errors.push(SpaceError::OptionNotFinite { name: name(), option: *number });
                    } else if options[..option_idx].contains(option) {
                        errors.push(SpaceError::DuplicateOption { name: name(), option: option.to_string() });
                    }
                }
            }
            Domain::Bool => {}
        }
    }

    fn check_value(&self, role: &'static str, value: f64, errors: &mut Vec<SpaceError>) {
        if !self.domain.contains(value) {
            let shown =
                self.domain.decode(value).map_or_else(|| value.to_string(), |value| value.to_string());
            errors.push(SpaceError::OutsideDomain {
                name: self.name.clone(),
                role,
                value: shown,
                domain: self.domain.to_string(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
