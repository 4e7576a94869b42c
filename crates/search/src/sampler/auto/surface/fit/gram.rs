//! The products of all columns of a matrix with each other.
//!
//! A least-squares problem of a few hundred columns is solved several times a second for each of its targets; with these products at hand a
//! round of the solution no longer looks at the trials. Each product is formed in the same order whatever the processor and the threads.
//!
//! They have 24 bits: a surface is a rough model of few trials, and a processor forms twice as many of them at a time.

use rayon::prelude::*;

/// Parts in which a sum of products is formed, which a processor adds side by side.
pub(super) const N_PARTS: usize = 16;

/// Columns whose products with as many others are formed at once, so that a number that is read is used several times.
const BLOCK: usize = 4;

/// Up to so many products are formed before another thread is awake.
const MAX_ALONE: usize = 1 << 19;

/// The products of a block of columns with another, in parts.
type BlockParts = [[[f32; N_PARTS]; BLOCK]; BLOCK];

/// The length of columns of `n` numbers: they end with zeros.
pub(super) fn padded(n: usize) -> usize {
    n.next_multiple_of(N_PARTS)
}

/// The products of each column with each.
pub(super) struct Gram {
    n_columns: usize,
    /// Of each column with those from `first_of` on, as many as are a multiple of [`N_PARTS`].
    rows: Vec<Vec<f32>>,
}

/// Where the row of a column begins. What stands before the column itself is zero: the rows of the others have it.
fn first_of(column_idx: usize) -> usize {
    column_idx / N_PARTS * N_PARTS
}

impl Gram {
    /// Columns of equal length, which is a multiple of [`N_PARTS`].
    pub(super) fn new(columns: &[&[f32]]) -> Self {
        let n_columns = columns.len();
        let zeros = vec![0.0; columns.first().map_or(0, |column| column.len())];
        let at = |column_idx: usize| columns.get(column_idx).copied().unwrap_or(&zeros);
        let block_at = |block_idx: usize| std::array::from_fn(|k| at(block_idx * BLOCK + k));
        let n_blocks = n_columns.div_ceil(BLOCK);
        // The first rows are the longest, so that they come first.
        let block_rows = |block_idx: usize| {
            let (own, first) = (block_at(block_idx), first_of(block_idx * BLOCK));
            let mut rows = [(); BLOCK].map(|()| vec![0.0; padded(n_columns) - first]);
            for other_idx in block_idx..n_blocks {
                let parts = products(&own, &block_at(other_idx));
                for (row, parts) in rows.iter_mut().zip(&parts) {
                    let to = &mut row[other_idx * BLOCK - first..][..BLOCK];
                    to.iter_mut().zip(parts).for_each(|(to, parts)| *to = sum_of(parts));
                }
            }
            for (k, row) in rows.iter_mut().enumerate() {
                row[block_idx * BLOCK - first..][..k].fill(0.0);
            }
            rows
        };
        let mut rows: Vec<_> = if n_columns * n_columns * zeros.len() <= MAX_ALONE {
            (0..n_blocks).flat_map(block_rows).collect()
        } else {
            (0..n_blocks).into_par_iter().with_max_len(1).flat_map_iter(block_rows).collect()
        };
        rows.truncate(n_columns);
        Self { n_columns, rows }
    }

    /// The product of two columns.
    pub(super) fn value(&self, a: usize, b: usize) -> f64 {
        let (above, below) = (a.min(b), a.max(b));
        f64::from(self.rows[above][below - first_of(above)])
    }

    /// The product of each of the first columns with the sum of them, each times its step.
    pub(super) fn apply(&self, steps: &[f64]) -> Vec<f64> {
        let n = steps.len().min(self.n_columns);
        let mut padded_steps = vec![0.0; padded(n)];
        padded_steps.iter_mut().zip(&steps[..n]).for_each(|(to, step)| *to = *step as f32);
        let mut sums = vec![0.0; padded(n)];
        add_rows(&self.rows[..n], &padded_steps, &mut sums);
        sums[..n].iter().map(|sum| f64::from(*sum)).collect()
    }
}

/// Adds rows, each times its step, one after the other. What a row has beyond the diagonal counts for its own sum, too.
fn add_rows(rows: &[Vec<f32>], steps: &[f32], sums: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has what the function needs.
        return unsafe { add_rows_avx2(rows, steps, sums) };
    }
    add_rows_anywhere(rows, steps, sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_rows_avx2(rows: &[Vec<f32>], steps: &[f32], sums: &mut [f32]) {
    add_rows_anywhere(rows, steps, sums);
}

#[inline(always)]
fn add_rows_anywhere(rows: &[Vec<f32>], steps: &[f32], sums: &mut [f32]) {
    for (row_idx, row) in rows.iter().enumerate() {
        let (first, step) = (first_of(row_idx), steps[row_idx]);
        let chunks = row.as_chunks::<N_PARTS>().0.iter().zip(steps[first..].as_chunks::<N_PARTS>().0);
        let mut parts = [0.0; N_PARTS];
        for ((row, steps), sums) in chunks.zip(sums[first..].as_chunks_mut::<N_PARTS>().0) {
            for part in 0..N_PARTS {
                sums[part] += step * row[part];
                parts[part] += row[part] * steps[part];
            }
        }
        // The diagonal is in both.
        sums[row_idx] += sum_of(&parts) - step * row[row_idx - first];
    }
}

/// The sum of some parts, by halves. On its own, because the compiler would else keep the parts in pairs where they are added up.
#[inline(never)]
fn sum_of(parts: &[f32; N_PARTS]) -> f32 {
    let eight: [f32; 8] = std::array::from_fn(|part| parts[part] + parts[part + 8]);
    let four: [f32; 4] = std::array::from_fn(|part| eight[part] + eight[part + 4]);
    (four[0] + four[2]) + (four[1] + four[3])
}

/// The products of each column of a block with each of another, in parts.
fn products(a: &[&[f32]; BLOCK], b: &[&[f32]; BLOCK]) -> BlockParts {
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

fn products_anywhere(a: &[&[f32]; BLOCK], b: &[&[f32]; BLOCK], n: usize) -> BlockParts {
    let pair = |a: &[f32], b: &[f32]| {
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
        unsafe fn $name(a: &[&[f32]; BLOCK], b: &[&[f32]; BLOCK], n: usize) -> BlockParts {
            use std::arch::x86_64::*;
            const N_VECTORS: usize = N_PARTS / $lanes;
            let begins = || (0..BLOCK).step_by($side);
            let mut out = [[[0.0; N_PARTS]; BLOCK]; BLOCK];
            for (from_a, from_b) in begins().flat_map(|from_a| begins().map(move |from_b| (from_a, from_b))) {
                let of_a: [*const f32; $side] = std::array::from_fn(|k| a[from_a + k].as_ptr());
                let of_b: [*const f32; $side] = std::array::from_fn(|k| b[from_b + k].as_ptr());
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
    8,
    2,
    _mm256_setzero_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_add_ps,
    _mm256_mul_ps
);

#[cfg(target_arch = "x86_64")]
products_by!(
    products_avx512,
    "avx512f",
    16,
    4,
    _mm512_setzero_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_add_ps,
    _mm512_mul_ps
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    fn columns(n_columns: u64, n: usize) -> Vec<Vec<f32>> {
        let numbers = Stream::new(3, 0);
        let number = |column: u64, at: u64| {
            libm::exp10(20.0 * numbers.unit(9000 + column) - 10.0) * (numbers.unit(column * 4096 + at) - 0.5)
        };
        let column = |column: u64| (0..n as u64).map(|at| number(column, at) as f32).collect();
        (0..n_columns).map(column).collect()
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
        let (steps, mut expected) = ([0.3, -7.0, 1e9, 2.0, 0.1, 0.0, 3.0, 1e-9].repeat(6), vec![0.0; 48]);
        let mut found = expected.clone();
        add_rows_anywhere(&columns, &steps, &mut expected);
        add_rows(&columns, &steps, &mut found);
        assert_eq!(found, expected);
    }

    #[test]
    fn products_are_those_of_the_columns_whatever_their_number() {
        for n_columns in [1, 3, 4, 5, 9, 13, 45] {
            let columns = columns(n_columns, 32);
            let views: Vec<&[f32]> = columns.iter().map(Vec::as_slice).collect();
            let gram = Gram::new(&views);
            // What a sum of some numbers may be off by: a rounding for each, of the size of all.
            let rounding = |n: usize| n as f64 * f64::from(f32::EPSILON);
            for (a, left) in columns.iter().enumerate() {
                for (b, right) in columns.iter().enumerate() {
                    let terms = left.iter().zip(right).map(|(a, b)| f64::from(*a) * f64::from(*b));
                    let size: f64 = terms.clone().map(f64::abs).sum();
                    assert!((gram.value(a, b) - terms.sum::<f64>()).abs() <= rounding(6) * size);
                    assert_eq!(gram.value(a, b).to_bits(), gram.value(b, a).to_bits());
                }
            }
            // Fewer steps than columns: the others are left out.
            let steps: Vec<f64> = (0..n_columns.max(2) - 1).map(|at| at as f64 - 1.5).collect();
            let applied = gram.apply(&steps);
            assert_eq!(applied.len(), steps.len().min(columns.len()));
            for (row, applied) in applied.iter().enumerate() {
                let terms = steps.iter().enumerate().map(|(at, step)| step * gram.value(at, row));
                let size = terms.clone().map(f64::abs).sum::<f64>();
                assert!((applied - terms.clone().sum::<f64>()).abs() <= rounding(steps.len() + 1) * size);
            }
        }
    }
}
