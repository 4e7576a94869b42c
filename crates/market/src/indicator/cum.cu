// Running sum; see cum.rs.

struct CumStep {
  double sum;

  __device__ __forceinline__ CumStep(const ColumnArgs&, u32, const double* const*) : sum(0.0) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    if (!is_finite(v[0])) return NA;
    sum += v[0];
    return sum;
  }
};

KERNEL(cum, ColumnArgs) { recurse<1, CumStep>(args); }
