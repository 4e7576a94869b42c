//! Real bars in another order: their moves, gaps, ranges and bursts of volatility, but no trend or cycle longer than a block.
//!
//! Each bar is taken relative to the close before it; blocks of consecutive bars are put into random order and the prices built up again.
//! What a search finds there is luck, or it lies within the length of a block.

use super::regime::{Draws, GOLDEN, mix};
use crate::bars::Bars;

/// The bars with blocks of so many of them in random order; times, symbol and length stay, further series do not. Bars behind the last
/// whole block stay where they are.
///
/// # Panics
/// If a block is to have no bar.
pub fn shuffle_blocks(bars: &Bars, block_bars: usize, seed: u64) -> Bars {
    assert!(block_bars > 0, "a block has bars");
    let n_blocks = bars.len() / block_bars;
    let mut order: Vec<usize> = (0..n_blocks).collect();
    let mut draws = Draws(mix(seed.wrapping_mul(GOLDEN).wrapping_add(0x0073_6875)));
    for last in (1..n_blocks).rev() {
        let other = ((u128::from(draws.next()) * (last as u128 + 1)) >> 64) as usize;
        order.swap(last, other);
    }
    let blocks = order.into_iter().flat_map(|block| block * block_bars..(block + 1) * block_bars);
    let mut out = Bars {
        symbol: bars.symbol.clone(),
        timeframe_ms: bars.timeframe_ms,
        ts_ms: bars.ts_ms.clone(),
        closes_only: bars.closes_only,
        ..Bars::default()
    };
    let mut close = bars.open.first().copied().unwrap_or(1.0);
    for from in blocks.chain(n_blocks * block_bars..bars.len()) {
        // The first bar has none before it: it begins where it opens.
        let before = if from == 0 { bars.open[0] } else { bars.close[from - 1] };
        let scale = close / before;
        out.open.push(bars.open[from] * scale);
        out.high.push(bars.high[from] * scale);
        out.low.push(bars.low[from] * scale);
        out.volume.push(bars.volume[from]);
        close = bars.close[from] * scale;
        out.close.push(close);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::{RegimeOptions, regime};

    #[test]
    fn moves_are_the_same_in_another_order() {
        let bars = regime(&RegimeOptions { n_bars: 1_000, ..RegimeOptions::default() }).symbols.remove(0);
        let mixed = shuffle_blocks(&bars, 24, 3);
        assert_eq!((mixed.len(), &mixed.ts_ms), (1_000, &bars.ts_ms));
        let moves = |bars: &Bars| {
            let mut all: Vec<f64> = (0..bars.len())
                .map(|at| bars.close[at] / if at == 0 { bars.open[0] } else { bars.close[at - 1] })
                .collect();
            all.sort_by(f64::total_cmp);
            all
        };
        assert!(moves(&bars).iter().zip(moves(&mixed)).all(|(a, b)| (a - b).abs() < 1e-12));
        assert!((mixed.close[999] / bars.close[999] - 1.0).abs() < 1e-9, "the whole way is as long");
        assert_ne!(mixed, shuffle_blocks(&bars, 24, 4));
        assert_eq!(mixed, shuffle_blocks(&bars, 24, 3));
        let near = mixed.close.iter().zip(&bars.close).filter(|(a, b)| (*a / *b - 1.0).abs() < 1e-9).count();
        assert!(near < 200, "{near}");
        for at in 0..mixed.len() {
            assert!(mixed.low[at] <= mixed.open[at].min(mixed.close[at]) * (1.0 + 1e-12));
            assert!(mixed.high[at] >= mixed.open[at].max(mixed.close[at]) * (1.0 - 1e-12));
        }
    }

    #[test]
    fn one_block_and_no_bars_stay_as_they_are() {
        let bars = regime(&RegimeOptions { n_bars: 50, ..RegimeOptions::default() }).symbols.remove(0);
        let same = shuffle_blocks(&bars, 60, 1);
        assert!(same.close.iter().zip(&bars.close).all(|(a, b)| (a / b - 1.0).abs() < 1e-12));
        assert_eq!(shuffle_blocks(&Bars::default(), 5, 1).len(), 0);
    }
}
