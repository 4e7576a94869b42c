//! One thing that happened during a run.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::fields::Fields;

/// Version of the record layout, written as `v`.
pub const VERSION: u32 = 1;

/// One record of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Version of the record layout.
    pub v: u32,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// Which run it belongs to.
    pub run: String,
    /// Which part of the run it reports on, such as `ask`, `kernel` or `tell`.
    pub phase: String,
    /// What exactly happened, such as `batch_42`.
    pub step: String,
    /// How long it took, if it lasted.
    pub duration_ms: Option<f64>,
    /// Where it ran, if that means something.
    pub device: Option<DeviceMode>,
    /// Measured numbers by name; a number that is not finite is null.
    #[serde(serialize_with = "write_values", deserialize_with = "read_values")]
    pub values: Fields<f64>,
    /// Settings that the event is about, by name.
    pub parameters: Fields<serde_json::Value>,
    /// A sentence for people.
    pub notes: Option<String>,
}

/// Where work ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum DeviceMode {
    /// On a GPU, on one of its streams.
    Gpu {
        /// Number of the stream.
        stream: u32,
    },
    /// On the CPU although a GPU was wanted.
    CpuFallback {
        /// Why.
        reason: String,
    },
    /// On the CPU, as wanted.
    Cpu,
}

impl Event {
    /// An event of now, without duration, device, values, parameters and notes.
    pub fn new(run: impl Into<String>, phase: impl Into<String>, step: impl Into<String>) -> Self {
        Self {
            v: VERSION,
            timestamp: Timestamp::now(),
            run: run.into(),
            phase: phase.into(),
            step: step.into(),
            duration_ms: None,
            device: None,
            values: Fields::new(),
            parameters: Fields::new(),
            notes: None,
        }
    }

    /// Adds how long it took; a number that is not finite is left out.
    pub fn lasting_ms(mut self, duration_ms: f64) -> Self {
        self.duration_ms = Some(duration_ms).filter(|duration_ms| duration_ms.is_finite());
        self
    }

    /// Adds where it ran.
    pub fn on(mut self, device: DeviceMode) -> Self {
        self.device = Some(device);
        self
    }

    /// Adds a measured number.
    pub fn value(mut self, name: impl Into<String>, value: f64) -> Self {
        self.values.insert(name, value);
        self
    }

    /// Adds a setting.
    pub fn parameter(mut self, name: impl Into<String>, value: impl Into<serde_json::Value>) -> Self {
        self.parameters.insert(name, value.into());
        self
    }

    /// Adds a sentence for people.
    pub fn note(mut self, notes: impl Into<String>) -> Self {
        self.notes = Some(notes.into());
        self
    }
}

/// A point in time, in whole milliseconds, shown as `2026-01-06T12:34:56.123Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The present.
    pub fn now() -> Self {
        Self::from_ms(jiff::Timestamp::now().as_millisecond())
    }

    /// From milliseconds since 1970; what lies beyond the years -9999 to 9999 becomes their end.
    pub fn from_ms(ms: i64) -> Self {
        let end = if ms < 0 { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
        Self(jiff::Timestamp::from_millisecond(ms).unwrap_or(end))
    }

    /// Milliseconds since 1970.
    pub fn as_ms(self) -> i64 {
        self.0.as_millisecond()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl FromStr for Timestamp {
    type Err = jiff::Error;

    fn from_str(text: &str) -> Result<Self, jiff::Error> {
        Ok(Self::from_ms(text.parse::<jiff::Timestamp>()?.as_millisecond()))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// JSON has no NaN and no infinity: both are null. Counts are written as counts, without a decimal point.
fn write_values<S: Serializer>(values: &Fields<f64>, serializer: S) -> Result<S::Ok, S::Error> {
    const EXACT: f64 = (1_u64 << 53) as f64;
    let to_json = |value: f64| match value {
        _ if !value.is_finite() => serde_json::Value::Null,
        _ if value == value.trunc() && value.abs() < EXACT => serde_json::Value::from(value as i64),
        _ => serde_json::Value::from(value),
    };
    serializer.collect_map(values.iter().map(|(name, value)| (name, to_json(*value))))
}

fn read_values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Fields<f64>, D::Error> {
    let values = Fields::<Option<f64>>::deserialize(deserializer)?;
    let mut numbers = Fields::new();
    for (name, value) in values.iter() {
        numbers.insert(name, value.unwrap_or(f64::NAN));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        let mut event = Event::new("r1", "kernel", "batch_42")
            .lasting_ms(12.3)
            .on(DeviceMode::Gpu { stream: 2 })
            .value("best", 1.93)
            .value("trials", 172_032.0)
            .value("busy", 0.981);
        event.timestamp = Timestamp::from_ms(1_767_702_896_123);
        event
    }

    #[test]
    fn the_record_has_the_documented_shape() {
        assert_eq!(
            serde_json::to_string(&event()).unwrap(),
            r#"{"v":1,"timestamp":"2026-01-06T12:34:56.123Z","run":"r1","phase":"kernel","step":"batch_42","duration_ms":12.3,"device":{"mode":"gpu","stream":2},"values":{"best":1.93,"trials":172032,"busy":0.981},"parameters":{},"notes":null}"#
        );
    }

    #[test]
    fn whole_seconds_keep_their_milliseconds() {
        assert_eq!(Timestamp::from_ms(0).to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_ms(-1).to_string(), "1969-12-31T23:59:59.999Z");
        assert!(Timestamp::from_ms(i64::MAX).to_string().starts_with("9999-12-30T"));
    }

    #[test]
    fn every_device_mode_has_its_form() {
        let json = |mode: DeviceMode| serde_json::to_string(&mode).unwrap();
        assert_eq!(json(DeviceMode::Cpu), r#"{"mode":"cpu"}"#);
        let fallback = DeviceMode::CpuFallback { reason: "no driver".into() };
        assert_eq!(json(fallback), r#"{"mode":"cpu_fallback","reason":"no driver"}"#);
    }

    #[test]
    fn events_round_trip() {
        let full =
            event().parameter("batch", 4096).parameter("sampler", "sobol").note("first \"line\"\nsecond");
        for event in [full, Event::new("", "", "")] {
            let json = serde_json::to_string(&event).unwrap();
            assert!(!json.contains('\n'));
            assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
        }
    }

    #[test]
    fn numbers_that_json_lacks_are_null() {
        let event = event().value("best", f64::NAN).value("busy", f64::INFINITY).lasting_ms(f64::NAN);
        let json = serde_json::to_string(&event).unwrap();
        assert!(
            json.contains(r#""duration_ms":null"#)
                && json.contains(r#""best":null,"trials":172032,"busy":null"#),
            "{json}"
        );
        let back: Event = serde_json::from_str(&json).unwrap();
        assert!(back.values["best"].is_nan());
    }
}
