//! `tidemill sweep`: many parameter sets, ranked.

mod best;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use rayon::prelude::*;
use serde_json::{Map, Value, json};
use tidemill_backtest::objective::Objective;
use tidemill_backtest::segment::Role;
use tidemill_backtest::{Engine, EngineOptions, METRICS, Metric, Metrics, Outcome, Strategy};
use tidemill_search::{
    Points, SamplerKind, SamplerSettings, Score, Scores, Space, StudyFolder, StudyHeader, TrialsWriter,
};
use tidemill_telemetry::{DeviceMode, Event, Journal};

use super::backtest::{metrics_json, param_values};
use crate::input::{DataSource, Input, StrategyArgs, set_threads};
use crate::number;
use crate::settings::Settings;
use crate::table::Table;
use best::{Best, Trial};

/// Evaluate many parameter sets and rank them.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill sweep
  tidemill sweep ema-cross --data btc.parquet --trials 50000 --split 0.7
  tidemill sweep my.toml --data data/ --folds 4 --sampler grid --out runs/my-grid --json
  tidemill sweep rsi-reversion --data eth.csv --set max_hold=24 --objective 'calmar'")]
pub struct SweepArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    #[arg(default_value = "zscore-dip")]
    strategy: String,
    #[command(flatten)]
    options: StrategyArgs,
    #[command(flatten)]
    source: DataSource,
    /// Number of parameter sets; a grid may have fewer [default: 10000].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trials: Option<u64>,
    /// How parameter sets are chosen: random, sobol or grid [default: sobol].
    #[arg(long, value_name = "NAME")]
    sampler: Option<String>,
    /// The same seed gives the same trials [default: 1].
    #[arg(long, value_name = "S", allow_negative_numbers = true)]
    seed: Option<u64>,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Trials shown [default: 10].
    #[arg(long, value_name = "K", allow_negative_numbers = true)]
    top: Option<usize>,
    /// Write all trials into this folder as Parquet.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What a sweep runs with, all defaults filled in.
struct Resolved {
    trials: u64,
    sampler: SamplerKind,
    seed: u64,
    top: usize,
    cache_bytes: usize,
}

/// Runs the command.
pub fn run(args: SweepArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let resolved = resolve(&args, &settings)?;
    let strategy = args.options.open(&args.strategy, &settings)?;
    let input = args.source.open(&settings)?;
    input.notes.iter().for_each(|note| eprintln!("note: {note}"));

    let segments = input.layout.segments(&input.universe)?;
    let options = EngineOptions { cache_bytes: resolved.cache_bytes };
    let engine = Engine::new(&strategy, &input.universe, segments, options)?;
    let space = engine.space();
    if let Err(problems) = space.validate() {
        bail!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"));
    }
    if space.n_free() == 0 {
        bail!(
            "every parameter is fixed, so there is nothing to sweep\n  hint: use `tidemill backtest`, or leave a parameter free"
        );
    }
    let folder = args.out.as_deref().map(|dir| -> Result<_> {
        let folder = StudyFolder::create(dir, &header(&strategy, &input, &resolved)?)?;
        let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
        let writer = folder.trials_writer(&space, &names)?;
        let journal = Journal::create(&folder.journal_path())?;
        Ok(Store { flushed: Instant::now(), writer, journal, run: format!("sweep-{}", resolved.seed) })
    });
    let store = folder.transpose()?;
    let mut sweep = Sweep::new(&strategy, engine, space, &resolved, store)?;
    eprintln!(
        "sweeping {} over {}: {} trials, sampler {}, {} threads",
        strategy.name,
        input.origin,
        number::count(sweep.trials),
        resolved.sampler.name(),
        rayon::current_num_threads()
    );
    let interrupted = sweep.run()?;
    let summary = sweep.finish()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", sweep_json(&strategy, &input, &sweep, &summary, interrupted))?;
    } else {
        write!(out, "{}", sweep_text(&strategy, &sweep))?;
        out.flush()?;
        if summary.valid == 0 {
            let windows = sweep.engine.impossible_windows(&sweep.space.default_point());
            if let Some(window) = windows.last() {
                eprintln!(
                    "note: no symbol has enough bars for a window of {window}, a default of this strategy"
                );
            }
        }
        eprintln!("{}", summary_line(&summary));
        if let Some(dir) = &args.out {
            eprintln!("trials: {}", dir.join("trials").display());
        }
    }
    if interrupted {
        let kept = number::count(summary.trials);
        eprintln!("stopped: {kept} of {} trials are done and kept", number::count(sweep.trials));
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

fn resolve(args: &SweepArgs, settings: &Settings) -> Result<Resolved> {
    let trials = args.trials.or(settings.sweep.trials).unwrap_or(10_000);
    if trials == 0 {
        bail!("--trials must be at least 1");
    }
    let sampler = args.sampler.as_deref().or(settings.sweep.sampler.as_deref()).unwrap_or("sobol");
    Ok(Resolved {
        trials,
        sampler: sampler.parse().map_err(|error| anyhow::anyhow!("sampler: {error}"))?,
        seed: args.seed.or(settings.sweep.seed).unwrap_or(1),
        top: args.top.or(settings.sweep.top).unwrap_or(10),
        cache_bytes: settings.run.cache_mb.unwrap_or(512).clamp(1, 1 << 20) << 20,
    })
}

/// The resolved configuration, stored with the study.
fn header(strategy: &Strategy, input: &Input, resolved: &Resolved) -> Result<StudyHeader> {
    let table = |value: Value| -> Result<toml::Value> {
        toml::Value::try_from(drop_nulls(value)).context("cannot store the configuration")
    };
    let fixed: Map<String, Value> = strategy
        .params
        .iter()
        .filter_map(|param| Some((param.name.clone(), json!(param.domain.decode(param.fixed?)?))))
        .collect();
    let config = json!({
        "strategy": { "name": strategy.name, "file": strategy.file, "profile": strategy.profile, "source": strategy.source },
        "execution": strategy.execution,
        "objective": {
            "maximize": strategy.objective.text,
            "require": strategy.objective.require_text,
            "reduce": strategy.objective.reduce,
        },
        "fixed": fixed,
        "segments": input.layout,
        "sweep": { "trials": resolved.trials, "sampler": resolved.sampler.name() },
        "data": { "origin": input.origin, "symbols": input.universe.symbols.len(), "bars": input.universe.n_bars() },
    });
    let toml::Value::Table(config) = table(config)? else { bail!("the configuration is not a table") };
    Ok(StudyHeader {
        version: env!("CARGO_PKG_VERSION").into(),
        seed: resolved.seed,
        data_hash: input.universe.fingerprint(),
        config,
    })
}

/// TOML has no null.
fn drop_nulls(value: Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, drop_nulls(v))).collect(),
        ),
        other => other,
    }
}

/// Longest time that finished trials stay in memory only.
const FLUSH_EVERY: Duration = Duration::from_secs(30);

/// Where trials and events go.
struct Store {
    flushed: Instant,
    writer: TrialsWriter,
    journal: Journal,
    run: String,
}

struct Sweep<'a> {
    strategy: &'a Strategy,
    engine: Engine<'a>,
    space: Space,
    sampler: Box<dyn tidemill_search::Sampler>,
    trials: u64,
    best: Best,
    store: Option<Store>,
    done: u64,
    valid: u64,
    started: Instant,
    bars: u64,
    seed: u64,
}

struct Summary {
    trials: u64,
    valid: u64,
    seconds: f64,
    bar_evals: f64,
}

/// A batch as the host sees it: score and metrics of each trial.
struct Scored {
    score: Score,
    train: Metrics,
    test: Option<(Score, Metrics)>,
}

impl<'a> Sweep<'a> {
    fn new(
        strategy: &'a Strategy,
        engine: Engine<'a>,
        space: Space,
        resolved: &Resolved,
        store: Option<Store>,
    ) -> Result<Self> {
        let settings =
            SamplerSettings { n_trials: Some(resolved.trials), ..SamplerSettings::new(resolved.seed) };
        let sampler = resolved.sampler.build(&space, &settings)?;
        let trials = sampler.remaining().map_or(resolved.trials, |left| left.min(resolved.trials));
        let bars = engine.segments().iter().map(|segment| segment.range.len() as u64).sum();
        Ok(Self {
            strategy,
            engine,
            space,
            sampler,
            trials,
            best: Best::new(resolved.top),
            store,
            done: 0,
            valid: 0,
            started: Instant::now(),
            bars,
            seed: resolved.seed,
        })
    }

    /// Runs all batches; true if it was interrupted.
    fn run(&mut self) -> Result<bool> {
        let stop = Arc::new(AtomicBool::new(false));
        let handler = stop.clone();
        // A second handler in one process cannot be set; the first then stays, which is as good.
        let _ = ctrlc::set_handler(move || {
            if handler.swap(true, Ordering::SeqCst) {
                std::process::exit(130);
            }
        });
        let progress = progress_bar(self.trials);
        let mut batch: u64 = 64;
        while self.done < self.trials && !stop.load(Ordering::SeqCst) {
            let began = Instant::now();
            let points = self.sampler.ask(batch.min(self.trials - self.done) as usize);
            if points.is_empty() {
                break;
            }
            self.batch(&points)?;
            progress.set_position(self.done);
            let best = self.best.trials().first().and_then(|trial| trial.score.value());
            progress.set_message(number::short(best));
            // Large enough to share work, small enough to answer within a second. No result depends on it.
            let took = began.elapsed();
            if took < Duration::from_millis(200) {
                batch = (batch * 2).min(16_384);
            } else if took > Duration::from_millis(800) {
                batch = (batch / 2).max(16);
            }
        }
        progress.finish_and_clear();
        Ok(stop.load(Ordering::SeqCst))
    }

    fn batch(&mut self, points: &Points) -> Result<()> {
        let began = Instant::now();
        let outcomes = self.engine.evaluate(points);
        let (engine, objective) = (&self.engine, Objective::new(self.strategy));
        let scored: Vec<Scored> = outcomes
            .par_iter()
            .enumerate()
            .map(|(at, outcome)| score(engine, &objective, points, at, outcome))
            .collect();
        let scores: Vec<Score> = scored.iter().map(|trial| trial.score).collect();
        self.sampler.tell(points, &Scores::single(&scores));
        for (at, trial) in scored.iter().enumerate() {
            self.valid += u64::from(trial.score.value().is_some());
            if self.best.wants(trial.score) {
                let mut row = vec![0.0; points.n_params()];
                points.read_row(at, &mut row);
                self.best.offer(Trial {
                    number: self.done + at as u64,
                    score: trial.score,
                    row,
                    train: trial.train,
                    test: trial.test,
                });
            }
        }
        self.best.settle();
        self.done += points.len() as u64;
        if let Some(store) = &mut self.store {
            let columns: Vec<Vec<f64>> = (0..METRICS.len())
                .map(|metric| scored.iter().map(|trial| trial.train.values()[metric]).collect())
                .collect();
            store.writer.append(points, &scores, &columns)?;
            // A slow sweep must not lose much to a power cut.
            if store.flushed.elapsed() > FLUSH_EVERY {
                store.writer.flush()?;
                store.flushed = Instant::now();
            }
            let mut event = Event::new(&store.run, "evaluate", format!("trials_{}", self.done))
                .lasting_ms(began.elapsed().as_secs_f64() * 1e3)
                .on(DeviceMode::Cpu)
                .value("trials", self.done as f64)
                .value("valid", self.valid as f64);
            if let Some(best) = self.best.trials().first().and_then(|trial| trial.score.value()) {
                event = event.value("best", best);
            }
            store.journal.record(event);
        }
        Ok(())
    }

    /// Closes what is open and sums up.
    fn finish(&mut self) -> Result<Summary> {
        let seconds = self.started.elapsed().as_secs_f64();
        if let Some(store) = self.store.take() {
            store.writer.finish()?;
            store.journal.close()?;
        }
        Ok(Summary {
            trials: self.done,
            valid: self.valid,
            seconds,
            bar_evals: self.done as f64 * self.bars as f64,
        })
    }
}

/// Score and metrics of one trial; out of sample the objective is reduced in the same way.
fn score(
    engine: &Engine<'_>,
    objective: &Objective<'_>,
    points: &Points,
    at: usize,
    outcome: &Outcome,
) -> Scored {
    let year_days = engine.year_days();
    let mut row = vec![0.0; points.n_params()];
    points.read_row(at, &mut row);
    let params = engine.decode(&row);
    let part = |role: Role, pooled: &Metrics| {
        let segments: Vec<Metrics> = engine
            .segments()
            .iter()
            .zip(&outcome.segments)
            .filter(|(segment, _)| segment.role == role)
            .map(|(_, tally)| Metrics::new(tally, year_days))
            .collect();
        (objective.accepts(pooled, &params), objective.reduced(pooled, &segments, &params))
    };
    let train = Metrics::new(&outcome.train, year_days);
    let (accepted, score) = part(Role::Train, &train);
    let test = outcome.test.as_ref().map(|tally| {
        let metrics = Metrics::new(tally, year_days);
        (part(Role::Test, &metrics).1, metrics)
    });
    Scored { score: if accepted { score } else { Score::Invalid }, train, test }
}

fn progress_bar(trials: u64) -> ProgressBar {
    let bar = ProgressBar::new(trials);
    let style = ProgressStyle::with_template(
        "{bar:32} {human_pos}/{human_len} trials  {rate}/s  {eta} left  best {msg}",
    );
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}", number::count(state.per_sec() as u64));
    };
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("rate", rate));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// Metrics shown in the table besides the objective.
const SHOWN: [Metric; 6] = [
    Metric::Sharpe,
    Metric::TotalReturn,
    Metric::MaxDrawdown,
    Metric::Trades,
    Metric::WinRate,
    Metric::ProfitFactor,
];

fn sweep_text(strategy: &Strategy, sweep: &Sweep<'_>) -> String {
    if sweep.best.trials().is_empty() {
        if sweep.valid > 0 {
            return String::new();
        }
        return format!(
            "No trial was valid: {}.\n",
            if sweep.strategy.objective.require.is_some() {
                "none traded, or none met `require` of [objective]"
            } else {
                "none traded, or the objective was never defined"
            }
        );
    }
    let label = |metric: Metric| METRICS.iter().find(|(m, ..)| *m == metric).map_or("", |(.., label)| *label);
    // A plain metric as objective is shown under its name; of one segment it is not shown a second time.
    let plain = METRICS.iter().find(|(_, name, _)| *name == strategy.objective.text);
    let title = plain.map_or("objective", |(_, name, _)| *name);
    let several = sweep.engine.segments().iter().filter(|segment| segment.role == Role::Train).count() > 1;
    let shown: Vec<Metric> =
        SHOWN.into_iter().filter(|metric| several || plain.is_none_or(|(own, ..)| own != metric)).collect();
    let mut header = vec!["#".to_string(), title.to_string()];
    header.extend(shown.iter().map(|metric| label(*metric).to_string()));
    let tested = sweep.best.trials().iter().any(|trial| trial.test.is_some());
    if tested {
        header.extend([format!("OOS {title}"), "OOS Return [%]".to_string(), "OOS Trades".to_string()]);
    }
    let free: Vec<usize> =
        (0..sweep.space.len()).filter(|at| sweep.space.params[*at].fixed.is_none()).collect();
    let shown_params: Vec<usize> = free.iter().copied().take(16).collect();
    header.extend(shown_params.iter().map(|at| sweep.space.params[*at].name.clone()));
    let mut table = Table::new(header);
    for trial in sweep.best.trials() {
        let mut row = vec![trial.number.to_string(), number::short(trial.score.value())];
        row.extend(shown.iter().map(|metric| number::metric(label(*metric), trial.train.get(*metric))));
        if tested {
            let test = |metric: Metric| trial.test.as_ref().and_then(|(_, metrics)| metrics.get(metric));
            row.push(number::short(trial.test.as_ref().and_then(|(score, _)| score.value())));
            row.push(number::metric("[%]", test(Metric::TotalReturn)));
            row.push(number::short(test(Metric::Trades)));
        }
        for at in &shown_params {
            let value = sweep.space.params[*at].domain.decode(trial.row[*at]);
            row.push(match value {
                None => "·".into(),
                Some(tidemill_search::Value::Float(value)) => number::short(Some(value)),
                Some(value) => value.to_string(),
            });
        }
        table.row(row);
    }
    let mut out = table.render(0);
    if free.len() > shown_params.len() {
        out += &format!(
            "({} more parameters; use --json or --out to see them)\n",
            free.len() - shown_params.len()
        );
    }
    out
}

fn summary_line(summary: &Summary) -> String {
    format!(
        "{} in {:.2} s ({} trials/s, {:.2e} bar-evaluations/s), {} valid",
        number::counted(summary.trials, "trial"),
        summary.seconds,
        number::count((summary.trials as f64 / summary.seconds) as u64),
        summary.bar_evals / summary.seconds,
        number::count(summary.valid)
    )
}

fn sweep_json(
    strategy: &Strategy,
    input: &Input,
    sweep: &Sweep<'_>,
    summary: &Summary,
    interrupted: bool,
) -> Value {
    let best: Vec<Value> = sweep
        .best
        .trials()
        .iter()
        .map(|trial| {
            json!({
                "trial": trial.number,
                "objective": trial.score.value(),
                "parameters": Map::from_iter(param_values(&sweep.space, &trial.row)),
                "metrics": metrics_json(&trial.train),
                "out_of_sample": trial.test.as_ref().map(|(score, metrics)| {
                    json!({ "objective": score.value(), "metrics": metrics_json(metrics) })
                }),
            })
        })
        .collect();
    json!({
        "strategy": strategy.name,
        "profile": strategy.profile,
        "data": input.origin,
        "objective": strategy.objective.text,
        "execution": strategy.execution,
        "sampler": sweep.sampler.name(),
        "seed": sweep.seed,
        "segments": sweep.engine.segments().len(),
        "notes": input.notes,
        "trials": summary.trials,
        "valid": summary.valid,
        "interrupted": interrupted,
        "seconds": summary.seconds,
        "trials_per_second": summary.trials as f64 / summary.seconds,
        "bar_evaluations_per_second": summary.bar_evals / summary.seconds,
        "year_days": sweep.engine.year_days(),
        "best": best,
    })
}
