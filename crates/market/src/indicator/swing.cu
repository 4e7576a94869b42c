// Swing highs and lows; see swing.rs.
//
// Scratch of an item: one column, the oriented value of every confirmed bar and −∞ for the others.

#ifndef POINTS_ONLY
// The bars that no bar within `lookahead` on either side exceeds. Those whose neighbours are another symbol's come out
// wrong, and no bar looks at them.
template <bool LOW>
__device__ __forceinline__ void confirm(const ColumnArgs& args) {
  __shared__ double t[2 * EXTREME_BARS];
  u32 j = blockIdx.x % args.count;
  i64 first = (i64)(blockIdx.x / args.count) * EXTREME_BARS;
  u64 lookback = window_of(args, 0, j);
  u64 lookahead = window_of(args, 1, j);
  if (lookback <= 2 * lookahead || lookback + lookahead >= args.n_bars) return;
  const double* x = input_of(args, 0, j);
  double* confirmed = scratch_of(args, j);
  auto load = [&](i64 bar) { return load_oriented<LOW>(x, args.n_bars, bar, -INFINITE); };
  double around[EXTREME_EACH];
  rolling_max(t, first + (i64)lookahead, 2 * lookahead + 1, load, around);
  for (u32 k = 0; k < EXTREME_EACH; k++) {
    i64 bar = first + threadIdx.x + k * EXTREME_THREADS;
    if (bar >= args.n_bars) return;
    double v = load(bar);
    confirmed[bar] = v >= around[k] ? v : -INFINITE;
  }
}

template <bool LOW>
__device__ __forceinline__ void swing(const ColumnArgs& args) {
  __shared__ double t[2 * EXTREME_BARS];
  u32 j = blockIdx.x % args.count;
  i64 first = (i64)(blockIdx.x / args.count) * EXTREME_BARS;
  u64 lookback = window_of(args, 0, j);
  u64 lookahead = window_of(args, 1, j);
  bool valid = lookback > lookahead && lookback + lookahead < args.n_bars;
  const double* x = input_of(args, 0, j);
  const double* confirmed = scratch_of(args, j);
  double* out = output_of(args, j);
  double highs[EXTREME_EACH], plain[EXTREME_EACH], bad[EXTREME_EACH];
  for (u32 k = 0; k < EXTREME_EACH; k++) highs[k] = plain[k] = bad[k] = -INFINITE;
  if (valid) {
    // Bar i sees windows that end at i - lookahead - 1.
    i64 seen = first - (i64)lookahead - 1;
    if (lookback > 2 * lookahead) {
      rolling_max(t, seen, lookback - 2 * lookahead, [&](i64 bar) {
        return load_oriented<false>(confirmed, args.n_bars, bar, -INFINITE);
      }, highs);
    }
    bool has_gap = false;
    for (u64 e = threadIdx.x; e < lookback + EXTREME_BARS; e += EXTREME_THREADS) {
      i64 bar = first - (i64)lookback + (i64)e;
      has_gap |= bar >= 0 && bar < args.n_bars && !is_finite(x[bar]);
    }
    has_gap = __syncthreads_or(has_gap);
    // The plain maximum is rarely asked for: a window mostly holds a confirmed bar.
    bool lacks = has_gap;
    for (u32 k = 0; k < EXTREME_EACH; k++) lacks |= highs[k] == -INFINITE;
    if (__syncthreads_or(lacks)) {
      rolling_max(t, seen, lookback - lookahead, [&](i64 bar) {
        return load_oriented<LOW>(x, args.n_bars, bar, INFINITE);
      }, plain);
    }
    // The last `lookahead` bars are looked at only for being there.
    if (has_gap && lookahead) {
      rolling_max(t, first - 1, lookahead, [&](i64 bar) {
        return bar < 0 || bar >= args.n_bars || is_finite(x[bar]) ? -INFINITE : INFINITE;
      }, bad);
    }
  }
  for (u32 k = 0; k < EXTREME_EACH; k++) {
    i64 bar = first + threadIdx.x + k * EXTREME_THREADS;
    if (bar >= args.n_bars) return;
    u64 at = (u32)bar - args.start[symbol_of(args, (u32)bar)];
    bool here = valid && at >= lookback + lookahead && plain[k] < INFINITE && bad[k] < INFINITE;
    out[bar] = here ? restored<LOW>(highs[k] > -INFINITE ? highs[k] : plain[k]) : NA;
  }
}

KERNEL(swing_high_confirmed, ColumnArgs) { confirm<false>(args); }
KERNEL(swing_high, ColumnArgs) { swing<false>(args); }
KERNEL(swing_low_confirmed, ColumnArgs) { confirm<true>(args); }
KERNEL(swing_low, ColumnArgs) { swing<true>(args); }
#endif

template <bool LOW>
__device__ double swing_at(const double* x, u32 n, u32 bar, u32 lookback, u32 lookahead) {
  if (lookback <= lookahead || bar >= n || bar < (u64)lookback + lookahead) return NA;
  u32 start = bar - lookback, end = bar - lookahead;
  if (!all_finite(x, start, bar)) return NA;
  double best = -INFINITE;
  for (u32 k = start + lookahead; k < end; k++) {
    double v = oriented<LOW>(x[k]);
    if (v > best && v >= maximum_of<LOW>(x, k - lookahead, k + lookahead + 1)) best = v;
  }
  if (best == -INFINITE) best = maximum_of<LOW>(x, start, end);
  return restored<LOW>(best);
}

__device__ __forceinline__ double swing_high_at(const double* x, u32 n, u32 bar, u32 lookback, u32 lookahead) {
  return swing_at<false>(x, n, bar, lookback, lookahead);
}

__device__ __forceinline__ double swing_low_at(const double* x, u32 n, u32 bar, u32 lookback, u32 lookahead) {
  return swing_at<true>(x, n, bar, lookback, lookahead);
}
