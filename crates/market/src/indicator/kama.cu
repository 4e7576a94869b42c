// Kaufman's adaptive moving average; see kama.rs.

struct KamaStep {
  const double* x;
  double slowest, range, y, newest, oldest_value;
  // The value after the oldest one, read a bar before it is needed.
  double upcoming;
  DoubleDouble way;
  u32 w, n_steps, n_moves, oldest;
  bool valid, seen;

  __device__ __forceinline__ KamaStep(const ColumnArgs& args, u32 j, const double* const* columns) {
    u32 fast = window_of(args, 1, j);
    u32 slow = window_of(args, 2, j);
    x = columns[0];
    w = window_of(args, 0, j);
    valid = w && fast && slow;
    slowest = 2.0 / ((double)slow + 1.0);
    range = 2.0 / ((double)fast + 1.0) - slowest;
    y = newest = oldest_value = upcoming = NA;
    way = DoubleDouble{0.0, 0.0};
    n_steps = n_moves = oldest = 0;
    seen = false;
  }

  __device__ __forceinline__ double push(const double* v, u32 bar) {
    double now = v[0];
    if (!is_finite(now) || !valid) return NA;
    if (!seen) {
      seen = true;
      oldest = bar;
      newest = oldest_value = now;
      return NA;
    }
    if (n_steps == w) {
      // `oldest` is before the newest bar, so there is an available value after it.
      oldest++;
      while (!is_finite(upcoming)) upcoming = x[++oldest];
      double step = fabs(upcoming - oldest_value);
      way = add(way, -step);
      n_moves -= step != 0.0;
      oldest_value = upcoming;
    } else {
      n_steps++;
      y = newest;
    }
    if (n_steps == w) upcoming = x[oldest + 1];
    double step = fabs(now - newest);
    way = add(way, step);
    n_moves += step != 0.0;
    newest = now;
    if (n_steps < w) return NA;
    double net = fabs(now - oldest_value);
    double er = n_moves == 0 || way.hi <= net ? 1.0 : net / way.hi;
    double c = er * range + slowest;
    y = (now - y) * (c * c) + y;
    return y;
  }
};

KERNEL(kama, ColumnArgs) { recurse<1, KamaStep>(args); }
