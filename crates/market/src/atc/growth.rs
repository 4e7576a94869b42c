//! The growth of the weight of returns along a series, as a table that the host makes once.

use super::error::AtcError;
use super::options::AtcOptions;

/// Growth factors of the bars of the longest series: `exp(rate · (bar − cutout))`, 1 before the cutout.
///
/// A factor depends on the place of a bar in its series, so the same bar weighs differently in a longer history.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    factors: Vec<f64>,
    rate: f64,
    cutout: u32,
}

impl Growth {
    /// The factors of `n_bars` bars.
    pub fn new(options: &AtcOptions, n_bars: usize) -> Self {
        let (rate, cutout) = (options.growth_rate(), options.cutout);
        Self { factors: (0..n_bars).map(|bar| factor(rate, cutout, bar)).collect(), rate, cutout }
    }

    /// The factors, one per bar.
    pub fn factors(&self) -> &[f64] {
        &self.factors
    }

    /// Says whether the table was made for these options and is long enough.
    pub(super) fn check(&self, options: &AtcOptions, n_bars: usize) -> Result<(), AtcError> {
        let fits = self.rate.to_bits() == options.growth_rate().to_bits() && self.cutout == options.cutout;
        let has = if fits { self.factors.len() } else { 0 };
        if has < n_bars { Err(AtcError::Length { name: "growth", has, needs: n_bars }) } else { Ok(()) }
    }
}

/// The factor of one bar. Bars 0 and 1 have the same one.
pub(super) fn factor(rate: f64, cutout: u32, bar: usize) -> f64 {
    let bar = bar.max(1) as f64;
    let cutout = f64::from(cutout);
    if bar >= cutout { exponential(rate * (bar - cutout)) } else { 1.0 }
}

const LOG2_E: f64 = std::f64::consts::LOG2_E;
/// The upper bits of ln 2, so few that a multiple of them is exact, and the rest.
const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// `1/13!, 1/12!, …, 1/2!`
const TAYLOR: [f64; 12] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
];

/// `e^x` to about one unit in the last place, at most the largest finite number.
///
/// Our own, because a strategy may search the rate on a device: the twin there has to give the same bits, so only + − × and
/// comparisons are used.
pub(super) fn exponential(x: f64) -> f64 {
    if x > 709.78 {
        return f64::MAX;
    }
    if x < -708.0 {
        return 0.0;
    }
    let n = (x * LOG2_E).round_ties_even();
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut sum = TAYLOR[0];
    for coefficient in &TAYLOR[1..] {
        sum = sum * r + coefficient;
    }
    // 1 + (r + r²·sum): the small part is rounded once more only.
    let value = 1.0 + (r + (r * r) * sum);
    // Two steps, because 2^1024 is not a number.
    let half = (n * 0.5).floor();
    (value * power_of_two(half)) * power_of_two(n - half)
}

/// `2^n` for a whole `n` between −1022 and 1023.
fn power_of_two(n: f64) -> f64 {
    f64::from_bits(((n as i64 + 1_023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_is_that_of_the_system() {
        let mut x = -700.0;
        while x < 709.0 {
            let (ours, theirs) = (exponential(x), f64::exp(x));
            assert!((ours / theirs - 1.0).abs() < 5e-16, "e^{x}: {ours:e}, not {theirs:e}");
            x += 0.137;
        }
        assert_eq!(exponential(0.0), 1.0);
        assert_eq!(exponential(f64::INFINITY), f64::MAX);
        assert_eq!(exponential(-1e9), 0.0);
    }

    #[test]
    fn growth_starts_at_the_cutout() {
        let options = AtcOptions { cutout: 3, lambda_scale: 1.0, ..AtcOptions::default() };
        let growth = Growth::new(&options, 6);
        assert_eq!(growth.factors()[..4], [1.0; 4]);
        assert!((growth.factors()[5] - f64::exp(0.04)).abs() < 1e-15);
        let growth = Growth::new(&AtcOptions { cutout: 0, ..options }, 3);
        assert_eq!(growth.factors()[0], growth.factors()[1]);
    }

    #[test]
    fn growth_of_other_options_is_refused() {
        let options = AtcOptions::default();
        let growth = Growth::new(&options, 50);
        assert!(growth.check(&options, 50).is_ok());
        assert!(growth.check(&options, 51).is_err());
        assert!(growth.check(&AtcOptions { cutout: 1, ..options.clone() }, 10).is_err());
        assert!(growth.check(&AtcOptions { lambda: 0.5, ..options }, 10).is_err());
    }
}
