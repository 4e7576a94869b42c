//! What a sweep writes to its journal, and what a walk through time does, which is many searches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tidemill_backtest::Stage;
use tidemill_search::{Batch, Began, Scores, Space, Timing};
use tidemill_telemetry::{DeviceMode, Event, Journal, SmolStr, Timestamp, format_smolstr};

use crate::executor::{BatchSpan, View};
use crate::holding::Report;

/// Batches over which the busy share is taken.
const BUSY_BATCHES: usize = 8;

/// A run and its journal. Several searches may report to one run at a time.
#[derive(Clone)]
pub struct Run {
    journal: Arc<Journal>,
    name: SmolStr,
    began: Instant,
    total: Arc<Mutex<Total>>,
    /// What time records say it is. The rules that tune a run go by it, and tests set it.
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

/// What all searches of a run have done together.
#[derive(Clone, Copy, Default)]
struct Total {
    trials: u64,
    valid: u64,
    best: Option<f64>,
}

impl Run {
    /// A run that begins now.
    pub fn new(journal: Arc<Journal>, name: SmolStr) -> Self {
        Self::with_clock(journal, name, Arc::new(Timestamp::now))
    }

    /// A run whose records say that it is the time of this clock.
    pub fn with_clock(
        journal: Arc<Journal>,
        name: SmolStr,
        clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    ) -> Self {
        Self { journal, name, began: Instant::now(), total: Arc::default(), clock }
    }

    /// It begins, or goes on: what it is about, and the resolved configuration.
    pub fn start(&self, about: &About<'_>, mode: DeviceMode, config: &Map<String, Value>) {
        let step = if about.is_resumed { "resume" } else { "start" };
        let mut event = self
            .event("run", step.into())
            .value("total", about.total as f64)
            .parameter("workload", about.workload)
            .parameter("title", about.title)
            .parameter("progress", "trials")
            .parameter("score", "best")
            .parameter("better", "higher");
        for (name, value) in config {
            event = event.parameter(name.as_str(), value.clone());
        }
        self.journal.record(event.on(mode));
    }

    /// It is over; the last record.
    pub fn end(&self, mode: DeviceMode, outcome: &str, note: Option<String>) {
        let total = self.total();
        let mut event = self
            .event("run", "end".into())
            .on(mode)
            .value("trials", total.trials as f64)
            .value("valid", total.valid as f64)
            .value("wall_s", self.began.elapsed().as_secs_f64())
            .parameter("outcome", outcome);
        if let Some(best) = total.best {
            event = event.value("best", best);
        }
        if let Some(note) = note {
            event = event.note(note);
        }
        self.journal.record(event);
    }

    /// Writes an event of the run.
    pub fn record(&self, event: Event) {
        self.journal.record(event);
    }

    /// An event of the run.
    pub fn event(&self, phase: &'static str, step: SmolStr) -> Event {
        let event = Event::new(self.name.clone(), SmolStr::new_static(phase), step);
        Event { timestamp: (self.clock)(), ..event }
    }

    /// Brings the journal to its end, if nobody else has it any more.
    pub fn close(self) {
        if let Some(journal) = Arc::into_inner(self.journal)
            && let Err(error) = journal.close()
        {
            eprintln!("warning: {error}");
        }
    }

    fn total(&self) -> Total {
        *self.total.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the trials of a batch, of which so many are valid.
    fn count(&self, trials: usize, valid: u64, best: Option<f64>) -> Total {
        let mut total = self.total.lock().unwrap_or_else(PoisonError::into_inner);
        total.trials += trials as u64;
        total.valid += valid;
        total.best = [total.best, best].into_iter().flatten().reduce(f64::max);
        *total
    }

    /// Milliseconds since it began.
    fn since(&self, at: Instant) -> f64 {
        // A device may have begun before the run did.
        match at.checked_duration_since(self.began) {
            Some(since) => ms(since),
            None => -ms(self.began.saturating_duration_since(at)),
        }
    }
}

/// What the first record of a run says of it.
pub struct About<'a> {
    pub is_resumed: bool,
    /// `sweep` or `walkforward`.
    pub workload: &'a str,
    pub title: &'a str,
    /// Trials in all.
    pub total: u64,
}

/// Writes the events of one search.
pub struct Recorder<'a> {
    run: Run,
    /// Stands before the names of steps, where a run has several searches.
    prefix: SmolStr,
    space: &'a Space,
    view: Arc<View>,
    busy: Busy,
    /// Spans of batches whose times are not all known yet.
    waiting: BTreeMap<u64, Vec<BatchSpan>>,
    /// All spans, where a timeline was asked for.
    kept: Option<Vec<BatchSpan>>,
    best: Option<f64>,
}

impl<'a> Recorder<'a> {
    /// For a search of a run.
    pub fn new(run: Run, prefix: SmolStr, space: &'a Space, view: Arc<View>, keeps_spans: bool) -> Self {
        Self {
            run,
            prefix,
            space,
            view,
            busy: Busy::default(),
            waiting: BTreeMap::new(),
            kept: keeps_spans.then(Vec::new),
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
        let total = self.run.count(batch.points.len(), n_valid, self.best);
        if let (Some(row), Some(best)) = (best_row, self.best)
            && !is_replayed
        {
            let trial = batch.first_trial + row as u64;
            let mut event = self
                .run
                .event("improvement", format_smolstr!("{}trial_{trial}", self.prefix))
                .value("best", best)
                .value("trial", trial as f64)
                .value("trials", total.trials as f64);
            for (param_idx, param) in self.space.params.iter().enumerate() {
                if let Some(value) = param.domain.decode(batch.points.value(row, param_idx)) {
                    event = event.parameter(param.name.as_str(), json!(value));
                }
            }
            self.run.record(event);
        }
    }

    /// All is known of the time that a batch took.
    pub fn timed(&mut self, index: u64, timing: &Timing, began: &Began) {
        for span in self.view.take_spans() {
            self.kept.iter_mut().for_each(|kept| kept.push(span));
            self.waiting.entry(span.batch).or_default().push(span);
        }
        let step = format_smolstr!("{}batch_{index}", self.prefix);
        self.worked("ask", &step, began.ask, timing.ask);
        let mut rest = self.waiting.split_off(&(index + 1));
        std::mem::swap(&mut rest, &mut self.waiting);
        let spans: Vec<BatchSpan> = rest.into_values().flatten().collect();
        let busy = if spans.is_empty() {
            let whole = ms(timing.evaluate) + ms(timing.idle);
            if whole > 0.0 { ms(timing.evaluate) / whole } else { f64::NAN }
        } else {
            self.busy.share(&spans)
        };
        let mode = self.view.mode();
        let total = self.run.total();
        let counts = |event: Event| {
            let event = event
                .value("trials", total.trials as f64)
                .value("valid", total.valid as f64)
                .value("ask_ms", ms(timing.ask))
                .value("evaluate_ms", ms(timing.evaluate))
                .value("tell_ms", ms(timing.tell))
                .value("overlap_ms", ms(timing.overlap))
                .value("idle_ms", ms(timing.idle));
            let event = if busy.is_finite() { event.value("busy", busy) } else { event };
            match total.best {
                Some(best) => event.value("best", best),
                None => event,
            }
        };
        if spans.is_empty() {
            let event = self.run.event("kernel", step.clone()).lasting_ms(ms(timing.evaluate)).on(mode);
            let start = began.evaluate.map(|at| self.run.since(at));
            self.run.record(counts(with_start(event, start)));
        } else {
            for (phase, device, lane, start, duration) in self.on_device(&spans) {
                let event = self
                    .run
                    .event(phase, step.clone())
                    .lasting_ms(duration)
                    .on(DeviceMode::Gpu { stream: (device * 16 + lane) as u32 })
                    .value("start_ms", start);
                self.run.record(if phase == "kernel" { counts(event) } else { event });
            }
        }
        self.worked("tell", &step, began.tell, timing.tell);
    }

    /// Whether the winners hold up, which began to be asked then.
    pub fn judged(&self, report: &Report, began: Instant) {
        let step = report.winners.first().map_or_else(
            || SmolStr::new_static("no_winner"),
            |winner| format_smolstr!("trial_{}", winner.trial),
        );
        let mut event = self
            .run
            .event("verdict", step)
            .lasting_ms(ms(began.elapsed()))
            .on(DeviceMode::Cpu)
            .value("independent_trials", report.independent_trials);
        if let Some(overfit) = &report.overfit {
            event = event.value("overfit", overfit.probability);
        }
        if let Some(winner) = report.winners.first() {
            event = event
                .value("deflated", winner.deflated.unwrap_or(f64::NAN))
                .value("survived", winner.verdict.n_survived as f64)
                .value("checks", winner.verdict.n_checks as f64)
                .note(winner.sentence.clone());
        }
        self.run.record(with_start(event, Some(self.run.since(began))));
    }

    /// The run is over; the last record.
    pub fn end(&self, outcome: &str, note: Option<String>) {
        self.run.end(self.view.mode(), outcome, note);
    }

    /// All stages that ran on devices, where they were to be kept.
    pub fn take_spans(&mut self) -> Vec<BatchSpan> {
        let mut spans = self.kept.take().unwrap_or_default();
        spans.extend(self.view.take_spans());
        spans
    }

    /// Work of the sampler.
    fn worked(&self, phase: &'static str, step: &SmolStr, began: Option<Instant>, took: Duration) {
        let Some(began) = began else { return };
        let event = self.run.event(phase, step.clone()).lasting_ms(ms(took)).on(DeviceMode::Cpu);
        self.run.record(with_start(event, Some(self.run.since(began))));
    }

    /// The stages of a batch as phases: name, device, lane, begin and duration.
    fn on_device(&self, spans: &[BatchSpan]) -> Vec<(&'static str, usize, usize, f64, f64)> {
        let mut phases: Vec<(&'static str, usize, usize, f64, f64)> = Vec::new();
        for of in spans {
            let phase = match of.span.stage {
                Stage::Upload => "upload",
                Stage::Distinct => "distinct",
                Stage::Download => "download",
                Stage::Wait => continue,
                Stage::Columns | Stage::Masks | Stage::Walk | Stage::Book => "kernel",
            };
            let base = self.run.since(of.base);
            let (begin, end) = (base + of.span.begin_ms, base + of.span.end_ms);
            // Stages that follow each other on a lane are one.
            match phases.last_mut() {
                Some(last) if (last.0, last.1, last.2) == (phase, of.device, of.span.lane) => {
                    last.4 = end - last.3;
                }
                _ => phases.push((phase, of.device, of.span.lane, begin, end - begin)),
            }
        }
        phases
    }
}

fn with_start(event: Event, start_ms: Option<f64>) -> Event {
    match start_ms {
        Some(start_ms) => event.value("start_ms", start_ms),
        None => event,
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// For which share of the time devices were at work, over the last batches.
#[derive(Default)]
struct Busy {
    /// Until when spans were counted, on each device.
    until: Vec<f64>,
    total: f64,
    /// After each of the last batches: its end, and the time at work until then.
    marks: VecDeque<(f64, f64)>,
}

impl Busy {
    fn share(&mut self, spans: &[BatchSpan]) -> f64 {
        let mut end = f64::NEG_INFINITY;
        for of in spans {
            if self.until.len() <= of.device {
                self.until.resize(of.device + 1, f64::NEG_INFINITY);
            }
            let until = &mut self.until[of.device];
            if of.span.end_ms > *until {
                self.total += of.span.end_ms - of.span.begin_ms.max(*until);
                *until = of.span.end_ms;
            }
            end = end.max(of.span.end_ms);
        }
        self.marks.push_back((end, self.total));
        if self.marks.len() > BUSY_BATCHES + 1 {
            self.marks.pop_front();
        }
        let (Some(first), Some(last)) = (self.marks.front(), self.marks.back()) else { return f64::NAN };
        let time = (last.0 - first.0) * self.until.len().max(1) as f64;
        if time > 0.0 { ((last.1 - first.1) / time).clamp(0.0, 1.0) } else { f64::NAN }
    }
}
