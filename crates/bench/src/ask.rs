//! How long samplers take to propose and to learn.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};
use tidemill_search::quality::{Function, to_scores};
use tidemill_search::{SamplerKind, SamplerSettings};

use tidemill::set_threads;
use tidemill::{Screen, Table};
use tidemill_lab::number;

/// Number of parameters: 90 floats (30 of them logarithmic), 40 integers, 12 choices.
const N_PARAMS: usize = 142;

/// The history at which the one number is taken.
const HISTORY: usize = 100_000;

/// How long a batch is evaluated, at least: a sampler may learn beside it.
const EVALUATION: Duration = Duration::from_millis(3);

#[derive(Args)]
pub struct AskArgs {
    /// Samplers, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "auto,tpe")]
    sampler: Vec<String>,
    /// Points proposed at a time.
    #[arg(long, value_name = "B", default_value_t = 4096)]
    batch: usize,
    /// Observations that the sampler has before the measurement, separated by commas.
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "10000,100000,1000000")]
    history: Vec<usize>,
    /// Batches measured; the fastest counts.
    #[arg(long, value_name = "N", default_value_t = 9)]
    repeat: usize,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Milliseconds of one batch.
#[derive(Clone, Copy)]
struct BatchTimes {
    history: usize,
    ask_ms: f64,
    tell_ms: f64,
}

impl BatchTimes {
    fn total(self) -> f64 {
        self.ask_ms + self.tell_ms
    }
}

pub fn run(args: AskArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    if args.batch == 0 || args.history.is_empty() || args.sampler.is_empty() {
        bail!("--batch, --history and --sampler must not be empty or 0");
    }
    let mut results = Vec::new();
    for name in &args.sampler {
        let kind: SamplerKind = name.parse()?;
        let mut series = Vec::new();
        for history in &args.history {
            eprintln!("measuring {kind} with {} observations", number::count(*history as u64));
            series.push(measure(kind, *history, args.batch, args.repeat.max(1))?);
        }
        results.push((kind, series));
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let sampler = |(kind, series): &(SamplerKind, Vec<BatchTimes>)| -> Value {
            json!({
                "sampler": kind.name(),
                "ask_tell_ms": reference(series).total(),
                "series": series.iter().map(|at| json!({
                    "observations": at.history,
                    "ask_ms": at.ask_ms,
                    "tell_ms": at.tell_ms,
                    "ask_tell_ms": at.total(),
                })).collect::<Vec<_>>(),
            })
        };
        let samplers: Vec<Value> = results.iter().map(sampler).collect();
        let mut first = samplers[0].clone();
        first["parameters"] = json!(N_PARAMS);
        first["batch"] = json!(args.batch);
        first["threads"] = json!(rayon::current_num_threads());
        first["samplers"] = json!(samplers);
        writeln!(out, "{first}")?;
    } else {
        let header = ["sampler", "observations", "ask [ms]", "tell [ms]", "both [ms]"];
        let mut table = Table::new(header.map(str::to_owned).to_vec());
        for (kind, series) in &results {
            for at in series {
                let ms = |value: f64| format!("{value:.2}");
                table.row(vec![
                    kind.name().into(),
                    number::count(at.history as u64),
                    ms(at.ask_ms),
                    ms(at.tell_ms),
                    ms(at.total()),
                ]);
            }
        }
        write!(out, "{}", table.render(0, &Screen::PLAIN))?;
        writeln!(
            out,
            "{} points of {N_PARAMS} parameters at a time on {} threads, the fastest of {} batches",
            number::count(args.batch as u64),
            rayon::current_num_threads(),
            args.repeat
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The measurement that stands for all: at 100,000 observations, or the nearest there is.
fn reference(series: &[BatchTimes]) -> BatchTimes {
    let nearest = series.iter().min_by_key(|at| at.history.abs_diff(HISTORY));
    nearest.copied().unwrap_or(BatchTimes { history: 0, ask_ms: f64::NAN, tell_ms: f64::NAN })
}

fn measure(kind: SamplerKind, history: usize, batch: usize, repeat: usize) -> Result<BatchTimes> {
    let space = Function::Mixed142.space(N_PARAMS);
    let settings =
        SamplerSettings { batch, n_trials: Some((history + 64 * batch) as u64), ..SamplerSettings::new(1) };
    let mut sampler = kind.build(&space, &settings)?;
    // What is known comes from elsewhere, so that a million observations are there in a moment.
    let mut random = SamplerKind::Random.build(&space, &SamplerSettings::new(2))?;
    let mut n_told = 0;
    while n_told < history {
        let points = random.ask(batch.max(4096).min(history - n_told));
        n_told += points.len();
        sampler.tell(&points, &to_scores(&Function::Mixed142.evaluate(&points)));
    }
    let mut fastest = BatchTimes { history, ask_ms: f64::INFINITY, tell_ms: f64::INFINITY };
    for _ in 0..repeat {
        let began = Instant::now();
        let points = sampler.ask(batch);
        let ask_ms = began.elapsed().as_secs_f64() * 1e3;
        let (began, scores) = (Instant::now(), to_scores(&Function::Mixed142.evaluate(&points)));
        while began.elapsed() < EVALUATION {
            std::hint::spin_loop();
        }
        let began = Instant::now();
        sampler.tell(&points, &scores);
        let tell_ms = began.elapsed().as_secs_f64() * 1e3;
        if ask_ms + tell_ms < fastest.total() {
            fastest = BatchTimes { history, ask_ms, tell_ms };
        }
    }
    Ok(fastest)
}
