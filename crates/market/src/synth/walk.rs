//! Random walks: prices in which there is nothing to find.
//!
//! Every step is drawn anew and as often up as down, so that no rule has an edge before costs, and whatever a search finds is luck. A bar is
//! made of eight steps. With a drift the market rises by itself: whoever is long gains, and no rule gains more than holding does at the same
//! exposure. With clusters quiet and wild times follow each other, which tells nothing of the direction. The generator is that of the other
//! markets: integers and + − × ÷ √ alone.

use super::regime::{Draws, GOLDEN, mix, normal};
use crate::bars::{Bars, Universe};

/// Steps of a bar.
const STEPS: usize = 8;

/// Volatility of a step as a fraction of the price.
const VOLATILITY: f64 = 0.002;

/// Bars of a year.
const YEAR_BARS: f64 = 8_760.0;

/// Options of the generator.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WalkOptions {
    /// Everything random follows from it.
    pub seed: u64,
    /// Symbols, each a walk of its own.
    pub n_symbols: usize,
    /// Bars of each.
    pub n_bars: usize,
    /// Expected return of a year, not compounded; volatility is 53 % a year.
    pub drift: f64,
    /// Whether volatility clusters.
    pub has_clusters: bool,
}

/// Symbols `WALK0`, `WALK1`, … of hourly bars from 2020 on, each a random walk of its own without drift.
pub fn walk(seed: u64, n_symbols: usize, n_bars: usize) -> Universe {
    walks(&WalkOptions { seed, n_symbols, n_bars, ..WalkOptions::default() })
}

/// The same with a drift or with clusters of volatility.
pub fn walks(options: &WalkOptions) -> Universe {
    let drift = options.drift / (YEAR_BARS * STEPS as f64);
    let symbol = |symbol_idx: usize| {
        let mut draws = Draws(mix(options.seed.wrapping_mul(GOLDEN)) ^ mix(symbol_idx as u64 + 1));
        let mut bars =
            Bars { symbol: format!("WALK{symbol_idx}"), timeframe_ms: 3_600_000, ..Bars::default() };
        let mut price = 100.0;
        // Variance relative to its mean, by a GARCH recursion whose memory lasts some fifty bars.
        let mut heat = 1.0_f64;
        for bar_idx in 0..options.n_bars as i64 {
            let (open, mut high, mut low) = (price, price, price);
            let volatility = VOLATILITY * if options.has_clusters { heat.sqrt() } else { 1.0 };
            let mut shock = 0.0;
            for _ in 0..STEPS {
                let step = normal(draws.next());
                shock += step;
                price *= 1.0 + (drift + volatility * step);
                high = if price > high { price } else { high };
                low = if price < low { price } else { low };
            }
            heat = 0.02 + 0.10 * heat * (shock * shock / STEPS as f64) + 0.88 * heat;
            bars.ts_ms.push(1_577_836_800_000 + bar_idx * bars.timeframe_ms);
            bars.open.push(open);
            bars.high.push(high);
            bars.low.push(low);
            bars.close.push(price);
            bars.volume.push(1.0);
        }
        bars
    };
    Universe { symbols: (0..options.n_symbols).map(symbol).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn returns(bars: &Bars) -> Vec<f64> {
        bars.open.iter().zip(&bars.close).map(|(open, close)| close / open - 1.0).collect()
    }

    /// Mean and standard deviation.
    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        (mean, (values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n).sqrt())
    }

    /// Correlation with the value before.
    fn memory(values: &[f64]) -> f64 {
        let (mean, deviation) = moments(values);
        let pairs = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
        pairs / values.len() as f64 / (deviation * deviation)
    }

    #[test]
    fn steps_have_no_memory_and_no_drift() {
        let universe = walk(3, 2, 20_000);
        assert_ne!(universe.symbols[0].close, universe.symbols[1].close);
        assert_eq!(universe.symbols[0].close, walk(3, 1, 20_000).symbols[0].close);
        for bars in &universe.symbols {
            let returns = returns(bars);
            let n = returns.len() as f64;
            let (mean, deviation) = moments(&returns);
            assert!(mean.abs() < 4.0 * deviation / n.sqrt(), "{mean}");
            assert!(memory(&returns).abs() < 4.0 / n.sqrt());
            assert!((deviation / (VOLATILITY * (STEPS as f64).sqrt()) - 1.0).abs() < 0.05);
            assert!(bars.high.iter().zip(&bars.low).all(|(high, low)| high > low));
        }
    }

    #[test]
    fn a_drift_is_that_of_a_year_and_changes_nothing_else() {
        let options = WalkOptions { seed: 3, n_symbols: 1, n_bars: 20_000, drift: 2.0, has_clusters: false };
        let [rising, flat] = [2.0, 0.0].map(|drift| {
            let bars = walks(&WalkOptions { drift, ..options }).symbols.remove(0);
            moments(&returns(&bars))
        });
        assert!(((rising.0 - flat.0) * YEAR_BARS / 2.0 - 1.0).abs() < 0.01, "{rising:?} {flat:?}");
        assert!((rising.1 / flat.1 - 1.0).abs() < 0.01);
    }

    #[test]
    fn clusters_remember_the_size_of_moves_and_not_their_direction() {
        let options = WalkOptions {
            seed: 5,
            n_symbols: 1,
            n_bars: 40_000,
            has_clusters: true,
            ..WalkOptions::default()
        };
        let wild = returns(&walks(&options).symbols[0]);
        let size = |values: &[f64]| values.iter().map(|value| value.abs()).collect::<Vec<f64>>();
        let bound = 5.0 / (wild.len() as f64).sqrt();
        assert!(memory(&wild).abs() < 2.0 * bound, "{}", memory(&wild));
        assert!(memory(&size(&wild)) > 0.1, "{}", memory(&size(&wild)));
        let plain = returns(&walk(5, 1, 40_000).symbols[0]);
        assert!(memory(&size(&plain)).abs() < bound);
        assert!((moments(&wild).1 / moments(&plain).1 - 1.0).abs() < 0.15, "the mean variance is the same");
    }
}
