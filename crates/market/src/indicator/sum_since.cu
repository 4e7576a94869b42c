// Running sum that starts again; see sum_since.rs.

struct SumSinceStep {
  double sum;

  __device__ __forceinline__ SumSinceStep(const ColumnArgs&, u32, const double* const*) : sum(0.0) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    if (v[0] > 0.0) sum = 0.0;
    if (!is_finite(v[1])) return NA;
    sum += v[1];
    return sum;
  }
};

KERNEL(sum_since, ColumnArgs) { recurse<2, SumSinceStep>(args); }
