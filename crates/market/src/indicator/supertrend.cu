// Supertrend; see supertrend.rs.

template <bool LINE>
struct SupertrendStep {
  double k, upper, lower, line, close;
  bool seen;

  __device__ __forceinline__ SupertrendStep(const ColumnArgs& args, u32 j, const double* const*)
      : k(args.arguments[0][args.trial[j]]), upper(0.0), lower(0.0), line(0.0), close(0.0), seen(false) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    double width = k * v[1];
    if (!is_complete(v[0], width, v[2])) return NA;
    double next_upper = v[0] + width, next_lower = v[0] - width;
    bool is_up = false;
    if (seen) {
      if (!(next_lower > lower || close < lower)) next_lower = lower;
      if (!(next_upper < upper || close > upper)) next_upper = upper;
      is_up = line == upper ? v[2] > next_upper : v[2] >= next_lower;
    }
    seen = true;
    upper = next_upper;
    lower = next_lower;
    line = is_up ? lower : upper;
    close = v[2];
    return LINE ? line : is_up ? 1.0 : 0.0;
  }
};

KERNEL(supertrend_line, ColumnArgs) { recurse<3, SupertrendStep<true>>(args); }
KERNEL(supertrend_up, ColumnArgs) { recurse<3, SupertrendStep<false>>(args); }
