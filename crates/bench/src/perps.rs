//! A whole study on the GPU: 142 parameters, 51 symbols, a sampler that learns.

use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{DeviceOptions, Engine, EngineOptions, METRICS, Overrides, Stage, Strategy};
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_search::{SamplerKind, SamplerSettings, Study};

use tidemill_lab::number;
use tidemill_lab::shipped::shipped;
use tidemill_lab::{DeviceChoice, DeviceUse, Devices, StudyEvaluator};

#[derive(Args)]
pub struct PerpsArgs {
    /// Number of parameter sets.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    trials: u64,
    /// Parameter sets proposed at a time.
    #[arg(long, value_name = "B", default_value_t = 4096)]
    batch: usize,
    /// How parameter sets are chosen.
    #[arg(long, value_name = "NAME", default_value = "tpe")]
    sampler: String,
    /// By how many batches the sampler lags behind.
    #[arg(long, value_name = "L", default_value_t = 1)]
    lag: usize,
    /// Where it runs.
    #[arg(long, value_name = "DEVICE", default_value = "cuda")]
    device: DeviceChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: PerpsArgs) -> Result<ExitCode> {
    let devices = Devices::choose(args.device)?;
    if devices.devices.is_empty() {
        bail!("this benchmark needs a GPU");
    }
    let text = shipped("perps-trend").context("perps-trend is shipped")?;
    let strategy = Strategy::parse("perps-trend.toml", text, &Overrides::default())?;
    let universe = regime(&RegimeOptions::hourly(51, 5_000));
    let segments = Layout::default().segments(&universe)?;
    let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default())?;
    let space = engine.space();
    let settings =
        SamplerSettings { seed: 1, n_trials: Some(args.trials), batch: args.batch, n_objectives: 1 };
    let kind: SamplerKind = args.sampler.parse().map_err(|error| anyhow::anyhow!("sampler: {error}"))?;
    let mut sampler = kind.build(&space, &settings)?;
    let options = DeviceOptions { usual_trials: args.batch, ..DeviceOptions::default() };
    let mut evaluator = StudyEvaluator::new(&mut engine, &strategy, &devices, options, None)?;
    let names: Vec<&str> = METRICS.iter().map(|(_, name, _)| *name).collect();
    let stop = AtomicBool::new(false);
    let mut best = f64::NEG_INFINITY;
    let summary = Study::new(&space, &mut *sampler)
        .trials(args.trials)
        .batch(args.batch)
        .lag(args.lag)
        .metrics(&names)
        .stop(&stop)
        .observe(|event| {
            if let tidemill_search::StudyEvent::Finished { evaluated, .. } = event {
                let scores = (0..evaluated.scores.len()).filter_map(|at| evaluated.scores.first(at).value());
                best = scores.fold(best, f64::max);
            }
        })
        .run(&mut evaluator)?;
    let spans = evaluator.view().take_spans();
    let wall_ms = summary.wall.as_secs_f64() * 1e3;
    let used = DeviceUse::of(&spans, wall_ms).context("no stage ran on the device")?;
    let n = summary.n_batches.max(1) as f64;
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let timing = summary.timing;
    let sampler_ms = ms(timing.ask) + ms(timing.tell);
    let stages: Vec<(String, f64)> = [
        Stage::Upload,
        Stage::Distinct,
        Stage::Columns,
        Stage::Masks,
        Stage::Walk,
        Stage::Book,
        Stage::Download,
    ]
    .iter()
    .map(|stage| {
        let of = spans.iter().map(|batch| batch.span).filter(|span| span.stage == *stage);
        (format!("{stage:?}").to_lowercase(), of.map(|span| span.end_ms - span.begin_ms).sum::<f64>() / n)
    })
    .collect();
    let mut out = std::io::stdout().lock();
    if args.json {
        let stages: Map<String, Value> = stages.into_iter().map(|(name, ms)| (name, json!(ms))).collect();
        let result = json!({
            "bench": "perps-142", "device": devices.shown(), "trials": summary.n_trials, "batches": summary.n_batches,
            "wall_s": wall_ms / 1e3, "busy_share": used.busy, "fill": used.fill, "sampler_s": sampler_ms / 1e3, "best": best,
            "ask_ms": ms(timing.ask) / n, "tell_ms": ms(timing.tell) / n, "evaluate_ms": ms(timing.evaluate) / n,
            "overlap_ms": ms(timing.overlap) / n, "idle_ms": ms(timing.idle) / n, "stages_ms": stages,
        });
        writeln!(out, "{result}")?;
    } else {
        let bars = universe.n_bars();
        writeln!(
            out,
            "perps-142: {} trials of 142 parameters × 51 symbols × 5,000 bars on {}, sampler {} in batches of {}, lag {}",
            number::count(summary.n_trials),
            devices.shown(),
            args.sampler,
            number::count(args.batch as u64),
            args.lag
        )?;
        writeln!(
            out,
            "  wall         {:9.2} s   {} trials/s, {:.3e} bar-evaluations/s",
            wall_ms / 1e3,
            number::count((summary.n_trials as f64 / wall_ms * 1e3) as u64),
            summary.n_trials as f64 * bars as f64 / wall_ms * 1e3
        )?;
        writeln!(out, "  device busy  {:9.1} %", used.busy * 100.0)?;
        writeln!(out, "  device full  {:9.1} %", used.fill * 100.0)?;
        writeln!(
            out,
            "  sampler      {:9.2} s   wall is {:.2} times that",
            sampler_ms / 1e3,
            wall_ms / sampler_ms
        )?;
        writeln!(
            out,
            "  per batch, ms: ask {:.2}, tell {:.2}, evaluate {:.2}, overlap {:.2}, idle {:.2}",
            ms(timing.ask) / n,
            ms(timing.tell) / n,
            ms(timing.evaluate) / n,
            ms(timing.overlap) / n,
            ms(timing.idle) / n
        )?;
        write!(out, "  on the device, ms:")?;
        for (name, ms) in &stages {
            write!(out, " {name} {ms:.2}")?;
        }
        writeln!(out, "\n  best score   {best:9.3}")?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
