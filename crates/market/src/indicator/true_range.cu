// True range; see true_range.rs.

__device__ __forceinline__ double range_of(double high, double low, double previous_close) {
  double range = high - low;
  double up = fabs(high - previous_close);
  range = up > range ? up : range;
  double down = fabs(low - previous_close);
  return down > range ? down : range;
}

// Every bar looks back to the last complete one. A gap is walked through by the one bar that follows it, so that this
// stays linear in the number of bars.
KERNEL(true_range, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  const double* high = input_of(args, 0, j);
  const double* low = input_of(args, 1, j);
  const double* close = input_of(args, 2, j);
  fill_bars(args, output_of(args, j), [&](u32, u32 start, u32, u32 bar) {
    u32 at = start + bar;
    if (!is_complete(high[at], low[at], close[at])) return NA;
    u32 previous = at;
    while (previous > start && !is_complete(high[previous - 1], low[previous - 1], close[previous - 1])) previous--;
    return previous == start ? high[at] - low[at] : range_of(high[at], low[at], close[previous - 1]);
  });
}
