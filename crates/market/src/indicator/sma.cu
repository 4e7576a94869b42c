// Simple moving average; see sma.rs.

__device__ __forceinline__ double sma_at(const DoubleDouble* sums, const Counts* counts, u32 n, u32 bar, u32 w,
                                         const Mean& mean) {
  return has_window(counts, n, bar, w) ? mean.of(window_sum(sums, bar, w)) : NA;
}

__device__ __forceinline__ double sma_at(const DoubleDouble* sums, const Counts* counts, u32 n, u32 bar, u32 w) {
  return sma_at(sums, counts, n, bar, w, Mean(w));
}

#ifndef POINTS_ONLY
KERNEL(sma, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  Mean mean(w);
  fill_from_sums<DoubleDouble>(
      args, input_of(args, 0, j), output_of(args, j),
      [&](const DoubleDouble* sums, const Counts* counts, u32 n, u32 bar, u32) {
        return sma_at(sums, counts, n, bar, w, mean);
      });
}
#endif
