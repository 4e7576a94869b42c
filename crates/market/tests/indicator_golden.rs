//! Indicators against the golden features of the seller-exhaustion strategy, which its P&L hangs on to the
//! last bit.

use sha2::{Digest, Sha256};
use tidemill_market::indicator::*;

struct Bars {
    open: Vec<f64>,
    high: Vec<f64>,
    low: Vec<f64>,
    close: Vec<f64>,
    volume: Vec<f64>,
}

/// The generator of the golden data, integers only. A copy, so that these numbers do not depend on any other
/// code.
fn generate() -> Bars {
    let mut state = 20_240_607_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    let mut bars = Bars { open: vec![], high: vec![], low: vec![], close: vec![], volume: vec![] };
    let mut previous = 50_000;
    for i in 0..5_000 {
        let [u1, u2, u3, u4, u5, u6] = std::array::from_fn(|_| draw());
        let drift = [-12, -6, 9, -9, 16][(i / 400) % 5];
        let burst = i64::from((130..160).contains(&(i % 190)));
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
        for (column, ticks) in
            [(&mut bars.open, open), (&mut bars.high, high), (&mut bars.low, low), (&mut bars.close, close)]
        {
            column.push(ticks as f64 / 100_000.0);
        }
        bars.volume.push(volume as f64);
    }
    bars
}

#[test]
fn generated_bars_are_the_golden_ones() {
    let bars = generate();
    let mut hash = Sha256::new();
    for i in 0..bars.close.len() {
        for column in [&bars.open, &bars.high, &bars.low, &bars.close, &bars.volume] {
            hash.update(column[i].to_le_bytes());
        }
    }
    let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(hex, "3b52d344860fa3e6c3cbbfe3c1ee95291af34e74451630da61a44f2e0c653b3e");
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
