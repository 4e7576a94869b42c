//! Adaptive Trend Classification: 54 moving averages vote on the trend, each with the weight it has earned.
//!
//! Six families of moving averages have nine lengths each. A crossing of the price and an average is a signal, and every signal has
//! an equity: what trading it would have made of 1, fading with time and never below a floor. Layer 1 is the mean of a family's nine
//! signals weighed by their equities; layer 2 gives that mean an equity of its own; the average of the six families' votes, weighed
//! by those, is a number from −1 to 1, and two thresholds make it a [`Class`].
//!
//! ```text
//! price ─▶ moving average ─▶ crossing ─▶ equity ─┐ nine of them
//!                                                ├─▶ layer 1 ─▶ equity, vote ─┐ six of them
//!                                                ┘                            ├─▶ average ─▶ class
//! ```
//!
//! [`average`] is the fast way, [`atc`] keeps what lies between. [`device`] has the kernels; their bits are those of this code.
//! Bar `i` depends on the bars `0 … i`; the average of a bar knows its close, so it can be traded from the next bar on
//! (`strategy_mode` moves it there).
//!
//! | file | decides |
//! |---|---|
//! | `options`, `family`, `error` | what can be chosen, and the three presets |
//! | `plan` | the options as numbers, for host and device |
//! | `window`, `exponential`, `adaptive` | the moving averages |
//! | `vote` | crossings, and layer 1 |
//! | `equity`, `growth` | returns, equities, and the growth of their weight |
//! | `class` | what an average means |
//! | `device` | the kernels and how they are launched |
//! | `bench` | how long each part takes |
//!
//! ```
//! use tidemill_market::atc::{AtcOptions, Class, atc, classify};
//!
//! let prices: Vec<f64> = (0..200).map(|bar| 100.0 + f64::from(bar) * 0.1 + 3.0 * f64::from(bar % 7)).collect();
//! let options = AtcOptions::default();
//! let result = atc(&prices, &options)?;
//! assert_eq!(result.average.len(), 200);
//! assert!(result.average.iter().all(|average| average.abs() <= 1.0));
//! assert_ne!(classify(result.average[199], &options), Class::Short);
//! # Ok::<(), tidemill_market::atc::AtcError>(())
//! ```

mod adaptive;
pub mod bench;
mod choice;
mod class;
pub mod device;
mod equity;
mod error;
mod exponential;
mod family;
mod growth;
mod options;
mod plan;
mod vote;
mod window;

use multiversion::multiversion;

use adaptive::Adaptive;
use equity::{Move, Returns};
use exponential::{DoubleExponential, Exponential};
use family::Nine;
use plan::{SKIP, STRATEGY};
use vote::Vote;
use window::Sums;

pub use choice::{HmaMode, KamaMode, LsmaMode, Preset, SignalMode, Undefined, ZeroPrice};
pub use class::{Class, classify, trend};
pub use equity::equity;
pub use error::AtcError;
pub use family::{Family, N_FAMILIES, N_LENGTHS, Robustness};
pub use growth::Growth;
pub use options::{AtcOptions, MAX_LENGTH, OPTION_NAMES};
pub use plan::Plan;
pub use vote::weighted_signal;

/// A classification and all that led to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Atc {
    /// The average of the families' votes, one value per bar.
    pub average: Vec<f64>,
    /// The families, in the order of [`Family::ALL`].
    pub families: Vec<FamilyResult>,
}

/// The result of a family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilyResult {
    /// The family.
    pub family: Family,
    /// The layer-1 signal, one value per bar.
    pub signal: Vec<f64>,
    /// The layer-2 equity.
    pub equity: Vec<f64>,
    /// The nine moving averages, in the order of [`AtcOptions::lengths`].
    pub averages: [Vec<f64>; N_LENGTHS],
    /// Their crossing signals.
    pub signals: [Vec<f64>; N_LENGTHS],
    /// Their equities.
    pub equities: [Vec<f64>; N_LENGTHS],
}

/// Classifies a series of prices and keeps all series in between.
pub fn atc(prices: &[f64], options: &AtcOptions) -> Result<Atc, AtcError> {
    atc_of_source(prices, prices, options)
}

/// The same with moving averages of another series than the prices; crossings and returns are those of the prices.
fn atc_of_source(source: &[f64], prices: &[f64], options: &AtcOptions) -> Result<Atc, AtcError> {
    let growth = Growth::new(options, prices.len());
    let plan = prepare(source, prices, options, &growth)?;
    let moves = moves(prices, &growth, &plan);
    let families = Family::ALL.map(|family| {
        let series = || std::array::from_fn(|_| Vec::with_capacity(prices.len()));
        let (mut averages, mut signals, mut equities): (Series, Series, Series) =
            (series(), series(), series());
        let mut signal = Vec::with_capacity(prices.len());
        along(family, source, prices, &moves, &plan, |_, nine, vote, x| {
            for k in 0..N_LENGTHS {
                averages[k].push(nine[k]);
                signals[k].push(vote.signals[k]);
                equities[k].push(vote.equities[k]);
            }
            signal.push(x);
        });
        let mut equity = vec![0.0; prices.len()];
        layer2(family, &signal, &moves, &plan, &mut equity);
        FamilyResult { family, signal, equity, averages, signals, equities }
    });
    let mut average = vec![0.0; prices.len()];
    let (signals, equities) =
        (families.each_ref().map(|f| &f.signal[..]), families.each_ref().map(|f| &f.equity[..]));
    meet(&signals, &equities, &plan, &mut average);
    Ok(Atc { average, families: families.into() })
}

type Series = [Vec<f64>; N_LENGTHS];

/// The average of the families' votes alone, one value per bar, into `out`. `growth` must be made for the same options.
pub fn average(
    prices: &[f64],
    options: &AtcOptions,
    growth: &Growth,
    out: &mut [f64],
) -> Result<(), AtcError> {
    average_of_source(prices, prices, options, growth, out)
}

/// The same with moving averages of another series than the prices.
pub fn average_of_source(
    source: &[f64],
    prices: &[f64],
    options: &AtcOptions,
    growth: &Growth,
    out: &mut [f64],
) -> Result<(), AtcError> {
    if out.len() != prices.len() {
        return Err(AtcError::Length { name: "out", has: out.len(), needs: prices.len() });
    }
    let plan = prepare(source, prices, options, growth)?;
    let moves = moves(prices, growth, &plan);
    let mut signals: [Vec<f64>; N_FAMILIES] = std::array::from_fn(|_| vec![0.0; prices.len()]);
    let mut equities = signals.clone();
    for family in Family::ALL {
        let signal = &mut signals[family as usize];
        layer1(family, source, prices, &moves, &plan, signal);
        layer2(family, signal, &moves, &plan, &mut equities[family as usize]);
    }
    meet(&signals.each_ref().map(|x| &x[..]), &equities.each_ref().map(|x| &x[..]), &plan, out);
    Ok(())
}

/// The nine moving averages of a family, in the order of [`AtcOptions::lengths`], one value per bar; NaN where there is none.
pub fn moving_averages(
    family: Family,
    source: &[f64],
    options: &AtcOptions,
) -> Result<[Vec<f64>; N_LENGTHS], AtcError> {
    let plan = Plan::new(options)?;
    let still = vec![Move { long: 1.0, short: 1.0 }; source.len()];
    let mut out: Series = std::array::from_fn(|_| Vec::with_capacity(source.len()));
    along(family, source, source, &still, &plan, |_, nine, _, _| {
        for k in 0..N_LENGTHS {
            out[k].push(nine[k]);
        }
    });
    Ok(out)
}

fn prepare(source: &[f64], prices: &[f64], options: &AtcOptions, growth: &Growth) -> Result<Plan, AtcError> {
    let plan = Plan::new(options)?;
    options.check_bars(prices.len())?;
    if source.len() != prices.len() {
        return Err(AtcError::Length { name: "source", has: source.len(), needs: prices.len() });
    }
    growth.check(options, prices.len())?;
    Ok(plan)
}

fn moves(prices: &[f64], growth: &Growth, plan: &Plan) -> Vec<Move> {
    let mut returns = Returns::new(plan);
    prices.iter().zip(growth.factors()).map(|(&price, &growth)| returns.push_move(price, growth)).collect()
}

/// The layer-1 signal of a family, with the vector instructions there are.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512vl", "x86_64+avx2"))]
fn layer1(family: Family, source: &[f64], prices: &[f64], moves: &[Move], plan: &Plan, out: &mut [f64]) {
    along(family, source, prices, moves, plan, |bar, _, _, x| out[bar] = x);
}

/// Takes a family through the bars; `each(bar, moving averages, vote, layer-1 signal)` sees every one.
#[inline(always)]
fn along(
    family: Family,
    source: &[f64],
    prices: &[f64],
    moves: &[Move],
    plan: &Plan,
    mut each: impl FnMut(usize, &Nine, &Vote<'_>, f64),
) {
    let mut vote = Vote::new(plan);
    let mut step = |bar: usize, nine: Nine| {
        let x = vote.push(prices[bar], &nine, moves[bar], bar >= plan.l1_cutout as usize);
        each(bar, &nine, &vote, x);
    };
    let n = source.len();
    match family {
        Family::Ema => {
            let mut averages = Exponential::new(&plan.ema, &plan.lengths[0]);
            (0..n).for_each(|bar| step(bar, averages.push(source[bar])));
        }
        Family::Dema => {
            let mut averages = DoubleExponential::new(&plan.dema, &plan.lengths[3]);
            (0..n).for_each(|bar| step(bar, averages.push(source[bar])));
        }
        Family::Kama => {
            let mut averages = Adaptive::new(plan, source);
            (0..n).for_each(|bar| step(bar, averages.push()));
        }
        Family::Hma | Family::Wma | Family::Lsma => {
            let mut sums = Sums::new(n);
            for (bar, x) in source.iter().enumerate() {
                sums.push(*x);
                step(
                    bar,
                    match family {
                        Family::Hma => window::hma(&sums, plan),
                        Family::Wma => window::wma(&sums, plan),
                        _ => window::lsma(&sums, plan),
                    },
                );
            }
        }
    }
}

/// The layer-2 equity of a family.
fn layer2(family: Family, signal: &[f64], moves: &[Move], plan: &Plan, out: &mut [f64]) {
    let start = plan.starts[family as usize];
    let (mut before, mut signal_before) = (f64::NAN, f64::NAN);
    for bar in 0..signal.len() {
        if bar >= plan.cutout as usize {
            before = equity::next(before, signal_before, moves[bar], start, plan.keep, plan.floor);
        }
        out[bar] = before;
        signal_before = signal[bar];
    }
}

/// The average of the families' votes, weighed by their equities.
fn meet(signals: &[&[f64]; N_FAMILIES], equities: &[&[f64]; N_FAMILIES], plan: &Plan, out: &mut [f64]) {
    let is_late = plan.has(STRATEGY);
    let n = out.len();
    if is_late && n > 0 {
        out[0] = 0.0;
    }
    for bar in 0..n - usize::from(is_late) {
        let of = |series: &[&[f64]; N_FAMILIES]| series.map(|series| series[bar]);
        out[bar + usize::from(is_late)] = average_of_votes(&of(signals), &of(equities), bar as u64, plan);
    }
}

#[inline(always)]
fn average_of_votes(signals: &[f64; N_FAMILIES], equities: &[f64; N_FAMILIES], bar: u64, plan: &Plan) -> f64 {
    let is_out = bar < u64::from(plan.cutout);
    let skip = plan.has(SKIP);
    let (mut votes, mut weight) = (0.0, 0.0);
    for family in 0..N_FAMILIES {
        let signal = signals[family];
        let long = f64::from(u8::from(signal > plan.long_cut && !is_out));
        let short = f64::from(u8::from(signal < plan.short_cut && !is_out));
        let equity = if skip && equities[family].is_nan() { 0.0 } else { equities[family] };
        votes += (long - short) * equity;
        weight += equity;
    }
    let average = votes / weight;
    let average = if average.is_finite() { average } else { 0.0 };
    if skip && is_out { f64::NAN } else { average }
}
