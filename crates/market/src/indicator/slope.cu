// Slope of the least-squares line; see slope.rs.

__device__ __forceinline__ double slope_at(const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 w) {
  return w < 2 ? NA : weighted_at(sums, counts, n, bar, w, Weighted::slope_of(w));
}

#ifndef POINTS_ONLY
KERNEL(slope, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  fill_from_sums<PairSums>(args, input_of(args, 0, j), output_of(args, j),
                           [&](const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32) {
                             return slope_at(sums, counts, n, bar, w);
                           });
}
#endif
