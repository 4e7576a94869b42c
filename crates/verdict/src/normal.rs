//! The normal distribution, to the last few bits.

use std::f64::consts::{PI, SQRT_2};

/// Probability that a standard normal number lies below `x`.
pub fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x / SQRT_2)
}

/// The number that a standard normal one exceeds with probability `p`, for `p` between 0 and 1; infinite at the ends, NaN beyond.
///
/// It takes the upper tail, so that a probability of one in a million keeps its digits.
pub fn upper_quantile(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p > 0.5 {
        return -upper_quantile(1.0 - p);
    }
    if p == 0.0 {
        return f64::INFINITY;
    }
    // Hastings' rational approximation (Abramowitz and Stegun 26.2.23) is right to 4.5e-4; three of Halley's steps make it exact.
    let t = libm::sqrt(-2.0 * libm::log(p));
    let mut x = t
        - (2.515_517 + t * (0.802_853 + t * 0.010_328))
            / (1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308)));
    for _ in 0..3 {
        let density = libm::exp(-0.5 * x * x) / libm::sqrt(2.0 * PI);
        if density == 0.0 {
            break;
        }
        let step = (cdf(-x) - p) / density;
        x += step / (1.0 - 0.5 * step * x);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_inverse_of_probabilities() {
        for p in [1e-300, 1e-12, 1e-6, 0.001, 0.02425, 0.3, 0.5, 0.7, 0.999, 1.0 - 1e-9] {
            let x = upper_quantile(p);
            assert!((cdf(-x) / p - 1.0).abs() < 1e-12, "{p}: {x}");
        }
        assert!(upper_quantile(0.5).abs() < 1e-16);
        assert_eq!(upper_quantile(0.0), f64::INFINITY);
        assert_eq!(upper_quantile(1.0), f64::NEG_INFINITY);
        assert!(upper_quantile(-0.1).is_nan() && upper_quantile(f64::NAN).is_nan());
    }

    #[test]
    fn known_values() {
        assert!((upper_quantile(0.025) - 1.959_963_984_540_054).abs() < 1e-14);
        assert!((cdf(1.0) - 0.841_344_746_068_542_9).abs() < 1e-15);
    }
}
