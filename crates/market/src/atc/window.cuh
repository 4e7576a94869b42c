// Averages over windows; see window.rs.
//
// Exact products take a fused multiply-add here instead of split factors. That gives the same two numbers as long as nothing
// over- or underflows, so it is done while all values so far are TAME.

namespace atc {

struct Entry { DoubleDouble sum, sums; };

__device__ __forceinline__ DoubleDouble pair(double2 v) { return DoubleDouble{v.x, v.y}; }

struct Sums {
  Ring ring;
  Entry now;
  // How many of the latest values are available, without a gap.
  u32 run;
  bool tame;

  __device__ __forceinline__ explicit Sums(Ring ring) : ring(ring), run(0), tame(true) {
    now = Entry{{0.0, 0.0}, {0.0, 0.0}};
    ring.first(0) = make_double2(0.0, 0.0);
    ring.second(0) = make_double2(0.0, 0.0);
  }

  __device__ __forceinline__ void push(double x) {
    bool is_here = is_finite(x);
    double value = is_here ? x : 0.0;
    double size = fabs(value);
    tame = tame && (size == 0.0 || (size > 1e-90 && size < 1e90));
    now.sums = add(now.sums, now.sum);
    now.sum = add(now.sum, value);
    ring.advance();
    ring.first(ring.latest) = make_double2(now.sum.hi, now.sum.lo);
    ring.second(ring.latest) = make_double2(now.sums.hi, now.sums.lo);
    run = is_here ? run + 1 : 0;
  }

  __device__ __forceinline__ Entry before(u32 bars) const {
    u32 place = ring.before(bars);
    return Entry{pair(ring.first(place)), pair(ring.second(place))};
  }
};

// Differences, sums and products that are not brought into order.
__device__ __forceinline__ DoubleDouble loose_difference(DoubleDouble a, DoubleDouble b) {
  DoubleDouble s = two_sum(a.hi, -b.hi);
  return DoubleDouble{s.hi, s.lo + (a.lo - b.lo)};
}

__device__ __forceinline__ DoubleDouble loose_sum(DoubleDouble a, DoubleDouble b) {
  DoubleDouble s = two_sum(a.hi, b.hi);
  return DoubleDouble{s.hi, s.lo + (a.lo + b.lo)};
}

template <bool TAME>
__device__ __forceinline__ DoubleDouble exact_product(double a, double b) {
  if (!TAME) return two_prod(a, b);
  double hi = a * b;
  return DoubleDouble{hi, fma(a, b, -hi)};
}

template <bool TAME>
__device__ __forceinline__ DoubleDouble loose_product(DoubleDouble a, double b) {
  DoubleDouble p = exact_product<TAME>(a.hi, b);
  return DoubleDouble{p.hi, p.lo + a.lo * b};
}

template <bool TAME>
__device__ __forceinline__ double quotient(DoubleDouble a, double divisor, double reciprocal) {
  if (!TAME) return divide(a, divisor, reciprocal);
  double q = a.hi * reciprocal;
  double remainder = fma(-q, divisor, a.hi) + a.lo;
  return q + remainder * reciprocal;
}

// The averages themselves, from the sums now and before the window.
template <bool TAME>
__device__ __forceinline__ double mean_of(DoubleDouble now, DoubleDouble then, double divisor, double reciprocal) {
  return quotient<TAME>(loose_difference(now, then), divisor, reciprocal);
}

template <bool TAME>
__device__ __forceinline__ double linear_of(const Entry& now, DoubleDouble sums_then, double weight, double divisor,
                                            double reciprocal) {
  DoubleDouble between = loose_difference(now.sums, sums_then);
  return quotient<TAME>(loose_difference(loose_product<TAME>(now.sum, weight), between), divisor, reciprocal);
}

template <bool TAME>
__device__ __forceinline__ double line_of(const Entry& now, const Entry& then, double now_weight, double then_weight,
                                          double sums_weight, double divisor, double reciprocal) {
  DoubleDouble ends = loose_sum(loose_product<TAME>(now.sum, now_weight), loose_product<TAME>(then.sum, then_weight));
  DoubleDouble between = loose_product<TAME>(loose_difference(now.sums, then.sums), sums_weight);
  return quotient<TAME>(loose_sum(ends, between), divisor, reciprocal);
}

struct Mean {
  template <bool TAME>
  static __device__ __forceinline__ double of(const Sums& sums, u32 length, const Weights& weights, u32 k) {
    DoubleDouble then = pair(sums.ring.first(sums.ring.before(length)));
    return mean_of<TAME>(sums.now.sum, then, weights.divisor[k], weights.reciprocal[k]);
  }
};

struct Linear {
  template <bool TAME>
  static __device__ __forceinline__ double of(const Sums& sums, u32 length, const Weights& weights, u32 k) {
    DoubleDouble then = pair(sums.ring.second(sums.ring.before(length)));
    return linear_of<TAME>(sums.now, then, weights.now[k], weights.divisor[k], weights.reciprocal[k]);
  }
};

struct Line {
  template <bool TAME>
  static __device__ __forceinline__ double of(const Sums& sums, u32 length, const Weights& weights, u32 k) {
    return line_of<TAME>(sums.now, sums.before(length), weights.now[k], weights.then[k], weights.sums[k],
                         weights.divisor[k], weights.reciprocal[k]);
  }
};

// Averages of nine windows of one kind.
template <class Kind>
struct Windows {
  Sums sums;

  __device__ __forceinline__ Windows(const Plan&, Ring ring) : sums(ring) {}

  template <bool TAME>
  __device__ __forceinline__ void values(const Weights& weights, const u32* lengths, double* out) const {
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) {
      double value = Kind::template of<TAME>(sums, lengths[k], weights, k);
      out[k] = sums.run >= lengths[k] ? value : NA;
    }
  }

  __device__ __forceinline__ void push(const Weights& weights, const u32* lengths, double x, double* out) {
    sums.push(x);
    if (__all_sync(~0u, sums.tame)) values<true>(weights, lengths, out);
    else values<false>(weights, lengths, out);
  }
};

struct SimpleStep : Windows<Mean> {
  using Windows<Mean>::Windows;

  __device__ __forceinline__ void push(const Plan& plan, double x, double* out) {
    Windows<Mean>::push(plan.hma, plan.lengths[1], x, out);
  }
};

struct WeightedStep : Windows<Linear> {
  using Windows<Linear>::Windows;

  __device__ __forceinline__ void push(const Plan& plan, double x, double* out) {
    Windows<Linear>::push(plan.wma, plan.lengths[2], x, out);
  }
};

struct LineStep : Windows<Line> {
  using Windows<Line>::Windows;

  __device__ __forceinline__ void push(const Plan& plan, double x, double* out) {
    Windows<Line>::push(plan.lsma, plan.lengths[4], x, out);
  }
};

// Hull's averages. Rarely asked for: plain products, one length after another.
struct HullStep {
  Sums sums;

  __device__ __forceinline__ HullStep(const Plan&, Ring ring) : sums(ring) {}

  __device__ __forceinline__ void push(const Plan& plan, double x, double* out) {
    sums.push(x);
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) out[k] = value(plan, k);
  }

  __device__ __forceinline__ double weighted(const Entry& now, u32 bars, const Weights& weights, u32 k) const {
    return linear_of<false>(now, sums.before(bars).sums, weights.now[k], weights.divisor[k], weights.reciprocal[k]);
  }

  __device__ __forceinline__ double value(const Plan& plan, u32 k) const {
    u32 length = plan.lengths[1][k], half = plan.half_lengths[k], root = plan.root_lengths[k];
    if (half == 0 || sums.run < length + root - 1) return NA;
    DoubleDouble total = {0.0, 0.0};
#pragma unroll 1
    for (u32 ago = root; ago-- > 0;) {
      Entry now = sums.before(ago);
      double narrow = weighted(now, ago + half, plan.half, k);
      double wide = weighted(now, ago + length, plan.hma, k);
      total = add(total, two_prod(2.0 * narrow - wide, (double)root - (double)ago));
    }
    double divisor = (double)root * ((double)root + 1.0) / 2.0;
    return divide(total, divisor, 1.0 / divisor);
  }
};

}  // namespace atc
