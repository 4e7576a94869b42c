// Wilder's moving average; see rma.rs.

struct Wilder {
  static const u32 STATE = 2;
  Divisor divisor;
  double value;
  u32 w, n_seen;

  __device__ __forceinline__ explicit Wilder(u32 w) : divisor(w), value(0.0), w(w), n_seen(0) {}

  __device__ __forceinline__ double push(double x) {
    if (n_seen == w) {
      value = divisor.divide(value * ((double)w - 1.0) + x);
      return value;
    }
    n_seen++;
    value += x;
    if (n_seen < w) return NA;
    value = divisor.divide(value);
    return value;
  }

  // It forgets half as fast as an exponential average of the same window, and begins with a mean.
  __device__ __forceinline__ u64 memory() const { return 51 * (u64)w; }

  __device__ __forceinline__ void save(double* state) const {
    state[0] = value;
    state[1] = n_seen;
  }

  __device__ __forceinline__ void restore(const double* state) {
    value = state[0];
    n_seen = (u32)state[1];
  }
};

struct RmaStep {
  static const u32 STATE = Wilder::STATE;
  Wilder average;

  __device__ __forceinline__ RmaStep(const ColumnArgs& args, u32 j, const double* const*)
      : average(window_of(args, 0, j)) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    return is_finite(v[0]) && average.w ? average.push(v[0]) : NA;
  }

  __device__ __forceinline__ u64 memory() const { return average.memory(); }
  __device__ __forceinline__ void save(double* state) const { average.save(state); }
  __device__ __forceinline__ void restore(const double* state) { average.restore(state); }
};

KERNEL(rma, ColumnArgs) { recurse_stretches<1, RmaStep>(args); }
KERNEL(rma_mend, ColumnArgs) { mend<1, RmaStep>(args); }
