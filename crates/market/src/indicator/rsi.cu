// Relative strength index; see rsi.rs.

struct RsiStep {
  static const u32 STATE = 2 * Wilder::STATE + 2;
  Wilder gains, losses;
  double previous;
  bool seen;

  __device__ __forceinline__ RsiStep(const ColumnArgs& args, u32 j, const double* const*)
      : gains(window_of(args, 0, j)), losses(gains), previous(0.0), seen(false) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    double x = v[0];
    if (!is_finite(x) || !gains.w) return NA;
    double value = NA;
    if (seen) {
      double change = x - previous;
      double gain = gains.push(change > 0.0 ? change : 0.0);
      double loss = losses.push(change < 0.0 ? -change : 0.0);
      double total = gain + loss;
      value = total == 0.0 ? 0.0 : 100.0 * (gain / total);
    }
    previous = x;
    seen = true;
    return value;
  }

  __device__ __forceinline__ u64 memory() const { return gains.memory() + 1; }

  __device__ __forceinline__ void save(double* state) const {
    gains.save(state);
    losses.save(state + Wilder::STATE);
    state[2 * Wilder::STATE] = previous;
    state[2 * Wilder::STATE + 1] = seen;
  }

  __device__ __forceinline__ void restore(const double* state) {
    gains.restore(state);
    losses.restore(state + Wilder::STATE);
    previous = state[2 * Wilder::STATE];
    seen = state[2 * Wilder::STATE + 1] != 0.0;
  }
};

KERNEL(rsi, ColumnArgs) { recurse_stretches<1, RsiStep>(args); }
KERNEL(rsi_mend, ColumnArgs) { mend<1, RsiStep>(args); }
