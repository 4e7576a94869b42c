// Average true range, smoothed as Wilder did; see atr_wilder.rs.

struct AtrWilderStep {
  static const u32 STATE = Wilder::STATE + 2;
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

  __device__ __forceinline__ u64 memory() const { return average.memory() + 1; }

  __device__ __forceinline__ void save(double* state) const {
    average.save(state);
    state[Wilder::STATE] = previous;
    state[Wilder::STATE + 1] = seen;
  }

  __device__ __forceinline__ void restore(const double* state) {
    average.restore(state);
    previous = state[Wilder::STATE];
    seen = state[Wilder::STATE + 1] != 0.0;
  }
};

KERNEL(atr_wilder, ColumnArgs) { recurse_stretches<3, AtrWilderStep>(args); }
KERNEL(atr_wilder_mend, ColumnArgs) { mend<3, AtrWilderStep>(args); }
