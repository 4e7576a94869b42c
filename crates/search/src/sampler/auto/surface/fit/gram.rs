//! The products of all columns of a matrix with each other.
//!
//! A least-squares problem of a few hundred columns is solved several times a second for each of its targets; with these products at hand a
//! round of the solution no longer looks at the trials. Each product is formed in the same order whatever the processor and the threads.

use rayon::prelude::*;

use crate::widest::widest;

/// Parts in which a sum of products is formed, which a processor adds side by side.
pub(super) const N_PARTS: usize = 8;

/// Columns whose products with as many others are formed at once, so that a number that is read is used several times.
const BLOCK: usize = 4;

/// Blocks that go along all others together, so that those are fetched from afar once for all of them.
const STRIP: usize = 4;

/// Blocks that a strip goes along before another thread may take the rest.
const RUN: usize = 16;

/// Rows of a block that are looked at before those of the next one, so that a strip and a block lie close to the processor together.
const TILE: usize = 32;

/// Up to so many products are formed before another thread is awake.
const MAX_ALONE: usize = 1 << 19;

/// Columns of a panel: so many sums stay in the processor while the rows of the panel are added up. A multiple of [`BLOCK`].
const LANES: usize = 32;

/// Right-hand sides of which all products are formed together.
const N_SIDES: usize = 2;

/// Numbers of a column, one for each part of a sum, where a processor reads them in one go.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
struct Parts([f64; N_PARTS]);

/// The parts of some columns that follow each other.
type Row = [Parts; BLOCK];

/// The products of a block of columns with another.
type Block = [[f64; BLOCK]; BLOCK];

/// The same, in parts.
type BlockParts = [[Parts; BLOCK]; BLOCK];

/// The length of columns of `n` numbers: they end with zeros.
pub(super) fn padded(n: usize) -> usize {
    n.next_multiple_of(N_PARTS)
}

/// The products of each column with each.
pub(super) struct Gram {
    n_columns: usize,
    /// Panel by panel; zeros follow the products of the last columns.
    panels: Vec<Lanes>,
}

/// What a row has in one panel.
type Lanes = [f64; LANES];

impl Gram {
    /// Columns of equal length, which is a multiple of [`N_PARTS`].
    pub(super) fn new(columns: &[&[f64]]) -> Self {
        let n_columns = columns.len();
        let n_rows = columns.first().map_or(0, |column| column.len() / N_PARTS);
        let n_blocks = n_columns.div_ceil(BLOCK);
        let is_little = n_columns * n_columns * n_rows * N_PARTS <= MAX_ALONE;
        let alone = |n: usize| if is_little { n.max(1) } else { 1 };
        let mut rows = vec![Row::default(); n_blocks * n_rows];
        let blocks = rows.par_chunks_mut(n_rows.max(1)).zip(columns.par_chunks(BLOCK));
        blocks.with_min_len(alone(n_blocks).max(8)).for_each(|(rows, columns)| interleave(columns, rows));
        let block_at = |block_idx: usize| &rows[block_idx * n_rows..][..n_rows];
        // A strip goes along what stands at and behind the diagonal.
        let runs: Vec<(usize, usize)> = (0..n_blocks)
            .step_by(STRIP)
            .flat_map(|strip| (strip..n_blocks).step_by(RUN).map(move |from| (strip, from)))
            .collect();
        let run = |&(strip, from): &(usize, usize)| -> Vec<[Block; STRIP]> {
            let own: Vec<&[Row]> = (strip..n_blocks.min(strip + STRIP)).map(block_at).collect();
            let at_or_above = |other: usize| &own[..own.len().min(other - strip + 1)];
            let with = |other: usize| strip_products(at_or_above(other), block_at(other));
            (from..n_blocks.min(from + RUN)).map(with).collect()
        };
        let products = runs.par_iter().with_min_len(alone(runs.len())).with_max_len(alone(runs.len()));
        let products: Vec<Vec<[Block; STRIP]>> = products.map(run).collect();
        // The first run of each strip.
        let mut firsts = vec![0; n_blocks.div_ceil(STRIP)];
        for (run_idx, (strip, from)) in runs.iter().enumerate() {
            if strip == from {
                firsts[strip / STRIP] = run_idx;
            }
        }
        let block = |row: usize, column: usize| {
            let strip = row / STRIP;
            let behind = column - strip * STRIP;
            &products[firsts[strip] + behind / RUN][behind % RUN][row % STRIP]
        };
        let mut panels = vec![[0.0; LANES]; n_columns * n_columns.div_ceil(LANES)];
        let fill = |(panel_idx, panel): (usize, &mut [Lanes])| {
            let first = panel_idx * (LANES / BLOCK);
            for column_block in first..n_blocks.min(first + LANES / BLOCK) {
                let from = (column_block - first) * BLOCK;
                for (row_block, rows) in panel.chunks_mut(BLOCK).enumerate() {
                    for (k, row) in rows.iter_mut().enumerate() {
                        let row = &mut row[from..from + BLOCK];
                        if column_block >= row_block {
                            row.copy_from_slice(&block(row_block, column_block)[k]);
                        } else {
                            let below = block(column_block, row_block);
                            row.iter_mut().zip(below).for_each(|(value, below)| *value = below[k]);
                        }
                    }
                }
            }
        };
        let all = panels.par_chunks_mut(n_columns.max(1)).with_min_len(alone(n_blocks));
        all.enumerate().for_each(fill);
        Self { n_columns, panels }
    }

    /// The product of two columns.
    pub(super) fn value(&self, a: usize, b: usize) -> f64 {
        self.panels[b / LANES * self.n_columns + a][b % LANES]
    }

    /// The product of each of the first columns with the sum of them, each times its step, for several lists of steps.
    pub(super) fn apply(&self, steps: [&[f64]; N_SIDES]) -> [Vec<f64>; N_SIDES] {
        let n = steps[0].len();
        let mut sums = steps.map(|steps| Vec::with_capacity(steps.len() + LANES));
        for panel in self.panels.chunks_exact(self.n_columns.max(1)) {
            let parts = add_rows(&panel[..n], steps);
            sums.iter_mut().zip(&parts).for_each(|(sums, parts)| sums.extend_from_slice(parts));
        }
        sums.iter_mut().for_each(|sums| sums.truncate(n));
        sums
    }
}

/// Puts columns side by side; missing ones are zeros.
fn interleave(columns: &[&[f64]], rows: &mut [Row]) {
    for (at, column) in columns.iter().enumerate() {
        for (row, parts) in rows.iter_mut().zip(column.chunks_exact(N_PARTS)) {
            row[at].0.copy_from_slice(parts);
        }
    }
}

widest! {
    /// Adds rows of a panel, each times its step, one after the other.
    fn add_rows(rows: &[Lanes], steps: [&[f64]; N_SIDES]) -> [Lanes; N_SIDES] {
        let mut sums = [[0.0; LANES]; N_SIDES];
        for (at, row) in rows.iter().enumerate() {
            for (sums, steps) in sums.iter_mut().zip(&steps) {
                let step = steps[at];
                for (sum, value) in sums.iter_mut().zip(row) {
                    *sum += step * value;
                }
            }
        }
        sums
    }
}

/// The products of the columns of a strip, or of its first blocks, with those of a block.
fn strip_products(strip: &[&[Row]], other: &[Row]) -> [Block; STRIP] {
    let mut sums = [BlockParts::default(); STRIP];
    add_products(strip, other, &mut sums);
    sums.map(|block| block.map(|row| row.map(|parts| parts.0.iter().sum())))
}

widest! {
    /// Adds the products of each column of a strip with each of a block.
    fn add_products(strip: &[&[Row]], other: &[Row], sums: &mut [BlockParts; STRIP]) {
        for (tile, others) in other.chunks(TILE).enumerate() {
            for (own, sums) in strip.iter().zip(sums.iter_mut()) {
                let mut parts = *sums;
                for (a, b) in own[tile * TILE..].iter().zip(others) {
                    for (a, parts) in a.iter().zip(&mut parts) {
                        for (b, Parts(sums)) in b.iter().zip(parts) {
                            for ((sum, a), b) in sums.iter_mut().zip(&a.0).zip(&b.0) {
                                *sum += a * b;
                            }
                        }
                    }
                }
                *sums = parts;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn columns(n_columns: u64, n: usize) -> Vec<Vec<f64>> {
        let numbers = Stream::new(3, 0);
        let number = |column: u64, at: u64| {
            libm::exp10(40.0 * numbers.unit(9000 + column) - 20.0) * (numbers.unit(column * 4096 + at) - 0.5)
        };
        (0..n_columns).map(|column| (0..n as u64).map(|at| number(column, at)).collect()).collect()
    }

    #[test]
    fn products_are_those_of_the_columns_whatever_their_number() {
        for n_columns in [1, 3, 4, 5, 9, 13, 77] {
            // More rows than a tile has.
            let columns = columns(n_columns, (2 * TILE + 3) * N_PARTS);
            let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let gram = Gram::new(&views);
            for (a, left) in columns.iter().enumerate() {
                for (b, right) in columns.iter().enumerate() {
                    // In parts, then all parts, to the bit.
                    let mut parts = [0.0; N_PARTS];
                    for (at, (left, right)) in left.iter().zip(right).enumerate() {
                        parts[at % N_PARTS] += left * right;
                    }
                    assert_eq!(gram.value(a, b).to_bits(), parts.iter().sum::<f64>().to_bits());
                }
            }
            // Fewer steps than columns: the others are left out.
            let n_steps = n_columns as usize - usize::from(n_columns > 1);
            let steps = [1.5, -7.0].map(|less| (0..n_steps).map(|at| at as f64 - less).collect::<Vec<f64>>());
            let all_applied = gram.apply([&steps[0], &steps[1]]);
            for (applied, steps) in all_applied.iter().zip(&steps) {
                assert_eq!(applied.len(), n_steps);
                for (row, applied) in applied.iter().enumerate() {
                    // One after the other, to the bit.
                    let sum = steps
                        .iter()
                        .enumerate()
                        .fold(0.0, |sum, (at, step)| sum + step * gram.value(at, row));
                    assert_eq!(applied.to_bits(), sum.to_bits());
                }
            }
        }
    }
}
