//! Follows a colouring run: the progress line, the files, the journal, the rules.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use tidemill_coloring::phase::Report;
use tidemill_coloring::{ColoringError, Instance, Knobs, Moment, Observer, Outcome};
use tidemill_telemetry::{Timestamp, format_smolstr};

use super::record::Recorder;
use super::resolve::Resolved;
use super::store::Store;
use super::tune::{Tuning, earlier};
use tidemill_lab::Devices;

/// How often the progress line is drawn anew at most.
const EVERY: Duration = Duration::from_millis(100);

/// Hears of everything.
pub struct Watch<'a> {
    instance: &'a Instance,
    store: &'a Store,
    recorder: Recorder,
    tuning: Tuning,
    progress: ProgressBar,
    drawn: Instant,
    best: Option<usize>,
    /// By phase: the colours it tries, conflicts, iterations a second.
    phases: BTreeMap<&'static str, (usize, u32, f64)>,
}

impl<'a> Watch<'a> {
    /// For a run that begins, or goes on.
    pub fn new(
        instance: &'a Instance,
        resolved: &Resolved,
        store: &'a Store,
        devices: &Devices,
        is_resumed: bool,
        began: Instant,
    ) -> Result<Self> {
        let run = format_smolstr!("color-{}", Timestamp::now().as_ms());
        let recorder = Recorder::new(run, began, devices.unusable.clone());
        let options = &resolved.options;
        store.record(recorder.start(instance, is_resumed, options.max_iterations, &resolved.config()));
        for remark in &instance.remarks {
            store.record(recorder.warning("graph", remark));
        }
        let decided = if is_resumed { earlier(store.journal_file().as_deref())? } else { Vec::new() };
        let (mode, thresholds) = (resolved.hypertune, resolved.thresholds.clone());
        let tuning = Tuning::new(mode, thresholds, &options.phases, &options.knobs, &decided, recorder.run());
        let progress = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}");
        progress.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        progress.enable_steady_tick(Duration::from_millis(200));
        let drawn = Instant::now();
        Ok(Self { instance, store, recorder, tuning, progress, drawn, best: None, phases: BTreeMap::new() })
    }

    /// The run is over.
    pub fn end(&self, outcome: &Outcome) {
        self.progress.finish_and_clear();
        self.store.record(self.recorder.end(outcome));
    }

    /// The run failed.
    pub fn fail(&self, reason: &str) {
        self.progress.finish_and_clear();
        self.store.record(self.recorder.failed(reason));
    }

    /// What the rules said.
    pub fn advice(&self) -> Vec<String> {
        self.tuning.sentences()
    }

    fn draw(&mut self, report: &Report, k: usize) {
        let Some(conflicts) = report.conflicts() else { return };
        self.phases.insert(report.kind.name(), (k, conflicts, report.it_per_s().unwrap_or(0.0)));
        if self.drawn.elapsed() < EVERY {
            return;
        }
        self.drawn = Instant::now();
        let best = self.best.map_or_else(String::new, |best| format!("{best} colours"));
        let parts: Vec<String> = self
            .phases
            .iter()
            .map(|(name, (k, conflicts, speed))| {
                format!("{name} k={k} conflicts={conflicts} {speed:.1e} it/s")
            })
            .collect();
        self.progress.set_message(format!("{best} | {}", parts.join(" | ")));
    }
}

impl Observer for Watch<'_> {
    fn hear(&mut self, moment: Moment<'_>) -> Result<(), ColoringError> {
        match moment {
            Moment::Worked { report, k, iterations, .. } => {
                self.store.record(self.recorder.worked(report, k, iterations));
                self.draw(report, k);
            }
            Moment::Improved { k, colors, by, pass, iterations } => {
                self.best = Some(k);
                self.store.improve(self.instance, k, colors)?;
                self.store.record(self.recorder.improved(k, by, pass, iterations));
            }
            Moment::Begins { state, .. } => self.store.checkpoint(state)?,
            Moment::Ended { .. } => self.phases.clear(),
        }
        Ok(())
    }

    fn changes(&mut self, round: u64, _knobs: &Knobs) -> Result<Vec<(String, f64)>, ColoringError> {
        self.tuning.changes(round, self.store)
    }
}
