//! Writes the events of a run to its journal and passes them to the observer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::json;
use tidemill_backtest::Stage;
use tidemill_search::{Batch, BatchStart, Scores, Space, Timing};
use tidemill_telemetry::{DeviceMode, Event, Journal, JournalError, SmolStr, Timestamp, format_smolstr};

use crate::evaluator::{BatchSpan, EvaluatorView};
use crate::event::{BatchCounts, SweepEvent, Totals, Work, ms};
use crate::fill::{DeviceUse, UseMeter};

/// Gets the events of a running experiment, on the thread on which they happen.
pub type Observer = Arc<dyn Fn(&SweepEvent) + Send + Sync>;

/// The journal and the observer of a run. Several searches may report to one run at a time.
#[derive(Clone)]
pub struct Reporter {
    journal: Arc<Journal>,
    name: SmolStr,
    observer: Observer,
    began: Instant,
    totals: Arc<Mutex<Totals>>,
    /// Where the run is now.
    device: Arc<Mutex<DeviceMode>>,
    /// The clock of the records. The tuning rules use it, and tests set it.
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Reporter {
    /// A run that begins now.
    pub fn new(journal: Arc<Journal>, name: SmolStr, observer: Observer) -> Self {
        let (device, clock) = (Arc::new(Mutex::new(DeviceMode::Cpu)), Arc::new(Timestamp::now));
        Self { journal, name, observer, began: Instant::now(), totals: Arc::default(), device, clock }
    }

    /// The same with this clock for the records.
    #[cfg(test)]
    pub fn with_clock(self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self }
    }

    /// Reports what happened.
    pub fn report(&self, event: SweepEvent) {
        match &event {
            SweepEvent::Started { device, .. } => self.set_device(device.clone()),
            SweepEvent::FellBack { reason } => {
                self.set_device(DeviceMode::CpuFallback { reason: reason.clone() });
            }
            _ => {}
        }
        if let Some(record) = self.record_of(&event) {
            self.journal.record(record);
        }
        (self.observer)(&event);
    }

    /// The same, and returns once it is on disk.
    pub fn report_durable(&self, event: SweepEvent) -> Result<(), JournalError> {
        if let Some(record) = self.record_of(&event) {
            self.journal.record_durable(record)?;
        }
        (self.observer)(&event);
        Ok(())
    }

    fn record_of(&self, event: &SweepEvent) -> Option<Event> {
        Some(Event { timestamp: (self.clock)(), ..event.to_event(&self.name)? })
    }

    /// The journal of the run.
    pub fn journal(&self) -> &Arc<Journal> {
        &self.journal
    }

    /// Records the end of the run, and closes the journal if no other clone of it is left.
    pub fn end(self, outcome: &'static str, note: Option<String>) {
        let device = self.device.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (totals, wall_s) = (self.totals(), self.began.elapsed().as_secs_f64());
        self.report(SweepEvent::Ended { outcome, note, device, totals, wall_s });
        if let Some(journal) = Arc::into_inner(self.journal)
            && let Err(error) = journal.close()
        {
            (self.observer)(&SweepEvent::JournalFailed { reason: error.to_string() });
        }
    }

    fn set_device(&self, device: DeviceMode) {
        *self.device.lock().unwrap_or_else(PoisonError::into_inner) = device;
    }

    fn totals(&self) -> Totals {
        *self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the trials of a batch, of which so many are valid.
    fn count(&self, trials: usize, valid: u64, best: Option<f64>) -> Totals {
        let mut totals = self.totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.trials += trials as u64;
        totals.valid += valid;
        totals.best = [totals.best, best].into_iter().flatten().reduce(f64::max);
        *totals
    }

    /// Milliseconds since the run began.
    pub fn since(&self, at: Instant) -> f64 {
        // A device may have begun before the run did.
        match at.checked_duration_since(self.began) {
            Some(since) => ms(since),
            None => -ms(self.began.saturating_duration_since(at)),
        }
    }
}

/// A piece of work of the sampler.
#[derive(Clone, Copy, Debug)]
pub struct SamplerSpan {
    /// `ask` or `tell`.
    pub phase: &'static str,
    /// When it began.
    pub began: Instant,
    /// How long it took.
    pub took: Duration,
}

/// Reports the batches of one search.
pub struct BatchRecorder<'a> {
    reporter: Reporter,
    /// Stands before the names of steps, where a run has several searches.
    prefix: SmolStr,
    space: &'a Space,
    view: Arc<EvaluatorView>,
    used: UseMeter,
    /// Spans of batches whose times are not all known yet.
    waiting: BTreeMap<u64, Vec<BatchSpan>>,
    /// All spans, where they are kept.
    kept: Option<(Vec<BatchSpan>, Vec<SamplerSpan>)>,
    best: Option<f64>,
}

impl<'a> BatchRecorder<'a> {
    /// For a search of a run.
    pub fn new(
        reporter: Reporter,
        prefix: SmolStr,
        space: &'a Space,
        view: Arc<EvaluatorView>,
        keeps_spans: bool,
    ) -> Self {
        Self {
            reporter,
            prefix,
            space,
            view,
            used: UseMeter::default(),
            waiting: BTreeMap::new(),
            kept: keeps_spans.then(Default::default),
            best: None,
        }
    }

    /// A batch was evaluated, or read back.
    pub fn finished(&mut self, batch: &Batch, scores: &Scores, is_replayed: bool) {
        let (mut best_row, mut n_valid) = (None, 0);
        for at in 0..scores.len() {
            let Some(score) = scores.first(at).value() else { continue };
            n_valid += 1;
            if self.best.is_none_or(|best| score > best) {
                self.best = Some(score);
                best_row = Some(at);
            }
        }
        let n_trials = batch.points.len();
        let totals = self.reporter.count(n_trials, n_valid, self.best);
        if let (Some(row), Some(best)) = (best_row, self.best)
            && !is_replayed
        {
            let trial = batch.first_trial + row as u64;
            let parameters = self.space.params.iter().enumerate().filter_map(|(param_idx, param)| {
                let value = param.domain.decode(batch.points.value(row, param_idx))?;
                Some((param.name.clone(), json!(value)))
            });
            self.reporter.report(SweepEvent::Improved {
                step: format_smolstr!("{}trial_{trial}", self.prefix),
                trial,
                best,
                n_trials: totals.trials,
                parameters: parameters.collect(),
            });
        }
        self.reporter.report(SweepEvent::BatchFinished { n_trials: n_trials as u64, totals });
    }

    /// The times of a batch are complete.
    pub fn timed(&mut self, index: u64, timing: &Timing, began: &BatchStart) {
        for span in self.view.take_spans() {
            self.kept.iter_mut().for_each(|(devices, _)| devices.push(span));
            self.waiting.entry(span.batch).or_default().push(span);
        }
        let step = format_smolstr!("{}batch_{index}", self.prefix);
        self.sampler_worked("ask", &step, began.ask, timing.ask);
        let mut rest = self.waiting.split_off(&(index + 1));
        std::mem::swap(&mut rest, &mut self.waiting);
        let spans: Vec<BatchSpan> = rest.into_values().flatten().collect();
        let DeviceUse { busy, fill, .. } = match &spans[..] {
            [] => self.used.on_cpu(ms(timing.evaluate), ms(timing.idle)),
            spans => self.used.on_devices(spans.iter().map(|of| (of.device, of.span))),
        };
        let counts = BatchCounts { totals: self.reporter.totals(), timing: *timing, busy, fill };
        if spans.is_empty() {
            self.reporter.report(SweepEvent::StageEnded(Work {
                phase: "kernel",
                step: step.clone(),
                start_ms: began.evaluate.map(|at| self.reporter.since(at)),
                duration_ms: ms(timing.evaluate),
                device: self.view.mode(),
                batch: Some(counts),
            }));
        } else {
            for work in self.on_devices(&spans, &step, counts) {
                self.reporter.report(SweepEvent::StageEnded(work));
            }
        }
        self.sampler_worked("tell", &step, began.tell, timing.tell);
        self.reporter.report(SweepEvent::BatchTimed { step, timing: *timing });
    }

    /// How well the search used what it ran on, in so much time; none if nothing was evaluated.
    pub fn device_use(&self, wall: Duration) -> Option<DeviceUse> {
        self.used.in_all(ms(wall))
    }

    /// All stages that ran on devices and all work of the sampler, where they are kept.
    pub fn take_spans(&mut self) -> (Vec<BatchSpan>, Vec<SamplerSpan>) {
        let (mut devices, sampler) = self.kept.take().unwrap_or_default();
        devices.extend(self.view.take_spans());
        (devices, sampler)
    }

    fn sampler_worked(
        &mut self,
        phase: &'static str,
        step: &SmolStr,
        began: Option<Instant>,
        took: Duration,
    ) {
        let Some(began) = began else { return };
        self.kept.iter_mut().for_each(|(_, sampler)| sampler.push(SamplerSpan { phase, began, took }));
        self.reporter.report(SweepEvent::StageEnded(Work {
            phase,
            step: step.clone(),
            start_ms: Some(self.reporter.since(began)),
            duration_ms: ms(took),
            device: DeviceMode::Cpu,
            batch: None,
        }));
    }

    /// The stages of a batch on devices; those that follow each other on a lane are one.
    fn on_devices(&self, spans: &[BatchSpan], step: &SmolStr, counts: BatchCounts) -> Vec<Work> {
        let mut stages: Vec<Work> = Vec::new();
        for of in spans {
            let phase = match of.span.stage {
                Stage::Upload => "upload",
                Stage::Distinct => "distinct",
                Stage::Download => "download",
                Stage::Wait => continue,
                Stage::Columns | Stage::Masks | Stage::Walk | Stage::Book => "kernel",
            };
            let base = self.reporter.since(of.base);
            let (begin, end) = (base + of.span.begin_ms, base + of.span.end_ms);
            let device = DeviceMode::Gpu { stream: (of.device * 16 + of.span.lane) as u32 };
            match stages.last_mut() {
                Some(last) if last.phase == phase && last.device == device => {
                    last.duration_ms = end - last.start_ms.unwrap_or(begin);
                }
                _ => stages.push(Work {
                    phase,
                    step: step.clone(),
                    start_ms: Some(begin),
                    duration_ms: end - begin,
                    device,
                    batch: (phase == "kernel").then_some(counts),
                }),
            }
        }
        stages
    }
}
