// Aroon, how long ago the extreme of a window was; see aroon.rs.

template <bool LOW>
__device__ __forceinline__ void aroon(const ColumnArgs& args) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  double factor = 100.0 / (double)w;
  const double* x = input_of(args, 0, j);
  fill_bars(args, output_of(args, j), [&](u32, u32 start, u32, u32 bar) {
    if (!w || bar < w) return NA;
    const double* newest = x + start + bar;
    // From the newest bar on, so that the latest of equal values is met first.
    u32 age = 0;
    for (u32 k = 0; k <= w; k++) {
      double v = *(newest - k);
      if (!is_finite(v)) return NA;
      double best = *(newest - age);
      if (LOW ? v < best : v > best) age = k;
    }
    return factor * ((double)w - (double)age);
  });
}

KERNEL(aroon_up, ColumnArgs) { aroon<false>(args); }
KERNEL(aroon_down, ColumnArgs) { aroon<true>(args); }
