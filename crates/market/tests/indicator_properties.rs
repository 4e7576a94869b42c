//! Properties that hold for any series: fast versions equal naive ones, one bar equals the column, the past
//! does not know the future.

use proptest::prelude::*;
use tidemill_market::indicator::*;

/// Prices with ties, flat stretches, signed zeros, and now and then a value that is not available.
fn series(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        6 => (-40_i32..40).prop_map(|v| f64::from(v) * 0.25),
        6 => -1e3..1e3,
        3 => Just(7.1),
        1 => Just(-0.0),
        1 => Just(f64::NAN),
    ];
    let missing = prop_oneof![Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)];
    (prop::collection::vec(value, len), missing)
        .prop_map(|(x, missing)| x.into_iter().map(|v| if v.is_nan() { missing } else { v }).collect())
}

/// Bars as three unrelated columns: the indicators must stand even bars that no market could make.
fn bars(len: std::ops::Range<usize>) -> impl Strategy<Value = [Vec<f64>; 3]> {
    (series(len.clone()), series(len.clone()), series(len)).prop_map(|(a, b, c)| {
        let n = a.len().min(b.len()).min(c.len());
        [a, b, c].map(|x| x[..n].to_vec())
    })
}

/// The window that ends at bar `i`, if it is complete and holds only finite values.
fn window(x: &[f64], w: usize, i: usize) -> Option<&[f64]> {
    let window = (w > 0 && i + 1 >= w).then(|| &x[i + 1 - w..=i])?;
    window.iter().all(|v| v.is_finite()).then_some(window)
}

/// Neumaier's sum, close to exact for what is tested here.
fn sum(values: impl Iterator<Item = f64>) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0);
    for v in values {
        let next = total + v;
        lost += if total.abs() >= v.abs() { (total - next) + v } else { (v - next) + total };
        total = next;
    }
    total + lost
}

fn naive_std(window: &[f64], ddof: f64) -> f64 {
    let mean = sum(window.iter().copied()) / window.len() as f64;
    (sum(window.iter().map(|v| (v - mean) * (v - mean))) / (window.len() as f64 - ddof)).sqrt()
}

fn same(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
}

/// Equal to 1e-12 of the value or of the level the window lives on.
fn close_to(got: f64, expected: Option<f64>, level: f64) -> bool {
    match expected {
        None => got.is_nan(),
        Some(expected) => (got - expected).abs() <= 1e-12 * expected.abs().max(level),
    }
}

type Column = Box<dyn Fn(&[Vec<f64>; 3], &mut [f64])>;

/// One indicator with one window, as a function of three columns.
struct Case {
    name: &'static str,
    gaps: Gaps,
    has_unit: bool,
    column: Column,
}

/// Every function of the table, and the one that only the language composes.
fn all(w: usize) -> Vec<Case> {
    let case = |function: &'static Function| {
        let HostFunction::Column(run) = function.run else { return None };
        let column: Column = Box::new(move |b, out| {
            let rises: Vec<bool> = b[2].iter().zip(&b[1]).map(|(c, l)| c > l).collect();
            let sums = function.sums_read().map(|moments| Prefix::new(&b[2], moments));
            let series = function.reads.iter().map(|read| match read {
                Read::Condition => Series::Condition(&rises),
                Read::Sums(_) => Series::Sums(sums.as_ref().expect("the sums it reads")),
                Read::Series | Read::Close => Series::Column(&b[2]),
                Read::High | Read::Volume => Series::Column(&b[0]),
                Read::Low => Series::Column(&b[1]),
            });
            let argument = |(at, take): (usize, &Take)| match take {
                Take::Window => [w, w / 3, 30][at] as f64,
                Take::Scalar => 0.01 * at as f64,
            };
            let arguments: Vec<f64> = function.takes.iter().enumerate().map(argument).collect();
            run(&Call { series: &series.collect::<Vec<_>>(), arguments: &arguments }, out);
        });
        Some(Case { name: function.name, gaps: function.gaps, has_unit: function.has_unit, column })
    };
    let mut all: Vec<Case> = FUNCTIONS.iter().filter_map(case).collect();
    let column: Column = Box::new(move |b, out| atr(&b[0], &b[1], &b[2], w, out));
    all.push(Case { name: "atr", gaps: Gaps::Windowed, has_unit: true, column });
    all
}

proptest! {
    #[test]
    fn rolling_sums_equal_naive_windows(x in series(0..80), w in 0_usize..20) {
        let p = Prefix::new(&x, Moments::All);
        let mut columns: [Vec<f64>; 6] = std::array::from_fn(|_| vec![-1.0; x.len()]);
        let [mean, std, sample, weighted, line, z] = &mut columns;
        sma(&p, w, mean);
        stddev(&p, w, std);
        stddev_sample(&p, w, sample);
        wma(&p, w, weighted);
        lsma(&p, w, line);
        zscore(&x, &p, w, z);
        for i in 0..x.len() {
            let window = window(&x, w, i);
            let n = w as f64;
            let level = window.map_or(0.0, |v| v.iter().fold(0.0, |m: f64, v| m.max(v.abs())));
            let j = |k: usize| k as f64 + 1.0;
            let naive_mean = window.map(|v| sum(v.iter().copied()) / n);
            prop_assert!(close_to(mean[i], naive_mean, level), "mean {} {naive_mean:?}", mean[i]);
            let naive = window.map(|v| naive_std(v, 0.0));
            prop_assert!(close_to(std[i], naive, level), "std {} {naive:?}", std[i]);
            prop_assert!(close_to(sample[i], window.filter(|_| w > 1).map(|v| naive_std(v, 1.0)), level));
            let naive =
                window.map(|v| sum(v.iter().enumerate().map(|(k, v)| v * j(k))) / (n * (n + 1.0) / 2.0));
            prop_assert!(close_to(weighted[i], naive, level), "wma {} {naive:?}", weighted[i]);
            let naive = window.map(|v| {
                sum(v.iter().enumerate().map(|(k, v)| v * (6.0 * j(k) - 2.0 * (n + 1.0)))) / (n * (n + 1.0))
            });
            prop_assert!(close_to(line[i], naive, level), "lsma {} {naive:?}", line[i]);
            // The z-score is by definition the division of the columns.
            let is_flat = window.is_none_or(|v| v.iter().all(|u| *u == v[0]));
            let expected = if is_flat { f64::NAN } else { (x[i] - mean[i]) / std[i] };
            prop_assert!(same(z[i], expected), "z {} {expected}", z[i]);
            prop_assert_eq!(std[i] == 0.0, window.is_some() && is_flat);
        }
    }

    #[test]
    fn one_bar_equals_the_column(x in series(1..80), w in 0_usize..20, lookahead in 0_usize..8) {
        let n = x.len();
        let p = Prefix::new(&x, Moments::All);
        let mut out = vec![0.0; n];
        let mut check = |name: &str, fill: &dyn Fn(&mut [f64]), at: &dyn Fn(usize) -> f64| {
            fill(&mut out);
            for (i, &v) in out.iter().enumerate() {
                prop_assert!(same(v, at(i)), "{} at {}: column {} bar {}", name, i, v, at(i));
            }
            prop_assert!(at(n).is_nan());
            Ok(())
        };
        check("sma", &|o| sma(&p, w, o), &|i| p.mean_at(i, w))?;
        check("stddev", &|o| stddev(&p, w, o), &|i| p.std_pop_at(i, w))?;
        check("stddev_sample", &|o| stddev_sample(&p, w, o), &|i| p.std_sample_at(i, w))?;
        check("wma", &|o| wma(&p, w, o), &|i| p.wma_at(i, w))?;
        check("lsma", &|o| lsma(&p, w, o), &|i| p.lsma_at(i, w))?;
        check("slope", &|o| slope(&p, w, o), &|i| p.slope_at(i, w))?;
        check("highest", &|o| highest(&x, w, o), &|i| highest_at(&x, w, i))?;
        check("lowest", &|o| lowest(&x, w, o), &|i| lowest_at(&x, w, i))?;
        check("swing_high", &|o| swing_high(&x, w, lookahead, o), &|i| swing_high_at(&x, w, lookahead, i))?;
        check("swing_low", &|o| swing_low(&x, w, lookahead, o), &|i| swing_low_at(&x, w, lookahead, i))?;
    }

    #[test]
    fn extremes_equal_naive_windows_exactly(x in series(0..90), w in 0_usize..25) {
        let (mut high, mut low) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        highest(&x, w, &mut high);
        lowest(&x, w, &mut low);
        for i in 0..x.len() {
            let sorted = window(&x, w, i).map(|v| {
                let mut v: Vec<f64> = v.iter().map(|v| v + 0.0).collect();
                v.sort_by(f64::total_cmp);
                v
            });
            let expected = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
            prop_assert!(same(high[i], expected(sorted.as_ref().and_then(|v| v.last()))));
            prop_assert!(same(low[i], expected(sorted.as_ref().and_then(|v| v.first()))));
        }
    }

    #[test]
    fn swings_equal_the_text_of_the_specification(
        x in series(0..70),
        lookback in 0_usize..30,
        lookahead in 0_usize..9,
    ) {
        let (mut high, mut low) = (vec![0.0; x.len()], vec![0.0; x.len()]);
        swing_high(&x, lookback, lookahead, &mut high);
        let negated: Vec<f64> = x.iter().map(|v| -v).collect();
        swing_low(&negated, lookback, lookahead, &mut low);
        for i in 0..x.len() {
            let mut expected = None;
            if i >= lookback + lookahead && i - lookback < i - lookahead && window(&x, lookback, i - 1).is_some() {
                let (start, end) = (i - lookback, i - lookahead);
                let largest = |v: &mut dyn Iterator<Item = f64>| v.reduce(|a, b| if b > a { b } else { a });
                let mut confirmed = (start + lookahead..end)
                    .filter(|&k| (k - lookahead..=k + lookahead).all(|m| x[k] >= x[m]))
                    .map(|k| x[k]);
                expected = largest(&mut confirmed).or_else(|| largest(&mut x[start..end].iter().copied()));
            }
            prop_assert_eq!((!high[i].is_nan()).then_some(high[i]), expected, "bar {}", i);
            prop_assert_eq!((!low[i].is_nan()).then_some(low[i]), expected.map(|v| -v), "bar {}", i);
        }
    }

    #[test]
    fn the_past_does_not_know_the_future(
        b in bars(1..60),
        other in bars(60..61),
        w in 0_usize..12,
        cut in 0_usize..60,
    ) {
        let n = b[0].len();
        let cut = cut % n;
        let mut changed = b.clone();
        for (column, other) in changed.iter_mut().zip(&other) {
            column.truncate(cut + 1);
            column.extend_from_slice(&other[..other.len().min(n - cut - 1)]);
            column.resize(n, 3.25);
        }
        let cut_off = b.clone().map(|column| column[..=cut].to_vec());
        for Case { name, column: f, .. } in all(w) {
            let (mut before, mut after, mut short) = (vec![0.0; n], vec![1.0; n], vec![2.0; cut + 1]);
            f(&b, &mut before);
            f(&changed, &mut after);
            f(&cut_off, &mut short);
            for i in 0..=cut {
                prop_assert!(same(before[i], after[i]), "{} at {}: {} then {}", name, i, before[i], after[i]);
                prop_assert!(same(before[i], short[i]), "{} at {}: {} cut off {}", name, i, before[i], short[i]);
            }
        }
    }

    #[test]
    fn nothing_panics_and_no_infinity_comes_out(
        b in bars(0..40),
        w in prop_oneof![0_usize..50, Just(u32::MAX as usize - 1)],
        extra in 0_usize..4,
    ) {
        for Case { name, column: f, .. } in all(w) {
            let mut out = vec![-7.7e77; b[0].len() + extra];
            f(&b, &mut out);
            for (i, v) in out.iter().enumerate() {
                prop_assert!(!v.is_infinite() && *v != -7.7e77, "{} at {}: {}", name, i, v);
            }
            let mut short = vec![0.0; b[0].len().saturating_sub(extra)];
            f(&b, &mut short);
            prop_assert!(short.iter().zip(&out).all(|(a, b)| same(*a, *b)), "{}", name);
        }
    }

    #[test]
    fn missing_bars_do_not_exist_for_recursive_indicators(b in bars(1..60), w in 1_usize..8) {
        let kept: Vec<usize> = (0..b[0].len()).filter(|&i| b.iter().all(|c| c[i].is_finite())).collect();
        let dense = b.clone().map(|c| kept.iter().map(|&i| c[i]).collect::<Vec<f64>>());
        let masked = b.clone().map(|c| {
            c.iter().enumerate().map(|(i, &v)| if kept.contains(&i) { v } else { f64::NAN }).collect::<Vec<f64>>()
        });
        for Case { name, column: f, .. } in all(w).into_iter().filter(|case| case.gaps == Gaps::Recursive) {
            let (mut spread, mut compact) = (vec![0.0; b[0].len()], vec![0.0; kept.len()]);
            f(&masked, &mut spread);
            f(&dense, &mut compact);
            for (k, &i) in kept.iter().enumerate() {
                prop_assert!(same(spread[i], compact[k]), "{} at {}", name, i);
            }
            prop_assert!((0..spread.len()).all(|i| kept.contains(&i) || spread[i].is_nan()), "{}", name);
        }
    }

    #[test]
    fn scale_by_a_power_of_two_is_exact(b in bars(1..60), w in 1_usize..12, exponent in -20_i32..20) {
        let k = 2f64.powi(exponent);
        let scaled = b.clone().map(|c| c.iter().map(|v| v * k).collect::<Vec<f64>>());
        for Case { name, has_unit, column: f, .. } in all(w) {
            let factor = if has_unit { k } else { 1.0 };
            let (mut plain, mut out) = (vec![0.0; b[0].len()], vec![0.0; b[0].len()]);
            f(&b, &mut plain);
            f(&scaled, &mut out);
            for i in 0..plain.len() {
                let expected = plain[i] * factor + 0.0;
                prop_assert!(same(expected, out[i] + 0.0), "{} at {}: {} {}", name, i, expected, out[i]);
            }
        }
    }
}

/// A million bars at 1e9 with a noise of about 1: a running sum would have lost the noise long before the
/// end.
#[test]
fn rolling_sums_do_not_drift() {
    let n = 1_000_000;
    let mut state = 1_u64;
    let x: Vec<f64> = (0..n)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1e9 + (state >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
        })
        .collect();
    let p = Prefix::new(&x, Moments::SumSquares);
    let (mut mean, mut std) = (vec![0.0; n], vec![0.0; n]);
    for w in [20, 672] {
        sma(&p, w, &mut mean);
        stddev(&p, w, &mut std);
        for i in (w - 1..n).step_by(997).chain(n - 50..n) {
            let window = &x[i + 1 - w..=i];
            // Shifted by the offset the direct sums are exact to the last bits.
            let shifted: Vec<f64> = window.iter().map(|v| v - 1e9).collect();
            let direct = 1e9 + sum(shifted.iter().copied()) / w as f64;
            assert!((mean[i] - direct).abs() <= f64::EPSILON * 1e9, "mean at {i}: {} {direct}", mean[i]);
            let direct = naive_std(&shifted, 0.0);
            // Squares reach 1e24 in sum; 106 bits of that leave an error of some 1e-8 in a window's sum.
            assert!((std[i] - direct).abs() <= 1e-8 * direct, "std at {i}: {} {direct}", std[i]);
        }
    }
}
