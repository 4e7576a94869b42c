//! The kinds of columns that parameters are stored in, and the ways between encoded numbers and what is stored.
//!
//! A kind is a domain without its range. It is all that a reader needs, so that trials can be read without their space.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};

use crate::domain::{Choice, Domain};
use crate::value::Value;

/// The values of one column; `None` where there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Int(Vec<Option<i64>>),
    /// Real numbers.
    Float(Vec<Option<f64>>),
    /// Names.
    Text(Vec<Option<String>>),
    /// Switches.
    Bool(Vec<Option<bool>>),
}

impl Column {
    /// One value.
    pub fn value(&self, row_idx: usize) -> Option<Value> {
        match self {
            Self::Int(values) => values[row_idx].map(Value::Int),
            Self::Float(values) => values[row_idx].map(Value::Float),
            Self::Text(values) => values[row_idx].clone().map(Value::Text),
            Self::Bool(values) => values[row_idx].map(Value::Bool),
        }
    }

    /// Adds a range of the values of a column of the same kind; of another kind there is nothing to add.
    pub(super) fn extend_from(&mut self, other: &Self, range: Range<usize>) {
        match (self, other) {
            (Self::Int(values), Self::Int(more)) => values.extend_from_slice(&more[range]),
            (Self::Float(values), Self::Float(more)) => values.extend_from_slice(&more[range]),
            (Self::Text(values), Self::Text(more)) => values.extend_from_slice(&more[range]),
            (Self::Bool(values), Self::Bool(more)) => values.extend_from_slice(&more[range]),
            _ => {}
        }
    }

    /// A column of the same kind without values.
    pub(super) fn emptied(&self) -> Self {
        match self {
            Self::Int(_) => Self::Int(Vec::new()),
            Self::Float(_) => Self::Float(Vec::new()),
            Self::Text(_) => Self::Text(Vec::new()),
            Self::Bool(_) => Self::Bool(Vec::new()),
        }
    }

    /// As an Arrow column.
    pub(super) fn to_array(&self) -> ArrayRef {
        match self {
            Self::Int(values) => Arc::new(Int64Array::from(values.clone())),
            Self::Float(values) => Arc::new(Float64Array::from(values.clone())),
            Self::Text(values) => Arc::new(StringArray::from_iter(values)),
            Self::Bool(values) => Arc::new(BooleanArray::from(values.clone())),
        }
    }

    /// The type of that Arrow column.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Int(_) => DataType::Int64,
            Self::Float(_) => DataType::Float64,
            Self::Text(_) => DataType::Utf8,
            Self::Bool(_) => DataType::Boolean,
        }
    }
}

/// How the values of one parameter are stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A real number, as it is.
    Float,
    /// A whole number.
    Int,
    /// A switch.
    Bool,
    /// One of several numbers.
    Numbers(Vec<f64>),
    /// One of several names; numbers among them are written out.
    Names(Vec<String>),
}

impl Kind {
    /// The kind of column that holds a domain.
    pub(super) fn of(domain: &Domain) -> Self {
        match domain {
            Domain::Float { .. } => Self::Float,
            Domain::Int { .. } => Self::Int,
            Domain::Bool => Self::Bool,
            Domain::Choice { options } => {
                let number = |option: &Choice| match option {
                    Choice::Number(number) => Some(*number),
                    Choice::Text(_) => None,
                };
                let name = |option: &Choice| match option {
                    Choice::Number(number) => number.to_string(),
                    Choice::Text(name) => name.clone(),
                };
                match options.iter().map(number).collect() {
                    Some(numbers) => Self::Numbers(numbers),
                    None => Self::Names(options.iter().map(name).collect()),
                }
            }
        }
    }

    /// The type of its Arrow column.
    pub(super) fn data_type(&self) -> DataType {
        match self {
            Self::Float | Self::Numbers(_) => DataType::Float64,
            Self::Int => DataType::Int64,
            Self::Bool => DataType::Boolean,
            Self::Names(_) => DataType::Utf8,
        }
    }

    /// Encoded values as an Arrow column.
    pub(super) fn array(&self, values: &[f64]) -> ArrayRef {
        match self {
            Self::Float => number_array(values),
            Self::Int => Arc::new(values.iter().map(|value| int(*value)).collect::<Int64Array>()),
            Self::Bool => Arc::new(values.iter().map(|value| switch(*value)).collect::<BooleanArray>()),
            Self::Numbers(options) => Arc::new(
                values.iter().map(|value| option(options, *value).copied()).collect::<Float64Array>(),
            ),
            Self::Names(options) => {
                Arc::new(values.iter().map(|value| option(options, *value)).collect::<StringArray>())
            }
        }
    }

    /// Encoded values as people read them.
    pub(super) fn decode(&self, values: &[f64]) -> Column {
        let values = values.iter();
        match self {
            Self::Float => Column::Float(values.map(|value| finite(*value)).collect()),
            Self::Int => Column::Int(values.map(|value| int(*value)).collect()),
            Self::Bool => Column::Bool(values.map(|value| switch(*value)).collect()),
            Self::Numbers(options) => {
                Column::Float(values.map(|value| option(options, *value).copied()).collect())
            }
            Self::Names(options) => {
                Column::Text(values.map(|value| option(options, *value).cloned()).collect())
            }
        }
    }

    /// The inverse of [`Kind::decode`]; `None` if a value is of another kind or not among the options.
    pub(super) fn encode(&self, column: &Column) -> Option<Vec<f64>> {
        match (self, column) {
            (Self::Float, Column::Float(values)) => {
                Some(values.iter().map(|value| value.unwrap_or(f64::NAN)).collect())
            }
            (Self::Int, Column::Int(values)) => {
                Some(values.iter().map(|value| value.map_or(f64::NAN, |value| value as f64)).collect())
            }
            (Self::Bool, Column::Bool(values)) => {
                let encoded = |on: &Option<bool>| on.map_or(f64::NAN, |on| f64::from(u8::from(on)));
                Some(values.iter().map(encoded).collect())
            }
            (Self::Numbers(options), Column::Float(values)) => {
                values.iter().map(|v| place(options, v)).collect()
            }
            (Self::Names(options), Column::Text(values)) => {
                values.iter().map(|v| place(options, v)).collect()
            }
            _ => None,
        }
    }
}

/// Numbers as an Arrow column; what is not finite becomes null.
pub(super) fn number_array(values: &[f64]) -> ArrayRef {
    Arc::new(values.iter().map(|value| finite(*value)).collect::<Float64Array>())
}

/// A number, if it is one.
pub(super) fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

fn int(value: f64) -> Option<i64> {
    value.is_finite().then_some(value as i64)
}

fn switch(value: f64) -> Option<bool> {
    value.is_finite().then_some(value != 0.0)
}

fn option<T>(options: &[T], value: f64) -> Option<&T> {
    if value >= 0.0 { options.get(value as usize) } else { None }
}

fn place<T: PartialEq>(options: &[T], value: &Option<T>) -> Option<f64> {
    match value {
        None => Some(f64::NAN),
        Some(value) => options.iter().position(|option| option == value).map(|place| place as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_of_every_kind_come_back() {
        let domains = [
            (Domain::Float { low: 0.0, high: 9.0, step: None, log: false }, vec![0.25, f64::NAN, -0.0]),
            (Domain::Int { low: 0, high: 9, step: 1, log: false }, vec![3.0, f64::NAN, 1e15]),
            (Domain::Bool, vec![1.0, f64::NAN, 0.0]),
            (
                Domain::Choice { options: vec![Choice::Number(0.5), Choice::Number(2.0)] },
                vec![1.0, f64::NAN, 0.0],
            ),
            (
                Domain::Choice { options: vec![Choice::Text("a".into()), Choice::Number(2.5)] },
                vec![1.0, f64::NAN, 0.0],
            ),
        ];
        for (domain, values) in domains {
            let kind = Kind::of(&domain);
            let column = kind.decode(&values);
            let back = kind.encode(&column).unwrap();
            let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert!(bits(&back) == bits(&values), "{kind:?}");
            assert_eq!(*column.to_array(), *kind.array(&values));
            assert_eq!(column.data_type(), kind.data_type());
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<Kind>(&text).unwrap(), kind);
        }
        assert_eq!(Kind::Names(vec!["a".into()]).encode(&Column::Text(vec![Some("b".into())])), None);
        assert_eq!(Kind::Int.encode(&Column::Bool(vec![Some(true)])), None);
    }
}
