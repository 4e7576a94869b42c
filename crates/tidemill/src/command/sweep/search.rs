//! The search of a sweep: the study as it runs, with its journal, its tuner and its progress line, until its last word is said.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tidemill_backtest::{Engine, METRICS, Strategy};
use tidemill_search::{ParetoFront, Sampler, SamplerSettings, Space, Study, StudySummary};
use tidemill_telemetry::hypertune::Decision;
use tidemill_telemetry::{Journal, SmolStr, metrics, prometheus};

use super::best::{Best, Trial};
use super::evaluate::Judged;
use super::record::{About, Recorder, Run};
use super::resolve::{Resolved, most_batch};
use super::setup::{Store, run_name, told_config};
use super::tune::{self, Advice, Tuned, Tuning};
use super::watch::{Watch, progress_bar, spinner};
use super::{SweepArgs, Switch};
use crate::executor::{BatchSpan, Devices, Executor};
use crate::holding::{self, Witness};
use crate::number;
use crate::settings::Settings;
use crate::trace::{Trace, TraceSpan};

/// What is searched, and how.
pub struct Search<'a> {
    pub args: &'a SweepArgs,
    pub settings: &'a Settings,
    pub devices: &'a Devices,
    pub resolved: &'a Resolved,
    /// The strategy once per objective.
    pub strategies: &'a [Strategy],
    pub space: &'a Space,
    pub batch: &'a SamplerSettings,
    /// Trials that the sampler has to offer.
    pub n_asked: u64,
    pub store: Option<&'a Store>,
    /// What it is about, for people.
    pub title: String,
    pub stop: &'a AtomicBool,
}

/// What came of it. Its journal is open until [`Searched::end`].
pub struct Searched<'a> {
    pub summary: StudySummary,
    /// The best trials; of several objectives all that no other one beats in every respect.
    pub chosen: Vec<Trial>,
    pub n_valid: u64,
    /// What the rules said.
    pub advice: Advice,
    recorder: Recorder<'a>,
    run: Run,
    server: Option<metrics::Server>,
}

impl<'a> Search<'a> {
    /// Runs the study to its end, or until it is stopped.
    pub fn run(
        &self,
        engine: &mut Engine<'_>,
        sampler: &mut dyn Sampler,
        witness: Option<Arc<Witness>>,
    ) -> Result<Searched<'a>> {
        let (args, resolved) = (self.args, self.resolved);
        let mut executor = Executor::new(engine, self.strategies, self.devices, &self.settings.gpu)?
            .watched_by(witness.clone());
        // Before the work: a path that cannot be written is said at once.
        let timeline = args.timeline.as_deref().map(Trace::create).transpose()?;
        let run = run_name(args.out.as_deref(), &self.strategies[0]);
        let journal = Arc::new(match self.store {
            Some(store) => Journal::open_append(&store.folder.journal_path())?,
            None => Journal::without_file()?,
        });
        let server = args.metrics.map(|addr| serve(addr, journal.clone())).transpose()?;
        let tuned = Tuned {
            mode: resolved.hypertune,
            thresholds: self.settings.hypertune.thresholds()?,
            batch: self.batch.batch,
            most_batch: most_batch(resolved.sampler, resolved.trials),
            lag: resolved.lag,
            learns: resolved.sampler.learns(),
            knobs: sampler.knobs(),
        };
        let earlier: &[Decision] = self.store.map_or(&[], |store| &store.decisions);
        let mut tuning = Tuning::new(&tuned, earlier, journal.clone(), run.clone(), executor.view());
        let advice = tuning.advice();
        let run = Run::new(journal, run);
        let is_resumed = self.store.is_some_and(|store| store.is_resumed);
        let about = About { is_resumed, workload: "sweep", title: &self.title, total: self.n_asked };
        let config = told_config(self.strategies, resolved, json!(self.batch.batch), self.devices);
        run.start(&about, executor.view().mode(), &config);
        let keeps_spans = timeline.is_some();
        let recorder =
            Recorder::new(run.clone(), SmolStr::default(), self.space, executor.view(), keeps_spans);

        let progress = progress_bar(self.n_asked, "best {msg}");
        let mut watch = Watch {
            best: Best::new(self.space, resolved.top, resolved.sampler.learns()),
            front: ParetoFront::new(),
            n_valid: 0,
            n_done: 0,
            n_objectives: self.strategies.len(),
            witness,
            recorder,
            progress: progress.clone(),
        };
        let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
        let study = Study::new(self.space, sampler)
            .trials(resolved.trials)
            .batch(self.batch.batch)
            .lag(resolved.lag)
            .pipeline(args.pipeline == Switch::On)
            .objectives(self.strategies.len())
            .metrics(&names)
            .changes(tune::changes(earlier))
            .control(&mut tuning)
            .stop(self.stop)
            .observe(|event| watch.hear(event));
        let study = match self.store {
            Some(store) => study.folder(&store.folder),
            None => study,
        };
        let summary = study.run(&mut executor).map_err(anyhow::Error::from);
        progress.finish_and_clear();
        drop((executor, tuning));
        let Watch { best, front, n_valid, mut recorder, .. } = watch;
        if let Some(timeline) = timeline {
            trace(timeline, self.devices, &recorder.take_spans());
        }
        let summary = match summary {
            Ok(summary) => summary,
            Err(error) => {
                recorder.end("failed", Some(format!("{error:#}")));
                drop((server, recorder));
                run.close();
                self.say_what_is_kept();
                return Err(error);
            }
        };
        let chosen = if self.strategies.len() == 1 { best.into_trials() } else { best.of_front(&front) };
        Ok(Searched { summary, chosen, n_valid, advice, recorder, run, server })
    }

    /// After an error.
    fn say_what_is_kept(&self) {
        if let (Some(store), Some(dir)) = (self.store, &self.args.out) {
            let kept = number::count(store.folder.n_trials().unwrap_or(0));
            eprintln!("the study in {} keeps {kept} trials", dir.display());
            eprintln!("  hint: the same command goes on with the rest, with --device cpu also without a GPU");
        }
    }
}

impl Searched<'_> {
    /// Asks whether the winners hold up; `None` if it was stopped meanwhile.
    pub fn judge(
        &self,
        case: &holding::Case<'_>,
        engine: &mut Engine<'_>,
        witness: Witness,
        winners: &[Judged],
    ) -> Result<Option<holding::Report>> {
        let began = Instant::now();
        let progress = spinner("asking whether the winners hold up");
        let report = holding::judge(case, engine, witness, winners);
        progress.finish_and_clear();
        match &report {
            Ok(Some(report)) => self.recorder.judged(report, began),
            Ok(None) => {}
            Err(error) => self.recorder.end("failed", Some(format!("{error:#}"))),
        }
        report
    }

    /// The last word, and the end of the journal. `is_whole` says that nothing is left to do.
    pub fn end(self, is_whole: bool) {
        let note = (!is_whole).then(|| {
            let what =
                if self.summary.is_complete { "the winners were judged" } else { "all trials were done" };
            format!("stopped before {what}")
        });
        self.recorder.end(if is_whole { "complete" } else { "stopped" }, note);
        drop((self.server, self.recorder));
        self.run.close();
    }
}

/// Writes when each stage ran on the devices.
fn trace(mut timeline: Trace, devices: &Devices, spans: &[BatchSpan]) {
    let spans = spans.iter().map(|BatchSpan { device, span, .. }| TraceSpan {
        device: *device,
        track: span.lane,
        name: format!("{:?}", span.stage).to_lowercase(),
        begin_ms: span.begin_ms,
        end_ms: span.end_ms,
    });
    timeline.write(devices, "lane", &spans.collect::<Vec<_>>());
}

/// Serves the metrics of a run until it is dropped.
fn serve(addr: std::net::SocketAddr, journal: Arc<Journal>) -> Result<metrics::Server> {
    let page = move || prometheus(&journal.snapshot());
    let server = metrics::serve(addr, page).with_context(|| format!("--metrics {addr}"))?;
    eprintln!("metrics: http://{}/metrics", server.addr());
    Ok(server)
}
