//! `ParityCheck`: a device against the CPU on many strategies and data sets, bit for bit.
//!
//! Every strategy, with each of its profiles, runs on every data set that has the symbols it reads; random strategies bring data of their own. The trials of a case come in
//! populations of sizes around the widths of warps and blocks, on one engine, so that later ones find columns of earlier ones. Cases are
//! independent: several threads share the devices, which compiles kernels side by side.

mod compare;
mod data;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value, json};
use tidemill_backtest::compile::{DataNames, compile};
use tidemill_backtest::random::{self, tape::Tape};
use tidemill_backtest::segment::Segment;
use tidemill_backtest::{DeviceEngine, DeviceOptions, Engine, EngineOptions, Overrides, Strategy};
use tidemill_gpu::{ContextOptions, Device, GpuError};
use tidemill_market::{LoadProgress, Universe};
use tidemill_search::{Points, SamplerKind, SamplerSettings};

use crate::error::LabError;
use crate::number;
use crate::shipped::{SHIPPED, open_strategy};

pub use compare::{Compared, Difference, compare};
use data::DataSet;

/// Sizes of populations: alone, around a warp, around the blocks of all kernels, and odd ones.
const POPULATIONS: [usize; 21] =
    [1, 2, 3, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 7, 97, 333, 1_001];

/// Bars times trials of a case, at most: what the CPU does in a few seconds.
const MOST_WORK: u64 = 2_000_000_000;

/// The most threads that share the devices.
const MOST_WORKERS: usize = 8;

/// Strategies and data on which devices are compared with the CPU.
pub struct ParityCheck {
    strategies: Vec<Strategy>,
    sets: Vec<DataSet>,
    randoms: Vec<RandomCase>,
    trials: u64,
    seed: u64,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct ParityReport {
    /// One row for each strategy or profile on each data set; random strategies share one.
    pub rows: Vec<ParityRow>,
    /// All rows together.
    pub total: Compared,
    /// The first trial that differs.
    pub first: Option<FirstDifference>,
}

/// A strategy on a data set.
#[derive(Clone, Debug)]
pub struct ParityRow {
    /// Names of the strategy, the data and the way in which the data was cut.
    pub names: [String; 3],
    /// What was compared.
    pub compared: Compared,
}

/// A trial that differs, and all that is needed to reproduce it.
#[derive(Clone, Debug)]
pub struct FirstDifference {
    /// Names of the strategy, the data and the way in which the data was cut.
    pub names: [String; 3],
    /// Text of the strategy.
    pub source: String,
    /// Whether the strategy was drawn, so that only its text identifies it.
    pub is_random: bool,
    /// Trials of the population.
    pub population: usize,
    /// Active parameters by name.
    pub parameters: Map<String, Value>,
    /// Which trial, and in what it differs.
    pub difference: Difference,
}

/// One strategy on one data set.
struct Case<'a> {
    strategy: &'a Strategy,
    universe: &'a Universe,
    segments: Vec<Segment>,
    names: [String; 3],
    is_random: bool,
    trials: u64,
    /// Cases of one round run at the same time.
    round: usize,
}

/// What a case found.
struct CaseResult {
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

impl ParityCheck {
    /// About so many trials on these strategies (all shipped ones if there are none), each also with every profile, and on so many random
    /// strategies; on generated data and on these files.
    pub fn new(
        strategies: &[String],
        files: &[PathBuf],
        n_random: usize,
        trials: u64,
        seed: u64,
        progress: &LoadProgress,
    ) -> Result<Self, LabError> {
        let mut sets = data::generated(seed);
        sets.extend(data::loaded(files, progress)?);
        Ok(Self {
            strategies: with_profiles(strategies)?,
            sets,
            randoms: (0..n_random).map(|at| random_case(seed, at)).collect::<Result<_, _>>()?,
            trials,
            seed,
        })
    }

    /// Strategies and profiles, without the random ones.
    pub fn n_strategies(&self) -> usize {
        self.strategies.len()
    }

    /// Data sets, without those of random strategies.
    pub fn n_data_sets(&self) -> usize {
        self.sets.len()
    }

    /// Strategies, each with a data set that lacks the symbols it reads, so that it does not run there.
    pub fn left_out(&self) -> Result<Vec<(&str, &str)>, LabError> {
        let mut out = Vec::new();
        for strategy in &self.strategies {
            let own = runnable(strategy, &self.sets)?;
            let is_out = |at: usize| own.iter().all(|(kept, _)| *kept != at);
            let sets = self.sets.iter().enumerate().filter(|(at, _)| is_out(*at));
            out.extend(sets.map(|(_, set)| (strategy.name.as_str(), set.name.as_str())));
        }
        Ok(out)
    }

    /// Trials that will be compared.
    pub fn n_trials(&self) -> Result<u64, LabError> {
        Ok(self.cases()?.iter().map(|case| case.trials).sum())
    }

    /// Compares the devices, of which there is at least one, with the CPU. `progress` is called with the number of compared trials, from several threads.
    pub fn run(
        &self,
        devices: &[Device],
        options: &DeviceOptions,
        progress: impl Fn(u64) + Sync,
    ) -> Result<ParityReport, LabError> {
        let cases = self.cases()?;
        let results = run_all(&cases, devices, options, self.seed, &progress)?;
        Ok(ParityReport::new(&cases, &results))
    }

    fn cases(&self) -> Result<Vec<Case<'_>>, LabError> {
        cases(&self.strategies, &self.sets, &self.randoms, self.trials)
    }
}

impl ParityReport {
    fn new(cases: &[Case<'_>], results: &[CaseResult]) -> Self {
        let mut total = Compared::default();
        let mut rows: Vec<ParityRow> = Vec::new();
        let mut first = None;
        let n_random = cases.iter().filter(|case| case.is_random).count();
        for (case, result) in cases.iter().zip(results) {
            total.add(&result.compared);
            if let (None, Some(difference)) = (&first, &result.compared.first) {
                first = Some(FirstDifference {
                    names: case.names.clone(),
                    source: case.strategy.source.clone(),
                    is_random: case.is_random,
                    population: result.population,
                    parameters: case.parameters(&difference.row),
                    difference: difference.clone(),
                });
            }
            let names = match case.is_random {
                true => [format!("random strategies: {n_random}"), "random".into(), "random".into()],
                false => case.names.clone(),
            };
            match rows.last_mut() {
                Some(last) if last.names == names => last.compared.add(&result.compared),
                _ => rows.push(ParityRow { names, compared: result.compared.clone() }),
            }
        }
        Self { rows, total, first }
    }
}

impl Case<'_> {
    /// Active parameters by name.
    fn parameters(&self, row: &[f64]) -> Map<String, Value> {
        let params = self.strategy.params.iter().zip(row).filter(|(_, code)| !code.is_nan());
        params.map(|(param, code)| (param.name.clone(), json!(param.domain.decode(*code)))).collect()
    }
}

/// All strategies, each once as it is and once with every profile.
fn with_profiles(names: &[String]) -> Result<Vec<Strategy>, LabError> {
    let shipped: Vec<String> = SHIPPED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut out = Vec::new();
    for name in if names.is_empty() { &shipped } else { names } {
        let plain = open_strategy(name, &Overrides::default())?;
        let profiles = plain.profiles.clone();
        out.push(plain);
        for profile in profiles {
            let overrides = Overrides { profile: Some(profile), ..Overrides::default() };
            out.push(open_strategy(name, &overrides)?);
        }
    }
    Ok(out)
}

/// A random strategy on random data.
fn random_case(seed: u64, at: usize) -> Result<RandomCase, LabError> {
    let start = (seed ^ (seed >> 32)) as u32;
    let mut draws = Tape::new(&[start.wrapping_mul(0x9e37_79b9).wrapping_add(at as u32)]).stream();
    let numbers: Vec<u32> = (0..700).map(|_| draws.below(1 << 32) as u32).collect();
    let mut tape = Tape::new(&numbers);
    let universe = random::data::universe(&mut tape);
    let segments = random::data::segments(&mut tape, &universe);
    let text = random::text::strategy(&mut tape, &universe);
    let file = format!("random strategy {at} of seed {seed}");
    let strategy = Strategy::parse(&file, &text, &Overrides::default())?;
    Ok(RandomCase { strategy, universe, segments })
}

/// The data sets, with their places, that have the symbols a strategy reads. An error if none has them.
fn runnable<'a>(strategy: &Strategy, sets: &'a [DataSet]) -> Result<Vec<(usize, &'a DataSet)>, LabError> {
    let mut out = Vec::new();
    let mut problem = None;
    for (at, set) in sets.iter().enumerate() {
        match compile(strategy, &DataNames::of(&set.universe)) {
            Ok(_) => out.push((at, set)),
            Err(error) => problem = Some(error),
        }
    }
    match problem {
        Some(error) if out.is_empty() => Err(error.into()),
        _ => Ok(out),
    }
}

/// Every strategy on every data set that it can run on, cut in turn in each way, then the random ones.
fn cases<'a>(
    strategies: &'a [Strategy],
    sets: &'a [DataSet],
    randoms: &'a [RandomCase],
    trials: u64,
) -> Result<Vec<Case<'a>>, LabError> {
    let layouts = data::layouts();
    // Random strategies take a part as large as a data set of weight 3.
    let random_weight = if randoms.is_empty() { 0 } else { 3 };
    let weights: u64 = sets.iter().map(|set| set.weight).sum::<u64>() + random_weight;
    let most = |set: &DataSet| (MOST_WORK / set.universe.n_bars().max(1) as u64).max(1);
    let mut out = Vec::new();
    for (at, strategy) in strategies.iter().enumerate() {
        let own = runnable(strategy, sets)?;
        for (which, set) in own {
            let (name, layout) = &layouts[(at + which) % layouts.len()];
            // One bar cannot be cut.
            let (name, segments) = match layout.segments(&set.universe) {
                Ok(segments) => (*name, segments),
                Err(_) => (layouts[0].0, layouts[0].1.segments(&set.universe)?),
            };
            let share = (trials * set.weight).div_ceil(weights * strategies.len() as u64);
            let title = match &strategy.overrides.profile {
                Some(profile) => format!("{} · {profile}", strategy.name),
                None => strategy.name.clone(),
            };
            out.push(Case {
                strategy,
                universe: &set.universe,
                segments,
                names: [title, set.name.clone(), name.into()],
                is_random: false,
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
            is_random: true,
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
    progress: &(impl Fn(u64) + Sync),
) -> Result<Vec<CaseResult>, LabError> {
    let n_workers = (rayon::current_num_threads() / 2).clamp(1, MOST_WORKERS).min(cases.len().max(1));
    let mut options = *options;
    options.context.memory_fraction /= n_workers as f64;
    // Data set by data set: what begins at the same time then has different kernels to compile.
    let mut order: Vec<usize> = (0..cases.len()).collect();
    order.sort_by_key(|at| cases[*at].round);
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<CaseResult, LabError>)>> = Mutex::default();
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
    progress: &(impl Fn(u64) + Sync),
) -> Result<CaseResult, LabError> {
    let mut engine =
        Engine::new(case.strategy, case.universe, case.segments.clone(), EngineOptions::default())?;
    engine.keep_blocks([16, 0][at / 2 % 2]);
    // Every other case is cut into small parts whose trades do not fit at once.
    let options = match at % 2 {
        0 => *options,
        _ => DeviceOptions {
            context: ContextOptions { streams: options.context.n_lanes() + 1, ..options.context },
            most_trials: 100,
            most_trades: 4,
            // By few lanes and by a block in turn, whatever the device would choose.
            walk_threads: Some([0, 64][at / 4 % 2]),
            stretch_bars: Some([40, 1_000][at / 2 % 2]),
            most_chained: [0, 8192][at / 8 % 2],
            orders_walks: [Some(true), None][at / 8 % 2],
            usual_trials: [0, 100][at / 16 % 2],
            ..*options
        },
    };
    let failed = |error: GpuError| LabError::Parity {
        case: format!(
            "{} on {} ({}), on {}",
            case.names[0],
            case.names[1],
            case.names[2],
            device.info().name
        ),
        error,
    };
    let mut on_device = DeviceEngine::new(device, &engine, case.strategy, options).map_err(failed)?;
    let settings = SamplerSettings::new(seed.wrapping_add(at as u64));
    let mut sampler = SamplerKind::Random.build(&engine.space(), &settings)?;
    let mut out = CaseResult { compared: Compared::default(), population: 0 };
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
        let compared = compare(&mut engine, &mut on_device, &Arc::new(points)).map_err(failed)?;
        if out.compared.first.is_none() && compared.first.is_some() {
            out.population = size;
        }
        out.compared.add(&compared);
        progress(size as u64);
    }
    Ok(out)
}

#[cfg(test)]
mod tests;
