//! Winners at the end of a range: better sets may lie beyond it.

use tidemill_search::{Domain, Param, Space, Value};

/// A number counts as lying at an end of its range within this share of it, on a logarithmic scale where the range is.
const NEAR_END: f64 = 0.01;

/// A parameter whose value lies at an end of its range.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// Name of the parameter.
    pub name: String,
    /// Its value.
    pub value: Value,
    /// Whether it is the upper end.
    pub is_upper: bool,
    /// Both ends of the range.
    pub range: [Value; 2],
}

impl Edge {
    /// The hint in words.
    pub fn sentence(&self) -> String {
        let [low, high] = &self.range;
        let end = if self.is_upper { "upper" } else { "lower" };
        let Self { name, value, .. } = self;
        format!(
            "{name} is {value}, at the {end} end of its range {low} … {high}: a wider range may hold better sets"
        )
    }
}

/// The numbers of a set that lie at an end of their ranges; `params` are its values in the order of the space.
pub fn edges(space: &Space, params: &[Option<Value>]) -> Vec<Edge> {
    let edge = |(param, value): (&Param, &Option<Value>)| {
        let value = value.as_ref()?;
        let (low, high) = match &param.domain {
            Domain::Float { low, high, .. } => (*low, *high),
            Domain::Int { low, high, .. } => (*low as f64, *high as f64),
            Domain::Choice { .. } | Domain::Bool => return None,
        };
        let unit = |value: f64| param.domain.to_unit(value);
        let place = unit(param.domain.encode(value)?);
        // A step may keep the last value away from the end.
        let ends = [unit(low), unit(high)];
        let span = ends[1] - ends[0];
        let is_free = param.fixed.is_none() && span > 0.0;
        let is_lower = place <= ends[0] + NEAR_END * span;
        let is_upper = place >= ends[1] - NEAR_END * span;
        let range = [param.domain.decode(low)?, param.domain.decode(high)?];
        let found = Edge { name: param.name.clone(), value: value.clone(), is_upper, range };
        (is_free && (is_lower || is_upper)).then_some(found)
    };
    space.params.iter().zip(params).filter_map(edge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_at_an_end_are_found_and_nothing_else() {
        let int = Domain::Int { low: 2, high: 50, step: 1, log: false };
        let log = Domain::Float { low: 0.1, high: 10.0, step: None, log: true };
        let mut fixed = Param::new("fixed", int.clone(), 2.0);
        fixed.fixed = Some(2.0);
        let space = Space {
            params: vec![
                Param::new("n", int.clone(), 10.0),
                Param::new("m", int.clone(), 10.0),
                Param::new("x", log.clone(), 1.0),
                Param::new("y", log, 1.0),
                Param::new("off", int, 10.0),
                Param::new("switch", Domain::Bool, 0.0),
                fixed,
            ],
        };
        let params = [
            Some(Value::Int(50)),
            Some(Value::Int(49)),
            Some(Value::Float(0.102)),
            Some(Value::Float(0.2)),
            None,
            Some(Value::Bool(true)),
            Some(Value::Int(2)),
        ];
        let found = edges(&space, &params);
        let names: Vec<(&str, bool)> = found.iter().map(|edge| (edge.name.as_str(), edge.is_upper)).collect();
        assert_eq!(names, [("n", true), ("x", false)]);
        assert_eq!(
            found[0].sentence(),
            "n is 50, at the upper end of its range 2 … 50: a wider range may hold better sets"
        );
    }
}
