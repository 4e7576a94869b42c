// Wilder's directional movement; see adx.rs.

enum Direction { AVERAGE_INDEX, PLUS, MINUS };

template <Direction WHICH>
struct MovementStep {
  static const u32 STATE = 9;
  Divisor divisor;
  double previous_high, previous_low, previous_close;
  double up, down, range, adx;
  u32 w;
  u64 n_seen;
  bool seen;

  __device__ __forceinline__ MovementStep(const ColumnArgs& args, u32 j, const double* const*)
      : divisor(window_of(args, 0, j)) {
    previous_high = previous_low = previous_close = 0.0;
    up = down = range = adx = 0.0;
    w = window_of(args, 0, j);
    n_seen = 0;
    seen = false;
  }

  __device__ __forceinline__ double push(const double* v, u32) {
    double high = v[0], low = v[1], close = v[2];
    if (!is_complete(high, low, close) || !w) return NA;
    double rise = high - previous_high;
    double fall = previous_low - low;
    double true_range = range_of(high, low, previous_close);
    previous_high = high;
    previous_low = low;
    previous_close = close;
    if (!seen) {
      seen = true;
      return NA;
    }
    double upward = 0.0, downward = 0.0;
    if (fall > 0.0 && rise < fall) downward = fall;
    else if (rise > 0.0 && rise > fall) upward = rise;
    n_seen++;
    if (n_seen < w) {
      up += upward;
      down += downward;
      range += true_range;
      return NA;
    }
    up = up - divisor.divide(up) + upward;
    down = down - divisor.divide(down) + downward;
    range = range - divisor.divide(range) + true_range;
    if (range == 0.0) return WHICH == AVERAGE_INDEX ? average(false, 0.0) : 0.0;
    if (WHICH == PLUS) return 100.0 * (up / range);
    if (WHICH == MINUS) return 100.0 * (down / range);
    double plus_di = 100.0 * (up / range);
    double minus_di = 100.0 * (down / range);
    double both = minus_di + plus_di;
    bool has_index = both != 0.0;
    return average(has_index, has_index ? 100.0 * (fabs(minus_di - plus_di) / both) : 0.0);
  }

  __device__ __forceinline__ double average(bool has_index, double index) {
    u64 n_indexes = n_seen + 1 - w;
    if (n_indexes > w) {
      if (has_index) adx = divisor.divide(adx * ((double)w - 1.0) + index);
      return adx;
    }
    adx += index;
    if (n_indexes < w) return NA;
    adx = divisor.divide(adx);
    return adx;
  }

  // Two averages one after the other.
  __device__ __forceinline__ u64 memory() const { return 60 * (u64)w + 1; }

  // Once all averages have begun, how long ago that was does not count.
  __device__ __forceinline__ void save(double* state) const {
    double all[STATE] = {previous_high, previous_low, previous_close, up, down, range, adx, (double)min(n_seen, 2 * (u64)w), (double)seen};
    for (u32 k = 0; k < STATE; k++) state[k] = all[k];
  }

  __device__ __forceinline__ void restore(const double* state) {
    previous_high = state[0];
    previous_low = state[1];
    previous_close = state[2];
    up = state[3];
    down = state[4];
    range = state[5];
    adx = state[6];
    n_seen = (u64)state[7];
    seen = state[8] != 0.0;
  }
};

KERNEL(adx, ColumnArgs) { recurse_stretches<3, MovementStep<AVERAGE_INDEX>>(args); }
KERNEL(adx_mend, ColumnArgs) { mend<3, MovementStep<AVERAGE_INDEX>>(args); }
KERNEL(plus_di, ColumnArgs) { recurse_stretches<3, MovementStep<PLUS>>(args); }
KERNEL(plus_di_mend, ColumnArgs) { mend<3, MovementStep<PLUS>>(args); }
KERNEL(minus_di, ColumnArgs) { recurse_stretches<3, MovementStep<MINUS>>(args); }
KERNEL(minus_di_mend, ColumnArgs) { mend<3, MovementStep<MINUS>>(args); }
