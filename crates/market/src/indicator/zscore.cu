// Rolling z-score; see zscore.rs.

__device__ __forceinline__ double zscore_at(const double* x, const PairSums* sums, const Counts* counts, u32 n, u32 bar,
                                            u32 w, const Mean& mean) {
  if (!has_window(counts, n, bar, w) || is_flat(counts, n, bar, w)) return NA;
  PairSums window = window_sums(sums, bar, w);
  return (x[bar] - mean.of(window.sum)) / Spread::population(w).of(window);
}

__device__ __forceinline__ double zscore_at(const double* x, const PairSums* sums, const Counts* counts, u32 n, u32 bar,
                                            u32 w) {
  return zscore_at(x, sums, counts, n, bar, w, Mean(w));
}

#ifndef POINTS_ONLY
KERNEL(zscore, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  const double* x = input_of(args, 0, j);
  Mean mean(w);
  fill_from_sums<PairSums>(args, input_of(args, 1, j), output_of(args, j),
                           [&](const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 start) {
                             return zscore_at(x + start, sums, counts, n, bar, w, mean);
                           });
}
#endif
