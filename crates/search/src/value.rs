//! A parameter value as people read it, in contrast to the encoded `f64` that samplers work on.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One decoded parameter value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A real number.
    Float(f64),
    /// The name of an option.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => value.fmt(f),
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_display_without_decoration_and_keep_the_requested_width() {
        assert_eq!(Value::Bool(true).to_string(), "true");
        assert_eq!(Value::Int(-3).to_string(), "-3");
        assert_eq!(Value::Float(0.25).to_string(), "0.25");
        assert_eq!(format!("{:>6}|", Value::Text("wide".into())), "  wide|");
        assert_eq!(format!("{:.2}", Value::Float(0.126)), "0.13");
    }

    #[test]
    fn values_round_trip_through_json() {
        for value in [Value::Bool(false), Value::Int(7), Value::Float(7.5), Value::Text("a".into())] {
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Value>(&json).unwrap(), value, "{json}");
        }
    }
}
