//! Adds a series up: several blocks of bars side by side, each in the order of its bars.

use std::ops::Range;

use multiversion::multiversion;

use super::{BLOCK, Sums, is_available};
use crate::indicator::double_double::{DoubleDouble, two_prod};

/// Blocks added up side by side. Each waits for its own last sum most of the time; together they wait less.
const LANES: usize = 8;

/// Bars of each block that are added up before they are moved to where they belong.
const ROWS: usize = 32;

/// Fills the sums, `LANES` blocks at a time; moments that are not built stay as they are.
#[multiversion(targets("x86_64+avx512f", "x86_64+avx2"))]
pub(super) fn add_up<const SQUARES: bool, const INDEX: bool>(
    x: &[f64],
    sum: &mut Sums,
    squares: &mut Sums,
    index: &mut Sums,
) {
    let mut values = [[0.0; LANES]; ROWS];
    let [mut rows, mut rows_squares, mut rows_index] = [Rows::default(); 3];
    for start in (0..x.len()).step_by(LANES * BLOCK) {
        let n = (x.len() - start).min(LANES * BLOCK);
        let [mut total, mut total_squares, mut total_index] = [Totals::default(); 3];
        for first in (0..BLOCK.min(n)).step_by(ROWS) {
            // Bars of each block; what is missing at the end enters as anything and is not kept.
            let bars = |lane: usize| {
                let from = (lane * BLOCK + first).min(n);
                start + from..start + n.min(from + ROWS)
            };
            for lane in 0..LANES {
                for (row, &v) in values.iter_mut().zip(&x[bars(lane)]) {
                    row[lane] = if is_available(v) { v } else { 0.0 };
                }
            }
            for (row, v) in values.iter().enumerate() {
                total.each(|lane, total| total.add_f64(v[lane]));
                rows.set(row, &total);
                if SQUARES {
                    total_squares.each(|lane, total| total.add(two_prod(v[lane], v[lane])));
                    rows_squares.set(row, &total_squares);
                }
                if INDEX {
                    // Exact: whole numbers.
                    let i = (start + first + row) as f64;
                    total_index.each(|lane, total| total.add(two_prod(i + (lane * BLOCK) as f64, v[lane])));
                    rows_index.set(row, &total_index);
                }
            }
            for lane in 0..LANES {
                rows.move_lane(lane, sum, bars(lane));
                if SQUARES {
                    rows_squares.move_lane(lane, squares, bars(lane));
                }
                if INDEX {
                    rows_index.move_lane(lane, index, bars(lane));
                }
            }
        }
        sum.offset_blocks(start, n);
        if SQUARES {
            squares.offset_blocks(start, n);
        }
        if INDEX {
            index.offset_blocks(start, n);
        }
    }
}

/// The running totals of `LANES` blocks.
#[derive(Clone, Copy, Default)]
struct Totals {
    hi: [f64; LANES],
    lo: [f64; LANES],
}

impl Totals {
    #[inline(always)]
    fn each(&mut self, next: impl Fn(usize, DoubleDouble) -> DoubleDouble) {
        for lane in 0..LANES {
            let total = next(lane, DoubleDouble { hi: self.hi[lane], lo: self.lo[lane] });
            self.hi[lane] = total.hi;
            self.lo[lane] = total.lo;
        }
    }
}

/// Totals after some bars, the same bar of all blocks side by side.
#[derive(Clone, Copy, Default)]
struct Rows {
    hi: [[f64; LANES]; ROWS],
    lo: [[f64; LANES]; ROWS],
}

impl Rows {
    #[inline(always)]
    fn set(&mut self, row: usize, totals: &Totals) {
        self.hi[row] = totals.hi;
        self.lo[row] = totals.lo;
    }

    /// Writes one block's totals behind its `bars`.
    #[inline(always)]
    fn move_lane(&self, lane: usize, sums: &mut Sums, bars: Range<usize>) {
        for (to, row) in sums.hi[1..][bars.clone()].iter_mut().zip(&self.hi) {
            *to = row[lane];
        }
        for (to, row) in sums.lo[1..][bars].iter_mut().zip(&self.lo) {
            *to = row[lane];
        }
    }
}
