//! Numbers in JSON, which has no NaN and no infinity: both are null, and null is read as NaN. Counts are written as counts,
//! without a decimal point.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Integers below this are exact.
const EXACT: f64 = (1_u64 << 53) as f64;

/// A number as it is written.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            value if !value.is_finite() => serializer.serialize_none(),
            value if value == value.trunc() && value.abs() < EXACT => serializer.serialize_i64(value as i64),
            value => serializer.serialize_f64(value),
        }
    }
}

pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    Number(*value).serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// The same for named numbers.
pub(crate) mod fields {
    use super::{Deserialize, Deserializer, Number, Serializer};
    use crate::fields::Fields;

    pub(crate) fn serialize<S: Serializer>(values: &Fields<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(values.iter().map(|(name, value)| (name, Number(*value))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fields<f64>, D::Error> {
        let values = Fields::<Option<f64>>::deserialize(deserializer)?;
        Ok(values.map(|value| value.unwrap_or(f64::NAN)))
    }
}
