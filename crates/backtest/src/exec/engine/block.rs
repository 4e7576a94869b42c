//! Results by block of time, for statistics over all trials of a search.
//!
//! The days of the pool that counts are cut into blocks of equal length. Of each trial and block the sum of its daily returns and that of
//! their squares are kept, in the order of time, so that a device gives the same bits. Positions run on across the blocks: a block is a
//! way to look at one result, where a segment is a result of its own.

/// Which day of the calendar belongs to which block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BlockPlan {
    /// By day of the calendar; days outside the pool are never read.
    pub(crate) block_of: Vec<u32>,
    /// Days of each block; empty if no blocks are kept.
    pub(crate) days: Vec<u32>,
    /// First day of the calendar after each block.
    ends: Vec<u32>,
}

/// The block that days are being added to, of days that come in the order of time.
///
/// Its sums are kept here and not in their place, so that adding a day looks nothing up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Running {
    /// First day of the symbol that no longer belongs to it; 0 before the first day.
    end: u32,
    block: u32,
    sum: f64,
    square: f64,
}

impl Running {
    /// Adds the return of a day of a symbol with this calendar.
    #[inline(always)]
    pub(crate) fn add(
        &mut self,
        plan: &BlockPlan,
        calendar: &[u32],
        sums: &mut [[f64; 2]],
        day: u32,
        change: f64,
    ) {
        if day >= self.end {
            self.go_on(plan, calendar, sums, day);
        }
        self.sum += change;
        self.square += change * change;
    }

    /// Puts the sums into their place, and takes up the block of this day.
    #[cold]
    fn go_on(&mut self, plan: &BlockPlan, calendar: &[u32], sums: &mut [[f64; 2]], day: u32) {
        self.put(sums);
        self.block = plan.block_of[calendar[day as usize] as usize];
        [self.sum, self.square] = sums[self.block as usize];
        let end = plan.ends[self.block as usize];
        self.end = calendar.partition_point(|of| *of < end) as u32;
    }

    /// Puts the sums into their place.
    pub(crate) fn put(&self, sums: &mut [[f64; 2]]) {
        if self.end > 0 {
            sums[self.block as usize] = [self.sum, self.square];
        }
    }
}

impl BlockPlan {
    /// Cuts the days `first..=last` of a calendar of `n_days`.
    pub(crate) fn new((first, last): (u32, u32), n_days: usize, n_blocks: usize) -> Self {
        if first > last {
            return Self::default();
        }
        let length = u64::from(last - first) + 1;
        let begin = |block: usize| length * block as u64 / n_blocks as u64;
        let mut block_of = vec![0; n_days];
        for block in 0..n_blocks {
            let days = u64::from(first) + begin(block)..u64::from(first) + begin(block + 1);
            days.for_each(|day| block_of[day as usize] = block as u32);
        }
        let days = (0..n_blocks).map(|block| (begin(block + 1) - begin(block)) as u32).collect();
        let ends = (0..n_blocks).map(|block| first + begin(block + 1) as u32).collect();
        Self { block_of, days, ends }
    }

    /// No trades yet.
    pub(crate) fn sums(&self) -> Vec<[f64; 2]> {
        vec![[0.0; 2]; self.days.len()]
    }

    /// Adds a daily return to its block, if blocks are kept.
    #[inline(always)]
    pub(crate) fn add(&self, sums: &mut [[f64; 2]], day: u32, change: f64) {
        if !sums.is_empty() {
            let [sum, square] = &mut sums[self.block_of[day as usize] as usize];
            *sum += change;
            *square += change * change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_the_pool_belongs_to_one_block() {
        let plan = BlockPlan::new((3, 24), 30, 4);
        assert_eq!(plan.days, [5, 6, 5, 6]);
        for (block, days) in plan.days.iter().enumerate() {
            let of = &plan.block_of[3..=24];
            assert_eq!(of.iter().filter(|of| **of == block as u32).count(), *days as usize);
            assert!(of.is_sorted());
        }
        assert_eq!(BlockPlan::new((u32::MAX, 0), 5, 4), BlockPlan::default());
    }

    #[test]
    fn days_in_the_order_of_time_give_the_same_sums_without_looking_up() {
        // More blocks than days leave some empty; a symbol may lack days of the calendar.
        for (n_blocks, every) in [(1, 1), (4, 1), (4, 3), (16, 2), (40, 1)] {
            let plan = BlockPlan::new((3, 24), 30, n_blocks);
            let calendar: Vec<u32> = (0..30).filter(|day| day % every == 0).collect();
            let (mut wanted, mut found) = (plan.sums(), plan.sums());
            let mut running = Running::default();
            for (day, of) in calendar.iter().enumerate().filter(|(_, of)| (3..=24).contains(*of)) {
                let change = 0.1 / f64::from(of + 1) - 0.01;
                plan.add(&mut wanted, *of, change);
                running.add(&plan, &calendar, &mut found, day as u32, change);
            }
            running.put(&mut found);
            assert_eq!(wanted, found, "{n_blocks} blocks");
        }
    }
}
