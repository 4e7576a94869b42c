// Rolling standard deviation, population and sample; see stddev.rs.

__device__ __forceinline__ double spread_at(const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 w,
                                            const Spread& spread) {
  if (!has_window(counts, n, bar, w)) return NA;
  return is_flat(counts, n, bar, w) ? 0.0 : spread.of(window_sums(sums, bar, w));
}

__device__ __forceinline__ double stddev_at(const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 w) {
  return spread_at(sums, counts, n, bar, w, Spread::population(w));
}

__device__ __forceinline__ double stddev_sample_at(const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32 w) {
  return w < 2 ? NA : spread_at(sums, counts, n, bar, w, Spread::sample(w));
}

#ifndef POINTS_ONLY
KERNEL(stddev, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  fill_from_sums<PairSums>(args, input_of(args, 0, j), output_of(args, j),
                           [&](const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32) {
                             return stddev_at(sums, counts, n, bar, w);
                           });
}

KERNEL(stddev_sample, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  fill_from_sums<PairSums>(args, input_of(args, 0, j), output_of(args, j),
                           [&](const PairSums* sums, const Counts* counts, u32 n, u32 bar, u32) {
                             return stddev_sample_at(sums, counts, n, bar, w);
                           });
}
#endif
