//! Exponential moving average, seeded with the first value.

use multiversion::multiversion;

use super::column::common_len;
use super::transpose::transpose;

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
pub const EMA_LANES: usize = 32;

/// The averages of one series for several spans, each as [`ema`] computes it.
///
/// An average waits for its own last value most of the time; several of them wait together.
pub fn ema_many(x: &[f64], spans: &[usize]) -> Vec<Vec<f64>> {
    let mut out: Vec<Vec<f64>> = spans.iter().map(|_| vec![0.0; x.len()]).collect();
    let mut slices: Vec<&mut [f64]> = out.iter_mut().map(Vec::as_mut_slice).collect();
    EmaStream::new(spans).advance(x, &mut slices);
    out
}

/// The averages of one series for several spans, some bars at a time: each call goes on where the one before has stopped.
#[derive(Clone, Debug)]
pub struct EmaStream {
    spans: Vec<usize>,
    /// Weights of the newest value and of the average, and the averages.
    a: Vec<f64>,
    b: Vec<f64>,
    y: Vec<f64>,
    has_started: bool,
}

impl EmaStream {
    /// Before the first bar.
    pub fn new(spans: &[usize]) -> Self {
        // A multiple of the fewest lanes that run together; those too many are not kept.
        let n_lanes = spans.len().next_multiple_of(FEWEST);
        let mut a: Vec<f64> = spans.iter().map(|span| smoothing(*span)).collect();
        a.resize(n_lanes, 1.0);
        let b = a.iter().map(|a| 1.0 - a).collect();
        Self { spans: spans.to_vec(), a, b, y: vec![0.0; n_lanes], has_started: false }
    }

    /// The averages of the next bars; `out` has a slice for each span, as long as `x`.
    pub fn advance(&mut self, x: &[f64], out: &mut [&mut [f64]]) {
        let mut first = 0;
        if !self.has_started {
            first = x.iter().position(|v| v.is_finite()).unwrap_or(x.len());
            out.iter_mut().for_each(|out| out[..first].fill(f64::NAN));
            let Some(start) = x.get(first) else { return };
            self.has_started = true;
            self.y.fill(*start);
            out.iter_mut().for_each(|out| out[first] = *start);
            first += 1;
        }
        let mut lane = 0;
        while lane < self.y.len() {
            // As many as there are, so that few averages do not cost as much as many.
            lane += match self.y.len() - lane {
                EMA_LANES.. => self.run::<EMA_LANES>(lane, x, first, out),
                16.. => self.run::<16>(lane, x, first, out),
                _ => self.run::<FEWEST>(lane, x, first, out),
            };
        }
        for (span, out) in self.spans.iter().zip(out) {
            if *span == 0 {
                out.fill(f64::NAN);
            }
        }
    }

    /// Advances the lanes from `lane` on, and returns how many they are.
    fn run<const LANES: usize>(
        &mut self,
        lane: usize,
        x: &[f64],
        first: usize,
        out: &mut [&mut [f64]],
    ) -> usize {
        let kept = out.len().min(lane + LANES);
        let weights = (&self.a[lane..lane + LANES], &self.b[lane..lane + LANES]);
        lanes::<LANES>(x, weights, &mut self.y[lane..lane + LANES], first, &mut out[lane..kept]);
        LANES
    }
}

/// The fewest averages that run together.
const FEWEST: usize = 8;

/// Bars that are computed before they are moved to the columns.
const BLOCK: usize = 64;

#[multiversion(targets("x86_64+avx512f+avx512vl", "x86_64+avx2"))]
fn lanes<const LANES: usize>(
    x: &[f64],
    (a, b): (&[f64], &[f64]),
    averages: &mut [f64],
    first: usize,
    out: &mut [&mut [f64]],
) {
    let (Some((a, _)), Some((b, _))) = (a.split_first_chunk::<LANES>(), b.split_first_chunk::<LANES>())
    else {
        return;
    };
    let Some((averages, _)) = averages.split_first_chunk_mut::<LANES>() else { return };
    let (a, b, mut y) = (*a, *b, *averages);
    let mut block = [[0.0; LANES]; BLOCK];
    for from in (first..x.len()).step_by(BLOCK) {
        let x = &x[from..x.len().min(from + BLOCK)];
        for (row, &x) in block.iter_mut().zip(x) {
            if x.is_finite() {
                for lane in 0..LANES {
                    y[lane] = a[lane] * x + b[lane] * y[lane];
                }
                *row = y;
            } else {
                *row = [f64::NAN; LANES];
            }
        }
        transpose(&block[..x.len()], from, out);
    }
    *averages = y;
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
    fn averages_go_on_where_they_stopped() {
        let mut x: Vec<f64> = (0..700).map(|i| 50.0 + f64::from(i * i % 41)).collect();
        (x[0], x[1], x[2], x[300]) = (f64::NAN, f64::NAN, f64::INFINITY, f64::NAN);
        for n_spans in [1, 7, 8, 9, 31, 47, 70] {
            let spans: Vec<usize> = (0..n_spans).map(|at| at * 5).collect();
            let whole = ema_many(&x, &spans);
            for step in [1, 2, 63, 64, 65, 500, 1_000] {
                let mut stream = EmaStream::new(&spans);
                for from in (0..x.len()).step_by(step) {
                    let to = x.len().min(from + step);
                    let mut parts = vec![vec![0.0; to - from]; spans.len()];
                    let mut slices: Vec<&mut [f64]> = parts.iter_mut().map(Vec::as_mut_slice).collect();
                    stream.advance(&x[from..to], &mut slices);
                    for (whole, part) in whole.iter().zip(&parts) {
                        let same =
                            |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                        assert!(
                            whole[from..to].iter().zip(part).all(same),
                            "{n_spans} spans from {from} to {to}"
                        );
                    }
                }
            }
        }
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
