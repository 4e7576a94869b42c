// Triple exponential moving average; see tema.rs.

struct TemaStep {
  static const u32 STATE = 4;
  double a, b, e1, e2, e3;
  u32 w;
  bool valid, seen;

  __device__ __forceinline__ TemaStep(const ColumnArgs& args, u32 j, const double* const*) {
    w = window_of(args, 0, j);
    valid = w > 0;
    a = smoothing(w);
    b = 1.0 - a;
    e1 = e2 = e3 = 0.0;
    seen = false;
  }

  __device__ __forceinline__ double push(const double* v, u32) {
    double x = v[0];
    if (!is_finite(x) || !valid) return NA;
    if (seen) {
      e1 = a * x + b * e1;
      e2 = a * e1 + b * e2;
      e3 = a * e2 + b * e3;
    } else {
      e1 = e2 = e3 = x;
      seen = true;
    }
    return (3.0 * e1 - 3.0 * e2) + e3;
  }

  // An average of averages forgets a little later.
  __device__ __forceinline__ u64 memory() const { return span_memory(w) / 5 * 6; }

  __device__ __forceinline__ void save(double* state) const {
    state[0] = e1;
    state[1] = e2;
    state[2] = e3;
    state[3] = seen;
  }

  __device__ __forceinline__ void restore(const double* state) {
    e1 = state[0];
    e2 = state[1];
    e3 = state[2];
    seen = state[3] != 0.0;
  }
};

KERNEL(tema, ColumnArgs) { recurse_stretches<1, TemaStep>(args); }
KERNEL(tema_mend, ColumnArgs) { mend<1, TemaStep>(args); }
