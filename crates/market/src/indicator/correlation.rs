//! Correlation of two series over a window.

use multiversion::multiversion;

use super::column::{common_len, mask_windows};

/// Bars that are computed side by side.
const LANES: usize = 8;

/// Pearson's correlation of the last `w` values of both, from −1 to 1.
///
/// Reference: pandas `x.rolling(w).corr(y)`. First value at bar `w-1`; NaN where the window holds a non-finite value, and
/// where all values of either are equal. Means first, then the products of what lies beside them, each added up from the oldest
/// bar to the newest: O(w) per bar, without the cancellation of a running sum.
pub fn correlation(x: &[f64], y: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len(), y.len()]);
    let (x, y, out) = (&x[..n], &y[..n], &mut out[..n]);
    out.fill(f64::NAN);
    if w == 0 || w > n {
        return;
    }
    fill(x, y, w, &mut out[w - 1..]);
    mask_windows(x, w, out);
    mask_windows(y, w, out);
}

/// The values of all windows, in order.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
fn fill(x: &[f64], y: &[f64], w: usize, out: &mut [f64]) {
    let (blocks, rest) = out.as_chunks_mut::<LANES>();
    let n_done = blocks.len() * LANES;
    for (at, block) in blocks.iter_mut().enumerate() {
        *block = of_windows::<LANES>(&x[at * LANES..], &y[at * LANES..], w);
    }
    for (at, out) in rest.iter_mut().enumerate() {
        *out = of_windows::<1>(&x[n_done + at..], &y[n_done + at..], w)[0];
    }
}

/// Of `N` windows of `w` bars, each a bar later than the one before.
#[inline(always)]
fn of_windows<const N: usize>(x: &[f64], y: &[f64], w: usize) -> [f64; N] {
    let (mut mean_x, mut mean_y) = ([0.0; N], [0.0; N]);
    let (mut x_varies, mut y_varies) = ([false; N], [false; N]);
    for k in 0..w {
        for lane in 0..N {
            mean_x[lane] += x[k + lane];
            mean_y[lane] += y[k + lane];
            x_varies[lane] |= x[k + lane] != x[lane];
            y_varies[lane] |= y[k + lane] != y[lane];
        }
    }
    for lane in 0..N {
        mean_x[lane] /= w as f64;
        mean_y[lane] /= w as f64;
    }
    let (mut xx, mut yy, mut xy) = ([0.0; N], [0.0; N], [0.0; N]);
    for k in 0..w {
        for lane in 0..N {
            let (dx, dy) = (x[k + lane] - mean_x[lane], y[k + lane] - mean_y[lane]);
            xx[lane] += dx * dx;
            yy[lane] += dy * dy;
            xy[lane] += dx * dy;
        }
    }
    std::array::from_fn(|lane| {
        let size = f64::sqrt(xx[lane]) * f64::sqrt(yy[lane]);
        if !(x_varies[lane] && y_varies[lane] && size > 0.0) {
            return f64::NAN;
        }
        // Rounding may lead beyond.
        (xy[lane] / size).clamp(-1.0, 1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_together_has_1_and_what_is_flat_has_none() {
        let x: Vec<f64> = (0..20).map(|i| f64::from((i * 7) % 11)).collect();
        let y: Vec<f64> = x.iter().map(|v| 3.0 - 0.5 * v).collect();
        let mut out = vec![0.0; 20];
        correlation(&x, &x, 5, &mut out);
        assert!(out[3].is_nan());
        assert!(out[4..].iter().all(|v| (v - 1.0).abs() < 1e-15));
        correlation(&x, &y, 5, &mut out);
        assert!(out[4..].iter().all(|v| (v + 1.0).abs() < 1e-15));
        correlation(&x, &[0.1; 20], 5, &mut out);
        assert!(out.iter().all(|v| v.is_nan()));
    }
}
