//! The probability of backtest overfitting, by combinatorially symmetric cross-validation.
//!
//! Cut time into S blocks. For every choice of half of them: which trial was best there, and how does it rank among all trials on the
//! other half? If the best of one half is as often below the median of the other as above it, choosing by past results is a lottery.
//! Source: Bailey, Borwein, López de Prado, Zhu, "The Probability of Backtest Overfitting" (2015).
//!
//! The ratio of a trial over a set of blocks orders as S·|S| ÷ Q, with S the sum of its returns and Q that of their squares, because
//! the number of days is the same for all trials. Sums of any set are those of two halves of it, from tables of a few trials at a time
//! that stay in the cache. A first pass finds the best trial of every set, a second one counts who is below it on the complement; both
//! run over trials side by side and give the same whatever the number of threads.

use multiversion::multiversion;
use rayon::prelude::*;
use serde::Serialize;

use crate::blocks::Blocks;

/// Most blocks: beyond it there are more combinations than anyone waits for.
const MAX_BLOCKS: usize = 20;

/// Trials whose tables are made at a time.
const TILE: usize = 32;

/// The outcome of choosing trials by past results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overfit {
    /// Share of the combinations in which the best trial of one half was no better than the median of the other.
    pub probability: f64,
    /// Share of the combinations in which it lost money there.
    pub loss_probability: f64,
    /// Slope of its Sharpe ratio on the other half over that on its own: 1 keeps all, 0 nothing.
    pub slope: f64,
    /// Mean logit of its relative rank: 0 for a lottery, above it the better.
    pub mean_logit: f64,
    /// Number of trials.
    pub n_trials: usize,
    /// Number of blocks.
    pub n_blocks: usize,
    /// Number of combinations.
    pub n_combinations: usize,
}

/// Computes the probability; `None` for fewer than two trials, an odd number of blocks, or more than `MAX_BLOCKS`.
pub fn overfit(blocks: &Blocks) -> Option<Overfit> {
    let n_blocks = blocks.n_blocks();
    let n_trials = blocks.len();
    if n_trials < 2 || n_blocks < 2 || n_blocks % 2 == 1 || n_blocks > MAX_BLOCKS {
        return None;
    }
    let sets: Vec<u32> =
        (0..1_u32 << n_blocks).filter(|set| set.count_ones() as usize == n_blocks / 2).collect();
    let n_sets = sets.len();
    // In ascending order the complement of a set stands as far from the end as the set from the beginning.
    let limits: Vec<f64> = sets.iter().map(|set| limit(blocks, *set)).collect();

    let tiles: Vec<usize> = (0..n_trials).step_by(TILE).collect();
    let per_job = tiles.len().div_ceil(4 * rayon::current_num_threads()).max(1);
    let best = tiles
        .par_chunks(per_job)
        .map(|tiles| {
            let mut tables = Tables::new(n_blocks);
            let mut best = vec![(f64::NEG_INFINITY, 0_usize); n_sets];
            for first in tiles {
                tables.fill(blocks, *first);
                find_best(&tables, &sets, &limits, *first, &mut best);
            }
            best
        })
        .reduce_with(|mut a, b| {
            // Jobs are in the order of trials, and of equals the earlier one stays.
            a.iter_mut().zip(b).for_each(|(a, b)| *a = if b.0 > a.0 { b } else { *a });
            a
        })?;
    let wanted: Vec<f64> = (0..n_sets)
        .map(|at| value(blocks, best[at].1, sets[n_sets - 1 - at], limits[n_sets - 1 - at]))
        .collect();
    let counts = tiles
        .par_chunks(per_job)
        .map(|tiles| {
            let mut tables = Tables::new(n_blocks);
            let mut counts = vec![[0_u32; 2]; n_sets];
            for first in tiles {
                tables.fill(blocks, *first);
                count(&tables, &sets, &limits, &wanted, &mut counts);
            }
            counts
        })
        .reduce_with(|mut a, b| {
            a.iter_mut().zip(b).for_each(|(a, b)| *a = [a[0] + b[0], a[1] + b[1]]);
            a
        })?;

    let chosen: Vec<(f64, f64)> = (0..n_sets)
        .map(|at| {
            let trial = best[at].1;
            (blocks.sharpe(trial, sets[at]), blocks.sharpe(trial, sets[n_sets - 1 - at]))
        })
        .collect();
    let logits: Vec<f64> = counts
        .iter()
        .map(|[below, equal]| {
            // The mean rank of equals, from 1.
            let rank = f64::from(*below) + (f64::from(*equal) + 1.0) / 2.0;
            let place = rank / (n_trials as f64 + 1.0);
            libm::log(place / (1.0 - place))
        })
        .collect();
    let share = |count: usize| count as f64 / n_sets as f64;
    Some(Overfit {
        probability: share(logits.iter().filter(|logit| **logit <= 0.0).count()),
        loss_probability: share(chosen.iter().filter(|(_, outside)| *outside < 0.0).count()),
        slope: slope(&chosen),
        mean_logit: logits.iter().sum::<f64>() / n_sets as f64,
        n_trials,
        n_blocks,
        n_combinations: n_sets,
    })
}

/// Slope of the least-squares line; 0 where the first numbers do not vary.
fn slope(pairs: &[(f64, f64)]) -> f64 {
    let n = pairs.len() as f64;
    let mean_x = pairs.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = pairs.iter().map(|(_, y)| y).sum::<f64>() / n;
    let (mut xx, mut xy) = (0.0, 0.0);
    for (x, y) in pairs {
        xx += (x - mean_x) * (x - mean_x);
        xy += (x - mean_x) * (y - mean_y);
    }
    if xx > 0.0 { xy / xx } else { 0.0 }
}

/// S² of a set must stay below this times Q, or the returns do not vary and there is no ratio.
fn limit(blocks: &Blocks, set: u32) -> f64 {
    let days = blocks.days().iter().enumerate().filter(|(block, _)| set >> block & 1 == 1);
    days.map(|(_, days)| f64::from(*days)).sum::<f64>() * (1.0 - 1e-13)
}

/// What orders trials over a set of blocks as their Sharpe ratios do; 0 where there is no ratio.
#[inline(always)]
fn order(sum: f64, square: f64, limit: f64) -> f64 {
    let value = sum * sum.abs() / square;
    if sum * sum < limit * square { value } else { 0.0 }
}

/// [`order`] of one trial over one set, with the sums in the order of [`Tables`].
fn value(blocks: &Blocks, trial: usize, set: u32, limit: f64) -> f64 {
    let half = blocks.n_blocks() / 2;
    let part = |from: usize, column: &dyn Fn(usize) -> f64| {
        let within = (set >> from) & ((1 << half) - 1);
        (0..half).rev().filter(|at| within >> at & 1 == 1).fold(0.0, |sum, at| sum + column(from + at))
    };
    let sums = |block: usize| blocks.sums(block)[trial];
    let squares = |block: usize| blocks.squares(block)[trial];
    order(part(0, &sums) + part(half, &sums), part(0, &squares) + part(half, &squares), limit)
}

/// A few trials: sums of every set of the first and of the second half of the blocks.
struct Tables {
    half: usize,
    n_trials: usize,
    /// First and second half; by set.
    sums: [Vec<[f64; TILE]>; 2],
    squares: [Vec<[f64; TILE]>; 2],
}

impl Tables {
    fn new(n_blocks: usize) -> Self {
        let half = n_blocks / 2;
        let empty = || [(); 2].map(|()| vec![[0.0; TILE]; 1 << half]);
        Self { half, n_trials: 0, sums: empty(), squares: empty() }
    }

    /// Reads the trials from `first` on; places beyond the last one stay 0.
    fn fill(&mut self, blocks: &Blocks, first: usize) {
        let range = first..blocks.len().min(first + TILE);
        self.n_trials = range.len();
        let half = self.half;
        let fill = |tables: &mut [Vec<[f64; TILE]>; 2], column: &dyn Fn(usize) -> Vec<f64>| {
            for (part, table) in tables.iter_mut().enumerate() {
                let columns: Vec<Vec<f64>> = (0..half).map(|at| column(part * half + at)).collect();
                for set in 1..table.len() {
                    // A set is a smaller one and its lowest block.
                    let mut sums = table[set & (set - 1)];
                    let added = &columns[set.trailing_zeros() as usize];
                    sums.iter_mut().zip(added).for_each(|(sum, value)| *sum += value);
                    table[set] = sums;
                }
            }
        };
        let padded = |column: &[f64]| {
            let mut values = column[range.clone()].to_vec();
            values.resize(TILE, 0.0);
            values
        };
        fill(&mut self.sums, &|block| padded(blocks.sums(block)));
        fill(&mut self.squares, &|block| padded(blocks.squares(block)));
    }
}

/// Keeps, for every set, the best trial so far.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn find_best(tables: &Tables, sets: &[u32], limits: &[f64], first: usize, best: &mut [(f64, usize)]) {
    let low_bits = (1_u32 << tables.half) - 1;
    for ((set, limit), best) in sets.iter().zip(limits).zip(best) {
        let (low, high) = ((set & low_bits) as usize, (set >> tables.half) as usize);
        let (sums, more_sums) = (&tables.sums[0][low], &tables.sums[1][high]);
        let (squares, more_squares) = (&tables.squares[0][low], &tables.squares[1][high]);
        let mut values = [0.0; TILE];
        for at in 0..TILE {
            values[at] = order(sums[at] + more_sums[at], squares[at] + more_squares[at], *limit);
        }
        let values = &values[..tables.n_trials];
        let most =
            values.iter().fold(f64::NEG_INFINITY, |most, value| if *value > most { *value } else { most });
        if most > best.0
            && let Some(at) = values.iter().position(|value| *value == most)
        {
            *best = (most, first + at);
        }
    }
}

/// Counts, for every set, the trials that are below the wanted value on its complement, and those that equal it.
#[multiversion(targets("x86_64+avx512f+avx512dq+avx512bw+avx512vl", "x86_64+avx2"))]
fn count(tables: &Tables, sets: &[u32], limits: &[f64], wanted: &[f64], counts: &mut [[u32; 2]]) {
    let low_bits = (1_u32 << tables.half) - 1;
    for (((set, limit), wanted), counts) in sets.iter().zip(limits).rev().zip(wanted).zip(counts) {
        let (low, high) = ((set & low_bits) as usize, (set >> tables.half) as usize);
        let (sums, more_sums) = (&tables.sums[0][low], &tables.sums[1][high]);
        let (squares, more_squares) = (&tables.squares[0][low], &tables.squares[1][high]);
        let mut values = [0.0; TILE];
        for at in 0..TILE {
            values[at] = order(sums[at] + more_sums[at], squares[at] + more_squares[at], *limit);
        }
        let (mut below, mut equal) = (0_u32, 0_u32);
        for value in &values[..tables.n_trials] {
            below += u32::from(*value < *wanted);
            equal += u32::from(*value == *wanted);
        }
        counts[0] += below;
        counts[1] += equal;
    }
}

#[cfg(test)]
mod tests {
    use tidemill_search::rng::Stream;

    use super::*;
    use crate::blocks::block_lengths;

    /// Trials of uniform noise around a mean that depends on the trial.
    fn noise(n_trials: usize, n_days: usize, n_blocks: usize, mean: impl Fn(usize) -> f64) -> Blocks {
        let mut blocks = Blocks::new(&block_lengths(n_days, n_blocks));
        for trial in 0..n_trials {
            let stream = Stream::new(7, trial as u64);
            let returns: Vec<f64> =
                (0..n_days).map(|day| stream.unit(day as u64) - 0.5 + mean(trial)).collect();
            blocks.push_returns(&returns);
        }
        blocks
    }

    #[test]
    fn noise_is_a_lottery_and_an_edge_is_not() {
        let none = overfit(&noise(300, 640, 16, |_| 0.0)).unwrap();
        assert_eq!(none.n_combinations, 12_870);
        assert!((0.2..0.8).contains(&none.probability), "{none:?}");
        let edge = overfit(&noise(300, 640, 16, |trial| if trial == 123 { 0.1 } else { 0.0 })).unwrap();
        assert!(edge.probability < 0.01, "{edge:?}");
        assert!(edge.loss_probability < 0.01 && edge.mean_logit > 3.0, "{edge:?}");
    }

    #[test]
    fn it_does_not_depend_on_the_number_of_threads() {
        let blocks = noise(333, 200, 10, |trial| trial as f64 * 1e-4);
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| overfit(&blocks)).unwrap()
        };
        assert_eq!(on(1), on(3));
    }

    #[test]
    fn trials_that_never_trade_are_equal_and_no_reason_to_trust() {
        let mut blocks = Blocks::new(&[10; 4]);
        for _ in 0..40 {
            blocks.push(&[[0.0; 2]; 4]);
        }
        let all_alike = overfit(&blocks).unwrap();
        assert_eq!((all_alike.probability, all_alike.mean_logit), (1.0, 0.0));
    }

    #[test]
    fn what_makes_no_sense_has_no_probability() {
        assert_eq!(overfit(&Blocks::new(&[5; 16])), None);
        assert_eq!(overfit(&noise(1, 64, 16, |_| 0.0)), None);
        assert_eq!(overfit(&noise(5, 64, 3, |_| 0.0)), None);
        assert_eq!(overfit(&noise(5, 64, MAX_BLOCKS + 2, |_| 0.0)), None);
    }
}
