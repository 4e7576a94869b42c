// Exponential moving average, seeded with a simple average; see ema_sma.rs.

struct EmaSmaStep {
  static const u32 STATE = 2;
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

  __device__ __forceinline__ u64 memory() const { return span_memory(w) + w; }

  __device__ __forceinline__ void save(double* state) const {
    state[0] = y;
    state[1] = n_seen;
  }

  __device__ __forceinline__ void restore(const double* state) {
    y = state[0];
    n_seen = (u32)state[1];
  }
};

KERNEL(ema_sma, ColumnArgs) { recurse_stretches<1, EmaSmaStep>(args); }
KERNEL(ema_sma_mend, ColumnArgs) { mend<1, EmaSmaStep>(args); }
