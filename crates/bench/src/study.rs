//! A whole study with a trivial objective: what everything but the evaluation costs.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::json;
use tidemill_search::quality::{Function, to_scores};
use tidemill_search::{
    Evaluated, FunctionEvaluator, SamplerKind, SamplerSettings, Study, StudyFolder, StudyHeader,
};

use tidemill::set_threads;
use tidemill_lab::number;

/// Float parameters.
const N_PARAMS: usize = 10;

#[derive(Args)]
pub struct StudyArgs {
    /// Number of trials.
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    trials: u64,
    /// Trials at a time.
    #[arg(long, value_name = "B", default_value_t = 4096)]
    batch: usize,
    /// Sampler.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    sampler: String,
    /// Folder to store the trials in, which must be absent or empty [default: one in the system's temporary folder, removed after].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: StudyArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    let kind: SamplerKind = args.sampler.parse()?;
    let space = Function::Sphere.space(N_PARAMS);
    let settings =
        SamplerSettings { n_trials: Some(args.trials), batch: args.batch.max(1), ..SamplerSettings::new(1) };
    let mut sampler = kind.build(&space, &settings)?;
    let temporary = std::env::temp_dir().join(format!("tidemill-bench-{}", std::process::id()));
    let dir = args.out.as_ref().unwrap_or(&temporary);
    let header = StudyHeader {
        version: env!("CARGO_PKG_VERSION").into(),
        semantics: tidemill_backtest::SEMANTICS,
        seed: settings.seed,
        data_hash: String::new(),
        config: toml::Table::new(),
    };
    let folder = StudyFolder::open_or_create(dir, &header)?.folder;
    let mut evaluator = FunctionEvaluator::new(|batch| {
        let values = Function::Sphere.evaluate(&batch.points);
        Ok(Evaluated { scores: to_scores(&values), metrics: Vec::new() })
    });
    let study = Study::new(&space, &mut *sampler).trials(args.trials).batch(settings.batch).folder(&folder);
    let summary = study.run(&mut evaluator);
    drop(folder);
    if args.out.is_none() {
        std::fs::remove_dir_all(&temporary)
            .with_context(|| format!("cannot remove {}", temporary.display()))?;
    }
    let summary = summary?;
    let seconds = summary.wall.as_secs_f64();
    let rate = (summary.n_trials - summary.n_replayed) as f64 / seconds;
    let mut out = std::io::stdout().lock();
    if args.json {
        let result = json!({
            "sampler": kind.name(), "trials": summary.n_trials, "batch": settings.batch, "seconds": seconds,
            "trials_per_second": rate, "threads": rayon::current_num_threads(),
            "ask_s": summary.timing.ask.as_secs_f64(), "tell_s": summary.timing.tell.as_secs_f64(),
            "evaluate_s": summary.timing.evaluate.as_secs_f64(), "idle_s": summary.timing.idle.as_secs_f64(),
        });
        writeln!(out, "{result}")?;
    } else {
        writeln!(
            out,
            "{} of {N_PARAMS} parameters by {kind} in batches of {}, stored: {seconds:.2} s, {} trials/s on {} threads",
            number::counted(summary.n_trials, "trial"),
            number::count(settings.batch as u64),
            number::count(rate as u64),
            rayon::current_num_threads()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
