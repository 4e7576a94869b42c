//! Warm start: known points first, then whatever another sampler proposes.

use crate::point::Points;
use crate::sampler::{Sampler, SamplerKnob};
use crate::score::Scores;
use crate::space::Space;
use crate::value::Value;

/// Why an enqueued point is refused. Points are counted from 1.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EnqueueError {
    /// A name that is not in the space.
    #[error("enqueued point {point}: there is no parameter `{name}`; there are {}", known.join(", "))]
    Unknown {
        /// Which point.
        point: usize,
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// A parameter that is given twice.
    #[error("enqueued point {point}: `{name}` is given twice")]
    Twice {
        /// Which point.
        point: usize,
        /// The parameter.
        name: String,
    },
    /// A value outside the domain.
    #[error("enqueued point {point}: `{name}` is {value}, which is not {domain}")]
    OutsideDomain {
        /// Which point.
        point: usize,
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// The domain in words.
        domain: String,
    },
    /// Another value than the parameter is fixed to.
    #[error("enqueued point {point}: `{name}` is {value}, and it is fixed to {fixed}; leave one of them out")]
    Fixed {
        /// Which point.
        point: usize,
        /// The parameter.
        name: String,
        /// The value.
        value: String,
        /// The fixed value.
        fixed: String,
    },
    /// Points of another space.
    #[error("enqueued points have {got} parameters, and the space has {expected}")]
    Shape {
        /// Number of parameters of the space.
        expected: usize,
        /// Number of parameters of the points.
        got: usize,
    },
}

/// Proposes known points before those of another sampler, which learns from all of them. Known points are asked as they are given, also
/// twice; the other sampler does not ask them again if it asks no point twice.
pub struct Enqueue {
    queue: Points,
    n_asked: usize,
    inner: Box<dyn Sampler>,
}

impl Enqueue {
    /// Begins with the given encoded points. Values of inactive parameters are dropped; every mistake is reported.
    pub fn new(
        space: &Space,
        mut points: Points,
        mut inner: Box<dyn Sampler>,
    ) -> Result<Self, Vec<EnqueueError>> {
        if points.n_params() != space.len() {
            return Err(vec![EnqueueError::Shape { expected: space.len(), got: points.n_params() }]);
        }
        space.deactivate(&mut points);
        let errors = check(space, &points);
        if !errors.is_empty() {
            return Err(errors);
        }
        inner.exclude(&points);
        Ok(Self { queue: points, n_asked: 0, inner })
    }

    /// Begins with points given as named values. What a point does not name has its fixed value or its default.
    pub fn named(
        space: &Space,
        rows: &[Vec<(String, Value)>],
        inner: Box<dyn Sampler>,
    ) -> Result<Self, Vec<EnqueueError>> {
        Self::new(space, named_points(space, rows)?, inner)
    }
}

/// Points given as named values, encoded. What a point does not name has its fixed value or its default, also where it is inactive.
fn named_points(space: &Space, rows: &[Vec<(String, Value)>]) -> Result<Points, Vec<EnqueueError>> {
    let mut points = Points::new(space.len());
    let mut errors = Vec::new();
    for (point, row) in (1..).zip(rows) {
        let mut values: Vec<f64> =
            space.params.iter().map(|param| param.fixed.unwrap_or(param.default)).collect();
        let mut is_given = vec![false; space.len()];
        for (name, value) in row {
            let Some(param_idx) = space.param_idx(name) else {
                let known = space.params.iter().map(|param| param.name.clone()).collect();
                errors.push(EnqueueError::Unknown { point, name: name.clone(), known });
                continue;
            };
            if std::mem::replace(&mut is_given[param_idx], true) {
                errors.push(EnqueueError::Twice { point, name: name.clone() });
            }
            let param = &space.params[param_idx];
            let is_fixed_value =
                || param.fixed.filter(|fixed| param.domain.decode(*fixed).as_ref() == Some(value));
            match param.domain.encode(value).or_else(is_fixed_value) {
                Some(encoded) => values[param_idx] = encoded,
                None => errors.push(EnqueueError::OutsideDomain {
                    point,
                    name: name.clone(),
                    value: value.to_string(),
                    domain: param.domain.to_string(),
                }),
            }
        }
        points.push(&values);
    }
    if errors.is_empty() { Ok(points) } else { Err(errors) }
}

/// Everything that is wrong with points whose inactive values are NaN already.
fn check(space: &Space, points: &Points) -> Vec<EnqueueError> {
    let mut errors = Vec::new();
    let mut row = vec![0.0; space.len()];
    for point_idx in 0..points.len() {
        points.read_row(point_idx, &mut row);
        let mut seen = row.clone();
        space.fill_inactive(&mut seen);
        for (param, value) in space.params.iter().zip(&row) {
            let shown = |value: f64| param.domain.decode(value).map_or(value.to_string(), |v| v.to_string());
            let point = point_idx + 1;
            let (name, text) = (param.name.clone(), shown(*value));
            match param.fixed {
                // Inactive, and so undefined by right.
                _ if !param.is_active(&seen) => {}
                Some(fixed) if fixed != *value => {
                    errors.push(EnqueueError::Fixed { point, name, value: text, fixed: shown(fixed) });
                }
                None if !param.domain.contains(*value) => {
                    let domain = param.domain.to_string();
                    errors.push(EnqueueError::OutsideDomain { point, name, value: text, domain });
                }
                _ => {}
            }
        }
    }
    errors
}

impl Sampler for Enqueue {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn ask(&mut self, n: usize) -> Points {
        let to = self.queue.len().min(self.n_asked + n);
        let from = std::mem::replace(&mut self.n_asked, to);
        if from == to {
            return self.inner.ask(n);
        }
        let mut points = Points::new(self.queue.n_params());
        points.extend_from(&self.queue, from..to);
        if points.len() < n {
            let rest = self.inner.ask(n - points.len());
            points.extend_from(&rest, 0..rest.len());
        }
        points
    }

    fn skip(&mut self, n: u64) -> bool {
        let n_own = n.min((self.queue.len() - self.n_asked) as u64);
        let can_skip = self.inner.skip(n - n_own);
        self.n_asked += if can_skip { n_own as usize } else { 0 };
        can_skip
    }

    fn tell(&mut self, points: &Points, scores: &Scores) {
        self.inner.tell(points, scores);
    }

    fn remaining(&self) -> Option<u64> {
        let n_queued = (self.queue.len() - self.n_asked) as u64;
        self.inner.remaining().map(|remaining| remaining.saturating_add(n_queued))
    }

    fn exclude(&mut self, points: &Points) {
        self.inner.exclude(points);
    }

    fn retract(&mut self, points: &Points) {
        self.inner.retract(points);
    }

    fn knobs(&self) -> Vec<SamplerKnob> {
        self.inner.knobs()
    }

    fn turn(&mut self, knob: &str, value: f64) -> bool {
        self.inner.turn(knob, value)
    }

    fn facts(&self) -> Vec<(String, f64)> {
        self.inner.facts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Condition;
    use crate::domain::{Choice, Domain};
    use crate::sampler::{SamplerKind, SamplerSettings};
    use crate::space::Param;

    fn space() -> Space {
        let options = ["tight", "wide"].map(|name| Choice::Text(name.into())).to_vec();
        let mut tail = Param::new("tail", Domain::Float { low: 0.5, high: 3.0, step: None, log: false }, 1.0);
        tail.when = Some(Condition::new(|row| row[1] == 1.0));
        let mut fixed = Param::new("fixed", Domain::Int { low: 1, high: 9, step: 1, log: false }, 1.0);
        fixed.fixed = Some(20.0);
        Space {
            params: vec![
                Param::new("fast", Domain::Int { low: 5, high: 60, step: 5, log: false }, 20.0),
                Param::new("mode", Domain::Choice { options }, 0.0),
                tail,
                fixed,
            ],
        }
    }

    fn random() -> Box<dyn Sampler> {
        SamplerKind::Random.build(&space(), &SamplerSettings::new(1)).unwrap()
    }

    fn row(values: &[(&str, Value)]) -> Vec<(String, Value)> {
        values.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn known_points_come_first_and_the_cut_into_batches_does_not_matter() {
        let rows = [
            row(&[("fast", Value::Int(10)), ("tail", Value::Float(2.0))]),
            row(&[
                ("mode", Value::Text("wide".into())),
                ("tail", Value::Float(2.0)),
                ("fixed", Value::Int(20)),
            ]),
            row(&[]),
        ];
        let whole = Enqueue::named(&space(), &rows, random()).unwrap().ask(10);
        // `tail` is inactive in the first, so that its value is dropped.
        assert!(whole.column(0)[..3] == [10.0, 20.0, 20.0] && whole.column(1)[..3] == [0.0, 1.0, 0.0]);
        let tail = whole.column(2);
        assert!(tail[0].is_nan() && tail[1] == 2.0 && tail[2].is_nan());
        let rest = random().ask(7);
        assert_eq!(whole.column(0)[3..], *rest.column(0));
        for batch in [1, 2, 3, 4] {
            let mut sampler = Enqueue::named(&space(), &rows, random()).unwrap();
            let mut pieces = Points::new(4);
            while pieces.len() < 10 {
                let piece = sampler.ask(batch.min(10 - pieces.len()));
                pieces.extend_from(&piece, 0..piece.len());
            }
            assert_eq!(pieces.column(0), whole.column(0));
        }
    }

    #[test]
    fn a_finite_sampler_has_the_queue_in_addition() {
        let grid = SamplerKind::Grid.build(&space(), &SamplerSettings::new(1)).unwrap();
        let n_grid = grid.remaining().unwrap();
        let mut sampler = Enqueue::named(&space(), &[row(&[]), row(&[])], grid).unwrap();
        assert_eq!(sampler.remaining(), Some(n_grid + 2));
        sampler.ask(1);
        assert_eq!(sampler.remaining(), Some(n_grid + 1));
    }

    #[test]
    fn every_mistake_is_reported() {
        let rows = [
            row(&[("slow", Value::Int(1)), ("fast", Value::Int(11)), ("fast", Value::Int(10))]),
            row(&[("mode", Value::Text("loose".into()))]),
        ];
        let errors = Enqueue::named(&space(), &rows, random()).err().unwrap();
        let text: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "enqueued point 1: there is no parameter `slow`; there are fast, mode, tail, fixed",
                "enqueued point 1: `fast` is 11, which is not an integer from 5 to 60 in steps of 5",
                "enqueued point 1: `fast` is given twice",
                "enqueued point 2: `mode` is loose, which is not one of \"tight\", \"wide\"",
            ]
        );
        let text = |rows| Enqueue::named(&space(), rows, random()).err().unwrap()[0].to_string();
        assert_eq!(
            text(&[row(&[("fixed", Value::Int(3))])]),
            "enqueued point 1: `fixed` is 3, and it is fixed to 20; leave one of them out"
        );
        let mut points = Points::new(4);
        points.push(&[10.0, 1.0, f64::NAN, 20.0]);
        let errors = Enqueue::new(&space(), points, random()).err().unwrap();
        assert_eq!(
            errors[0].to_string(),
            "enqueued point 1: `tail` is NaN, which is not a number from 0.5 to 3"
        );
        let errors = Enqueue::new(&space(), Points::new(2), random()).err().unwrap();
        assert_eq!(errors[0].to_string(), "enqueued points have 2 parameters, and the space has 4");
    }
}
