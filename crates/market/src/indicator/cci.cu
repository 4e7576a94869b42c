// Commodity channel index; see cci.rs.
//
// Scratch of an item: sums of the typical price (3 columns), then the typical price itself.

__device__ __forceinline__ double* cci_typical_of(const ColumnArgs& args, u32 j) {
  return scratch_of(args, j) + 3 * (u64)n_entries(args);
}

KERNEL(cci_typical, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  const double* high = input_of(args, 0, j);
  const double* low = input_of(args, 1, j);
  const double* close = input_of(args, 2, j);
  fill_bars(args, cci_typical_of(args, j), [&](u32, u32 start, u32, u32 bar) {
    double h = high[start + bar], l = low[start + bar], c = close[start + bar];
    return is_complete(h, l, c) ? ((h + l) + c) / 3.0 : NA;
  });
}

KERNEL(cci_sums, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  sum_blocks<ValueSums>(args, cci_typical_of(args, j), scratch_of(args, j));
}

KERNEL(cci_ends, ColumnArgs) { sum_ends<ValueSums>(args, scratch_of(args, blockIdx.x % args.count)); }

KERNEL(cci_offsets, ColumnArgs) { sum_offsets<ValueSums>(args, scratch_of(args, blockIdx.x % args.count)); }

__device__ __forceinline__ double sum_of_distances(const double* window, u32 w, double mean) {
  double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
  u32 quads = w - w % 4;
  for (u32 k = 0; k < quads; k += 4) {
    a += fabs(window[k] - mean);
    b += fabs(window[k + 1] - mean);
    c += fabs(window[k + 2] - mean);
    d += fabs(window[k + 3] - mean);
  }
  double total = (a + b) + (c + d);
  for (u32 k = quads; k < w; k++) total += fabs(window[k] - mean);
  return total;
}

KERNEL(cci, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  const double* all = cci_typical_of(args, j);
  Mean mean_of(w);
  fill_from_sums<DoubleDouble>(
      args, scratch_of(args, j), output_of(args, j),
      [&](const DoubleDouble* sums, const Counts* counts, u32 n, u32 bar, u32 start) {
        double mean = sma_at(sums, counts, n, bar, w, mean_of);
        if (isnan(mean)) return NA;
        const double* typical = all + start;
        double distance = typical[bar] - mean;
        double deviation = sum_of_distances(typical + (bar + 1 - w), w, mean);
        return deviation == 0.0 ? 0.0 : distance / (0.015 * (deviation / (double)w));
      });
}
