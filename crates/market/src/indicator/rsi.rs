//! Relative strength index.

use super::column::common_len;
use super::rma::Wilder;

/// `100 · gain / (gain + loss)`, both [`rma`](super::rma) over `w` bars of the upward and downward changes.
///
/// Reference: TA-Lib `RSI`. First value at the available bar `w` (the `w+1`-th); a non-finite value is NaN at
/// its bar and leaves the state as it was. No change at all gives 0, as in TA-Lib, which however calls every
/// `gain + loss` below 1e-14 none. `w = 0` is NaN.
pub fn rsi(x: &[f64], w: usize, out: &mut [f64]) {
    let n = common_len(out, [x.len()]);
    if w == 0 {
        return out.fill(f64::NAN);
    }
    let (mut gains, mut losses) = (Wilder::new(w), Wilder::new(w));
    let mut previous = None;
    for (out, &x) in out[..n].iter_mut().zip(x) {
        *out = f64::NAN;
        if !x.is_finite() {
            continue;
        }
        if let Some(previous) = previous {
            let change: f64 = x - previous;
            let gain = gains.push(if change > 0.0 { change } else { 0.0 });
            let loss = losses.push(if change < 0.0 { -change } else { 0.0 });
            let total = gain + loss;
            *out = if total == 0.0 { 0.0 } else { 100.0 * (gain / total) };
        }
        previous = Some(x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rsi_of_a_rise_is_100_and_of_a_fall_is_0() {
        let rise: Vec<f64> = (0..9).map(f64::from).collect();
        let fall: Vec<f64> = rise.iter().map(|v| -v).collect();
        let mut out = vec![0.0; 9];
        rsi(&rise, 3, &mut out);
        assert!(out[2].is_nan());
        assert!(out[3..].iter().all(|&v| v == 100.0));
        rsi(&fall, 3, &mut out);
        assert!(out[3..].iter().all(|&v| v == 0.0));
    }

    #[test]
    fn rsi_without_change_is_0() {
        let mut out = [1.0; 5];
        rsi(&[7.0; 5], 2, &mut out);
        assert_eq!(out[2..], [0.0; 3]);
    }
}
