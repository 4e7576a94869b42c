//! Exponential moving average, seeded with the first value.

use multiversion::multiversion;

use super::column::common_len;

/// `y = x` at the first available bar, then `y = a·x + (1−a)·y` with `a = 2/(span+1)`, in exactly this order
/// of operations.
///
/// Reference: pandas `ewm(span, adjust=False, ignore_na=True).mean()`. Valid from the first finite value on,
/// without warm-up; a non-finite value is NaN at its bar and leaves the average as it was. `span = 0` is NaN.
pub fn ema(x: &[f64], span: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    let (x, out) = (&x[..n], &mut out[..n]);
    let first = x.iter().position(|v| v.is_finite()).unwrap_or(n);
    if span == 0 || first == n {
        return out.fill(f64::NAN);
    }
    let a = smoothing(span);
    let b = 1.0 - a;
    out[..first].fill(f64::NAN);
    out[first] = x[first];
    let mut y = x[first];
    for (out, &x) in out[first + 1..].iter_mut().zip(&x[first + 1..]) {
        if x.is_finite() {
            y = a * x + b * y;
            *out = y;
        } else {
            *out = f64::NAN;
        }
    }
}

/// Averages that run side by side in [`ema_many`].
pub const EMA_LANES: usize = 8;

/// The averages of one series for several spans, each as [`ema`] computes it.
///
/// An average waits for its own last value most of the time; several of them wait together.
pub fn ema_many(x: &[f64], spans: &[usize]) -> Vec<Vec<f64>> {
    let mut out: Vec<Vec<f64>> = spans.iter().map(|_| Vec::with_capacity(x.len())).collect();
    for (spans, out) in spans.chunks(EMA_LANES).zip(out.chunks_mut(EMA_LANES)) {
        lanes(x, spans, out);
        for (span, out) in spans.iter().zip(out) {
            if *span == 0 {
                out.fill(f64::NAN);
            }
        }
    }
    out
}

/// Bars that are computed before they are moved to the columns.
const BLOCK: usize = 64;

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn lanes(x: &[f64], spans: &[usize], out: &mut [Vec<f64>]) {
    let first = x.iter().position(|v| v.is_finite()).unwrap_or(x.len());
    out.iter_mut().for_each(|out| out.resize(first, f64::NAN));
    let Some((start, rest)) = x[first..].split_first() else { return };
    out.iter_mut().for_each(|out| out.push(*start));
    let mut a = [0.0; EMA_LANES];
    a.iter_mut().zip(spans).for_each(|(a, span)| *a = smoothing(*span));
    let b = a.map(|a| 1.0 - a);
    let mut y = [*start; EMA_LANES];
    let mut block = [[0.0; EMA_LANES]; BLOCK];
    for x in rest.chunks(BLOCK) {
        for (row, &x) in block.iter_mut().zip(x) {
            if x.is_finite() {
                for lane in 0..EMA_LANES {
                    y[lane] = a[lane] * x + b[lane] * y[lane];
                }
                *row = y;
            } else {
                *row = [f64::NAN; EMA_LANES];
            }
        }
        for (lane, out) in out.iter_mut().enumerate() {
            out.extend(block[..x.len()].iter().map(|row| row[lane]));
        }
    }
}

/// The weight of the newest value for a span.
pub(super) fn smoothing(span: usize) -> f64 {
    2.0 / (span as f64 + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ema_starts_at_the_first_value() {
        let mut out = [0.0; 3];
        ema(&[1.0, 2.0, 4.0], 3, &mut out);
        assert_eq!(out, [1.0, 1.5, 2.75]);
    }

    #[test]
    fn gap_leaves_the_average_as_it_was() {
        let mut out = [0.0; 5];
        ema(&[f64::NAN, 1.0, f64::INFINITY, 2.0, f64::NAN], 3, &mut out);
        assert!(out[0].is_nan() && out[2].is_nan() && out[4].is_nan());
        assert_eq!((out[1], out[3]), (1.0, 1.5));
    }

    #[test]
    fn averages_side_by_side_are_the_single_ones() {
        let mut x: Vec<f64> = (0..300).map(|i| 100.0 + f64::from(i * i % 37)).collect();
        (x[0], x[1], x[40], x[41]) = (f64::NAN, f64::INFINITY, f64::NAN, f64::NEG_INFINITY);
        for spans in [vec![], vec![3], (1..=8).collect(), (5..=24).collect(), (0..=7).collect::<Vec<_>>()] {
            for (span, many) in spans.iter().zip(ema_many(&x, &spans)) {
                let mut single = vec![0.0; x.len()];
                ema(&x, *span, &mut single);
                let bits = |column: &[f64]| column.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
                assert!(bits(&many) == bits(&single), "span {span} of {spans:?}");
            }
        }
        assert!(ema_many(&[f64::NAN; 3], &[1; 8]).iter().flatten().all(|v| v.is_nan()));
    }

    #[test]
    fn ema_without_a_span_or_a_value_is_not_available() {
        let mut out = [0.0; 2];
        ema(&[1.0, 2.0], 0, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
        ema(&[f64::NAN; 2], 3, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
        ema(&[], 3, &mut []);
    }
}
