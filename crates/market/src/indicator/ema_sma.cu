// Exponential moving average, seeded with a simple average; see ema_sma.rs.

struct EmaSmaStep {
  double a, y;
  u32 w, n_seen;

  __device__ __forceinline__ EmaSmaStep(const ColumnArgs& args, u32 j, const double* const*) {
    w = window_of(args, 0, j);
    a = smoothing(w);
    y = 0.0;
    n_seen = 0;
  }

  __device__ __forceinline__ double push(const double* v, u32) {
    double x = v[0];
    if (!is_finite(x) || w == 0) return NA;
    if (n_seen < w) {
      n_seen++;
      y += x;
      if (n_seen < w) return NA;
      y /= (double)w;
    } else {
      y = (x - y) * a + y;
    }
    return y;
  }
};

KERNEL(ema_sma, ColumnArgs) { recurse<1, EmaSmaStep>(args); }
