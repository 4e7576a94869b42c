// Kaufman's adaptive averages in two variants; see adaptive.rs.

namespace atc {

#define LEAST 1e-10

__device__ __forceinline__ double way_between(DoubleDouble now, DoubleDouble then) {
  DoubleDouble s = two_sum(now.hi, -then.hi);
  return s.hi + (s.lo + (now.lo - then.lo));
}

// The next average of the variant `pine`, from the value `length` bars ago and the way since then.
__device__ __forceinline__ double pine_next(double y, double x, double old, double way, double range, double slowest) {
  double net = fabs(x - old);
  double ratio = way == 0.0 ? 0.0 : net / way;
  double root = ratio * range + slowest;
  double from = is_nan(y) ? x : y;
  return from + (root * root) * (x - from);
}

// Entries of the ring: the way walked up to a bar, and the bar's value.
template <bool HEAD>
struct AdaptiveStep {
  Ring ring;
  DoubleDouble way;
  double before;
  u32 bar, numbers, bounded;
  double y[N_LENGTHS];

  __device__ __forceinline__ AdaptiveStep(const Plan&, Ring ring)
      : ring(ring), before(NA), bar(0), numbers(0), bounded(0) {
    way = DoubleDouble{0.0, 0.0};
    ring.first(0) = make_double2(0.0, 0.0);
    ring.second(0) = make_double2(NA, 0.0);
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) y[k] = NA;
  }

  __device__ __forceinline__ void push(const Plan& plan, double x, double* out) {
    if (bar > 0) {
      double size = fabs(x - before);
      if (is_finite(size)) way = add(way, size);
      numbers = is_nan(size) ? 0 : numbers + 1;
      bounded = size == INFINITE ? 0 : bounded + 1;
    }
    ring.advance();
    ring.first(ring.latest) = make_double2(way.hi, way.lo);
    ring.second(ring.latest).x = x;
    before = x;
    if (HEAD) push_head(plan, x);
    else push_pine(plan, x);
    bar++;
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) out[k] = y[k];
  }

  __device__ __forceinline__ double walked(u32 place) const { return way_between(way, pair(ring.first(place))); }

  __device__ __forceinline__ void push_pine(const Plan& plan, double x) {
    bool is_whole = min(numbers, bounded) >= bar;
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) {
      u32 length = plan.lengths[5][k];
      u32 place = ring.before(length);
      double length_of_way = walked(place);
      if (!is_whole) {
        if (numbers < length) length_of_way = NA;
        else if (bounded < length) length_of_way = INFINITE;
      }
      double old = ring.second(place).x;
      double next = pine_next(y[k], x, old, length_of_way, plan.kama_range, plan.kama_slowest);
      if (bar >= length) y[k] = next;
      else if (bar == 0) y[k] = x;
    }
  }

  __device__ __forceinline__ void push_head(const Plan& plan, double x) {
    if (!is_finite(x)) return;
    u32 moves = min(numbers, bounded);
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) {
      u32 length = plan.lengths[5][k];
      if (is_nan(y[k])) y[k] = x;
      if (bar < length) continue;
      double net = fabs(x - ring.second(ring.before(length)).x);
      net = is_nan(net) ? 0.0 : net;
      double length_of_way = walked(ring.before(length - 1));
      bool is_way = moves + 1 >= length && fabs(length_of_way) < INFINITE && length_of_way != 0.0;
      double ratio = net / (is_way ? length_of_way : LEAST);
      ratio = ratio == INFINITE ? 0.0 : ratio;
      ratio = ratio > 1.0 ? 1.0 : ratio;
      double root = ratio * plan.kama_range + plan.kama_slowest;
      double factor = root * root;
      factor = factor > 1.0 ? 1.0 : factor;
      factor = factor < LEAST ? LEAST : factor;
      y[k] += factor * (x - y[k]);
    }
  }
};

}  // namespace atc
