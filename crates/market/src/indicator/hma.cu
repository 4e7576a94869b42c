// Hull moving average; see hma.rs.
//
// Scratch of an item: index sums (5 columns), first of x, then of the raw average, which is the sixth column.

__device__ __forceinline__ double* hma_raw_of(const ColumnArgs& args, u32 j) {
  return scratch_of(args, j) + 5 * (u64)n_entries(args);
}

KERNEL(hma_sums, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  sum_blocks<IndexSums>(args, input_of(args, 0, j), scratch_of(args, j));
}

KERNEL(hma_ends, ColumnArgs) { sum_ends<IndexSums>(args, scratch_of(args, blockIdx.x % args.count)); }

KERNEL(hma_offsets, ColumnArgs) { sum_offsets<IndexSums>(args, scratch_of(args, blockIdx.x % args.count)); }

KERNEL(hma_raw, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  u32 half = max(w / 2, 1u);
  Weighted short_mean = Weighted::wma(half), long_mean = Weighted::wma(w);
  fill_from_sums<PairSums>(args, scratch_of(args, j), hma_raw_of(args, j),
                           [&](const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32) {
                             return 2.0 * weighted_at(sums, counts, n, bar, half, short_mean) -
                                    weighted_at(sums, counts, n, bar, w, long_mean);
                           });
}

KERNEL(hma_raw_sums, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  sum_blocks<IndexSums>(args, hma_raw_of(args, j), scratch_of(args, j));
}

KERNEL(hma, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 root = (u32)sqrt((double)window_of(args, 0, j));
  fill_weighted(args, scratch_of(args, j), output_of(args, j), root, Weighted::wma(root));
}
