//! Crossings of price and average, and the vote of a family: its nine signals weighed by their equities.

use super::equity::{Move, next};
use super::error::AtcError;
use super::family::{N_LENGTHS, Nine};
use super::plan::{IMPULSE, Plan, ROUND};

/// The nine signals and equities of a family on their way through a series.
pub(super) struct Vote<'a> {
    plan: &'a Plan,
    price: f64,
    averages: Nine,
    pub signals: Nine,
    pub equities: Nine,
}

impl<'a> Vote<'a> {
    pub fn new(plan: &'a Plan) -> Self {
        let missing = [f64::NAN; N_LENGTHS];
        Self { plan, price: f64::NAN, averages: missing, signals: [0.0; N_LENGTHS], equities: missing }
    }

    /// The layer-1 signal of a bar; `is_active` from the cutout on.
    #[inline(always)]
    pub fn push(&mut self, price: f64, averages: &Nine, change: Move, is_active: bool) -> f64 {
        if is_active {
            for k in 0..N_LENGTHS {
                let (plan, before) = (self.plan, self.equities[k]);
                self.equities[k] = next(before, self.signals[k], change, plan.start, plan.keep, plan.floor);
            }
        }
        let is_impulse = self.plan.has(IMPULSE);
        for ((signal, &before), &average) in self.signals.iter_mut().zip(&self.averages).zip(averages) {
            let (was_below, was_above) = (self.price <= before, self.price >= before);
            let rest = if is_impulse { 0.0 } else { *signal };
            let fallen = if (price < average) & was_above { -1.0 } else { rest };
            *signal = if (price > average) & was_below { 1.0 } else { fallen };
        }
        self.price = price;
        self.averages = *averages;
        weigh(&self.signals, &self.equities, self.plan.has(ROUND))
    }
}

/// The mean of nine signals weighed by their equities, in the order of the lengths.
#[inline(always)]
pub(super) fn weigh(signals: &Nine, equities: &Nine, round: bool) -> f64 {
    let (mut votes, mut weight) = (0.0, 0.0);
    for k in 0..N_LENGTHS {
        votes += signals[k] * equities[k];
        weight += equities[k];
    }
    let mean = votes / weight;
    if round { (mean * 100.0).round_ties_even() / 100.0 } else { mean }
}

/// A layer-1 signal: the mean of nine signals weighed by their equities, bar by bar, rounded to two decimals if the option is set.
pub fn weighted_signal(
    signals: &[&[f64]; N_LENGTHS],
    equities: &[&[f64]; N_LENGTHS],
    round: bool,
    out: &mut [f64],
) -> Result<(), AtcError> {
    for (name, all) in [("signals", signals), ("equities", equities)] {
        if let Some(short) = all.iter().find(|series| series.len() != out.len()) {
            return Err(AtcError::Length { name, has: short.len(), needs: out.len() });
        }
    }
    for (bar, out) in out.iter_mut().enumerate() {
        *out = weigh(&signals.map(|series| series[bar]), &equities.map(|series| series[bar]), round);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::choice::Preset;
    use super::super::options::AtcOptions;
    use super::*;

    fn signals(preset: Preset, prices: &[f64], averages: &[f64]) -> Vec<f64> {
        let plan = Plan::new(&AtcOptions::preset(preset)).unwrap();
        let mut vote = Vote::new(&plan);
        let still = Move { long: 1.0, short: 1.0 };
        prices
            .iter()
            .zip(averages)
            .map(|(&price, &average)| {
                vote.push(price, &[average; N_LENGTHS], still, true);
                vote.signals[0]
            })
            .collect()
    }

    #[test]
    fn crossings_need_both_bars() {
        let (prices, averages) = ([2.0, 3.0, 1.0, 1.0, 2.0, 2.0], [2.0; 6]);
        assert_eq!(signals(Preset::V2, &prices, &averages), [0.0, 1.0, -1.0, -1.0, -1.0, -1.0]);
        assert_eq!(signals(Preset::Head, &prices, &averages), [0.0, 1.0, -1.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn signal_stays_over_missing_bars() {
        let gap = f64::NAN;
        assert_eq!(signals(Preset::V2, &[1.0, 3.0, gap, 1.0, 1.0], &[2.0; 5]), [0.0, 1.0, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn votes_are_weighed_and_rounded_half_to_even() {
        let mut signals = [0.0; N_LENGTHS];
        signals[0] = 1.0;
        // 1/9 is 0.11 in two decimals.
        assert_eq!(weigh(&signals, &[1.0; N_LENGTHS], true), 0.11);
        assert_eq!(weigh(&signals, &[1.0; N_LENGTHS], false), 1.0 / 9.0);
        let mut equities = [0.0; N_LENGTHS];
        (equities[0], equities[1]) = (0.125, 0.875);
        assert_eq!(weigh(&signals, &equities, true), 0.12);
        let (ones, twos) = ([1.0; 2], [2.0; 2]);
        let mut out = [0.0; 2];
        weighted_signal(&[&ones; N_LENGTHS], &[&twos; N_LENGTHS], true, &mut out).unwrap();
        assert_eq!(out, [1.0; 2]);
        assert!(weighted_signal(&[&ones[..1]; N_LENGTHS], &[&twos; N_LENGTHS], true, &mut out).is_err());
    }
}
