// On-balance volume; see obv.rs.

struct ObvStep {
  double previous, balance;
  bool seen;

  __device__ __forceinline__ ObvStep(const ColumnArgs&, u32, const double* const*)
      : previous(0.0), balance(0.0), seen(false) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    double close = v[0], volume = v[1];
    if (!(is_finite(close) && is_finite(volume))) return NA;
    if (seen) {
      double rise = close > previous ? volume : 0.0;
      balance = balance + (close < previous ? -volume : rise);
    } else {
      balance = volume;
      seen = true;
    }
    previous = close;
    return balance;
  }
};

KERNEL(obv, ColumnArgs) { recurse<2, ObvStep>(args); }
