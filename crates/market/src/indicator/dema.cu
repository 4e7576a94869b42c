// Double exponential moving average; see dema.rs.

struct DemaStep {
  double a, b, e1, e2;
  bool valid, seen;

  __device__ __forceinline__ DemaStep(const ColumnArgs& args, u32 j, const double* const*) {
    u32 w = window_of(args, 0, j);
    valid = w > 0;
    a = smoothing(w);
    b = 1.0 - a;
    e1 = e2 = 0.0;
    seen = false;
  }

  __device__ __forceinline__ double push(const double* v, u32) {
    double x = v[0];
    if (!is_finite(x) || !valid) return NA;
    if (seen) {
      e1 = a * x + b * e1;
      e2 = a * e1 + b * e2;
    } else {
      e1 = e2 = x;
      seen = true;
    }
    return 2.0 * e1 - e2;
  }
};

KERNEL(dema, ColumnArgs) { recurse<1, DemaStep>(args); }
