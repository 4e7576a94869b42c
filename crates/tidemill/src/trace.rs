//! `--timeline`: what ran when on the devices, as a trace for Perfetto.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use tidemill_lab::Devices;

/// A file that is written when the work is over.
pub struct Trace {
    path: PathBuf,
    file: File,
}

/// Something that ran on a device.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// Number of the device.
    pub device: usize,
    /// Number of the lane or stream on it.
    pub track: usize,
    /// What ran.
    pub name: String,
    /// When it began, on the device's clock.
    pub begin_ms: f64,
    /// When it was done.
    pub end_ms: f64,
}

impl Trace {
    /// Makes the file.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("--timeline {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes spans; `tracks` says what a track is. What was written before is replaced. A result is not lost because its
    /// trace is: that is only said.
    pub fn write(&mut self, devices: &Devices, tracks: &str, spans: &[TraceSpan]) {
        let path = self.path.display();
        if spans.is_empty() {
            eprintln!("note: no stage ran on a device, so {path} shows none");
        }
        let names: Vec<&str> = devices.devices.iter().map(|device| device.info().name.as_str()).collect();
        let text = chrome_json(&names, tracks, spans).to_string();
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        if let Err(error) = cleared.and_then(|()| self.file.write_all(text.as_bytes())) {
            eprintln!("warning: {path} could not be written: {error}");
        }
    }
}

/// Spans in Chrome's format: a process for each device, a track for each lane or stream.
fn chrome_json(names: &[&str], tracks: &str, spans: &[TraceSpan]) -> Value {
    let mut events = Vec::new();
    for (device, name) in names.iter().enumerate() {
        let args = json!({ "name": format!("device {device}: {name}") });
        events.push(json!({ "ph": "M", "pid": device, "name": "process_name", "args": args }));
    }
    let used: BTreeSet<(usize, usize)> = spans.iter().map(|span| (span.device, span.track)).collect();
    for (device, track) in used {
        let args = json!({ "name": format!("{tracks} {track}") });
        events.push(json!({ "ph": "M", "pid": device, "tid": track, "name": "thread_name", "args": args }));
    }
    events.extend(spans.iter().map(|span| {
        json!({
            "ph": "X", "pid": span.device, "tid": span.track, "name": span.name,
            "ts": span.begin_ms * 1e3, "dur": (span.end_ms - span.begin_ms).max(0.0) * 1e3,
        })
    }));
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_of_different_devices_are_different_tracks() {
        let span = |device, name: &str, begin_ms| TraceSpan {
            device,
            track: 1,
            name: name.into(),
            begin_ms,
            end_ms: begin_ms + 0.5,
        };
        let json = chrome_json(&["A", "B"], "lane", &[span(0, "walk", 2.0), span(1, "book", 3.0)]);
        let events = json["traceEvents"].as_array().unwrap();
        let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
        assert_eq!((named("process_name").len(), named("thread_name").len()), (2, 2));
        assert_eq!(named("thread_name")[0]["args"]["name"], "lane 1");
        let expected = json!({ "ph": "X", "pid": 1, "tid": 1, "name": "book", "ts": 3000.0, "dur": 500.0 });
        assert_eq!(named("book"), [&expected]);
    }
}
