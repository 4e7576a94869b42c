//! Logarithm of a ratio.

use super::column::common_len;

/// `ln(x / y)`, NaN where the ratio is not a positive finite number.
///
/// Reference: numpy `log(x / y)` to the last bit but one; the logarithm is `ln`, the same operations on every device.
pub fn log_ratio(x: &[f64], y: &[f64], out: &mut [f64]) {
    let n = common_len(out, [x.len(), y.len()]);
    for ((out, x), y) in out[..n].iter_mut().zip(x).zip(y) {
        *out = ln(x / y);
    }
}

/// Natural logarithm by the polynomial of FreeBSD's `e_log.c` (Sun Microsystems, 1993), off by less than one unit in the last
/// place; NaN for what is not positive and finite.
///
/// `x = 2^k · m` with `m` between √½ and √2, `f = m − 1`, `s = f / (2 + f)`; then `ln m = f − f²/2 + s·(f²/2 + R(s²))`.
fn ln(mut x: f64) -> f64 {
    const LN2_HIGH: f64 = 0.6931471803691238;
    const LN2_LOW: f64 = 1.9082149292705877e-10;
    // High word of √½.
    const ROOT: u64 = 0x3fe6_a09e;
    if !(x > 0.0 && x.is_finite()) {
        return f64::NAN;
    }
    let mut k = 0_i32;
    if x < f64::MIN_POSITIVE {
        // 2^54
        x *= 18_014_398_509_481_984.0;
        k = -54;
    }
    let bits = x.to_bits();
    let high = (bits >> 32) + (0x3ff0_0000 - ROOT);
    k += (high >> 20) as i32 - 0x3ff;
    let m = f64::from_bits(((high & 0x000f_ffff) + ROOT) << 32 | (bits & 0xffff_ffff));
    let f = m - 1.0;
    let half_square = 0.5 * f * f;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373));
    let odd = z
        * (0.6666666666666735
            + w * (0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)));
    let r = odd + even;
    let exponent = f64::from(k);
    s * (half_square + r) + exponent * LN2_LOW - half_square + f + exponent * LN2_HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_is_that_of_the_library() {
        let mut x = 1e-320;
        while x < 1e308 {
            let (got, expected) = (ln(x), x.ln());
            assert!(
                (got - expected).abs() <= 1e-15 * expected.abs(),
                "ln({x}) = {got} instead of {expected}"
            );
            x *= 1.0173;
        }
        for i in 1..2_000 {
            let x = 1.0 + f64::from(i - 1_000) * 1e-5;
            assert!((ln(x) - x.ln()).abs() <= 1e-15 * x.ln().abs(), "ln({x})");
        }
        assert_eq!(ln(1.0), 0.0);
    }

    #[test]
    fn only_positive_ratios_have_a_logarithm() {
        let mut out = [0.0; 5];
        log_ratio(&[1.0, -1.0, 0.0, 1.0, f64::INFINITY], &[0.5, 1.0, 1.0, 0.0, 1.0], &mut out);
        assert!((out[0] - std::f64::consts::LN_2).abs() < 1e-15);
        assert!(out[1..].iter().all(|v| v.is_nan()));
    }
}
