// Least-squares moving average; see lsma.rs.

__device__ __forceinline__ double lsma_at(const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 w) {
  return weighted_at(sums, counts, n, bar, w, Weighted::lsma(w));
}

#ifndef POINTS_ONLY
KERNEL(lsma, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  fill_weighted(args, input_of(args, 0, j), output_of(args, j), w, Weighted::lsma(w));
}
#endif
