//! Returns, and the equity of a signal that trades them.

use super::error::AtcError;
use super::growth::Growth;
use super::options::AtcOptions;
use super::plan::{FORWARD_FILL, IEEE_ZERO, Plan};

/// What a bar multiplies the equity of a long and of a short position by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub long: f64,
    pub short: f64,
}

/// Returns on their way through a series.
pub(super) struct Returns {
    before: f64,
    forward_fill: bool,
    ieee_zero: bool,
}

impl Returns {
    pub fn new(plan: &Plan) -> Self {
        Self { before: f64::NAN, forward_fill: plan.has(FORWARD_FILL), ieee_zero: plan.has(IEEE_ZERO) }
    }

    /// The relative change since the bar before; NaN if there is none.
    #[inline(always)]
    pub fn push(&mut self, price: f64) -> f64 {
        let price = if self.forward_fill && price.is_nan() { self.before } else { price };
        let change = price / self.before - 1.0;
        let change = if self.before == 0.0 && !self.ieee_zero { 0.0 } else { change };
        self.before = price;
        change
    }

    /// What the bar does to an equity. A return that is not available is no move.
    #[inline(always)]
    pub fn push_move(&mut self, price: f64, growth: f64) -> Move {
        let r = self.push(price) * growth;
        let r = if r.is_nan() { 0.0 } else { r };
        Move { long: 1.0 + r, short: 1.0 - r }
    }
}

/// The equity after a bar. `before` is NaN where there is none yet, or where it was lost; it begins again with `start` then.
#[inline(always)]
pub(super) fn next(before: f64, signal_before: f64, change: Move, start: f64, keep: f64, floor: f64) -> f64 {
    let factor = if signal_before > 0.0 {
        change.long
    } else if signal_before < 0.0 {
        change.short
    } else {
        1.0
    };
    let grown = (before * keep) * factor;
    let equity = if before.is_nan() { start } else { grown };
    if equity < floor { floor } else { equity }
}

/// The equity curve of a signal over prices: it trades the sign of the signal of the bar before, decays with every bar, does
/// not fall below the floor, and begins with `start` at the cutout; NaN before.
///
/// Reads of the options: `lambda`, `decay` and their scales, `cutout`, `equity_floor`, `forward_fill`, `zero_price`.
pub fn equity(
    prices: &[f64],
    signal: &[f64],
    start: f64,
    options: &AtcOptions,
    growth: &Growth,
    out: &mut [f64],
) -> Result<(), AtcError> {
    growth.check(options, prices.len())?;
    for (name, has) in [("signal", signal.len()), ("out", out.len())] {
        if has != prices.len() {
            return Err(AtcError::Length { name, has, needs: prices.len() });
        }
    }
    let plan = Plan::new(options)?;
    let mut returns = Returns::new(&plan);
    let (mut before, mut signal_before) = (f64::NAN, f64::NAN);
    for bar in 0..prices.len() {
        let change = returns.push_move(prices[bar], growth.factors()[bar]);
        if bar >= options.cutout as usize {
            before = next(before, signal_before, change, start, plan.keep, plan.floor);
        }
        out[bar] = before;
        signal_before = signal[bar];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(prices: &[f64], signal: &[f64], options: &AtcOptions) -> Vec<f64> {
        let mut out = vec![0.0; prices.len()];
        equity(prices, signal, 1.0, options, &Growth::new(options, prices.len()), &mut out).unwrap();
        out
    }

    #[test]
    fn equity_trades_the_signal_of_the_bar_before() {
        let options = AtcOptions { lambda: 0.0, decay: 0.0, ..AtcOptions::default() };
        let prices = [100.0, 110.0, 121.0, 60.5];
        assert_eq!(curve(&prices, &[0.0; 4], &options), [1.0; 4]);
        let long = curve(&prices, &[0.3, 1.0, 1.0, 0.0], &options);
        assert!(
            (long[1] - 1.1).abs() < 1e-15
                && (long[2] - 1.21).abs() < 1e-15
                && (long[3] - 0.605).abs() < 1e-15
        );
        let short = curve(&prices, &[0.0, 0.0, -0.01, 0.0], &options);
        assert_eq!(short[..3], [1.0; 3]);
        assert!((short[3] - 1.5).abs() < 1e-15);
    }

    #[test]
    fn equity_decays_to_its_floor() {
        let options = AtcOptions { decay: 50.0, ..AtcOptions::default() };
        assert_eq!(curve(&[1.0; 4], &[0.0; 4], &options), [1.0, 0.5, 0.25, 0.25]);
    }

    #[test]
    fn missing_and_zero_prices_are_no_move() {
        let options = AtcOptions { lambda: 0.0, decay: 0.0, ..AtcOptions::default() };
        assert_eq!(curve(&[1.0, f64::NAN, 3.0, 0.0, 5.0], &[-1.0; 5], &options), [1.0, 1.0, 1.0, 2.0, 2.0]);
        let filled = AtcOptions { forward_fill: true, ..options };
        assert_eq!(curve(&[1.0, f64::NAN, 1.5, 1.5], &[1.0; 4], &filled), [1.0, 1.0, 1.5, 1.5]);
    }

    #[test]
    fn lost_equity_begins_again() {
        use super::super::choice::ZeroPrice;
        let decay = AtcOptions { decay: 100.0, zero_price: ZeroPrice::Ieee, ..AtcOptions::default() };
        // 0 · infinite is not available; the bar after that starts anew.
        let out = curve(&[1.0, 0.0, 1.0, 1.0, 1.0], &[1.0; 5], &decay);
        assert!(out[2].is_nan() && out[3] == 1.0 && out[4] == 0.25, "{out:?}");
    }
}
