//! What a walk writes to its journal beyond what its searches do: where it stands, and what each window came to.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use serde_json::{Map, Value};
use tidemill_search::folder::{JOURNAL_FILE, Lock};
use tidemill_telemetry::{DeviceMode, Journal, SmolStr, format_smolstr};

use super::summary::{Step, Summary};
use super::text::figures;
use crate::command::sweep::record::{About, Run};
use crate::executor::Devices;
use crate::number;

/// The journal of a walk, and the lock of its folder.
pub struct Record {
    run: Run,
    mode: DeviceMode,
    is_resumed: bool,
    n_windows: u64,
    n_done: AtomicU64,
    /// No other process writes into the folder meanwhile.
    _lock: Option<Lock>,
}

impl Record {
    /// Opens the journal in the folder, or one that is kept nowhere.
    pub fn open(dir: Option<&Path>, strategy: &str, devices: &Devices, n_windows: usize) -> Result<Self> {
        let mut name = SmolStr::new(strategy);
        let (mut lock, mut is_resumed) = (None, false);
        let journal = match dir {
            None => Journal::without_file()?,
            Some(dir) => {
                std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
                lock = Some(Lock::take(dir)?);
                if let Some(folder) = dir.file_name().and_then(|name| name.to_str()) {
                    name = SmolStr::new(folder);
                }
                let path = dir.join(JOURNAL_FILE);
                is_resumed = path.is_file();
                Journal::open_append(&path)?
            }
        };
        let mode = match (&devices.devices[..], &devices.unusable) {
            ([], None) => DeviceMode::Cpu,
            ([], Some(reason)) => DeviceMode::CpuFallback { reason: reason.clone() },
            _ => DeviceMode::Gpu { stream: 0 },
        };
        let run = Run::new(Arc::new(journal), name);
        Ok(Self {
            run,
            mode,
            is_resumed,
            n_windows: n_windows as u64,
            n_done: AtomicU64::new(0),
            _lock: lock,
        })
    }

    /// The run, for the searches of the windows.
    pub fn run(&self) -> Run {
        self.run.clone()
    }

    /// The walk begins, or goes on.
    pub fn start(&self, title: &str, trials: u64, config: &Map<String, Value>) {
        let total = self.n_windows.saturating_mul(trials);
        let about = About { is_resumed: self.is_resumed, workload: "walkforward", title, total };
        self.run.start(&about, self.mode.clone(), config);
    }

    /// A window was searched, and what it chose was traded; how far the walk is, for people.
    pub fn traded(&self, at: usize, step: &Step) -> String {
        let n_done = self.n_done.fetch_add(1, Ordering::SeqCst) + 1;
        let [searched, traded] = step.sharpe;
        let mut event = self
            .run
            .event("trade", format_smolstr!("window_{}", at + 1))
            .value("windows", n_done as f64)
            .value("sharpe_searched", searched.unwrap_or(f64::NAN))
            .value("sharpe_traded", traded.unwrap_or(f64::NAN))
            .value("return", step.total_return)
            .value("trades", f64::from(step.trades));
        for (name, value) in &step.parameters {
            event = event.parameter(name.as_str(), value.clone());
        }
        self.run.record(event.note(format!(
            "{} to {}: Sharpe {} where it was searched, {} where it was traded",
            step.test_from,
            step.test_to,
            number::short(searched),
            number::short(traded)
        )));
        format!("{n_done} of {} windows done", self.n_windows)
    }

    /// The last word and the end of the journal: what came of it, or that it was stopped, or why it failed.
    pub fn end(self, outcome: &str, note: String) {
        self.run.end(self.mode, outcome, Some(note));
        self.run.close();
    }
}

/// What came of a walk, in a line.
pub fn line(summary: &Summary) -> String {
    let texts: Vec<String> =
        figures(summary).iter().take(5).map(|(name, value)| format!("{name} {value}")).collect();
    texts.join(", ")
}
