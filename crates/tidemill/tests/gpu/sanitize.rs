//! One small case of every kernel, and five random strategies: what `benches/sanitize.sh` runs under the tools of compute-sanitizer.
//!
//! Cases are as small as they can be and still reach every branch that threads of a block share, because a tool makes a kernel up to a hundred times slower. Each is
//! compared with its twin. Where there is no GPU they run under emulation with every access to shared memory looked at, which finds hazards as well.

use std::collections::BTreeSet;

use tidemill_backtest::cuda::{column_source, device_sources};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{DeviceEngine, DeviceOptions, Engine, EngineOptions, Overrides, Strategy};
use tidemill_coloring::device::{source as coloring_source, tabu_source};
use tidemill_gpu::{Device, HostOptions, Source};
use tidemill_market::Universe;
use tidemill_market::atc::device::source as atc_source;
use tidemill_market::atc::{AtcOptions, Preset};
use tidemill_market::indicator::FUNCTIONS;
use tidemill_market::synth::lcg;
use tidemill_scan::{ScanOptions, Scanner, Symbol};
use tidemill_search::Points;

use crate::device::{gpu, host};
use crate::executor::bits;
use crate::{atc, coloring, executor, indicator, scan};

/// The GPU, or the host with every access looked at; none where kernels cannot be compiled for either.
fn device() -> Option<Device> {
    gpu().or_else(|| host(HostOptions { checks: true, ..HostOptions::default() }))
}

/// Every kernel of these sources was launched. Numbers in the names of generated kernels stand for their places: one of each kind will do.
fn assert_launched<'a>(device: &Device, sources: impl IntoIterator<Item = &'a Source>) {
    let kind =
        |name: &str| name.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect::<String>();
    let launched: BTreeSet<String> = device.launched().iter().map(|name| kind(name)).collect();
    let all: BTreeSet<String> = sources.into_iter().flat_map(Source::kernels).map(kind).collect();
    assert!(!all.is_empty());
    let missing: Vec<&String> = all.difference(&launched).collect();
    assert!(missing.is_empty(), "kernels without a case here: {missing:?}");
}

#[test]
fn indicators() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = device() else { return };
    // A warp more than one of items; windows longer than a block of extremes; blocks of sums that are full, and one that is not.
    let bench = indicator::Bench::new(device.clone(), &[1, 33, 2_300], 36).unwrap();
    for function in FUNCTIONS {
        indicator::check(&bench, function, &[(true, 1), (false, 0)]).unwrap();
    }
    let bench = indicator::Bench::new(device.clone(), &[6_000, 50], 36).unwrap().in_stretches(4);
    for function in FUNCTIONS.iter().filter(|function| function.state > 0) {
        indicator::check(&bench, function, &[(true, indicator::STILL), (false, 0)]).unwrap();
    }
    assert_launched(&device, [&column_source()]);
}

#[test]
fn trend_classification() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = device() else { return };
    let lengths: Vec<usize> = (0..34).map(|symbol| [0, 1, 47, 60, 33, 90][symbol % 6]).collect();
    let bench = atc::Bench::new(device.clone(), &lengths).unwrap();
    for (case, mix) in [atc::Mix::Wild, atc::Mix::Tame, atc::Mix::TameSource].into_iter().enumerate() {
        atc::check_fused(&bench, case, mix);
        atc::check_parts(&bench, case);
    }
    // As the scanner does it, in its own memory.
    let closes: Vec<Vec<f64>> = (0..40).map(|seed| scan::walk(seed as u64, 30 + seed)).collect();
    let names: Vec<String> = (0..closes.len()).map(|seed| format!("S{seed}")).collect();
    let both = names.iter().zip(&closes);
    let symbols: Vec<Symbol<'_>> = both.map(|(name, closes)| Symbol { name, closes }).collect();
    for history in [false, true] {
        let atc = AtcOptions { cutout: 3, ..AtcOptions::preset(Preset::V2) };
        let options = ScanOptions { atc, min_signal: 0.0, history, ..ScanOptions::default() };
        let expected = Scanner::cpu(options.clone()).unwrap().scan(&symbols, |_| ()).unwrap();
        let found = scan::scan(&device, &options, &tidemill_scan::DeviceOptions::default(), &symbols);
        scan::assert_same(&found, &expected, "scan");
    }
    assert_launched(&device, [&atc_source()]);
}

#[test]
fn colorings() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = device() else { return };
    // One, two, four and eight warps for a search, and counts in global memory.
    for (n, percent, k) in [(40, 50, 6), (300, 90, 60), (400, 90, 130), (900, 50, 90), (1_000, 97, 250)] {
        coloring::check_tabu(&device, (n, percent, k), &[1, 40, 30]);
    }
    // Long enough for bans to end and moves to be excused.
    coloring::check_tabu(&device, (60, 50, 8), &[700, 100]);
    coloring::check_pool(&device, (131, 50, 14));
    coloring::check_walks(&device, (70, 50, 9), &[1, 33, 200]);
    coloring::check_signals(&device, (131, 50, 14), 33);
    assert_launched(&device, [&coloring_source(), &tabu_source(1)]);
}

/// Every way a condition is tested on a device: by masks of factors that trials share, by masks at levels, bar by bar; conditions and formulas
/// that are written out; several segments that are pooled; longer bars and all symbols; recursions whose stretches meet, and do not.
const STRATEGY: &str = r#"
name = "every-kernel"

[params]
fast = { int = [3, 6], default = 4 }
threshold = { float = [-2.0, 2.0], default = 0.5 }

[let]
score = "zscore(close, 20)"
elsewhere = "tf('1h', close > 0) and rank(close) >= 0"
trail = "recur(close - fast, if(close[1] > self, max(self, close - fast), close - fast))"
total = "recur(0, self + if(close > open, 1.5, threshold))"

[long]
enter = "close > ema(high - low + close, fast) and score > threshold and bars_since(close > open) < 3 and elsewhere"

[[long.exits]]
kind = "stop"
level = "entry - 2 * atr(14)"

[[long.exits]]
kind = "signal"
signal = "close < sma(close, fast) and (close < trail or total > 100)"

[[long.exits]]
kind = "time"
bars = "12"
"#;

#[test]
fn every_kernel_of_a_strategy() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = device() else { return };
    let strategy = Strategy::parse("every-kernel.toml", STRATEGY, &Overrides::default()).unwrap();
    let mut other = lcg(700);
    other.symbol = "OTHER".into();
    let universe = Universe { symbols: vec![lcg(900), other] };
    let segments = Layout::default().segments(&universe).unwrap();
    let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
    engine.keep_blocks(4);
    let mut points = Points::new(strategy.params.len());
    for trial in 0..160 {
        points.push(&[f64::from(3 + trial % 4), f64::from(trial) / 40.0 - 2.0]);
    }
    let expected = engine.evaluate(&points);
    assert!(expected.iter().any(|outcome| outcome.train.trades > 0));
    // All at once, each walk by a block; and in parts on two lanes, whose trades do not fit, booked segment after segment.
    let whole = DeviceOptions { walk_threads: Some(64), ..DeviceOptions::default() };
    let parts = DeviceOptions {
        most_trials: 90,
        most_trades: 2,
        most_daily_bytes: 0,
        walk_threads: Some(0),
        stretch_bars: Some(64),
        most_chained: 0,
        orders_walks: Some(true),
        usual_trials: 160,
        ..whole
    };
    for options in [whole, parts] {
        let mut on_device = DeviceEngine::new(&device, &engine, &strategy, options).unwrap();
        for round in 0..2 {
            let outcomes = on_device.evaluate(&points).unwrap();
            assert_eq!(outcomes.len(), expected.len());
            let differs =
                outcomes.iter().zip(&expected).position(|(ours, theirs)| bits(ours) != bits(theirs));
            assert_eq!(differs, None, "{options:?}, round {round}");
        }
    }
    assert_launched(&device, &device_sources(&engine, &strategy));
}

#[test]
fn random_strategies() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = device() else { return };
    for case in 0..5_u32 {
        let numbers: Vec<u32> = (0..500).map(|at| scramble(case * 500 + at)).collect();
        executor::check(&numbers, &device).unwrap();
    }
}

fn scramble(number: u32) -> u32 {
    let bits = (u64::from(number) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32
}
