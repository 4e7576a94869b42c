// Parabolic stop and reverse; see psar.rs.

struct PsarStep {
  double start, step, max;
  double high, low, best, share, stop;
  u32 n_seen;
  bool is_valid, is_long;

  __device__ __forceinline__ PsarStep(const ColumnArgs& args, u32 j, const double* const*) {
    u32 trial = args.trial[j];
    start = args.arguments[0][trial];
    step = args.arguments[1][trial];
    max = args.arguments[2][trial];
    is_valid = is_share(start) && is_share(step) && is_share(max);
    start = max < start ? max : start;
    step = max < step ? max : step;
    high = low = best = stop = 0.0;
    share = start;
    n_seen = 0;
    is_long = true;
  }

  static __device__ __forceinline__ bool is_share(double share) { return is_finite(share) && share >= 0.0; }

  static __device__ __forceinline__ double over(double stop, double before, double now) {
    stop = stop < before ? before : stop;
    return stop < now ? now : stop;
  }

  static __device__ __forceinline__ double under(double stop, double before, double now) {
    stop = stop > before ? before : stop;
    return stop > now ? now : stop;
  }

  __device__ __forceinline__ double push(const double* v, u32) {
    if (!is_valid || !is_finite(v[0]) || !is_finite(v[1])) return NA;
    if (n_seen == 0) {
      n_seen = 1;
      high = v[0];
      low = v[1];
      return NA;
    }
    if (n_seen == 1) {
      double rise = v[0] - high, fall = low - v[1];
      is_long = !(fall > 0.0 && rise < fall);
      best = is_long ? v[0] : v[1];
      stop = is_long ? low : high;
      n_seen = 2;
      high = v[0];
      low = v[1];
    }
    double before_high = high, before_low = low;
    high = v[0];
    low = v[1];
    bool is_hit = is_long ? low <= stop : high >= stop;
    if (is_hit) {
      is_long = !is_long;
      stop = is_long ? under(best, before_low, low) : over(best, before_high, high);
      best = is_long ? high : low;
      share = start;
    }
    double value = stop;
    if (!is_hit && (is_long ? high > best : low < best)) {
      best = is_long ? high : low;
      share += step;
      share = share > max ? max : share;
    }
    double next = stop + share * (best - stop);
    stop = is_long ? under(next, before_low, low) : over(next, before_high, high);
    return value;
  }
};

KERNEL(psar, ColumnArgs) { recurse<2, PsarStep>(args); }
