// Average true range, smoothed as Wilder did; see atr_wilder.rs.

struct AtrWilderStep {
  Wilder average;
  double previous;
  bool seen;

  __device__ __forceinline__ AtrWilderStep(const ColumnArgs& args, u32 j, const double* const*)
      : average(window_of(args, 0, j)), previous(0.0), seen(false) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    if (!is_complete(v[0], v[1], v[2]) || !average.w) return NA;
    double value = seen ? average.push(range_of(v[0], v[1], previous)) : NA;
    previous = v[2];
    seen = true;
    return value;
  }
};

KERNEL(atr_wilder, ColumnArgs) { recurse<3, AtrWilderStep>(args); }
