// Kaufman's adaptive averages in two variants; see adaptive.rs.

namespace atc {

#define LEAST 1e-10

template <bool TAME>
__device__ __forceinline__ double way_between(DoubleDouble now, DoubleDouble then) {
  DoubleDouble s = loose_difference<TAME>(now, then);
  return s.hi + s.lo;
}

// N averages from the length number `first` on.
template <bool HEAD, u32 N>
struct AdaptiveStep {
  u32 first;
  // How many of the latest moves are numbers, and how many are not infinite.
  u32 numbers, bounded;
  double before;
  // The rows of the bars a length before the tile's first one.
  u32 then[N];
  double y[N];

  __device__ __forceinline__ AdaptiveStep(const Plan&, u32 first) : first(first), numbers(0), bounded(0), before(NA) {
#pragma unroll
    for (u32 k = 0; k < N; k++) y[k] = NA;
  }

  __device__ __forceinline__ void begin(const Plan& plan, const Ring& ring, u32 row) {
#pragma unroll
    for (u32 k = 0; k < N; k++) then[k] = opaque(ring.before(row, plan.lengths[5][first + k]));
  }

  template <bool PLAIN>
  __device__ __forceinline__ void push(const Plan& plan, const Ring& ring, const Sight& sight, double* out) {
    if (PLAIN) {
      numbers++;
      bounded++;
    } else if (sight.bar > 0) {
      double size = fabs(sight.x - before);
      numbers = is_nan(size) ? 0 : numbers + 1;
      bounded = size == INFINITE ? 0 : bounded + 1;
    }
    before = sight.x;
    if (HEAD) push_head(plan, ring, sight);
    else push_pine<PLAIN>(plan, ring, sight);
#pragma unroll
    for (u32 k = 0; k < N; k++) out[k] = y[k];
  }

  // PLAIN: all values so far are tame and available, and there is a bar a length before this one.
  template <bool PLAIN>
  __device__ __forceinline__ void push_pine(const Plan& plan, const Ring& ring, const Sight& sight) {
    double x = sight.x;
    DoubleDouble now = pair(ring.way(sight.now));
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      u32 length = plan.lengths[5][first + k], at = then[k] + sight.onward;
      double way = way_between<PLAIN>(now, pair(ring.way(at)));
      if (!PLAIN) {
        if (sight.bar == 0) y[k] = x;
        if (sight.bar < length) continue;
        if (min(numbers, bounded) < sight.bar) {
          if (numbers < length) way = NA;
          else if (bounded < length) way = INFINITE;
        }
      }
      double net = fabs(x - ring.value(at));
      double ratio = way == 0.0 ? 0.0 : net / way;
      double root = ratio * plan.kama_range + plan.kama_slowest;
      double from = !PLAIN && is_nan(y[k]) ? x : y[k];
      y[k] = from + (root * root) * (x - from);
    }
  }

  __device__ __forceinline__ void push_head(const Plan& plan, const Ring& ring, const Sight& sight) {
    double x = sight.x;
    if (!is_finite(x)) return;
    DoubleDouble now = pair(ring.way(sight.now));
    u32 moves = min(numbers, bounded);
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      u32 length = plan.lengths[5][first + k];
      if (is_nan(y[k])) y[k] = x;
      if (sight.bar < length) continue;
      double net = fabs(x - ring.value(then[k] + sight.onward));
      net = is_nan(net) ? 0.0 : net;
      double way = way_between<false>(now, pair(ring.way(ring.before(sight.row, length - 1))));
      bool is_way = moves + 1 >= length && fabs(way) < INFINITE && way != 0.0;
      double ratio = net / (is_way ? way : LEAST);
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
