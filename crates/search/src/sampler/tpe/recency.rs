//! How much an observation weighs by its age.

use super::best::BestTrial;

/// The newest trials that weigh the same.
const N_NEWEST: u64 = 25;

/// The weight of trials that are not good: one for the newest, and falling linearly towards the oldest.
#[derive(Clone, Debug)]
pub(super) struct Recency {
    /// The numbers of the good trials, ascending.
    good: Vec<u64>,
    n_older: u64,
    oldest: f64,
    rise: f64,
}

impl Recency {
    pub(super) fn new(n_told: u64, good: &[BestTrial]) -> Self {
        let mut good: Vec<u64> = good.iter().map(|trial| trial.number).collect();
        good.sort_unstable();
        let n_others = n_told - good.len() as u64;
        let n_older = n_others.saturating_sub(N_NEWEST);
        let oldest = 1.0 / n_others as f64;
        let rise = if n_older > 1 { (1.0 - oldest) / (n_older - 1) as f64 } else { 0.0 };
        Self { good, n_older, oldest, rise }
    }

    /// The weights of the trials with these numbers, in order; zero for good ones.
    pub(super) fn weights(&self, numbers: impl Iterator<Item = u64>) -> impl Iterator<Item = f64> {
        let mut n_good_before = 0;
        numbers.map(move |number| {
            while self.good.get(n_good_before).is_some_and(|good| *good < number) {
                n_good_before += 1;
            }
            if self.good.get(n_good_before) == Some(&number) {
                return 0.0;
            }
            let rank = number - n_good_before as u64;
            if rank < self.n_older { self.oldest + self.rise * rank as f64 } else { 1.0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::Points;
    use crate::sampler::tpe::best::BestTrials;
    use crate::score::Scores;

    #[test]
    fn the_newest_weigh_one_the_oldest_least_and_good_ones_nothing() {
        let mut best = BestTrials::new(2);
        let scores = (0..102).map(|number| if number == 3 || number == 50 { 1.0 } else { 0.0 }).collect();
        best.offer(
            0,
            &Points::from_columns(102, vec![vec![0.0; 102]]),
            &Scores::from_columns(102, vec![scores]),
        );
        let recency = Recency::new(102, best.first(2));
        let weights: Vec<f64> = recency.weights(0..102).collect();
        assert_eq!((weights[3], weights[50]), (0.0, 0.0));
        assert!((weights[0] - 0.01).abs() < 1e-12);
        assert!(weights[77..].iter().all(|weight| *weight == 1.0));
        let older: Vec<f64> = weights[..77].iter().copied().filter(|weight| *weight > 0.0).collect();
        assert!((older[1] - older[0] - 0.99 / 74.0).abs() < 1e-12);
        assert!(older.windows(2).all(|pair| pair[0] < pair[1]));
        // A window of the history has the same weights.
        assert!(recency.weights(40..102).eq(weights[40..].iter().copied()));
        // Few trials all weigh the same.
        assert!(Recency::new(20, best.first(1)).weights(10..20).all(|weight| weight == 1.0));
    }
}
