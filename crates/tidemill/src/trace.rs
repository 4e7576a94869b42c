//! `--timeline`: what ran when on the devices, as a trace for Perfetto.

use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tidemill_gpu::{TraceSpan, chrome_trace};
use tidemill_lab::Devices;

/// A file that is written when the work is over.
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

    /// Writes spans; `tracks` says what a track is. What was written before is replaced. If it cannot be
    /// written, the command warns and keeps its result.
    pub fn write(&mut self, devices: &Devices, tracks: &str, spans: &[TraceSpan]) {
        let path = self.path.display();
        if spans.is_empty() {
            eprintln!("note: no stage ran on a device, so {path} has no stages");
        }
        let names: Vec<&str> = devices.devices.iter().map(|device| device.info().name.as_str()).collect();
        let text = chrome_trace(&names, |track| format!("{tracks} {track}"), spans);
        let cleared = self.file.set_len(0).and_then(|()| self.file.rewind());
        if let Err(error) = cleared.and_then(|()| self.file.write_all(text.as_bytes())) {
            eprintln!("warning: {path} could not be written: {error}");
        }
    }
}
