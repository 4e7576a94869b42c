//! Prices for the benchmark: random walks with trends, from integers and + − × ÷ alone, so that they are the same everywhere.

use rayon::prelude::*;

/// Prices of `n_symbols` symbols, each of `n_bars` bars; a symbol does not depend on how many there are.
pub fn generate(n_symbols: usize, n_bars: usize) -> Vec<Vec<f64>> {
    (0..n_symbols).into_par_iter().map(|symbol| walk(symbol as u64, n_bars)).collect()
}

/// A walk whose drift changes every 128 bars.
fn walk(symbol: u64, n_bars: usize) -> Vec<f64> {
    let mut state = symbol.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (mut price, mut drift) = (20.0 + (symbol % 977) as f64, 0.0);
    let step = |bar: usize| {
        if bar.is_multiple_of(128) {
            drift = 0.004 * uniform(&mut state);
        }
        price *= 1.0 + drift + 0.02 * uniform(&mut state);
        price
    };
    (0..n_bars).map(step).collect()
}

/// The next number between −0.5 and 0.5, by SplitMix64.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64 - 0.5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_differ_and_stay_prices() {
        let walks = generate(20, 1_500);
        assert_eq!(walks[..7], generate(7, 1_500)[..]);
        assert!(walks.iter().flatten().all(|price| price.is_finite() && *price > 0.0));
        assert!((1..20).all(|at| walks[at] != walks[0]));
    }
}
