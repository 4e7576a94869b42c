//! Wilder's moving average.

use super::column::common_len;

/// The mean of the first `w` values, then `y = (y·(w−1) + x) / w`.
///
/// Reference: the smoothing inside TA-Lib `ATR` and `RSI`. First value at the `w`-th available bar; a
/// non-finite value is NaN at its bar and leaves the state as it was. `w = 0` is NaN.
pub fn rma(x: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    if w == 0 {
        return out.fill(f64::NAN);
    }
    let mut average = Wilder::new(w);
    for (out, &x) in out[..n].iter_mut().zip(x) {
        *out = if x.is_finite() { average.push(x) } else { f64::NAN };
    }
}

/// The state of one such average, for indicators that smooth something they compute on the way.
pub(super) struct Wilder {
    w: usize,
    n_seen: usize,
    value: f64,
}

impl Wilder {
    /// `w` is at least 1.
    pub fn new(w: usize) -> Self {
        Self { w, n_seen: 0, value: 0.0 }
    }

    /// Takes the next value in; NaN until the seed is complete.
    #[inline(always)]
    pub fn push(&mut self, x: f64) -> f64 {
        let w = self.w as f64;
        if self.n_seen == self.w {
            self.value = (self.value * (w - 1.0) + x) / w;
            return self.value;
        }
        self.n_seen += 1;
        self.value += x;
        if self.n_seen < self.w {
            return f64::NAN;
        }
        self.value /= w;
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rma_moves_by_one_part_in_w() {
        let mut out = [0.0; 4];
        rma(&[1.0, 3.0, 4.0, 9.0], 2, &mut out);
        assert!(out[0].is_nan());
        assert_eq!(out[1..], [2.0, 3.0, 6.0]);
    }

    #[test]
    fn rma_of_one_bar_is_the_value() {
        let mut out = [0.0; 3];
        rma(&[1.0, 3.0, 4.0], 1, &mut out);
        assert_eq!(out, [1.0, 3.0, 4.0]);
    }
}
