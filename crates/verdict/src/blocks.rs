//! Returns of many trials, summed by block of time.

/// Sums of the returns of trials, and of their squares, in a few blocks of time.
///
/// The blocks are the same stretches of days for all trials. From the two sums follows the Sharpe ratio of any union of blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocks {
    /// Days of each block.
    days: Vec<u32>,
    /// By block, one value per trial.
    sums: Vec<Vec<f64>>,
    squares: Vec<Vec<f64>>,
}

impl Blocks {
    /// No trials yet, over blocks of so many days.
    pub fn new(days: &[u32]) -> Self {
        let empty = || vec![Vec::new(); days.len()];
        Self { days: days.to_vec(), sums: empty(), squares: empty() }
    }

    /// Adds a trial: by block, the sum of its daily returns and that of their squares.
    ///
    /// # Panics
    ///
    /// If there is not one pair per block, which is a mistake of the caller.
    pub fn push(&mut self, blocks: &[[f64; 2]]) {
        assert_eq!(blocks.len(), self.days.len(), "a trial has one pair of sums per block");
        for (block, [sum, square]) in blocks.iter().enumerate() {
            self.sums[block].push(*sum);
            self.squares[block].push(*square);
        }
    }

    /// Adds a trial by its daily returns, cut into the blocks; missing days count as 0.
    pub fn push_returns(&mut self, returns: &[f64]) {
        let mut left = returns;
        for block in 0..self.days.len() {
            let (now, rest) = left.split_at(left.len().min(self.days[block] as usize));
            self.sums[block].push(now.iter().sum());
            self.squares[block].push(now.iter().map(|value| value * value).sum());
            left = rest;
        }
    }

    /// Number of trials.
    pub fn len(&self) -> usize {
        self.sums.first().map_or(0, Vec::len)
    }

    /// Whether there is no trial.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.days.len()
    }

    /// Days of each block.
    pub fn days(&self) -> &[u32] {
        &self.days
    }

    /// Sums of one block, by trial.
    pub fn sums(&self, block: usize) -> &[f64] {
        &self.sums[block]
    }

    /// Sums of squares of one block, by trial.
    pub fn squares(&self, block: usize) -> &[f64] {
        &self.squares[block]
    }

    /// Sharpe ratio of a trial over the blocks of a set (bit `b` for block `b`), by the day; 0 where it has no variance.
    pub fn sharpe(&self, trial: usize, set: u32) -> f64 {
        let (mut n, mut sum, mut square) = (0.0, 0.0, 0.0);
        for block in (0..self.days.len()).filter(|block| set >> block & 1 == 1) {
            n += f64::from(self.days[block]);
            sum += self.sums[block][trial];
            square += self.squares[block][trial];
        }
        let spread = n * square - sum * sum;
        // Rounding leaves about 1e-16 of n·Σx² where all returns are equal.
        if n < 2.0 || spread <= 1e-13 * (n * square) {
            return 0.0;
        }
        sum / libm::sqrt(spread * n / (n - 1.0))
    }
}

/// Cuts so many days into blocks of nearly equal length, the earlier ones no longer than the later by more than a day.
pub fn block_lengths(n_days: usize, n_blocks: usize) -> Vec<u32> {
    (0..n_blocks).map(|at| (n_days * (at + 1) / n_blocks - n_days * at / n_blocks) as u32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Moments;

    #[test]
    fn the_ratio_of_all_blocks_is_that_of_the_returns() {
        let returns: Vec<f64> = (0..97).map(|at| 0.001 + 0.01 * f64::from((at * 31) % 11 - 5)).collect();
        let mut blocks = Blocks::new(&block_lengths(97, 8));
        blocks.push_returns(&returns);
        let wanted = Moments::new(&returns).unwrap().sharpe;
        assert!((blocks.sharpe(0, 0xff) - wanted).abs() < 1e-13);
        let first = &returns[..blocks.days()[0] as usize + blocks.days()[1] as usize];
        assert!((blocks.sharpe(0, 0b11) - Moments::new(first).unwrap().sharpe).abs() < 1e-13);
        assert_eq!(blocks.sharpe(0, 0), 0.0);
    }

    #[test]
    fn lengths_cover_all_days() {
        for (n_days, n_blocks) in [(16, 16), (100, 16), (7, 8), (0, 4)] {
            let lengths = block_lengths(n_days, n_blocks);
            assert_eq!(lengths.iter().sum::<u32>() as usize, n_days);
            assert!(lengths.iter().max().unwrap() - lengths.iter().min().unwrap() <= 1);
        }
    }
}
