//! The products of all columns of a matrix with each other.
//!
//! A least-squares problem of a few hundred columns is solved several times a second for each of its targets; with these products at hand a
//! round of the solution no longer looks at the trials. Each product is formed in the same order whatever the processor and the threads.

use rayon::prelude::*;

/// Parts in which a sum of products is formed, which a processor adds side by side.
pub(super) const N_PARTS: usize = 8;

/// Columns whose products with as many others are formed at once, so that a number that is read is used several times.
const BLOCK: usize = 4;

/// Up to so many products are formed before another thread is awake.
const MAX_ALONE: usize = 1 << 19;

/// The products of a block of columns with another, in parts.
type BlockParts = [[[f64; N_PARTS]; BLOCK]; BLOCK];

/// The length of columns of `n` numbers: they end with zeros.
pub(super) fn padded(n: usize) -> usize {
    n.next_multiple_of(N_PARTS)
}

/// The products of each column with each.
pub(super) struct Gram {
    n_columns: usize,
    rows: Vec<Vec<f64>>,
}

impl Gram {
    /// Columns of equal length, which is a multiple of [`N_PARTS`].
    pub(super) fn new(columns: &[&[f64]]) -> Self {
        let n_columns = columns.len();
        let zeros = vec![0.0; columns.first().map_or(0, |column| column.len())];
        let at = |column_idx: usize| columns.get(column_idx).copied().unwrap_or(&zeros);
        let block_at = |block_idx: usize| std::array::from_fn(|k| at(block_idx * BLOCK + k));
        let n_blocks = n_columns.div_ceil(BLOCK);
        // Only what stands at and behind the diagonal; the first rows are the longest, so that they come first.
        let panel = |block_idx: usize| -> Vec<[[f64; BLOCK]; BLOCK]> {
            let own = block_at(block_idx);
            let others = (block_idx..n_blocks).map(block_at);
            others
                .map(|other| products(&own, &other).map(|row| row.map(|parts| parts.iter().sum())))
                .collect()
        };
        let panels: Vec<_> = if n_columns * n_columns * zeros.len() <= MAX_ALONE {
            (0..n_blocks).map(panel).collect()
        } else {
            (0..n_blocks).into_par_iter().with_max_len(1).map(panel).collect()
        };
        let row = |row_idx: usize| {
            let value = |column_idx: usize| {
                let (above, below) = (row_idx.min(column_idx), row_idx.max(column_idx));
                panels[above / BLOCK][below / BLOCK - above / BLOCK][above % BLOCK][below % BLOCK]
            };
            (0..n_columns).map(value).collect()
        };
        Self { n_columns, rows: (0..n_columns).into_par_iter().with_min_len(32).map(row).collect() }
    }

    /// The product of two columns.
    pub(super) fn value(&self, a: usize, b: usize) -> f64 {
        self.rows[a][b]
    }

    /// The product of each of the first columns with the sum of them, each times its step.
    pub(super) fn apply(&self, steps: &[f64]) -> Vec<f64> {
        let mut sums = vec![0.0; steps.len().min(self.n_columns)];
        add_rows(&self.rows, steps, &mut sums);
        sums
    }
}

/// Adds rows, each times its step, one after the other.
fn add_rows(rows: &[Vec<f64>], steps: &[f64], sums: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function needs.
        return unsafe { add_rows_avx2(rows, steps, sums) };
    }
    add_rows_anywhere(rows, steps, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_rows_avx2(rows: &[Vec<f64>], steps: &[f64], sums: &mut [f64]) {
    add_rows_anywhere(rows, steps, sums);
}

#[inline(always)]
fn add_rows_anywhere(rows: &[Vec<f64>], steps: &[f64], sums: &mut [f64]) {
    let n = sums.len();
    let pairs = rows.chunks_exact(2).zip(steps.chunks_exact(2));
    for (rows, steps) in pairs {
        let (first, second) = (&rows[0][..n], &rows[1][..n]);
        for ((sum, a), b) in sums.iter_mut().zip(first).zip(second) {
            *sum = (*sum + steps[0] * a) + steps[1] * b;
        }
    }
    if let (Some(row), [step]) = (rows.get(steps.len() / 2 * 2), steps.chunks_exact(2).remainder()) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += step * value);
    }
}

/// The products of each column of a block with each of another, in parts.
fn products(a: &[&[f64]; BLOCK], b: &[&[f64]; BLOCK]) -> BlockParts {
    let n = a.iter().chain(b).map(|column| column.len()).min().unwrap_or(0) / N_PARTS * N_PARTS;
    let (a, b) = (a.map(|column| &column[..n]), b.map(|column| &column[..n]));
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has what the function needs, and all columns have `n` numbers.
            return unsafe { products_avx512(&a, &b, n) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { products_avx2(&a, &b, n) };
        }
    }
    products_anywhere(&a, &b, n)
}

fn products_anywhere(a: &[&[f64]; BLOCK], b: &[&[f64]; BLOCK], n: usize) -> BlockParts {
    let pair = |a: &[f64], b: &[f64]| {
        let mut parts = [0.0; N_PARTS];
        for at in (0..n).step_by(N_PARTS) {
            for (part, sum) in parts.iter_mut().enumerate() {
                *sum += a[at + part] * b[at + part];
            }
        }
        parts
    };
    a.map(|a| b.map(|b| pair(a, b)))
}

/// The same bits with vectors, `$side` columns with as many others at a time, as the processor has registers for.
#[cfg(target_arch = "x86_64")]
macro_rules! products_by {
    ($name:ident, $feature:literal, $lanes:literal, $side:literal, $zero:ident, $load:ident, $store:ident, $add:ident, $mul:ident) => {
        /// # Safety
        /// All columns have at least `n` numbers, which is a multiple of [`N_PARTS`].
        #[target_feature(enable = $feature)]
        unsafe fn $name(a: &[&[f64]; BLOCK], b: &[&[f64]; BLOCK], n: usize) -> BlockParts {
            use std::arch::x86_64::*;
            const N_VECTORS: usize = N_PARTS / $lanes;
            let begins = || (0..BLOCK).step_by($side);
            let mut out = [[[0.0; N_PARTS]; BLOCK]; BLOCK];
            for (from_a, from_b) in begins().flat_map(|from_a| begins().map(move |from_b| (from_a, from_b))) {
                let of_a: [*const f64; $side] = std::array::from_fn(|k| a[from_a + k].as_ptr());
                let of_b: [*const f64; $side] = std::array::from_fn(|k| b[from_b + k].as_ptr());
                let mut sums = [[[$zero(); N_VECTORS]; $side]; $side];
                let mut at = 0;
                while at < n {
                    for v in 0..N_VECTORS {
                        let from = at + v * $lanes;
                        // SAFETY: the vectors from here on lie within the columns.
                        let of_b: [_; $side] = std::array::from_fn(|k| unsafe { $load(of_b[k].add(from)) });
                        for i in 0..$side {
                            // SAFETY: as above.
                            let of_a = unsafe { $load(of_a[i].add(from)) };
                            for j in 0..$side {
                                sums[i][j][v] = $add(sums[i][j][v], $mul(of_a, of_b[j]));
                            }
                        }
                    }
                    at += N_PARTS;
                }
                for i in 0..$side {
                    for j in 0..$side {
                        for v in 0..N_VECTORS {
                            // SAFETY: the last of these vectors ends where the parts do.
                            unsafe {
                                $store(
                                    out[from_a + i][from_b + j].as_mut_ptr().add(v * $lanes),
                                    sums[i][j][v],
                                );
                            }
                        }
                    }
                }
            }
            out
        }
    };
}

#[cfg(target_arch = "x86_64")]
products_by!(
    products_avx2,
    "avx2",
    4,
    2,
    _mm256_setzero_pd,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_add_pd,
    _mm256_mul_pd
);

#[cfg(target_arch = "x86_64")]
products_by!(
    products_avx512,
    "avx512f",
    8,
    4,
    _mm512_setzero_pd,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_add_pd,
    _mm512_mul_pd
);

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
    fn all_processors_compute_the_same_bits() {
        let columns = columns(8, 48);
        let [a, b] = [0, 4].map(|first: usize| std::array::from_fn(|k| columns[first + k].as_slice()));
        let expected = products_anywhere(&a, &b, 48);
        assert_eq!(products(&a, &b), expected);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function needs, and all columns have 48 numbers.
            assert_eq!(unsafe { products_avx2(&a, &b, 48) }, expected);
        }
        let (steps, mut expected) = ([0.3, -7.0, 1e9, 2.0, 0.1], [0.0; 5]);
        let mut found = expected;
        add_rows_anywhere(&columns, &steps, &mut expected);
        add_rows(&columns, &steps, &mut found);
        assert_eq!(found, expected);
    }

    #[test]
    fn products_are_those_of_the_columns_whatever_their_number() {
        for n_columns in [1, 3, 4, 5, 9, 13] {
            let columns = columns(n_columns, 24);
            let views: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
            let gram = Gram::new(&views);
            for (a, left) in columns.iter().enumerate() {
                for (b, right) in columns.iter().enumerate() {
                    let expected: f64 = left.iter().zip(right).map(|(left, right)| left * right).sum();
                    let size: f64 = left.iter().zip(right).map(|(left, right)| (left * right).abs()).sum();
                    assert!((gram.value(a, b) - expected).abs() <= 1e-14 * size);
                    assert_eq!(gram.value(a, b).to_bits(), gram.value(b, a).to_bits());
                }
            }
            // Fewer steps than columns: the others are left out.
            let steps: Vec<f64> = (0..n_columns.max(2) - 1).map(|at| at as f64 - 1.5).collect();
            let applied = gram.apply(&steps);
            assert_eq!(applied.len(), steps.len().min(columns.len()));
            for (row, applied) in applied.iter().enumerate() {
                let terms = steps.iter().enumerate().map(|(at, step)| step * gram.value(at, row));
                assert!(
                    (applied - terms.clone().sum::<f64>()).abs() <= 1e-14 * terms.map(f64::abs).sum::<f64>()
                );
            }
        }
    }
}
