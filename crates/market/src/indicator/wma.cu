// Weighted moving average with linear weights; see wma.rs.

__device__ __forceinline__ double weighted_at(const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 w,
                                              const Weighted& weighted) {
  return has_window(counts, n, bar, w) ? weighted.of(bar + 1 - w, window_sums(sums, bar, w)) : NA;
}

__device__ __forceinline__ double wma_at(const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 w) {
  return weighted_at(sums, counts, n, bar, w, Weighted::wma(w));
}

#ifndef POINTS_ONLY
// A weighted average of window w in every bar of `out`.
__device__ __forceinline__ void fill_weighted(const ColumnArgs& args, const double* item, double* out, u32 w,
                                              const Weighted& weighted) {
  fill_from_sums<PairSums>(args, item, out, [&](const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32) {
    return weighted_at(sums, counts, n, bar, w, weighted);
  });
}

KERNEL(wma, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  fill_weighted(args, input_of(args, 0, j), output_of(args, j), w, Weighted::wma(w));
}
#endif
