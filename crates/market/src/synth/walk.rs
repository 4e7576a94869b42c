//! Random walks: prices in which there is nothing to find.
//!
//! Every step is drawn anew and as often up as down, so that no rule has an edge before costs, and whatever a search finds is luck. A bar is
//! made of eight steps. The generator is that of the other markets: integers and + − × ÷ alone.

use super::regime::{Draws, GOLDEN, mix, normal};
use crate::bars::{Bars, Universe};

/// Steps of a bar.
const STEPS: usize = 8;

/// Volatility of a step as a fraction of the price.
const VOLATILITY: f64 = 0.002;

/// Symbols `WALK0`, `WALK1`, … of hourly bars from 2020 on, each a random walk of its own.
pub fn walk(seed: u64, n_symbols: usize, n_bars: usize) -> Universe {
    let symbol = |symbol_idx: usize| {
        let mut draws = Draws(mix(seed.wrapping_mul(GOLDEN)) ^ mix(symbol_idx as u64 + 1));
        let mut bars =
            Bars { symbol: format!("WALK{symbol_idx}"), timeframe_ms: 3_600_000, ..Bars::default() };
        let mut price = 100.0;
        for bar_idx in 0..n_bars as i64 {
            let (open, mut high, mut low) = (price, price, price);
            for _ in 0..STEPS {
                price *= 1.0 + VOLATILITY * normal(draws.next());
                high = if price > high { price } else { high };
                low = if price < low { price } else { low };
            }
            bars.ts_ms.push(1_577_836_800_000 + bar_idx * bars.timeframe_ms);
            bars.open.push(open);
            bars.high.push(high);
            bars.low.push(low);
            bars.close.push(price);
            bars.volume.push(1.0);
        }
        bars
    };
    Universe { symbols: (0..n_symbols).map(symbol).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_no_memory_and_no_drift() {
        let universe = walk(3, 2, 20_000);
        assert_ne!(universe.symbols[0].close, universe.symbols[1].close);
        assert_eq!(universe.symbols[0].close, walk(3, 1, 20_000).symbols[0].close);
        for bars in &universe.symbols {
            let returns: Vec<f64> =
                bars.open.iter().zip(&bars.close).map(|(open, close)| close / open - 1.0).collect();
            let n = returns.len() as f64;
            let mean = returns.iter().sum::<f64>() / n;
            let variance = returns.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / n;
            let deviation = variance.sqrt();
            assert!(mean.abs() < 4.0 * deviation / n.sqrt(), "{mean}");
            let pairs = returns.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
            assert!((pairs / n / variance).abs() < 4.0 / n.sqrt());
            assert!((deviation / (VOLATILITY * (STEPS as f64).sqrt()) - 1.0).abs() < 0.05);
            assert!(bars.high.iter().zip(&bars.low).all(|(high, low)| high > low));
        }
    }
}
