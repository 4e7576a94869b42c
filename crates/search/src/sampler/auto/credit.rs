//! What each member of the portfolio earned, and the share of the trials it gets for that.

use crate::sampler::auto::START;
use crate::score::Score;

/// Number of best scores that count. A trial earns credit by being among them when it is told.
const N_TOP: usize = 64;

/// Earnings and spendings lose half of their weight over this many batches.
const HALF_LIFE_BATCHES: f64 = 2.0;

/// The prior counts as this many batches: enough to survive one batch without credit for anybody.
const PRIOR_BATCHES: f64 = 0.5;

/// Keeps the accounts of all members.
#[derive(Clone, Debug)]
pub(super) struct Credit {
    /// The best scores told so far, best first.
    top: Vec<f64>,
    accounts: Vec<Account>,
    /// Trials of a usual batch, the unit of time.
    batch: f64,
}

/// What a member starts with, earned and spent.
#[derive(Clone, Debug)]
struct Account {
    start: f64,
    floor: f64,
    earned: f64,
    spent: f64,
    share: f64,
}

impl Credit {
    /// Members given by their share at the start and the share below which they never fall.
    pub(super) fn new(members: impl IntoIterator<Item = (f64, f64)>, batch: usize) -> Self {
        let account = |(start, floor)| Account { start, floor, earned: 0.0, spent: 0.0, share: start };
        let mut credit = Self {
            top: Vec::with_capacity(N_TOP + 1),
            accounts: members.into_iter().map(account).collect(),
            batch: batch.max(1) as f64,
        };
        credit.divide();
        credit
    }

    /// The share of each member; they sum to one.
    pub(super) fn shares(&self) -> impl Iterator<Item = f64> {
        self.accounts.iter().map(|account| account.share)
    }

    /// Books the scores of a batch with the members that proposed them; `None` means that no member proposed it.
    pub(super) fn book(&mut self, owners: &[Option<u8>], scores: &[f64]) {
        let n_own = owners.iter().flatten().count();
        let weight = libm::exp2(-(n_own as f64) / (self.batch * HALF_LIFE_BATCHES));
        for account in &mut self.accounts {
            account.earned *= weight;
            account.spent *= weight;
        }
        for owner in owners.iter().flatten() {
            self.accounts[usize::from(*owner)].spent += 1.0;
        }
        // Ranks are those after the whole batch, whatever the order within it.
        let mut entrants: Vec<(f64, Option<u8>)> = scores
            .iter()
            .copied()
            .zip(owners.iter().copied())
            .filter(|(score, _)| self.enters(*score))
            .collect();
        let better_first = |a: &f64, b: &f64| Score::new(*a).cmp_best_first(Score::new(*b));
        entrants.sort_by(|a, b| better_first(&a.0, &b.0));
        entrants.truncate(N_TOP);
        for (entrant_idx, (score, owner)) in entrants.iter().enumerate() {
            let rank = entrant_idx + self.top.partition_point(|top| top >= score);
            if rank >= N_TOP {
                break;
            }
            // Even filling earns nothing, or the first batch would pay for the rest of the study.
            if let Some(owner) = owner
                && *owner != START
            {
                self.accounts[usize::from(*owner)].earned += 1.0 / ((rank + 1) as f64).sqrt();
            }
        }
        self.top.extend(entrants.iter().map(|(score, _)| score));
        self.top.sort_by(better_first);
        self.top.truncate(N_TOP);
        self.divide();
    }

    fn enters(&self, score: f64) -> bool {
        let is_full = self.top.len() == N_TOP;
        !score.is_nan() && (!is_full || self.top.last().is_none_or(|worst| score > *worst))
    }

    /// Sets the shares: the floors first, the rest by what a trial of each member earned.
    fn divide(&mut self) {
        let (earned, spent) = self
            .accounts
            .iter()
            .fold((0.0, 0.0), |(earned, spent), account| (earned + account.earned, spent + account.spent));
        // Before anything was earned every trial is worth the same, and the shares are those of the start.
        let usual = if earned > 0.0 && spent > 0.0 { earned / spent } else { 1.0 };
        let prior_spent = PRIOR_BATCHES * self.batch / self.accounts.len() as f64;
        let n_members = self.accounts.len() as f64;
        let pay = |account: &Account| {
            let prior_earned = prior_spent * usual * account.start * n_members;
            (account.earned + prior_earned) / (account.spent + prior_spent)
        };
        let total_pay: f64 = self.accounts.iter().map(pay).sum();
        let total_floor: f64 = self.accounts.iter().map(|account| account.floor).sum();
        for account in &mut self.accounts {
            let part = if total_pay > 0.0 { pay(account) / total_pay } else { account.start };
            account.share = account.floor + (1.0 - total_floor) * part;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credit() -> Credit {
        Credit::new([(0.02, 0.02), (0.49, 0.1), (0.49, 0.1)], 10)
    }

    fn shares(credit: &Credit) -> Vec<f64> {
        credit.shares().collect()
    }

    #[test]
    fn shares_follow_what_was_earned_per_trial_and_keep_their_floors() {
        let mut credit = credit();
        for round in 0..50 {
            let best = f64::from(round);
            credit.book(&[Some(1), Some(2), Some(2), Some(2)], &[best, -1e9, f64::NAN, -1e9]);
        }
        let shares = shares(&credit);
        assert!(shares[1] > 0.7 && shares[2] >= 0.1, "{shares:?}");
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn strangers_the_start_and_invalid_trials_earn_nothing() {
        let mut credit = credit();
        let before = shares(&credit);
        credit.book(&[None, None, Some(START)], &[5.0, 6.0, 7.0]);
        credit.book(&[None], &[f64::NAN]);
        assert!(credit.accounts.iter().all(|account| account.earned == 0.0));
        assert!(shares(&credit)[1] == shares(&credit)[2] && before[1] == before[2]);
    }
}
