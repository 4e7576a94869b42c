//! What a sweep prints to standard error while it runs: its beginning, a progress line, the address of its metrics.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use tidemill_lab::evaluator::BatchSpan;
use tidemill_lab::event::Opening;
use tidemill_lab::{Experiment, SweepEvent, number};
use tidemill_search::SamplerKind;
use tidemill_telemetry::{Journal, metrics, prometheus};

/// Shows a sweep to the people who run it.
#[derive(Clone)]
pub struct SweepProgress(Arc<Shared>);

struct Shared {
    /// What is swept, and on what: what stands before and after the number of trials.
    title: [String; 2],
    sampler: SamplerKind,
    devices_note: Option<String>,
    out: Option<PathBuf>,
    bar: Mutex<Option<ProgressBar>>,
    best: Mutex<Option<f64>>,
    /// When each stage ran on the devices, once the search is over.
    spans: Mutex<Arc<[BatchSpan]>>,
    /// Journal of the run, while it runs.
    journal: Arc<Mutex<Option<Arc<Journal>>>>,
    is_open: AtomicBool,
    server: Mutex<Option<metrics::Server>>,
}

impl SweepProgress {
    /// For a sweep that is about to run; starts to serve its metrics.
    pub fn new(
        experiment: &Experiment,
        sampler: SamplerKind,
        out: Option<&Path>,
        metrics: Option<SocketAddr>,
    ) -> Result<Self> {
        let Experiment { strategy, data, runtime, .. } = experiment;
        let journal = Arc::default();
        let server = metrics.map(|addr| serve(addr, Arc::clone(&journal))).transpose()?;
        Ok(Self(Arc::new(Shared {
            title: [format!("sweeping {} over {}", strategy.name, data.origin), runtime.devices.shown()],
            sampler,
            devices_note: runtime.devices.note.clone(),
            out: out.map(Into::into),
            bar: Mutex::default(),
            best: Mutex::default(),
            spans: Mutex::default(),
            journal,
            is_open: AtomicBool::new(false),
            server: Mutex::new(server),
        })))
    }

    /// Whether the study was opened.
    pub fn is_open(&self) -> bool {
        self.0.is_open.load(Ordering::SeqCst)
    }

    /// Handles an event.
    pub fn hear(&self, event: &SweepEvent) {
        match event {
            SweepEvent::Opened(opening) => self.opened(opening),
            SweepEvent::BatchFinished { totals, .. } => {
                *lock(&self.0.best) = totals.best;
                self.with_bar(|bar| bar.set_position(totals.trials));
            }
            SweepEvent::BatchTimed(timing) => {
                let ms = |time: Duration| time.as_secs_f64() * 1e3;
                let best = number::short(*lock(&self.0.best));
                self.with_bar(|bar| {
                    bar.set_message(format!(
                        "{best}  (ms: ask {:.1}, evaluate {:.1}, tell {:.1}, overlap {:.1}, idle {:.1})",
                        ms(timing.ask),
                        ms(timing.evaluate),
                        ms(timing.tell),
                        ms(timing.overlap),
                        ms(timing.idle)
                    ));
                });
            }
            SweepEvent::FellBack { reason } => self.say(&fallback_warning("the rest", reason)),
            SweepEvent::Spans(spans) => *lock(&self.0.spans) = spans.clone(),
            SweepEvent::Judging => self.replace_bar(Some(spinner("checking whether the winners hold up"))),
            SweepEvent::Ended { .. } => {
                self.finish();
                // Only the last owner can close the journal.
                drop(lock(&self.0.server).take());
                drop(lock(&self.0.journal).take());
            }
            SweepEvent::JournalFailed { reason } => eprintln!("warning: {reason}"),
            _ => {}
        }
    }

    /// When each stage ran on the devices, if the runtime keeps that.
    pub fn take_spans(&self) -> Arc<[BatchSpan]> {
        std::mem::take(&mut *lock(&self.0.spans))
    }

    /// Removes the progress line.
    pub fn finish(&self) {
        self.replace_bar(None);
    }

    fn opened(&self, opening: &Opening) {
        let Shared { title: [title, devices], sampler, out, .. } = &*self.0;
        if let (Some(n_stored), Some(dir)) = (opening.n_stored, out) {
            eprintln!("resuming the study in {}: {} trials are done", dir.display(), number::count(n_stored));
        }
        if let Some(version) = &opening.made_by {
            eprintln!(
                "note: version {version} made this study, this is version {}",
                env!("CARGO_PKG_VERSION")
            );
        }
        eprintln!(
            "{title}: {} trials, sampler {} in batches of {}, on {devices}",
            number::count(opening.n_asked),
            sampler.name(),
            number::count(opening.n_asked.min(opening.batch as u64)),
        );
        if let Some(note) = &self.0.devices_note {
            eprintln!("note: {note}");
        }
        *lock(&self.0.journal) = Some(opening.journal.clone());
        self.0.is_open.store(true, Ordering::SeqCst);
        self.replace_bar(Some(progress_bar(opening.n_asked, "best {msg}")));
    }

    fn say(&self, text: &str) {
        match &*lock(&self.0.bar) {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn with_bar(&self, show: impl FnOnce(&ProgressBar)) {
        if let Some(bar) = &*lock(&self.0.bar) {
            show(bar);
        }
    }

    fn replace_bar(&self, bar: Option<ProgressBar>) {
        if let Some(before) = std::mem::replace(&mut *lock(&self.0.bar), bar) {
            before.finish_and_clear();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves the metrics of a run until it is dropped; before the run has a journal there are none.
fn serve(addr: SocketAddr, journal: Arc<Mutex<Option<Arc<Journal>>>>) -> Result<metrics::Server> {
    let page = move || {
        let journal = lock(&journal).clone();
        journal.map_or_else(String::new, |journal| prometheus(&journal.snapshot()))
    };
    let server = metrics::serve(addr, page).with_context(|| format!("--metrics {addr}"))?;
    eprintln!("metrics: http://{}/metrics", server.addr());
    Ok(server)
}

/// The warning printed when the CPU takes over from a GPU.
pub fn fallback_warning(what: &str, reason: &str) -> String {
    format!("warning: the GPU failed, so {what} runs on the CPU with the same results: {reason}")
}

/// The progress line of work without a known length.
fn spinner(what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// The progress line of a run; `after` stands at its end.
pub fn progress_bar(trials: u64, after: &str) -> ProgressBar {
    let bar = ProgressBar::new(trials);
    let style = ProgressStyle::with_template(&format!(
        "{{bar:32}} {{human_pos}}/{{human_len}} trials  {{rate}}/s  {{eta}} left  {after}"
    ));
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}", number::count(state.per_sec() as u64));
    };
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("rate", rate));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
