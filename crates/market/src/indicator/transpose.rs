//! Moves what was computed side by side to the columns where it belongs.
//!
//! Recursions of several windows run in the lanes of vectors, so that one bar of all of them lies together; whoever reads a column wants
//! the bars of one of them together. Nothing is computed here, so that every version gives the same bits.

/// Writes `rows`, the bars from `first` on with one value per lane, to the columns of the lanes. Lanes without a column are dropped.
#[inline]
pub(super) fn transpose<const LANES: usize>(rows: &[[f64; LANES]], first: usize, columns: &mut [&mut [f64]]) {
    #[cfg(target_arch = "x86_64")]
    if LANES.is_multiple_of(8) && is_x86_feature_detected!("avx512f") {
        for (part, columns) in columns.chunks_mut(8).enumerate() {
            let whole = if let [a, b, c, d, e, f, g, h] = columns {
                // SAFETY: the machine has AVX-512F, as was just asked.
                unsafe { x86::eight(rows, part * 8, first, [a, b, c, d, e, f, g, h]) }
            } else {
                0
            };
            plain(&rows[whole..], part * 8, first + whole, columns);
        }
        return;
    }
    plain(rows, 0, first, columns);
}

/// The specification: the lanes from `lane` on.
fn plain<const LANES: usize>(rows: &[[f64; LANES]], lane: usize, first: usize, columns: &mut [&mut [f64]]) {
    for (lane, column) in (lane..).zip(columns) {
        for (to, row) in column[first..].iter_mut().zip(rows) {
            *to = row[lane];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// Moves eight lanes, eight bars at a time, and returns how many bars that were.
    #[target_feature(enable = "avx512f")]
    pub(super) fn eight<const LANES: usize>(
        rows: &[[f64; LANES]],
        lane: usize,
        first: usize,
        columns: [&mut &mut [f64]; 8],
    ) -> usize {
        let mut columns = columns.map(|column| &mut column[first..]);
        let shortest = columns.iter().map(|column| column.len()).min().unwrap_or(0);
        let (rows, _) = rows[..rows.len().min(shortest)].as_chunks::<8>();
        for (at, rows) in rows.iter().enumerate() {
            let row = |bar: usize| {
                let values: &[f64] = &rows[bar][lane..lane + 8];
                // SAFETY: the slice holds the eight values that are read.
                unsafe { _mm512_loadu_pd(values.as_ptr()) }
            };
            let [r0, r1, r2, r3, r4, r5, r6, r7] =
                [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
            // Pairs of bars, then fours, then all eight.
            let (a0, a1) = (_mm512_unpacklo_pd(r0, r1), _mm512_unpackhi_pd(r0, r1));
            let (a2, a3) = (_mm512_unpacklo_pd(r2, r3), _mm512_unpackhi_pd(r2, r3));
            let (a4, a5) = (_mm512_unpacklo_pd(r4, r5), _mm512_unpackhi_pd(r4, r5));
            let (a6, a7) = (_mm512_unpacklo_pd(r6, r7), _mm512_unpackhi_pd(r6, r7));
            let (even, odd) =
                (_mm512_set_epi64(13, 12, 5, 4, 9, 8, 1, 0), _mm512_set_epi64(15, 14, 7, 6, 11, 10, 3, 2));
            let (b0, b2) = (_mm512_permutex2var_pd(a0, even, a2), _mm512_permutex2var_pd(a0, odd, a2));
            let (b1, b3) = (_mm512_permutex2var_pd(a1, even, a3), _mm512_permutex2var_pd(a1, odd, a3));
            let (b4, b6) = (_mm512_permutex2var_pd(a4, even, a6), _mm512_permutex2var_pd(a4, odd, a6));
            let (b5, b7) = (_mm512_permutex2var_pd(a5, even, a7), _mm512_permutex2var_pd(a5, odd, a7));
            let lanes = [
                _mm512_shuffle_f64x2::<0x44>(b0, b4),
                _mm512_shuffle_f64x2::<0x44>(b1, b5),
                _mm512_shuffle_f64x2::<0x44>(b2, b6),
                _mm512_shuffle_f64x2::<0x44>(b3, b7),
                _mm512_shuffle_f64x2::<0xee>(b0, b4),
                _mm512_shuffle_f64x2::<0xee>(b1, b5),
                _mm512_shuffle_f64x2::<0xee>(b2, b6),
                _mm512_shuffle_f64x2::<0xee>(b3, b7),
            ];
            for (column, values) in columns.iter_mut().zip(lanes) {
                let to = &mut column[at * 8..at * 8 + 8];
                // SAFETY: the slice holds the eight values that are written.
                unsafe { _mm512_storeu_pd(to.as_mut_ptr(), values) };
            }
        }
        rows.len() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_comes_to_its_column() {
        let rows: Vec<[f64; 16]> =
            (0..43).map(|bar| std::array::from_fn(|lane| (bar * 100 + lane) as f64)).collect();
        for n_columns in [1, 7, 8, 9, 16] {
            for n_rows in [0, 1, 8, 15, 16, 43] {
                let (mut ours, mut expected) =
                    (vec![vec![-1.0; 50]; n_columns], vec![vec![-1.0; 50]; n_columns]);
                let mut slices: Vec<&mut [f64]> = ours.iter_mut().map(Vec::as_mut_slice).collect();
                transpose(&rows[..n_rows], 5, &mut slices);
                let mut slices: Vec<&mut [f64]> = expected.iter_mut().map(Vec::as_mut_slice).collect();
                plain(&rows[..n_rows], 0, 5, &mut slices);
                assert_eq!(ours, expected, "{n_columns} columns, {n_rows} rows");
                assert!(n_rows == 0 || ours[0][5 + n_rows - 1] == ((n_rows - 1) * 100) as f64);
            }
        }
    }
}
