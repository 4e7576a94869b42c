//! One thing that happened during a run.
//!
//! Events are made in hot loops. Their names are [`SmolStr`]s: up to 23 bytes need no allocation, and copies of longer ones share one.

use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

use crate::fields::Fields;
use crate::timestamp::Timestamp;

/// Version of the record layout, written as `v`.
pub const VERSION: u32 = 1;

/// One record of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Version of the record layout.
    pub v: u32,
    /// When it was recorded.
    pub timestamp: Timestamp,
    /// Name of its run.
    pub run: SmolStr,
    /// Which part of the run it reports on, such as `upload` or `kernel`.
    pub phase: SmolStr,
    /// What exactly happened, such as `batch_42`.
    pub step: SmolStr,
    /// How long it took, if it lasted.
    pub duration_ms: Option<f64>,
    /// Where it ran, if that applies.
    pub device: Option<DeviceMode>,
    /// Measured numbers by name; a number that is not finite is null.
    #[serde(with = "crate::json_number::fields")]
    pub values: Fields<f64>,
    /// Settings that the event is about, by name.
    pub parameters: Fields<serde_json::Value>,
    /// A sentence for users.
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
        /// Why the GPU was not used.
        reason: String,
    },
    /// On the CPU, as wanted.
    Cpu,
}

impl Event {
    /// An event at the present time, without duration, device, values, parameters and notes.
    #[inline]
    pub fn new(run: impl Into<SmolStr>, phase: impl Into<SmolStr>, step: impl Into<SmolStr>) -> Self {
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
    #[inline]
    pub fn lasting_ms(mut self, duration_ms: f64) -> Self {
        self.duration_ms = Some(duration_ms).filter(|duration_ms| duration_ms.is_finite());
        self
    }

    /// Adds where it ran.
    #[inline]
    pub fn on(mut self, device: DeviceMode) -> Self {
        self.device = Some(device);
        self
    }

    /// Adds a measured number.
    #[inline]
    pub fn value(mut self, name: impl Into<SmolStr>, value: f64) -> Self {
        self.values.insert(name, value);
        self
    }

    /// Adds a setting.
    #[inline]
    pub fn parameter(mut self, name: impl Into<SmolStr>, value: impl Into<serde_json::Value>) -> Self {
        self.parameters.insert(name, value.into());
        self
    }

    /// Whether it is this step of this phase.
    pub fn is(&self, phase: &str, step: &str) -> bool {
        self.phase == phase && self.step == step
    }

    /// Adds a sentence for users.
    #[inline]
    pub fn note(mut self, notes: impl Into<String>) -> Self {
        self.notes = Some(notes.into());
        self
    }
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
