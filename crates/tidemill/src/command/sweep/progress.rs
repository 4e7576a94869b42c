//! What a sweep prints to standard error while it runs: its beginning, a progress line, the address of its metrics.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::ProgressBar;
use tidemill_lab::evaluator::BatchSpan;
use tidemill_lab::event::Opening;
use tidemill_lab::record::SamplerSpan;
use tidemill_lab::{Experiment, SweepEvent, number};
use tidemill_search::{SamplerKind, Timing};
use tidemill_telemetry::{Journal, metrics, prometheus};

use crate::cluster;
use crate::progress::{ProgressLine, spinner};

/// When each stage ran on the devices, and when the sampler worked.
pub(super) type KeptSpans = (Arc<[BatchSpan]>, Arc<[SamplerSpan]>);

/// Shows a sweep to the people who run it.
#[derive(Clone)]
pub struct SweepProgress(Arc<Shared>);

struct Shared {
    /// What is swept, and on what: what stands before and after the number of trials.
    title: [String; 2],
    sampler: SamplerKind,
    devices_note: Option<String>,
    out: Option<PathBuf>,
    shown: Mutex<Option<Shown>>,
    /// Whether the times of every batch and the decisions of tuning rules are printed.
    is_verbose: AtomicBool,
    /// The workers in words, where there are any.
    workers: Mutex<Option<String>>,
    /// Once the search is over.
    spans: Mutex<KeptSpans>,
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
        let Experiment { strategy, runtime, .. } = experiment;
        let journal = Arc::default();
        let server = metrics.map(|addr| serve(addr, Arc::clone(&journal))).transpose()?;
        Ok(Self(Arc::new(Shared {
            title: [
                format!("sweeping {} over {}", strategy.name, experiment.origin()),
                runtime.devices.shown(),
            ],
            sampler,
            devices_note: runtime.devices.note.clone(),
            out: out.map(Into::into),
            shown: Mutex::default(),
            is_verbose: AtomicBool::new(false),
            workers: Mutex::default(),
            spans: Mutex::default(),
            journal,
            is_open: AtomicBool::new(false),
            server: Mutex::new(server),
        })))
    }

    /// Whether the times of every batch and the decisions of tuning rules are printed.
    pub fn verbose(self, is_verbose: bool) -> Self {
        self.0.is_verbose.store(is_verbose, Ordering::SeqCst);
        self
    }

    /// Names the workers in place of the devices.
    pub fn on_workers(self, workers: Option<String>) -> Self {
        *lock(&self.0.workers) = workers;
        self
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
                if let Some(Shown::Line(line)) = &*lock(&self.0.shown) {
                    line.set_position(totals.trials);
                    line.set_message(format!("best {}", number::short(totals.best)));
                }
            }
            SweepEvent::BatchTimed { step, timing } if self.is_verbose() => {
                self.say(&batch_line(step, timing));
            }
            SweepEvent::TuningConfig(proposal) if self.is_verbose() => {
                if let Some(sentence) = proposal.sentence() {
                    self.say(&sentence);
                }
            }
            SweepEvent::Fleet { event, .. } => {
                if let Some((sentence, is_detail)) = cluster::sentence(event)
                    && (self.is_verbose() || !is_detail)
                {
                    self.say(&sentence);
                }
            }
            SweepEvent::FellBack { reason } => self.say(&fallback_warning("the rest", reason)),
            SweepEvent::Spans { devices, sampler } => {
                *lock(&self.0.spans) = (devices.clone(), sampler.clone())
            }
            SweepEvent::Judging => {
                self.replace(Some(Shown::Spinner(spinner("checking whether the winners hold up"))));
            }
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

    /// When each stage ran on the devices and the sampler worked, if the runtime keeps that.
    pub fn take_spans(&self) -> KeptSpans {
        std::mem::take(&mut *lock(&self.0.spans))
    }

    /// Removes the progress line.
    pub fn finish(&self) {
        self.replace(None);
    }

    fn opened(&self, opening: &Opening) {
        let Shared { title: [title, devices], sampler, out, .. } = &*self.0;
        let workers = lock(&self.0.workers).clone();
        let devices = workers.as_ref().unwrap_or(devices);
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
        self.replace(Some(Shown::Line(ProgressLine::new(opening.n_asked, "trials"))));
    }

    fn is_verbose(&self) -> bool {
        self.0.is_verbose.load(Ordering::SeqCst)
    }

    fn say(&self, text: &str) {
        match &*lock(&self.0.shown) {
            Some(Shown::Line(line)) => line.suspend(|| eprintln!("{text}")),
            Some(Shown::Spinner(bar)) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn replace(&self, shown: Option<Shown>) {
        match std::mem::replace(&mut *lock(&self.0.shown), shown) {
            Some(Shown::Line(line)) => line.finish_and_clear(),
            Some(Shown::Spinner(bar)) => bar.finish_and_clear(),
            None => {}
        }
    }
}

/// What stands in the last line of the terminal.
enum Shown {
    Line(ProgressLine),
    Spinner(ProgressBar),
}

/// Where the time of a batch went, in milliseconds. `gpu` is the evaluation, also where the CPU does it.
pub fn batch_line(step: &str, timing: &Timing) -> String {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    format!(
        "{step}: ask={:.1}ms gpu={:.1}ms tell={:.1}ms overlap={:.1}ms idle={:.1}ms",
        ms(timing.ask),
        ms(timing.evaluate),
        ms(timing.tell),
        ms(timing.overlap),
        ms(timing.idle)
    )
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
