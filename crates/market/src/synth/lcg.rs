//! The reference generator: integers only, six draws per bar.

use crate::bars::Bars;

const START_MS: i64 = 1_704_067_200_000; // 2024-01-01T00:00Z
const STEP_MS: i64 = 15 * 60_000;
const SEED: u64 = 20_240_607;

/// A 64-bit linear congruential generator; the upper 31 bits are the draw.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64
    }
}

/// Bars of 15 minutes from 2024-01-01 on, symbol `LCG`; the first 5,000 are the data of the golden results.
pub fn lcg(n_bars: usize) -> Bars {
    let mut bars = Bars { symbol: "LCG".to_string(), timeframe_ms: STEP_MS, ..Bars::default() };
    let mut draws = Draws(SEED);
    let mut previous = 50_000_i64;
    for bar_idx in 0..n_bars as i64 {
        let [u1, u2, u3, u4, u5, u6] = std::array::from_fn(|_| draws.next());
        let drift = [-12, -6, 9, -9, 16][(bar_idx / 400 % 5) as usize];
        let burst = i64::from((130..160).contains(&(bar_idx % 190)));
        let amplitude = 60 + 150 * burst;
        let gap = if u2 % 23 == 0 { u1 % 801 - 400 } else { 0 };
        let open = (previous + gap).max(2_000);
        let close = (open + u3 % (2 * amplitude + 1) - amplitude + drift).max(2_000);
        let high = open.max(close) + u4 % (amplitude + 1);
        let low = open.min(close) - u5 % (amplitude + 1);
        let mut volume = 1_000 + u6 % 500 + burst * (u6 % 1_999);
        if u6 % 29 == 0 {
            volume += 3_000 + u1 % 2_000;
        }
        previous = close;
        bars.ts_ms.push(START_MS + bar_idx * STEP_MS);
        for (column, ticks) in
            [(&mut bars.open, open), (&mut bars.high, high), (&mut bars.low, low), (&mut bars.close, close)]
        {
            column.push(ticks as f64 / 100_000.0);
        }
        bars.volume.push(volume as f64);
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// Rows of open, high, low, close, volume as the published hashes take them.
    fn hash<const N: usize>(bars: &Bars, encode: impl Fn(f64, bool) -> [u8; N]) -> String {
        let mut hasher = Sha256::new();
        for row in 0..bars.len() {
            for column in [&bars.open, &bars.high, &bars.low, &bars.close] {
                hasher.update(encode(column[row], true));
            }
            hasher.update(encode(bars.volume[row], false));
        }
        hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn ticks(price: f64) -> i64 {
        (price * 100_000.0).round() as i64
    }

    #[test]
    fn five_thousand_bars_have_the_published_hashes() {
        let bars = lcg(5_000);
        assert_eq!(
            hash(&bars, |value, _| value.to_le_bytes()),
            "3b52d344860fa3e6c3cbbfe3c1ee95291af34e74451630da61a44f2e0c653b3e"
        );
        assert_eq!(
            hash(&bars, |value, is_price| (if is_price { ticks(value) } else { value as i64 }).to_le_bytes()),
            "a1b59f58b9b6f3f19335cc2da2dc204984bf359acebea7dafd7a6537b0a7895f"
        );
    }

    #[test]
    fn columns_have_the_published_sums_and_ends() {
        let bars = lcg(5_000);
        let sum = |column: &[f64]| column.iter().map(|&price| ticks(price)).sum::<i64>();
        assert_eq!(sum(&bars.open), 236_224_963);
        assert_eq!(sum(&bars.high), 236_538_501);
        assert_eq!(sum(&bars.low), 235_910_413);
        assert_eq!(sum(&bars.close), 236_221_206);
        assert_eq!(bars.volume.iter().sum::<f64>(), 7_759_837.0);
        assert_eq!(bars.open[0], 0.5);
        assert_eq!((bars.close[4_999], bars.volume[4_999]), (0.48838, 1_000.0));
        assert_eq!(bars.ts_ms[1] - bars.ts_ms[0], bars.timeframe_ms);
    }
}
