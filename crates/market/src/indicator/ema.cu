// Exponential moving average, seeded with the first value; see ema.rs.

__device__ __forceinline__ double smoothing(u32 span) { return 2.0 / ((double)span + 1.0); }

struct EmaStep {
  double a, b, y;
  bool valid, seen;

  __device__ __forceinline__ EmaStep(const ColumnArgs& args, u32 j, const double* const*) {
    u32 span = window_of(args, 0, j);
    valid = span > 0;
    a = smoothing(span);
    b = 1.0 - a;
    y = 0.0;
    seen = false;
  }

  __device__ __forceinline__ double push(const double* v, u32) {
    double x = v[0];
    bool here = is_finite(x);
    double next = seen ? a * x + b * y : x;
    y = here ? next : y;
    seen = seen || here;
    return here && valid ? y : NA;
  }
};

KERNEL(ema, ColumnArgs) { recurse<1, EmaStep>(args); }
