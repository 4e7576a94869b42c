//! The columns of a least-squares problem, one for each coefficient, and products with them.
//!
//! A problem of a few hundred coefficients is solved several hundred times a second, on the way from results to proposals. Its
//! columns are read once for every round of the solution and for both targets, tile by tile, so that what is read stays close to the
//! processor; of few columns the products are formed once, and read instead. All sums are formed in the same order whatever the processor
//! and the threads.

use std::ops::Range;

use rayon::prelude::*;

use crate::widest::widest;

/// Columns that lie side by side: as many as a processor reads and adds in one go.
pub(super) const N_LANES: usize = 8;

/// Numbers of columns side by side, in one row; or one for each of their coefficients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C, align(64))]
pub(super) struct Lanes(pub(super) [f64; N_LANES]);

/// Lists of numbers that are fitted to the same columns at the same time.
pub(super) const N_TARGETS: usize = 2;

/// A number for each coefficient, for each target.
pub(super) type Coefficients = [Vec<Lanes>; N_TARGETS];

/// Rows that are looked at together, whose sums stay in the processor.
const TILE: usize = 4;

/// A number for each row of a tile and each target.
type Images = [[f64; N_TARGETS]; TILE];

/// Parts of the rows that threads may look at side by side.
const N_PARTS: usize = 8;

/// So many numbers are not cut into parts: they are looked at before another thread is awake.
const MAX_WHOLE: usize = 1 << 15;

/// Columns that lie side by side: their rows, then zeros to the end of a tile.
pub(super) fn block(n_rows: usize, row: impl Fn(usize) -> Lanes) -> Vec<Lanes> {
    let n_missing = n_rows.next_multiple_of(TILE) - n_rows;
    (0..n_rows).map(row).chain(std::iter::repeat_n(Lanes::default(), n_missing)).collect()
}

/// The products of the columns of two blocks: a row for each column of the first, in the lanes those of the second.
type Products = [[f64; N_LANES]; N_LANES];

/// All columns.
pub(super) struct Design {
    blocks: Vec<Vec<Lanes>>,
    n_rows: usize,
    /// Those of each pair of blocks, where columns are few: there are fewer of them than numbers in the columns.
    products: Option<Vec<Products>>,
}

impl Design {
    /// Blocks of `n_rows` rows each, as [`block`] makes them; whether they are few.
    pub(super) fn new(blocks: Vec<Vec<Lanes>>, n_rows: usize, are_few: bool) -> Self {
        let n_blocks = blocks.len();
        let product = |at: usize| products(&blocks[at / n_blocks], &blocks[at % n_blocks]);
        let all = 0..n_blocks * n_blocks;
        let products = are_few.then(|| match n_rows * n_blocks * N_LANES {
            ..=MAX_WHOLE => all.map(product).collect(),
            _ => all.into_par_iter().map(product).collect(),
        });
        Self { blocks, n_rows, products }
    }

    /// The product of each column with each target.
    pub(super) fn with_targets(&self, targets: &[Vec<f64>; N_TARGETS]) -> Coefficients {
        let image = |row: usize| [0, 1].map(|at: usize| targets[at].get(row).copied().unwrap_or(0.0));
        self.sum_of_tiles(|tile, sums| {
            add_rows(&self.blocks, tile, std::array::from_fn(|row| image(tile + row)), sums);
        })
    }

    /// The product of each column with the sum of all columns, each times its step; for the steps of each target.
    pub(super) fn apply(&self, steps: [&[Lanes]; N_TARGETS]) -> Coefficients {
        if let Some(products) = &self.products {
            return steps.map(|steps| applied(products, steps));
        }
        self.sum_of_tiles(|tile, sums| {
            add_rows(&self.blocks, tile, row_sums(&self.blocks, tile, steps), sums)
        })
    }

    /// The sum of something over all tiles: of each part in the order of its tiles, then of the parts in theirs.
    fn sum_of_tiles(&self, add_tile: impl Fn(usize, &mut Coefficients) + Sync) -> Coefficients {
        let sum_of = |rows: Range<usize>| {
            let mut sums = [0; N_TARGETS].map(|_| vec![Lanes::default(); self.blocks.len()]);
            rows.step_by(TILE).for_each(|tile| add_tile(tile, &mut sums));
            sums
        };
        if self.n_rows * self.blocks.len() * N_LANES <= MAX_WHOLE {
            return sum_of(0..self.n_rows);
        }
        let n_each = self.n_rows.div_ceil(N_PARTS).next_multiple_of(TILE);
        let part = |part: usize| sum_of(part * n_each..self.n_rows.min((part + 1) * n_each));
        let parts: Vec<Coefficients> = (0..N_PARTS).into_par_iter().map(part).collect();
        let mut sums = sum_of(0..0);
        for part in &parts {
            sums.iter_mut().zip(part).for_each(|(sums, part)| add(sums, 1.0, part));
        }
        sums
    }
}

widest! {
    /// The sum of each row of a tile, each column times its step.
    #[expect(clippy::needless_range_loop, reason = "arrays that stay in the processor")]
    fn row_sums(blocks: &[Vec<Lanes>], tile: usize, steps: [&[Lanes]; N_TARGETS]) -> Images {
        let mut sums = [[[0.0; N_LANES]; TILE]; N_TARGETS];
        for ((block, first), second) in blocks.iter().zip(steps[0]).zip(steps[1]) {
            let Some(rows) = block[tile..].first_chunk::<TILE>() else { break };
            for row in 0..TILE {
                for lane in 0..N_LANES {
                    sums[0][row][lane] += rows[row].0[lane] * first.0[lane];
                }
                for lane in 0..N_LANES {
                    sums[1][row][lane] += rows[row].0[lane] * second.0[lane];
                }
            }
        }
        let mut images = Images::default();
        for row in 0..TILE {
            images[row] = [sums[0][row].iter().sum(), sums[1][row].iter().sum()];
        }
        images
    }
}

widest! {
    /// Adds all rows of a tile to sums, each times its image.
    fn add_rows(blocks: &[Vec<Lanes>], tile: usize, images: Images, sums: &mut Coefficients) {
        let [first, second] = sums;
        for ((block, first), second) in blocks.iter().zip(first).zip(second) {
            let Some(rows) = block[tile..].first_chunk::<TILE>() else { break };
            let (mut a, mut b) = (first.0, second.0);
            for row in 0..TILE {
                for lane in 0..N_LANES {
                    a[lane] += images[row][0] * rows[row].0[lane];
                    b[lane] += images[row][1] * rows[row].0[lane];
                }
            }
            (first.0, second.0) = (a, b);
        }
    }
}

/// Columns whose products are formed together: their sums stay in the processor, those of all would not.
const TOGETHER: usize = 4;

widest! {
    /// The products of the columns of two blocks.
    fn products(first: &[Lanes], second: &[Lanes]) -> Products {
        let mut products = Products::default();
        for from in (0..N_LANES).step_by(TOGETHER) {
            let mut sums = [[0.0; N_LANES]; TOGETHER];
            for (Lanes(first), Lanes(second)) in first.iter().zip(second) {
                for column in 0..TOGETHER {
                    for lane in 0..N_LANES {
                        sums[column][lane] += first[from + column] * second[lane];
                    }
                }
            }
            products[from..from + TOGETHER].copy_from_slice(&sums);
        }
        products
    }
}

widest! {
    /// The products of all pairs of blocks, each times the step of its first column, summed by the second.
    fn applied(products: &[Products], steps: &[Lanes]) -> Vec<Lanes> {
        let mut sums = vec![Lanes::default(); steps.len()];
        for (products, Lanes(steps)) in products.chunks(sums.len().max(1)).zip(steps) {
            for (Lanes(sums), products) in sums.iter_mut().zip(products) {
                for column in 0..N_LANES {
                    for lane in 0..N_LANES {
                        sums[lane] += products[column][lane] * steps[column];
                    }
                }
            }
        }
        sums
    }
}

/// Adds numbers, each so many times.
pub(super) fn add(sums: &mut [Lanes], times: f64, numbers: &[Lanes]) {
    for (sum, number) in sums.iter_mut().zip(numbers) {
        *sum = Lanes(std::array::from_fn(|at| sum.0[at] + times * number.0[at]));
    }
}

/// The sum of the products of numbers, lane by lane, then of the lanes.
pub(super) fn dot(a: &[Lanes], b: &[Lanes]) -> f64 {
    let mut sums = [0.0; N_LANES];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.0.iter().zip(&b.0)) {
            *sum += a * b;
        }
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn numbers(n: usize, stream: u64) -> Vec<Lanes> {
        let numbers = Stream::new(3, stream);
        let number = |at: usize| numbers.unit(at as u64) - 0.5;
        block(n, |row| Lanes(std::array::from_fn(|lane| number(row * N_LANES + lane))))
    }

    #[test]
    fn products_are_those_of_the_columns_whatever_their_number_and_the_threads() {
        for (n_blocks, n_rows) in [(1, 1), (2, 7), (3, 40), (5, 333), (20, 1000)] {
            let blocks: Vec<_> = (0..n_blocks).map(|block| numbers(n_rows, block)).collect();
            let [design, few] = [false, true].map(|are_few| Design::new(blocks.clone(), n_rows, are_few));
            let targets = [90, 91].map(|stream| {
                numbers(n_rows.div_ceil(N_LANES), stream)
                    .iter()
                    .flat_map(|lanes| lanes.0)
                    .take(n_rows)
                    .collect()
            });
            let steps =
                [92, 93].map(|stream| numbers(n_blocks as usize, stream)[..n_blocks as usize].to_vec());
            let column = |at: usize| blocks[at / N_LANES].iter().map(move |row| row.0[at % N_LANES]);
            let is_near = |sum: f64, found: f64| assert!((sum - found).abs() < 1e-11, "{sum} {found}");
            let with_targets = design.with_targets(&targets);
            let applied = [&design, &few].map(|design| design.apply([&steps[0], &steps[1]]));
            for (at, target) in (0..blocks.len() * N_LANES).flat_map(|at| [(at, 0), (at, 1)]) {
                let of = |found: &Coefficients| found[target][at / N_LANES].0[at % N_LANES];
                let sum = column(at).zip(&targets[target]).map(|(a, b): (f64, &f64)| a * b).sum();
                is_near(sum, of(&with_targets));
                let image = |row: usize| {
                    let all = blocks.iter().zip(&steps[target]);
                    all.map(|(block, step)| dot(&[block[row]], &[*step])).sum::<f64>()
                };
                let sum: f64 = column(at).enumerate().map(|(row, value)| value * image(row)).sum();
                applied.iter().for_each(|applied| is_near(sum, of(applied)));
            }
            let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            let again = alone.install(|| {
                let few = Design::new(blocks.clone(), n_rows, true);
                [design, few].map(|design| design.apply([&steps[0], &steps[1]]))
            });
            assert_eq!(again, applied);
        }
    }
}
