//! Finds the first bar that touches a level, several bars at a time.

use multiversion::multiversion;

/// Bars tested together.
const LANES: usize = 8;

/// First bar in `from..=to` with `low <= below` or `high >= above`, or `to + 1`.
///
/// Levels that do not exist are −∞ and +∞.
#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
pub fn first_touch(low: &[f64], high: &[f64], below: f64, above: f64, from: usize, to: usize) -> usize {
    if from > to {
        return to + 1;
    }
    let (lows, highs) = (&low[from..=to], &high[from..=to]);
    let mut at = from;
    let (mut low_chunks, mut high_chunks) = (lows.chunks_exact(LANES), highs.chunks_exact(LANES));
    for (l, h) in low_chunks.by_ref().zip(high_chunks.by_ref()) {
        let mut touched = false;
        for lane in 0..LANES {
            touched |= (l[lane] <= below) | (h[lane] >= above);
        }
        if touched {
            let mut lane = 0;
            while !((l[lane] <= below) | (h[lane] >= above)) {
                lane += 1;
            }
            return at + lane;
        }
        at += LANES;
    }
    for (l, h) in low_chunks.remainder().iter().zip(high_chunks.remainder()) {
        if (*l <= below) | (*h >= above) {
            return at;
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_touch_at_every_distance() {
        for n in 1..40 {
            for hit in 0..=n {
                let mut low = vec![10.0; n];
                let mut high = vec![20.0; n];
                if hit < n {
                    if hit % 2 == 0 { low[hit] = 5.0 } else { high[hit] = 25.0 }
                }
                for from in 0..n {
                    let expected = if hit >= from && hit < n { hit } else { n };
                    assert_eq!(first_touch(&low, &high, 5.0, 25.0, from, n - 1), expected);
                }
            }
        }
        assert_eq!(first_touch(&[1.0], &[2.0], f64::NEG_INFINITY, f64::INFINITY, 0, 0), 1);
        assert_eq!(first_touch(&[1.0], &[2.0], 3.0, 3.0, 1, 0), 1);
    }
}
