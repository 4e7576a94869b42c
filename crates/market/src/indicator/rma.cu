// Wilder's moving average; see rma.rs.

struct Wilder {
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
};

struct RmaStep {
  Wilder average;

  __device__ __forceinline__ RmaStep(const ColumnArgs& args, u32 j, const double* const*)
      : average(window_of(args, 0, j)) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    return is_finite(v[0]) && average.w ? average.push(v[0]) : NA;
  }
};

KERNEL(rma, ColumnArgs) { recurse<1, RmaStep>(args); }
