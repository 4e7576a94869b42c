// Supertrend; see supertrend.rs.

template <bool LINE>
struct SupertrendStep {
  static const u32 STATE = 5;
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

  // A band begins anew when it is crossed, so it knows nothing of what was before two changes of sides.
  __device__ __forceinline__ u64 memory() const { return 2048; }

  __device__ __forceinline__ void save(double* state) const {
    state[0] = upper;
    state[1] = lower;
    state[2] = line;
    state[3] = close;
    state[4] = seen;
  }

  __device__ __forceinline__ void restore(const double* state) {
    upper = state[0];
    lower = state[1];
    line = state[2];
    close = state[3];
    seen = state[4] != 0.0;
  }
};

KERNEL(supertrend_line, ColumnArgs) { recurse_stretches<3, SupertrendStep<true>>(args); }
KERNEL(supertrend_line_mend, ColumnArgs) { mend<3, SupertrendStep<true>>(args); }
KERNEL(supertrend_up, ColumnArgs) { recurse_stretches<3, SupertrendStep<false>>(args); }
KERNEL(supertrend_up_mend, ColumnArgs) { mend<3, SupertrendStep<false>>(args); }
