//! Indicators against the golden features of the seller-exhaustion strategy, which its P&L hangs on to the
//! last bit.

use tidemill_market::indicator::*;
use tidemill_market::{Bars, synth};

/// The golden data; the generator has tests of its own against the published hash.
fn generate() -> Bars {
    synth::lcg(5_000)
}

#[test]
fn features_meet_the_golden_probes() {
    let bars = generate();
    let n = bars.close.len();
    let mut n_probes = 0;
    for line in include_str!("reference/seller_exhaustion_probes.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let count = |k: usize| fields[k].parse::<usize>().expect("a count");
        let number = |k: usize| fields[k].parse::<f64>().unwrap_or(f64::NAN);
        let [fast, slow, z_window, atr_window, i] = std::array::from_fn(|k| count(k + 1));

        let mut columns: [Vec<f64>; 5] = std::array::from_fn(|_| vec![0.0; n]);
        let [ema_f, ema_s, band, vol_z, tr_z] = &mut columns;
        ema(&bars.close, fast, ema_f);
        ema(&bars.close, slow, ema_s);
        atr(&bars.high, &bars.low, &bars.close, atr_window, band);
        zscore(&bars.volume, &Prefix::new(&bars.volume, Moments::SumSquares), z_window, vol_z);
        let smoothed: Vec<f64> = band.iter().map(|v| v * atr_window as f64).collect();
        zscore(&smoothed, &Prefix::new(&smoothed, Moments::SumSquares), z_window, tr_z);

        // Stops hang on the ATR: the same bits. The EMA is the same recursion in pandas, but divides by a sum
        // of weights that is not always exactly 1; z-scores divide two numbers that pandas rounds more often.
        let tolerances = [0.0, 0.0, 0.0, 1e-13, 1e-13];
        for (k, (column, tolerance)) in columns.iter().zip(tolerances).enumerate() {
            let (got, expected) = (column[i], number(6 + k));
            let is_same = (got.is_nan() && expected.is_nan()) || (got - expected).abs() <= tolerance;
            assert!(is_same, "feature {k} at bar {i}: {got} instead of {expected}");
        }
        n_probes += 1;
    }
    assert_eq!(n_probes, 32);
}

#[test]
fn swing_highs_meet_the_golden_cases() {
    let high: Vec<f64> =
        [1, 2, 3, 9, 3, 2, 1, 2, 3, 4, 8, 4, 3, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]
            .map(f64::from)
            .into();
    for (i, lookback, lookahead, expected) in [
        (10, 8, 2, Some(9.0)),
        (9, 8, 2, None),
        (14, 12, 2, Some(8.0)),
        (14, 6, 2, Some(8.0)),
        (20, 12, 3, Some(8.0)),
        (27, 8, 3, Some(10.0)),
        (27, 6, 3, Some(10.0)),
        (27, 20, 3, Some(8.0)),
        (27, 5, 5, None),
        (27, 4, 5, None),
    ] {
        let mut column = vec![0.0; high.len()];
        swing_high(&high, lookback, lookahead, &mut column);
        for got in [column[i], swing_high_at(&high, lookback, lookahead, i)] {
            assert_eq!((!got.is_nan()).then_some(got), expected, "bar {i}, {lookback}/{lookahead}");
        }
    }
}

#[test]
fn swing_highs_on_signal_bars_meet_the_golden_levels() {
    let bars = generate();
    let mut column = vec![0.0; bars.high.len()];
    swing_high(&bars.high, 96, 5, &mut column);
    let lines: Vec<&str> =
        include_str!("reference/seller_exhaustion_swing_highs.csv").lines().skip(1).collect();
    assert_eq!(lines.len(), 100);
    for line in lines {
        let (i, expected) = line.split_once(',').expect("two fields");
        let (i, expected) = (i.parse().expect("an index"), expected.parse().expect("a price"));
        assert_eq!(column[i], expected, "bar {i}");
        assert_eq!(swing_high_at(&bars.high, 96, 5, i), expected, "bar {i}");
    }
}
