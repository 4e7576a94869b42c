//! `--timeline`: when the stages of a sweep ran on its devices, as a trace for Perfetto.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tidemill_backtest::StageSpan;

use crate::executor::Devices;

/// A file that is written when the sweep is over.
pub struct Trace {
    path: PathBuf,
    file: File,
}

impl Trace {
    /// Makes the file.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("--timeline {}", path.display()))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// Writes spans, each with the number of its device. A sweep is not lost because its trace is: that is only said.
    pub fn write(mut self, devices: &Devices, spans: &[(usize, StageSpan)]) {
        let path = self.path.display();
        if spans.is_empty() {
            eprintln!("note: no stage ran on a device, so {path} shows none");
        }
        let names: Vec<&str> = devices.devices.iter().map(|device| device.info().name.as_str()).collect();
        if let Err(error) = self.file.write_all(chrome_json(&names, spans).to_string().as_bytes()) {
            eprintln!("warning: {path} could not be written: {error}");
        }
    }
}

/// Spans in Chrome's format: a process for each device, a track for each lane.
fn chrome_json(names: &[&str], spans: &[(usize, StageSpan)]) -> Value {
    let mut events = Vec::new();
    for (device, name) in names.iter().enumerate() {
        let args = json!({ "name": format!("device {device}: {name}") });
        events.push(json!({ "ph": "M", "pid": device, "name": "process_name", "args": args }));
    }
    let lanes: BTreeSet<(usize, usize)> = spans.iter().map(|(device, span)| (*device, span.lane)).collect();
    for (device, lane) in lanes {
        let args = json!({ "name": format!("lane {lane}") });
        events.push(json!({ "ph": "M", "pid": device, "tid": lane, "name": "thread_name", "args": args }));
    }
    events.extend(spans.iter().map(|(device, span)| {
        json!({
            "ph": "X", "pid": device, "tid": span.lane, "name": format!("{:?}", span.stage).to_lowercase(),
            "ts": span.begin_ms * 1e3, "dur": (span.end_ms - span.begin_ms).max(0.0) * 1e3,
        })
    }));
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

#[cfg(test)]
mod tests {
    use tidemill_backtest::Stage;

    use super::*;

    #[test]
    fn lanes_of_different_devices_are_different_tracks() {
        let span = |stage, lane, begin_ms| StageSpan { stage, lane, begin_ms, end_ms: begin_ms + 0.5 };
        let spans = [(0, span(Stage::Walk, 1, 2.0)), (1, span(Stage::Book, 1, 3.0))];
        let json = chrome_json(&["A", "B"], &spans);
        let events = json["traceEvents"].as_array().unwrap();
        let named = |name: &str| events.iter().filter(|event| event["name"] == name).collect::<Vec<_>>();
        assert_eq!((named("process_name").len(), named("thread_name").len()), (2, 2));
        let expected = json!({ "ph": "X", "pid": 1, "tid": 1, "name": "book", "ts": 3000.0, "dur": 500.0 });
        assert_eq!(named("book"), [&expected]);
    }
}
