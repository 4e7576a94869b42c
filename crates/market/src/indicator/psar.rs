//! Parabolic stop and reverse.

use super::column::common_len;

/// Wilder's parabolic: a stop that nears the price by a share of its distance from the best price of the trend so far. The share
/// begins with `start`, grows by `step` at every new best price and is at most `max`.
///
/// Reference: TA-Lib `SAREXT` (`SAR` where `start` is `step`), without the minus sign that it gives to downward trends. First value at
/// the second available bar; the first two decide the first trend. A bar with a non-finite price is NaN and leaves the state as it was. NaN
/// if a parameter is negative or not finite.
pub fn psar(high: &[f64], low: &[f64], start: f64, step: f64, max: f64, out: &mut [f64]) {
    let n = common_len(out, [high.len(), low.len()]);
    out[..n].fill(f64::NAN);
    let is_share = |share: f64| share.is_finite() && share >= 0.0;
    if !(is_share(start) && is_share(step) && is_share(max)) {
        return;
    }
    let smaller = |a: f64, b: f64| if b < a { b } else { a };
    let mut parabolic = Parabolic::new(smaller(start, max), smaller(step, max), max);
    for i in 0..n {
        if high[i].is_finite() && low[i].is_finite() {
            out[i] = parabolic.push(high[i], low[i]);
        }
    }
}

/// What is carried from bar to bar.
struct Parabolic {
    start: f64,
    step: f64,
    max: f64,
    /// Bars taken in, up to two.
    n_seen: u32,
    is_long: bool,
    high: f64,
    low: f64,
    /// The best price of the trend.
    best: f64,
    share: f64,
    stop: f64,
}

impl Parabolic {
    fn new(start: f64, step: f64, max: f64) -> Self {
        let (high, low, best, stop) = (0.0, 0.0, 0.0, 0.0);
        Self { start, step, max, n_seen: 0, is_long: true, high, low, best, share: start, stop }
    }

    fn push(&mut self, high: f64, low: f64) -> f64 {
        if self.n_seen == 0 {
            (self.n_seen, self.high, self.low) = (1, high, low);
            return f64::NAN;
        }
        if self.n_seen == 1 {
            let (rise, fall) = (high - self.high, self.low - low);
            self.is_long = !(fall > 0.0 && rise < fall);
            (self.best, self.stop) = if self.is_long { (high, self.low) } else { (low, self.high) };
            (self.n_seen, self.high, self.low) = (2, high, low);
        }
        let (before_high, before_low) = (self.high, self.low);
        (self.high, self.low) = (high, low);
        let over = |stop: f64| {
            let stop = if stop < before_high { before_high } else { stop };
            if stop < high { high } else { stop }
        };
        let under = |stop: f64| {
            let stop = if stop > before_low { before_low } else { stop };
            if stop > low { low } else { stop }
        };
        let is_hit = if self.is_long { low <= self.stop } else { high >= self.stop };
        if is_hit {
            self.is_long = !self.is_long;
            self.stop = if self.is_long { under(self.best) } else { over(self.best) };
            self.best = if self.is_long { high } else { low };
            self.share = self.start;
        }
        let value = self.stop;
        let is_better = if self.is_long { high > self.best } else { low < self.best };
        if !is_hit && is_better {
            self.best = if self.is_long { high } else { low };
            self.share += self.step;
            if self.share > self.max {
                self.share = self.max;
            }
        }
        let next = self.stop + self.share * (self.best - self.stop);
        self.stop = if self.is_long { under(next) } else { over(next) };
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_follows_a_rise_and_turns_with_the_price() {
        let high = [10.0, 11.0, 12.0, 13.0, 9.0];
        let low = [9.0, 10.0, 11.0, 12.0, 8.0];
        let mut out = [0.0; 5];
        psar(&high, &low, 0.1, 0.1, 0.2, &mut out);
        assert!(out[0].is_nan());
        let second = 9.0 + 0.1 * (11.0 - 9.0);
        assert_eq!(out[1..3], [9.0, second]);
        assert_eq!(out[3], second + 0.2 * (12.0 - second));
        // The low reaches the stop: the trend turns, and the stop is the best price so far.
        assert_eq!(out[4], 13.0);
    }

    #[test]
    fn parameters_that_make_no_sense_have_no_values() {
        let mut out = [0.0; 3];
        for [start, step, max] in [[-0.1, 0.1, 0.2], [0.1, f64::NAN, 0.2], [0.1, 0.1, f64::INFINITY]] {
            psar(&[1.0, 2.0, 3.0], &[0.5, 1.5, 2.5], start, step, max, &mut out);
            assert!(out.iter().all(|v| v.is_nan()));
        }
    }
}
