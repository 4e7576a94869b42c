//! What is kept of the trials of a search while it runs: the spread of all, and the blocks of a sample of them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use tidemill_backtest::segment::Role;
use tidemill_backtest::{Engine, METRICS, Metric, Outcome};
use tidemill_search::rng::Stream;
use tidemill_search::{Evaluated, Points, Scores};
use tidemill_verdict::{Blocks, TrialSpread};

/// Most trials whose blocks are kept.
const MOST_KEPT: usize = 4096;

/// One trial of the sample.
enum SampledTrial {
    /// Sum and sum of squares of its daily returns, by block of time.
    Blocks(Vec<[f64; 2]>),
    /// Its parameters: it was evaluated before the search was interrupted, and its blocks are not known any more.
    Row(Vec<f64>),
}

struct Sample {
    /// One of so many valid trials is kept; a power of two.
    one_of: u64,
    trials: BTreeMap<u64, SampledTrial>,
    /// Sharpe ratios of all valid trials, by the day.
    spread: TrialSpread,
}

/// What a verdict needs of all trials of a search, wherever they are evaluated.
///
/// Which trials are kept depends on their numbers alone, so that it is the same for every device and after every interruption.
pub struct TrialSample {
    /// Root of the days of a year.
    year_root: f64,
    sample: Mutex<Sample>,
}

impl TrialSample {
    /// Empty.
    pub fn new(engine: &Engine<'_>) -> Self {
        let sample = Sample { one_of: 1, trials: BTreeMap::new(), spread: TrialSpread::default() };
        Self { year_root: engine.year_days(Role::Train).sqrt(), sample: Mutex::new(sample) }
    }

    /// Offers the results of trials.
    pub fn offer_outcomes(&self, first_trial: u64, outcomes: &[Outcome], scores: &Scores) {
        self.offer(first_trial, scores, |at| {
            (!outcomes[at].blocks.is_empty()).then(|| SampledTrial::Blocks(outcomes[at].blocks.clone()))
        });
    }

    /// Offers trials that were evaluated before the search was interrupted.
    pub fn offer_rows(&self, first_trial: u64, points: &Points, scores: &Scores) {
        self.offer(first_trial, scores, |at| {
            let mut row = vec![0.0; points.n_params()];
            points.read_row(at, &mut row);
            Some(SampledTrial::Row(row))
        });
    }

    /// Counts the Sharpe ratios of trials; they must come in their order.
    pub fn count(&self, evaluated: &Evaluated) {
        let sharpe = METRICS.iter().position(|(metric, ..)| *metric == Metric::Sharpe);
        let Some(column) = sharpe.and_then(|at| evaluated.metrics.get(at)) else { return };
        let mut sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, sharpe) in column.iter().enumerate() {
            if evaluated.scores.first(at).value().is_some() {
                sample.spread.add(sharpe / self.year_root);
            }
        }
    }

    fn offer(&self, first_trial: u64, scores: &Scores, kept: impl Fn(usize) -> Option<SampledTrial>) {
        let mut sample = self.sample.lock().unwrap_or_else(PoisonError::into_inner);
        for at in 0..scores.len() {
            let trial = first_trial + at as u64;
            // An invalid trial can never win, so that it is none to choose from.
            if scores.first(at).value().is_none() || !place(trial).is_multiple_of(sample.one_of) {
                continue;
            }
            if let Some(kept) = kept(at) {
                sample.trials.insert(trial, kept);
            }
            if sample.trials.len() > MOST_KEPT {
                sample.one_of *= 2;
                let one_of = sample.one_of;
                sample.trials.retain(|trial, _| place(*trial).is_multiple_of(one_of));
            }
        }
    }

    /// The spread of all trials, and the blocks of the sample, those that are missing evaluated again.
    pub fn into_blocks(self, engine: &mut Engine<'_>) -> (TrialSpread, Blocks) {
        let sample = self.sample.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut missing: Option<Points> = None;
        for kept in sample.trials.values() {
            if let SampledTrial::Row(row) = kept {
                missing.get_or_insert_with(|| Points::new(row.len())).push(row);
            }
        }
        let again = missing.map(|points| engine.evaluate(&points)).unwrap_or_default();
        let mut again = again.into_iter();
        let mut blocks = Blocks::new(engine.block_days());
        for kept in sample.trials.into_values() {
            let sums = match kept {
                SampledTrial::Blocks(sums) => sums,
                SampledTrial::Row(_) => again.next().map(|outcome| outcome.blocks).unwrap_or_default(),
            };
            if sums.len() == blocks.n_blocks() {
                blocks.push(&sums);
            }
        }
        (sample.spread, blocks)
    }
}

/// A number of a trial that has nothing to do with its neighbours'.
fn place(trial: u64) -> u64 {
    Stream::new(0, 0).bits(trial)
}

#[cfg(test)]
mod tests {
    use tidemill_search::Score;

    use super::*;

    fn sample() -> TrialSample {
        let sample = Sample { one_of: 1, trials: BTreeMap::new(), spread: TrialSpread::default() };
        TrialSample { year_root: 2.0, sample: Mutex::new(sample) }
    }

    fn kept(sample: &TrialSample) -> Vec<u64> {
        sample.sample.lock().unwrap().trials.keys().copied().collect()
    }

    #[test]
    fn the_sample_depends_on_the_trials_alone() {
        let n = 20_000_u64;
        let scores = |range: std::ops::Range<u64>| {
            let score = |trial: u64| if trial.is_multiple_of(5) { Score::Invalid } else { Score::new(1.0) };
            Scores::single(&range.map(score).collect::<Vec<Score>>())
        };
        let row = |_: usize| Some(SampledTrial::Row(vec![0.0]));
        let at_once = sample();
        at_once.offer(0, &scores(0..n), row);
        let in_parts = sample();
        for from in (0..n).step_by(777).collect::<Vec<u64>>().into_iter().rev() {
            in_parts.offer(from, &scores(from..n.min(from + 777)), row);
        }
        assert_eq!(kept(&at_once), kept(&in_parts));
        let n_kept = kept(&at_once).len();
        assert!((MOST_KEPT / 3..=MOST_KEPT).contains(&n_kept), "{n_kept}");
        assert!(kept(&at_once).iter().all(|trial| trial % 5 != 0));
    }

    #[test]
    fn only_valid_trials_count() {
        let sample = sample();
        let metrics = METRICS
            .iter()
            .map(|(metric, ..)| if *metric == Metric::Sharpe { vec![2.0, 4.0, 100.0] } else { vec![0.0; 3] })
            .collect();
        let scores = Scores::single(&[Score::new(1.0), Score::new(1.0), Score::Invalid]);
        sample.count(&Evaluated { scores, metrics });
        let spread = sample.sample.lock().unwrap().spread;
        assert_eq!((spread.n(), spread.mean()), (2, 1.5));
    }
}
