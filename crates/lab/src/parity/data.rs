//! The data that devices are compared on: generated markets, awkward ones, and files.

use std::path::{Path, PathBuf};

use tidemill_backtest::random::tape::Tape;
use tidemill_backtest::segment::Layout;
use tidemill_market::synth::{RegimeOptions, lcg, regime};
use tidemill_market::{Bars, LoadOptions, LoadProgress, Universe, load};

use crate::error::LabError;
use crate::shipped::GATE;

/// Bars with a name.
pub struct DataSet {
    /// What it is called in the table.
    pub name: String,
    /// The bars.
    pub universe: Universe,
    /// Its part of the trials, in relation to the others.
    pub weight: u64,
}

/// Ways to cut the data, with their names.
pub fn layouts() -> [(&'static str, Layout); 4] {
    let layout = |split: Option<f64>, folds: Option<usize>| Layout { split, folds, ..Layout::default() };
    [
        ("whole", layout(None, None)),
        ("split 0.7", layout(Some(0.7), None)),
        ("3 folds", layout(None, Some(3))),
        ("split 0.6, 2 folds", layout(Some(0.6), Some(2))),
    ]
}

/// Markets that every comparison runs on.
pub fn generated(seed: u64) -> Vec<DataSet> {
    let set = |name: &str, weight: u64, symbols: Vec<Bars>| DataSet {
        name: name.into(),
        universe: Universe { symbols },
        weight,
    };
    let regimes = regime(&RegimeOptions {
        seed,
        n_bars: 3_000,
        n_symbols: 4,
        gap_every: 20,
        missing_every: 40,
        weekday_effect: true,
        ..RegimeOptions::default()
    });
    let mut sets = vec![
        set("lcg", 4, vec![lcg(5_000)]),
        set("regimes", 3, regimes.symbols),
        set("lengths", 3, of_different_length(seed)),
        set("awkward", 3, vec![awkward(seed, "ROUGH", 900), awkward(seed ^ 1, "TORN", 257)]),
        set("few bars", 1, vec![awkward(seed, "FEW", 7), awkward(seed ^ 1, "MORE", 33)]),
        set("one bar", 1, vec![lcg(1)]),
    ];
    // The symbol that shipped strategies read beside the one they trade.
    for set in sets.iter_mut().filter(|set| set.universe.symbols.len() > 1) {
        set.universe.symbols[0].symbol = GATE.into();
    }
    sets
}

/// One data set per file or folder.
pub fn loaded(files: &[PathBuf], progress: &LoadProgress) -> Result<Vec<DataSet>, LabError> {
    let options = LoadOptions { progress: progress.clone(), ..LoadOptions::default() };
    let mut out = Vec::new();
    for file in files {
        let loaded = load(std::slice::from_ref(file), &options)?;
        let name = file.file_stem().unwrap_or(Path::new("data").as_os_str()).to_string_lossy().into_owned();
        out.push(DataSet { name, universe: loaded.universe, weight: 4 });
    }
    Ok(out)
}

/// Symbols around the width of a word, a tile and a block of sums, of two timeframes.
fn of_different_length(seed: u64) -> Vec<Bars> {
    let lengths = [8_200, 2_600, 513, 256, 65, 64, 63, 2, 1];
    let market = |seed: u64, timeframe_ms: i64| {
        let options = RegimeOptions { seed, n_bars: 8_200, timeframe_ms, ..RegimeOptions::default() };
        regime(&options).symbols.remove(0)
    };
    lengths
        .iter()
        .enumerate()
        .map(|(at, n_bars)| {
            let timeframe_ms = if at % 2 == 0 { 900_000 } else { 3_600_000 };
            let mut bars = market(seed.wrapping_add(at as u64), timeframe_ms);
            bars.symbol = format!("L{at}");
            bars.ts_ms.truncate(*n_bars);
            for column in [&mut bars.open, &mut bars.high, &mut bars.low, &mut bars.close, &mut bars.volume] {
                column.truncate(*n_bars);
            }
            bars
        })
        .collect()
}

/// Bars with jumps, holes, stretches of one price and without volume.
fn awkward(seed: u64, symbol: &str, n_bars: usize) -> Bars {
    const HOUR_MS: i64 = 3_600_000;
    const START_MS: i64 = 1_700_000_000_000 / HOUR_MS * HOUR_MS;
    let mut draws = Tape::new(&[seed as u32, (seed >> 32) as u32]).stream();
    let mut bars = Bars { symbol: symbol.into(), timeframe_ms: HOUR_MS, ..Bars::default() };
    let (mut ts_ms, mut close) = (START_MS, 100.0_f64);
    for at in 0..n_bars {
        // Prices of an eighth repeat often; three stretches stand still.
        let is_still = at % 150 >= 110;
        let jump = if draws.chance(3.0) { 0.5 + draws.unit() } else { 1.0 };
        let eighth = |price: f64| ((price * 8.0).round() / 8.0).clamp(0.125, 1e9);
        let open = if is_still { close } else { eighth(close * jump) };
        close = if is_still { open } else { eighth(open * (0.97 + 0.06 * draws.unit())) };
        let (top, bottom) = (open.max(close), open.min(close));
        let wick = if is_still || draws.chance(20.0) { 0.0 } else { draws.unit() };
        bars.ts_ms.push(ts_ms);
        bars.open.push(open);
        bars.high.push(eighth(top + wick).max(top));
        bars.low.push(eighth(bottom - wick).min(bottom));
        bars.close.push(close);
        bars.volume.push(if is_still || draws.chance(30.0) { 0.0 } else { (draws.unit() * 50.0).round() });
        ts_ms += HOUR_MS * if draws.chance(5.0) { 1 + draws.below(90) as i64 } else { 1 };
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_bars_are_clean_and_follow_from_the_seed() {
        for set in generated(7) {
            for bars in &set.universe.symbols {
                assert!(bars.ts_ms.is_sorted_by(|a, b| a < b), "{}", set.name);
                for at in 0..bars.len() {
                    let (open, close) = (bars.open[at], bars.close[at]);
                    assert!(bars.low[at] > 0.0 && bars.low[at] <= open.min(close), "{}: bar {at}", set.name);
                    assert!(bars.high[at] >= open.max(close) && bars.volume[at] >= 0.0);
                }
            }
        }
        let fingerprints = |seed: u64| -> Vec<String> {
            generated(seed).iter().map(|set| set.universe.fingerprint()).collect()
        };
        assert_eq!(fingerprints(7), fingerprints(7));
        assert_ne!(fingerprints(7), fingerprints(8));
    }
}
