//! `tidemill parity`: the device against the CPU on this machine, bit for bit.
//!
//! Every strategy, with each of its profiles, runs on every data set; random strategies bring data of their own. The trials of a case come in
//! populations of sizes around the widths of warps and blocks, on one engine, so that later ones find columns of earlier ones. Cases are
//! independent: several threads share the devices, which compiles kernels side by side.

mod data;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Map, Value, json};
use tidemill_backtest::random::{self, tape::Tape};
use tidemill_backtest::segment::Segment;
use tidemill_backtest::{DeviceEngine, DeviceOptions, Engine, EngineOptions, Overrides, Strategy};
use tidemill_gpu::Device;
use tidemill_market::Universe;
use tidemill_search::{Points, SamplerKind, SamplerSettings};

use crate::input::StrategyArgs;
use crate::parity::{Compared, compare};
use crate::settings::Settings;
use crate::table::Table;
use data::DataSet;
use tidemill_lab::number;
use tidemill_lab::shipped::SHIPPED;
use tidemill_lab::{DeviceChoice, Devices};

/// Compare a GPU with the CPU, bit for bit.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill parity
  tidemill parity ema-cross my.toml --data btc.parquet
  tidemill parity --trials 1000000 --random 200 --seed 7
  tidemill parity --device emulated       the same kernels on the CPU, slowly

Exit codes: 0 no bit differs, 1 something differs, 2 the comparison could not be made.")]
pub struct ParityArgs {
    /// Strategy files, or names of shipped strategies [default: all shipped ones, and random ones].
    strategy: Vec<String>,
    /// Compare on these CSV or Parquet files or folders too.
    #[arg(long, value_name = "FILE", num_args = 1..)]
    data: Vec<PathBuf>,
    /// Trials in all, about [default: 100000, 2000 under emulation].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    trials: Option<u64>,
    /// Random strategies, each on random data [default: 32, 2 under emulation, 0 if strategies are given].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    random: Option<usize>,
    /// What is compared with the CPU: cuda (all GPUs), cuda:N or emulated [default: cuda].
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Random data, strategies and trials follow from it.
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    seed: u64,
    /// Settings file [default: tidemill.toml in this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Sizes of populations: alone, around a warp, around the blocks of all kernels, and odd ones.
const POPULATIONS: [usize; 21] =
    [1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 7, 97, 333, 1_001];

/// Bars times trials of a case, at most: what the CPU does in a few seconds.
const MOST_WORK: u64 = 2_000_000_000;

/// The most threads that share the devices.
const MOST_WORKERS: usize = 8;

/// One strategy on one data set.
struct Case<'a> {
    strategy: &'a Strategy,
    universe: &'a Universe,
    segments: Vec<Segment>,
    /// Names for the table: strategy, data, segments.
    names: [String; 3],
    trials: u64,
    /// Cases of one round run at the same time.
    round: usize,
}

/// What came of a case.
struct Done {
    compared: Compared,
    /// Population of the first difference.
    population: usize,
}

/// A random strategy with its data.
struct RandomCase {
    strategy: Strategy,
    universe: Universe,
    segments: Vec<Segment>,
}

/// Runs the command.
pub fn run(args: ParityArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.config.as_deref())?;
    let devices = choose(&args, &settings)?;
    let is_emulated = devices[0].info().kind == tidemill_gpu::DeviceKind::Host;
    let trials = args.trials.unwrap_or(if is_emulated { 2_000 } else { 100_000 });
    if trials == 0 {
        bail!("--trials must be at least 1");
    }
    let n_random = args.random.unwrap_or(match (&args.strategy[..], is_emulated) {
        ([], true) => 2,
        ([], false) => 32,
        _ => 0,
    });
    let strategies = open(&args.strategy)?;
    let mut sets = data::generated(args.seed);
    sets.extend(data::loaded(&args.data)?);
    let randoms = (0..n_random).map(|at| random_case(args.seed, at)).collect::<Result<Vec<_>>>()?;
    let cases = cases(&strategies, &sets, &randoms, trials)?;

    let n_trials: u64 = cases.iter().map(|case| case.trials).sum();
    let names: Vec<&str> = devices.iter().map(|device| device.info().name.as_str()).collect();
    eprintln!(
        "comparing {} with the CPU: {} strategies or profiles, {} data sets, {n_random} random strategies, {} trials",
        names.join(", "),
        strategies.len(),
        sets.len(),
        number::count(n_trials)
    );
    let began = Instant::now();
    let progress = progress_bar(n_trials);
    let results = run_all(&cases, &devices, &settings.gpu.device_options(), args.seed, &progress);
    progress.finish_and_clear();
    let results = results?;
    let report = Report { cases: &cases, results: &results, device: names.join(", "), seed: args.seed };
    let seconds = began.elapsed().as_secs_f64();
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", report.json(seconds))?,
        false => write!(out, "{}", report.text(seconds))?,
    }
    out.flush()?;
    Ok(if report.total().different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The devices; there is at least one.
fn choose(args: &ParityArgs, settings: &Settings) -> Result<Vec<Device>> {
    let choice = match super::sweep::device_choice(args.device, settings)? {
        // A comparison with nothing would always end well.
        DeviceChoice::Auto => DeviceChoice::Cuda(None),
        DeviceChoice::Cpu => {
            bail!("the CPU is what devices are compared with\n  hint: --device cuda or --device emulated")
        }
        other => other,
    };
    let devices = Devices::choose(choice)
        .context("there is no device to compare with; --device emulated runs its kernels on the CPU")?;
    Ok(devices.with_wait_limit(settings.gpu.wait_limit()).devices)
}

/// All strategies, each once as it is and once with every profile.
fn open(names: &[String]) -> Result<Vec<Strategy>> {
    let shipped: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let settings = Settings::default();
    let with = |name: &str, profile: Option<String>| {
        StrategyArgs { set: Vec::new(), profile, objective: Vec::new(), config: None }.open(name, &settings)
    };
    let mut out = Vec::new();
    for name in if names.is_empty() { &shipped } else { names } {
        let plain = with(name, None)?;
        let profiles = plain.profiles.clone();
        out.push(plain);
        for profile in profiles {
            out.push(with(name, Some(profile))?);
        }
    }
    Ok(out)
}

/// A random strategy on random data.
fn random_case(seed: u64, at: usize) -> Result<RandomCase> {
    let start = (seed ^ (seed >> 32)) as u32;
    let mut draws = Tape::new(&[start.wrapping_mul(0x9e37_79b9).wrapping_add(at as u32)]).stream();
    let numbers: Vec<u32> = (0..700).map(|_| draws.below(1 << 32) as u32).collect();
    let mut tape = Tape::new(&numbers);
    let universe = random::data::universe(&mut tape);
    let segments = random::data::segments(&mut tape, &universe);
    let text = random::text::strategy(&mut tape);
    let strategy = Strategy::parse("random.toml", &text, &Overrides::default())
        .with_context(|| format!("random strategy {at} of seed {seed}"))?;
    Ok(RandomCase { strategy, universe, segments })
}

/// Every strategy on every data set, cut in turn in each way, then the random ones.
fn cases<'a>(
    strategies: &'a [Strategy],
    sets: &'a [DataSet],
    randoms: &'a [RandomCase],
    trials: u64,
) -> Result<Vec<Case<'a>>> {
    let layouts = data::layouts();
    // Random strategies take a part as large as a data set of weight 3.
    let random_weight = if randoms.is_empty() { 0 } else { 3 };
    let weights: u64 = sets.iter().map(|set| set.weight).sum::<u64>() + random_weight;
    let most = |set: &DataSet| (MOST_WORK / set.universe.n_bars().max(1) as u64).max(1);
    let mut out = Vec::new();
    for (at, strategy) in strategies.iter().enumerate() {
        for (which, set) in sets.iter().enumerate() {
            let (name, layout) = &layouts[(at + which) % layouts.len()];
            // One bar cannot be cut.
            let (name, segments) = match layout.segments(&set.universe) {
                Ok(segments) => (*name, segments),
                Err(_) => (layouts[0].0, layouts[0].1.segments(&set.universe)?),
            };
            let share = (trials * set.weight).div_ceil(weights * strategies.len() as u64);
            let title = match &strategy.profile {
                Some(profile) => format!("{} · {profile}", strategy.name),
                None => strategy.name.clone(),
            };
            out.push(Case {
                strategy,
                universe: &set.universe,
                segments,
                names: [title, set.name.clone(), name.into()],
                trials: share.min(most(set)),
                round: 1 + which,
            });
        }
    }
    for (at, case) in randoms.iter().enumerate() {
        let share = (trials * random_weight).div_ceil(weights * randoms.len() as u64);
        out.push(Case {
            strategy: &case.strategy,
            universe: &case.universe,
            segments: case.segments.clone(),
            names: [
                format!("random {at}"),
                "random".into(),
                number::counted(case.segments.len() as u64, "segment"),
            ],
            trials: share,
            round: 0,
        });
    }
    // Large data may have taken less than its share: the rest goes to what is small.
    let taken: u64 = out.iter().map(|case| case.trials).sum();
    let room = |case: &Case<'_>| case.trials * 4 * case.universe.n_bars() as u64 <= MOST_WORK;
    let n_small = out.iter().filter(|case| room(case)).count() as u64;
    if taken < trials && n_small > 0 {
        let more = (trials - taken).div_ceil(n_small);
        out.iter_mut().filter(|case| room(case)).for_each(|case| case.trials += more);
    }
    Ok(out)
}

/// Runs all cases, several at a time.
fn run_all(
    cases: &[Case<'_>],
    devices: &[Device],
    options: &DeviceOptions,
    seed: u64,
    progress: &ProgressBar,
) -> Result<Vec<Done>> {
    let n_workers = (rayon::current_num_threads() / 2).clamp(1, MOST_WORKERS).min(cases.len().max(1));
    let options = DeviceOptions { memory_fraction: options.memory_fraction / n_workers as f64, ..*options };
    // Data set by data set: what begins at the same time then has different kernels to compile.
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by_key(|at| cases[*at].round);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Done>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..n_workers {
            scope.spawn(|| {
                loop {
                    let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let result =
                        run_case(&cases[at], at, &devices[at % devices.len()], &options, seed, progress);
                    if result.is_err() {
                        // The others need not begin anything more.
                        next.store(cases.len(), Ordering::Relaxed);
                    }
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs one case: populations one after the other on one engine.
fn run_case(
    case: &Case<'_>,
    at: usize,
    device: &Device,
    options: &DeviceOptions,
    seed: u64,
    progress: &ProgressBar,
) -> Result<Done> {
    let mut engine =
        Engine::new(case.strategy, case.universe, case.segments.clone(), EngineOptions::default())?;
    engine.keep_blocks([16, 0][at / 2 % 2]);
    // Every other case is cut into small parts whose trades do not fit at once.
    let options = match at % 2 {
        0 => *options,
        _ => DeviceOptions { lanes: options.lanes + 1, most_trials: 100, most_trades: 4, ..*options },
    };
    let failed =
        || format!("{} on {} ({}), on {}", case.names[0], case.names[1], case.names[2], device.info().name);
    let mut on_device = DeviceEngine::new(device, &engine, case.strategy, options).with_context(failed)?;
    let settings = SamplerSettings::new(seed.wrapping_add(at as u64));
    let mut sampler = SamplerKind::Random.build(&engine.space(), &settings)?;
    let mut out = Done { compared: Compared::default(), population: 0 };
    let mut sizes = POPULATIONS.iter().cycle().skip(at % POPULATIONS.len());
    let mut left = case.trials as usize;
    while left > 0 {
        let size = sizes.next().map_or(left, |size| (*size).min(left));
        left -= size;
        // A part of them occurs twice, as in a search that has found something.
        let n_copies = size / 4;
        let drawn = sampler.ask(size - n_copies);
        let mut points = Points::new(drawn.n_params());
        points.extend_from(&drawn, 0..drawn.len());
        points.extend_from(&drawn, 0..n_copies);
        let compared = compare(&mut engine, &mut on_device, &Arc::new(points)).with_context(failed)?;
        if out.compared.first.is_none() && compared.first.is_some() {
            out.population = size;
        }
        out.compared.add(&compared);
        progress.inc(size as u64);
    }
    Ok(out)
}

/// Everything that was compared.
struct Report<'a> {
    cases: &'a [Case<'a>],
    results: &'a [Done],
    device: String,
    seed: u64,
}

impl Report<'_> {
    fn total(&self) -> Compared {
        let mut total = Compared::default();
        self.results.iter().for_each(|done| total.add(&done.compared));
        total
    }

    /// Rows of the table; random strategies share one.
    fn rows(&self) -> Vec<([String; 3], Compared)> {
        let mut rows: Vec<([String; 3], Compared)> = Vec::new();
        let n_random = self.cases.iter().filter(|case| case.is_random()).count();
        for (case, done) in self.cases.iter().zip(self.results) {
            let names = match case.is_random() {
                true => [format!("random strategies: {n_random}"), "random".into(), "random".into()],
                false => case.names.clone(),
            };
            match rows.last_mut() {
                Some((last, compared)) if *last == names => compared.add(&done.compared),
                _ => rows.push((names, done.compared.clone())),
            }
        }
        rows
    }

    fn text(&self, seconds: f64) -> String {
        let mut table = Table::new(["strategy", "data", "segments", "trials", "trades", "differing"]);
        for ([strategy, data, segments], compared) in self.rows() {
            table.row([
                strategy,
                data,
                segments,
                number::count(compared.trials),
                number::count(compared.trades),
                number::count(compared.different),
            ]);
        }
        let total = self.total();
        let mut out = table.render(3);
        let what = format!(
            "{} trials, {} of them trade by trade, {} trades, {} in {seconds:.1} s",
            number::count(total.trials),
            number::count(total.detailed),
            number::count(total.trades),
            self.device
        );
        match self.first() {
            None => out += &format!("\n{what}: not one bit differs\n"),
            Some((case, population, first)) => {
                out += &format!("\n{what}: {} trials differ\n", number::count(total.different));
                out += &format!(
                    "first: trial {} of a population of {population}, {} on {} ({}), seed {}\n",
                    first.trial, case.names[0], case.names[1], case.names[2], self.seed
                );
                out += &format!("  parameters: {}\n", Value::Object(case.parameters(&first.row)));
                for (name, cpu, device) in &first.fields {
                    out += &format!(
                        "  {}: {name} is {cpu:?} on the CPU, {device:?} on the device\n",
                        first.part
                    );
                }
                if first.fields.is_empty() {
                    out += &format!("  {}\n", first.part);
                }
                if case.is_random() {
                    out += &format!("\n{}", case.strategy.source);
                }
            }
        }
        out
    }

    /// The first difference with its case and population.
    fn first(&self) -> Option<(&Case<'_>, usize, &crate::parity::Difference)> {
        self.cases
            .iter()
            .zip(self.results)
            .find_map(|(case, done)| Some((case, done.population, done.compared.first.as_ref()?)))
    }

    fn json(&self, seconds: f64) -> Value {
        let rows: Vec<Value> = self
            .rows()
            .into_iter()
            .map(|([strategy, data, segments], compared)| {
                json!({
                    "strategy": strategy, "data": data, "segments": segments, "trials": compared.trials,
                    "trades": compared.trades, "different": compared.different,
                })
            })
            .collect();
        let number = |value: f64| json!({ "value": value, "bits": format!("{:016x}", value.to_bits()) });
        let first = self.first().map(|(case, population, first)| {
            let fields: Vec<Value> = first
                .fields
                .iter()
                .map(|(name, cpu, device)| json!({ "field": name, "cpu": number(*cpu), "device": number(*device) }))
                .collect();
            json!({
                "strategy": case.names[0], "data": case.names[1], "segments": case.names[2],
                "source": case.strategy.source, "population": population, "trial": first.trial,
                "parameters": case.parameters(&first.row), "part": first.part, "fields": fields,
            })
        });
        let total = self.total();
        json!({
            "device": self.device, "seed": self.seed, "seconds": seconds, "trials": total.trials,
            "detailed": total.detailed, "trades": total.trades, "different": total.different, "rows": rows, "first": first,
        })
    }
}

impl Case<'_> {
    fn is_random(&self) -> bool {
        self.names[1] == "random" && self.strategy.name == "random"
    }

    /// Active parameters by name.
    fn parameters(&self, row: &[f64]) -> Map<String, Value> {
        let params = self.strategy.params.iter().zip(row).filter(|(_, code)| !code.is_nan());
        params.map(|(param, code)| (param.name.clone(), json!(param.domain.decode(*code)))).collect()
    }
}

fn progress_bar(trials: u64) -> ProgressBar {
    let bar = ProgressBar::new(trials);
    let style = ProgressStyle::with_template("{bar:32} {human_pos}/{human_len} trials  {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests;
