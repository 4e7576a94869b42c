// Rolling extremes; see extreme.rs.
//
// A block has 2,048 bars of one item. Windows grow by doubling in shared memory: the maximum of 2·k bars is that of the
// last k and of the k before them, so a bar costs log₂ w comparisons. A window longer than the block is the end of what
// lies before, a part that all bars share, and the beginning of the block's own bars.
//
// Bars of several symbols may share a block: a window that reaches into another symbol is incomplete, and NaN.

#define EXTREME_THREADS 256
#define EXTREME_BARS 2048
#define EXTREME_EACH (EXTREME_BARS / EXTREME_THREADS)

__device__ __forceinline__ double larger(double a, double b) { return a > b ? a : b; }

template <bool LOW>
__device__ __forceinline__ double oriented(double v) { return LOW ? -v : v; }

// Without a negative zero, which would let the bits depend on the order of comparisons.
template <bool LOW>
__device__ __forceinline__ double restored(double v) { return oriented<LOW>(v) + 0.0; }

#ifndef POINTS_ONLY
// result[k] = largest load(bar) of the `w` bars that end with bar `first + threadIdx.x + k·EXTREME_THREADS`; w ≥ 1.
// `load` gives no NaN, and anything for a bar that is not there. `t` is shared memory for two blocks of bars; all
// threads of the block take part.
template <class Load>
__device__ __forceinline__ void rolling_max(double* t, i64 first, u64 w, const Load& load,
                                            double (&result)[EXTREME_EACH]) {
  bool is_long = w > EXTREME_BARS;
  u32 n = is_long ? 2 * EXTREME_BARS : EXTREME_BARS + (u32)w - 1;
  // A long window: the first half of `t` holds what lies before the part that all windows share, the second half the
  // block's own bars. A short one: all bars of all windows, in order.
  u32 split = is_long ? EXTREME_BARS : 0;
  double common = -INFINITE;
  __syncthreads();
  if (is_long) {
    // From the last window's first bar to the first one's last.
#pragma unroll 4
    for (i64 bar = first + EXTREME_BARS - (i64)w + threadIdx.x; bar <= first; bar += EXTREME_THREADS) {
      common = larger(common, load(bar));
    }
    t[threadIdx.x] = common;
    __syncthreads();
    for (u32 half = EXTREME_THREADS / 2; half; half /= 2) {
      if (threadIdx.x < half) t[threadIdx.x] = larger(t[threadIdx.x], t[threadIdx.x + half]);
      __syncthreads();
    }
    common = t[0];
    __syncthreads();
  }
  for (u32 from = threadIdx.x; from < n; from += 4 * EXTREME_THREADS) {
    double read[4];
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      u32 e = from + k * EXTREME_THREADS;
      read[k] = load(is_long && e >= split ? first + (e - split) : first - (i64)(w - 1) + e);
    }
#pragma unroll
    for (u32 k = 0; k < 4; k++) {
      u32 e = from + k * EXTREME_THREADS;
      if (e < n) t[e] = read[k];
    }
  }
  __syncthreads();
  u32 reach = is_long ? EXTREME_BARS : (u32)w;
  u32 width = 1;
  for (; 2 * width <= reach; width *= 2) {
    double v[2 * EXTREME_EACH];
#pragma unroll
    for (u32 k = 0; k < 2 * EXTREME_EACH; k++) {
      u32 e = threadIdx.x + k * EXTREME_THREADS;
      // Before the split windows grow to the right, up to it; after it to the left, down to it.
      bool rightward = e < split;
      u32 other = rightward ? e + width : e - width;
      bool is_there = rightward ? other < split : e >= split + width;
      if (e < n) v[k] = is_there ? larger(t[e], t[other]) : t[e];
    }
    __syncthreads();
#pragma unroll
    for (u32 k = 0; k < 2 * EXTREME_EACH; k++) {
      u32 e = threadIdx.x + k * EXTREME_THREADS;
      if (e < n) t[e] = v[k];
    }
    __syncthreads();
  }
#pragma unroll
  for (u32 k = 0; k < EXTREME_EACH; k++) {
    u32 e = threadIdx.x + k * EXTREME_THREADS;
    u32 last = is_long ? e + split : e + (u32)w - 1;
    u32 other = is_long ? e : last - ((u32)w - width);
    result[k] = larger(common, larger(t[last], t[other]));
  }
}

// The oriented value of a bar; `bad` where it is not finite, −∞ where there is none. Always reads, so that several
// reads can be under way.
template <bool LOW>
__device__ __forceinline__ double load_oriented(const double* x, u32 n, i64 bar, double bad) {
  double v = x[bar < 0 ? 0 : bar < n ? bar : n - 1];
  return bar < 0 || bar >= n ? -INFINITE : is_finite(v) ? oriented<LOW>(v) : bad;
}

template <bool LOW>
__device__ __forceinline__ void extreme(const ColumnArgs& args) {
  __shared__ double t[2 * EXTREME_BARS];
  u32 j = blockIdx.x % args.count;
  i64 first = (i64)(blockIdx.x / args.count) * EXTREME_BARS;
  u32 w = window_of(args, 0, j);
  const double* x = input_of(args, 0, j);
  double* out = output_of(args, j);
  double result[EXTREME_EACH];
  if (w && w <= args.n_bars) {
    // What is not finite counts as larger than everything: it shows in every window that holds it.
    rolling_max(t, first, w, [&](i64 bar) {
      return load_oriented<LOW>(x, args.n_bars, bar, INFINITE);
    }, result);
  }
  for (u32 k = 0; k < EXTREME_EACH; k++) {
    i64 bar = first + threadIdx.x + k * EXTREME_THREADS;
    if (bar >= args.n_bars) return;
    u32 at = (u32)bar - args.start[symbol_of(args, (u32)bar)];
    out[bar] = w && at + 1 >= w && result[k] < INFINITE ? restored<LOW>(result[k]) : NA;
  }
}

KERNEL(highest, ColumnArgs) { extreme<false>(args); }
KERNEL(lowest, ColumnArgs) { extreme<true>(args); }
#endif

// At one bar of a symbol, from its part of the column.

template <bool LOW>
__device__ __forceinline__ double maximum_of(const double* x, u32 from, u32 to) {
  double largest = -INFINITE;
  for (u32 k = from; k < to; k++) largest = larger(oriented<LOW>(x[k]), largest);
  return largest;
}

__device__ __forceinline__ bool all_finite(const double* x, u32 from, u32 to) {
  for (u32 k = from; k < to; k++) {
    if (!is_finite(x[k])) return false;
  }
  return true;
}

template <bool LOW>
__device__ double extreme_at(const double* x, u32 n, u32 bar, u32 w) {
  if (!w || bar >= n || bar + 1 < w) return NA;
  double largest = -INFINITE;
  for (u32 k = bar + 1 - w; k <= bar; k++) {
    if (!is_finite(x[k])) return NA;
    largest = larger(oriented<LOW>(x[k]), largest);
  }
  return restored<LOW>(largest);
}

__device__ __forceinline__ double highest_at(const double* x, u32 n, u32 bar, u32 w) {
  return extreme_at<false>(x, n, bar, w);
}

__device__ __forceinline__ double lowest_at(const double* x, u32 n, u32 bar, u32 w) {
  return extreme_at<true>(x, n, bar, w);
}
