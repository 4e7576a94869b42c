//! Whether the winners of a search hold up: what is kept of all trials while it runs, and the checks on the best when it ends.
//!
//! Everything here follows from the trials and the data: not from the device, the number of threads, or whether the search was
//! interrupted. What has to be evaluated again is evaluated on the CPU, which gives the same bits.

mod judge;
mod sample;
pub mod store;

use serde::Serialize;
use tidemill_verdict::{Interval, Moments, Overfit, Plateau, Verdict};

use crate::benchmark::AgainstMarket;
use crate::parts::{EquityMark, Parts};

pub use judge::{JudgedSearch, judge};
pub use sample::TrialSample;

/// Blocks of time that results are kept by, if there are days enough.
const MOST_BLOCKS: usize = 16;

/// Days that a block has at least.
const LEAST_DAYS: usize = 4;

/// Number of blocks for this many days: even, or 0 if the days are too few for a verdict.
pub fn n_blocks(n_days: usize) -> usize {
    let n_blocks = (n_days / LEAST_DAYS / 2 * 2).min(MOST_BLOCKS);
    if n_blocks < 6 { 0 } else { n_blocks }
}

/// The findings about a search and its winners.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictReport {
    /// Trials behind the winners: those that are valid.
    pub trials: u64,
    /// How many independent trials they are worth.
    pub independent_trials: f64,
    /// Mean correlation of the trials' returns.
    pub mean_correlation: Option<f64>,
    /// Variance of the trials' Sharpe ratios, by the day.
    pub sharpe_variance: f64,
    /// The part of it that is chance.
    pub noise_variance: f64,
    /// The outcome of choosing trials by past results.
    pub overfit: Option<Overfit>,
    /// What the winners are compared with: `buy and hold` of all symbols, or the name of a series.
    pub benchmark: String,
    /// How figures of several symbols are pooled; `null` for one symbol.
    pub pool: Option<&'static str>,
    /// The winners, best first.
    pub winners: Vec<Winner>,
    /// Equity of the best over the whole period, thinned.
    pub equity: Vec<EquityMark>,
}

/// The findings about one winner. Sharpe ratios are by the year; what is not defined is `null`.
#[derive(Clone, Debug, Serialize)]
pub struct Winner {
    /// Number of the trial.
    pub trial: u64,
    /// Grade and checks.
    #[serde(flatten)]
    pub verdict: Verdict,
    /// The same in a sentence.
    pub sentence: String,
    /// Sharpe ratios under all conditions.
    pub sharpe: Sharpes,
    /// The first objective on all parts of the data.
    pub objective: Objectives,
    /// Moments of its daily returns, if they vary.
    pub moments: Option<Moments>,
    /// Probability that its true Sharpe ratio is above 0, had it been the only trial.
    pub probabilistic: Option<f64>,
    /// The same, given that it is the best of all trials.
    pub deflated: Option<f64>,
    /// The same with the variance between the trials in place of chance alone, as first published.
    pub deflated_by_spread: Option<f64>,
    /// The deflated probability for the returns beyond the market, r − β·h; `null` where sizing is by the unit.
    pub deflated_beyond_market: Option<f64>,
    /// Comparison with the benchmark; `null` where sizing is by the unit.
    pub market: Option<MarketParts>,
    /// Days it takes until its Sharpe ratio is above 0 with a confidence of 95 %.
    pub min_track_record_days: Option<f64>,
    /// The results around it.
    pub neighbors: Option<Plateau>,
    /// Mean return of its trades, with a confidence of 95 %.
    pub trades: Option<Interval>,
    /// Its figures on every part of the data.
    pub parts: Parts,
}

/// Sharpe ratios of a winner, by the year.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Sharpes {
    /// In sample.
    pub in_sample: Option<f64>,
    /// Out of sample.
    pub out_of_sample: Option<f64>,
    /// On the holdout.
    pub holdout: Option<f64>,
    /// With doubled costs.
    pub double_costs: Option<f64>,
    /// With entries one bar later.
    pub delayed: Option<f64>,
    /// With the other order of adverse levels and targets that the same bar touches.
    pub levels_swapped: Option<f64>,
}

/// A winner against the benchmark on all parts of the data; each is compared with what holding made in that part.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MarketParts {
    /// In sample.
    pub in_sample: AgainstMarket,
    /// Out of sample.
    pub out_of_sample: Option<AgainstMarket>,
    /// On the holdout.
    pub holdout: Option<AgainstMarket>,
}

/// The first objective of a winner on all parts of the data.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Objectives {
    /// In sample.
    pub in_sample: Option<f64>,
    /// Out of sample.
    pub out_of_sample: Option<f64>,
    /// On the holdout.
    pub holdout: Option<f64>,
}

impl Winner {
    /// The verdict in a line, the grade first.
    pub fn headline(&self) -> String {
        headline(self.trial, &self.sentence)
    }
}

/// The verdict on a trial in a line, the grade first: "Doubtful: trial 7 survives 5 of 8 checks".
pub fn headline(trial: u64, sentence: &str) -> String {
    match sentence.rsplit_once(": ") {
        Some((checks, grade)) => {
            let mut letters = grade.chars();
            let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
            format!("{first}{}: trial {trial} {checks}", letters.as_str())
        }
        None => format!("Trial {trial}: {sentence}"),
    }
}

/// How much of a value is lost, as a share of it; `None` where there is nothing to lose.
pub fn drop_of(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    let before = before.filter(|before| *before > 0.0)?;
    Some(1.0 - after? / before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_even_and_not_too_short() {
        assert_eq!([0, 23, 24, 31, 63, 64, 5000].map(n_blocks), [0, 0, 6, 6, 14, 16, 16]);
    }

    #[test]
    fn a_headline_begins_with_the_grade() {
        let found = headline(7, "survives 2 of 8 checks: probably luck");
        assert_eq!(found, "Probably luck: trial 7 survives 2 of 8 checks");
        assert_eq!(headline(7, "no check could be made"), "Trial 7: no check could be made");
    }

    #[test]
    fn a_drop_is_a_share_of_what_was_there() {
        assert_eq!(drop_of(Some(2.0), Some(1.5)), Some(0.25));
        assert_eq!(drop_of(Some(2.0), Some(-1.0)), Some(1.5));
        assert_eq!(drop_of(Some(-1.0), Some(1.0)), None);
        assert_eq!(drop_of(Some(1.0), None), None);
    }
}
