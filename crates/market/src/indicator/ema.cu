// Exponential moving average, seeded with the first value; see ema.rs.

__device__ __forceinline__ double smoothing(u32 span) { return 2.0 / ((double)span + 1.0); }

// After half of (span + 1) bars an old value counts for less than half; after fifty times that, for nothing in any bit.
__device__ __forceinline__ u64 span_memory(u32 span) { return 25 * ((u64)span + 1); }

struct EmaStep {
  static const u32 STATE = 2;
  double a, b, y;
  u32 span;
  bool valid, seen;

  __device__ __forceinline__ EmaStep(const ColumnArgs& args, u32 j, const double* const*) {
    span = window_of(args, 0, j);
    valid = span > 0;
    // Without a span nothing is kept in mind.
    a = valid ? smoothing(span) : 0.0;
    b = valid ? 1.0 - a : 0.0;
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

  __device__ __forceinline__ u64 memory() const { return span_memory(span); }

  __device__ __forceinline__ void save(double* state) const {
    state[0] = y;
    state[1] = seen;
  }

  __device__ __forceinline__ void restore(const double* state) {
    y = state[0];
    seen = state[1] != 0.0;
  }
};

KERNEL(ema, ColumnArgs) { recurse_stretches<1, EmaStep>(args); }
KERNEL(ema_mend, ColumnArgs) { mend<1, EmaStep>(args); }
