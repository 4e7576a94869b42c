// Averages over windows; see window.rs.
//
// The values so far are TAME as long as none of them is negative, nor so large or small that anything over- or underflows. Then
// two shortcuts give the same bits. Exact products take a fused multiply-add instead of split factors. And sums never fall, so
// that the error of a difference takes three operations instead of six: what is subtracted is the smaller number, or so near
// that the difference has no error.

namespace atc {

struct Entry { DoubleDouble sum, sums; };

__device__ __forceinline__ DoubleDouble pair(double2 v) { return DoubleDouble{v.x, v.y}; }

__device__ __forceinline__ Entry entry(const Ring& ring, u32 at) { return Entry{pair(ring.sum(at)), pair(ring.sums(at))}; }

// The running sums of a symbol, on their way through its series.
struct Sums {
  Entry now;
  DoubleDouble way;
  double before;

  __device__ __forceinline__ Sums() : before(NA) {
    now = Entry{{0.0, 0.0}, {0.0, 0.0}};
    way = DoubleDouble{0.0, 0.0};
  }

  // The row before the first bar is the ring's last one.
  __device__ __forceinline__ void begin(const Ring& ring) const { write(ring, (ring.capacity - 1) * ROW_BYTES, NA); }

  __device__ __forceinline__ void push(const Ring& ring, u32 row, double x) {
    double value = is_finite(x) ? x : 0.0;
    double size = fabs(x - before);
    now.sums = add(now.sums, now.sum);
    now.sum = add(now.sum, value);
    if (is_finite(size)) way = add(way, size);
    before = x;
    write(ring, row * ROW_BYTES, x);
    if (row < TILE) write(ring, (row + ring.capacity) * ROW_BYTES, x);
  }

  __device__ __forceinline__ void write(const Ring& ring, u32 at, double x) const {
    ring.sum(at) = make_double2(now.sum.hi, now.sum.lo);
    ring.sums(at) = make_double2(now.sums.hi, now.sums.lo);
    ring.way(at) = make_double2(way.hi, way.lo);
    ring.value(at) = x;
  }
};

// Whether a value keeps the sums TAME.
__device__ __forceinline__ bool is_tame(double x) {
  return !is_finite(x) || x == 0.0 || (x > 1e-90 && x < 1e90);
}

// Differences, sums and products that are not brought into order. Where values are TAME, `a` is the larger number.
template <bool TAME>
__device__ __forceinline__ DoubleDouble loose_difference(DoubleDouble a, DoubleDouble b) {
  DoubleDouble s = TAME ? fast_two_sum(a.hi, -b.hi) : two_sum(a.hi, -b.hi);
  return DoubleDouble{s.hi, s.lo + (a.lo - b.lo)};
}

template <bool TAME>
__device__ __forceinline__ DoubleDouble loose_sum(DoubleDouble a, DoubleDouble b) {
  DoubleDouble s = TAME ? fast_two_sum(a.hi, b.hi) : two_sum(a.hi, b.hi);
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
  return quotient<TAME>(loose_difference<TAME>(now, then), divisor, reciprocal);
}

template <bool TAME>
__device__ __forceinline__ double linear_of(const Entry& now, DoubleDouble sums_then, double weight, double divisor,
                                            double reciprocal) {
  DoubleDouble between = loose_difference<TAME>(now.sums, sums_then);
  DoubleDouble all = loose_product<TAME>(now.sum, weight);
  return quotient<TAME>(loose_difference<TAME>(all, between), divisor, reciprocal);
}

// The weight of the sum now is the larger one, or 0. Which side of the last sum is larger is open.
template <bool TAME>
__device__ __forceinline__ double line_of(const Entry& now, const Entry& then, double now_weight, double then_weight,
                                          double sums_weight, double divisor, double reciprocal) {
  DoubleDouble ends =
      loose_sum<TAME>(loose_product<TAME>(now.sum, now_weight), loose_product<TAME>(then.sum, then_weight));
  DoubleDouble between = loose_product<TAME>(loose_difference<TAME>(now.sums, then.sums), sums_weight);
  return quotient<TAME>(loose_sum<false>(ends, between), divisor, reciprocal);
}

// Kinds of averages, from where the sums now and before the window are.
struct Mean {
  template <bool TAME, class W>
  static __device__ __forceinline__ double of(const Ring& ring, u32 now, u32 then, const W& weights, u32 k) {
    return mean_of<TAME>(pair(ring.sum(now)), pair(ring.sum(then)), weights.divisor[k], weights.reciprocal[k]);
  }
};

struct Linear {
  template <bool TAME, class W>
  static __device__ __forceinline__ double of(const Ring& ring, u32 now, u32 then, const W& weights, u32 k) {
    return linear_of<TAME>(entry(ring, now), pair(ring.sums(then)), weights.now[k], weights.divisor[k],
                           weights.reciprocal[k]);
  }
};

struct Line {
  template <bool TAME, class W>
  static __device__ __forceinline__ double of(const Ring& ring, u32 now, u32 then, const W& weights, u32 k) {
    return line_of<TAME>(entry(ring, now), entry(ring, then), weights.now[k], weights.then[k], weights.sums[k],
                         weights.divisor[k], weights.reciprocal[k]);
  }
};

// The weights of N lengths, from number `first` on.
template <u32 N>
struct OwnWeights {
  double now[N], then[N], sums[N], divisor[N], reciprocal[N];

  __device__ __forceinline__ OwnWeights(const Weights& all, u32 first) {
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      now[k] = all.now[first + k];
      then[k] = all.then[first + k];
      sums[k] = all.sums[first + k];
      divisor[k] = all.divisor[first + k];
      reciprocal[k] = all.reciprocal[first + k];
    }
  }
};

// Averages of N windows of one kind and family, from the length number `first` on.
template <class Kind, u32 FAMILY, u32 N>
struct Windows {
  u32 first;
  // How many of the latest values are available, without a gap.
  u32 run;
  // The rows before the windows of the tile's first bar.
  u32 then[N];
  OwnWeights<N> weights;

  static __device__ __forceinline__ const Weights& all_weights(const Plan& plan) {
    return FAMILY == 1 ? plan.hma : FAMILY == 2 ? plan.wma : plan.lsma;
  }

  __device__ __forceinline__ Windows(const Plan& plan, u32 first)
      : first(first), run(0), weights(all_weights(plan), first) {}

  __device__ __forceinline__ void begin(const Plan& plan, const Ring& ring, u32 row) {
#pragma unroll
    for (u32 k = 0; k < N; k++) then[k] = opaque(ring.before(row, plan.lengths[FAMILY][first + k]));
  }

  // PLAIN: all values so far are tame and available, and at least as many as the longest window has.
  template <bool PLAIN>
  __device__ __forceinline__ void push(const Plan& plan, const Ring& ring, const Sight& sight, double* out) {
    run = PLAIN || is_finite(sight.x) ? run + 1 : 0;
    if (PLAIN || sight.tame) {
#pragma unroll
      for (u32 k = 0; k < N; k++) out[k] = Kind::template of<true>(ring, sight.now, then[k] + sight.onward, weights, k);
    } else {
      rare(plan, ring, sight, out);
    }
#pragma unroll
    for (u32 k = 0; k < N; k++) out[k] = PLAIN || run >= plan.lengths[FAMILY][first + k] ? out[k] : NA;
  }

  // One length after another: long code for few symbols.
  __device__ __forceinline__ void rare(const Plan& plan, const Ring& ring, const Sight& sight, double* out) const {
#pragma unroll 1
    for (u32 k = 0; k < N; k++) {
      u32 before = ring.before(sight.row, plan.lengths[FAMILY][first + k]);
      double value = Kind::template of<false>(ring, sight.now, before, all_weights(plan), first + k);
#pragma unroll
      for (u32 i = 0; i < N; i++) out[i] = i == k ? value : out[i];
    }
  }
};

template <u32 N>
using SimpleStep = Windows<Mean, 1, N>;
template <u32 N>
using WeightedStep = Windows<Linear, 2, N>;
template <u32 N>
using LineStep = Windows<Line, 4, N>;

// Hull's averages. Rarely used: plain products, one length after another.
__device__ __forceinline__ double inner_of(const Entry& now, double2 then, const Weights& weights, u32 k) {
  return linear_of<false>(now, pair(then), weights.now[k], weights.divisor[k], weights.reciprocal[k]);
}

__device__ __noinline__ double hull_of(const Plan& plan, Ring ring, u32 row, u32 run, u32 k) {
  u32 length = plan.lengths[1][k], half = plan.half_lengths[k], root = plan.root_lengths[k];
  if (half == 0 || run < length + root - 1) return NA;
  DoubleDouble total = {0.0, 0.0};
#pragma unroll 1
  for (u32 ago = root; ago-- > 0;) {
    Entry now = entry(ring, ring.before(row, ago));
    double narrow = inner_of(now, ring.sums(ring.before(row, ago + half)), plan.half, k);
    double wide = inner_of(now, ring.sums(ring.before(row, ago + length)), plan.hma, k);
    total = add(total, two_prod(2.0 * narrow - wide, (double)root - (double)ago));
  }
  double divisor = (double)root * ((double)root + 1.0) / 2.0;
  return divide(total, divisor, 1.0 / divisor);
}

template <u32 N>
struct HullStep {
  u32 first, run;

  __device__ __forceinline__ HullStep(const Plan&, u32 first) : first(first), run(0) {}

  __device__ __forceinline__ void begin(const Plan&, const Ring&, u32) {}

  template <bool PLAIN>
  __device__ __forceinline__ void push(const Plan& plan, const Ring& ring, const Sight& sight, double* out) {
    run = is_finite(sight.x) ? run + 1 : 0;
#pragma unroll
    for (u32 k = 0; k < N; k++) out[k] = hull_of(plan, ring, sight.row, run, first + k);
  }
};

}  // namespace atc
