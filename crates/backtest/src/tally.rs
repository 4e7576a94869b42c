//! What a walk counts: the accumulators of one trial over one segment.
//!
//! Sums only, in the order of time, so that a GPU can keep them too; roots and powers are taken on the host by [`crate::metric`].

use tidemill_gpu::kernel_structs;

kernel_structs! {
    pub(crate) const LAYOUTS;

    /// Accumulators of one trial over one segment. Its layout is that of `Tally` in `exec/book.cu`.
    #[derive(Debug, Default, PartialEq)]
    pub struct Tally {
        /// Closed trades.
        pub trades: u32,
        /// Those with a profit after costs.
        pub wins: u32,
        /// Those on the long side.
        pub longs: u32,
        /// Those closed only because the data ended.
        pub open_at_end: u32,
        /// Days marked.
        pub days: u32,
        /// Most days in a row below a former peak.
        pub longest_drawdown: u32,
        /// Trades whose exit depends on which extreme of a bar came first.
        pub ambiguous: u32,
        /// Entries not taken because a level lay on the wrong side of the fill.
        pub skipped: u32,
        /// Bars from entry to exit, all trades together.
        pub bars_held: u64,
        /// Bars of the segment.
        pub bars: u64,
        /// Profit per unit, in price units.
        pub sum_pnl: f64,
        /// The winners' part of it.
        pub sum_win: f64,
        /// The losers' part of it, not positive.
        pub sum_loss: f64,
        /// Returns of the trades.
        pub sum_ret: f64,
        /// The winners' part of them.
        pub sum_ret_win: f64,
        /// The losers' part of them, not positive.
        pub sum_ret_loss: f64,
        /// Results in multiples of risk.
        pub sum_r: f64,
        /// Their squares.
        pub sum_r2: f64,
        /// Deepest fall of the cumulated profit from its peak, the peak starting at 0.
        pub drawdown_pnl: f64,
        /// The same with the peak starting at the first trade.
        pub drawdown_pnl_ref: f64,
        /// Equity at the end.
        pub equity: f64,
        /// Deepest relative fall of equity from its peak, over daily marks and exits.
        pub drawdown: f64,
        /// The same over daily marks alone.
        pub drawdown_daily: f64,
        /// The same with open positions marked at their adverse extreme of every bar.
        pub drawdown_bar: f64,
        /// Daily returns.
        pub sum_daily: f64,
        /// Their squares.
        pub sum_daily2: f64,
        /// Squares of the negative ones.
        pub sum_down2: f64,
    }
}

impl Tally {
    /// The bits of all fields, with one NaN for all: what "the same result" means.
    pub fn bits(&self) -> [u64; size_of::<Self>() / 8] {
        let words: [u64; size_of::<Self>() / 8] = bytemuck::cast(*self);
        let canonical = |(at, word): (usize, u64)| {
            // The first words are counts.
            let is_number = at >= size_of::<[u32; 8]>() / 8 + 2;
            if is_number && f64::from_bits(word).is_nan() { f64::NAN.to_bits() } else { word }
        };
        let mut at = 0;
        words.map(|word| {
            at += 1;
            canonical((at - 1, word))
        })
    }

    /// All fields by name, counts as numbers; for showing in what two results differ.
    pub fn fields(&self) -> [(&'static str, f64); 27] {
        [
            ("trades", f64::from(self.trades)),
            ("wins", f64::from(self.wins)),
            ("longs", f64::from(self.longs)),
            ("open_at_end", f64::from(self.open_at_end)),
            ("days", f64::from(self.days)),
            ("longest_drawdown", f64::from(self.longest_drawdown)),
            ("ambiguous", f64::from(self.ambiguous)),
            ("skipped", f64::from(self.skipped)),
            ("bars_held", self.bars_held as f64),
            ("bars", self.bars as f64),
            ("sum_pnl", self.sum_pnl),
            ("sum_win", self.sum_win),
            ("sum_loss", self.sum_loss),
            ("sum_ret", self.sum_ret),
            ("sum_ret_win", self.sum_ret_win),
            ("sum_ret_loss", self.sum_ret_loss),
            ("sum_r", self.sum_r),
            ("sum_r2", self.sum_r2),
            ("drawdown_pnl", self.drawdown_pnl),
            ("drawdown_pnl_ref", self.drawdown_pnl_ref),
            ("equity", self.equity),
            ("drawdown", self.drawdown),
            ("drawdown_daily", self.drawdown_daily),
            ("drawdown_bar", self.drawdown_bar),
            ("sum_daily", self.sum_daily),
            ("sum_daily2", self.sum_daily2),
            ("sum_down2", self.sum_down2),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_name() {
        // A tally whose words all differ: each name shows another of them.
        let mut words = [0_u8; size_of::<Tally>()];
        let (counts, rest) = words.split_at_mut(8 * 4);
        counts.chunks_mut(4).zip(1_u32..).for_each(|(word, n)| word.copy_from_slice(&n.to_ne_bytes()));
        let (lengths, numbers) = rest.split_at_mut(2 * 8);
        lengths.chunks_mut(8).zip(9_u64..).for_each(|(word, n)| word.copy_from_slice(&n.to_ne_bytes()));
        numbers
            .chunks_mut(8)
            .zip(11_u32..)
            .for_each(|(word, n)| word.copy_from_slice(&f64::from(n).to_ne_bytes()));
        let tally: Tally = bytemuck::pod_read_unaligned(&words);
        let values: Vec<f64> = tally.fields().iter().map(|(_, value)| *value).collect();
        assert_eq!(values, (1..=27).map(f64::from).collect::<Vec<_>>());
        assert_eq!(size_of::<Tally>(), 8 * 4 + 19 * 8, "all words have a name");
    }

    #[test]
    fn bits_know_one_nan_and_two_zeros() {
        let with = |equity: f64| Tally { equity, ..Tally::default() }.bits();
        assert_eq!(with(f64::NAN), with(-f64::NAN));
        assert_ne!(with(0.0), with(-0.0));
        let counted = |wins: u32| Tally { trades: u32::MAX, wins, ..Tally::default() }.bits();
        assert_ne!(counted(0x7ff8_0000), counted(0x7ff8_0001), "counts are never taken for a NaN");
    }
}
