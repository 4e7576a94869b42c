// Quantiles of a window; see quantile.rs.
//
// A thread has a bar and finds the value of a rank without sorting: it halves the interval of numbers that the value
// lies in, counting how many of the window lie below. Doubles are compared by their bits, as integers in the same order;
// after each pass the interval shrinks to values of the window, so that few passes are needed.

__device__ __forceinline__ u64 ordered_bits(double v) {
  u64 bits = (u64)__double_as_longlong(v + 0.0);
  return bits >> 63 ? ~bits : bits | 1ull << 63;
}

__device__ __forceinline__ double from_ordered_bits(u64 bits) {
  return __longlong_as_double((i64)(bits >> 63 ? bits & ~(1ull << 63) : ~bits));
}

// The values of rank `below` and of the next one in a window of w finite values, and what lies between them.
__device__ double quantile_of(const double* window, u32 w, u32 below, double share) {
  u64 first = ~0ull, last = 0;
  for (u32 k = 0; k < w; k++) {
    if (!is_finite(window[k])) return NA;
    u64 bits = ordered_bits(window[k]);
    first = bits < first ? bits : first;
    last = bits > last ? bits : last;
  }
  while (first < last) {
    u64 middle = first + (last - first) / 2;
    // The largest up to the middle, the smallest beyond it; both ends are values of the window themselves.
    u64 under = first, over = last;
    u32 count = 0;
    for (u32 k = 0; k < w; k++) {
      u64 bits = ordered_bits(window[k]);
      if (bits <= middle) {
        count++;
        under = bits > under ? bits : under;
      } else {
        over = bits < over ? bits : over;
      }
    }
    if (count > below) last = under;
    else first = over;
  }
  double low = from_ordered_bits(first);
  if (share == 0.0) return low;
  u64 next = ~0ull;
  u32 count = 0;
  for (u32 k = 0; k < w; k++) {
    u64 bits = ordered_bits(window[k]);
    if (bits <= first) count++;
    else next = bits < next ? bits : next;
  }
  double high = count > below + 1 ? low : from_ordered_bits(next);
  return low + (high - low) * share;
}

KERNEL(quantile, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  double q = args.arguments[1][args.trial[j]];
  bool valid = w && q >= 0.0 && q <= 1.0;
  double place = valid ? q * ((double)w - 1.0) : 0.0;
  u32 below = (u32)place;
  double share = place - (double)below;
  const double* x = input_of(args, 0, j);
  fill_bars(args, output_of(args, j), [&](u32, u32 start, u32, u32 bar) {
    if (!valid || bar + 1 < w) return NA;
    return quantile_of(x + start + (bar + 1 - w), w, below, share);
  });
}
