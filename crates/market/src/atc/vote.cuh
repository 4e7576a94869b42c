// Crossings of price and average, and the vote of a family; see vote.rs.
//
// A signal is +1, −1 or 0: one bit for each of its two sides. Of the bar before, two more bits say all that a crossing needs.

namespace atc {

__device__ __forceinline__ double finish_vote(double votes, double weight, bool round) {
  double mean = votes / weight;
  return round ? rint(mean * 100.0) / 100.0 : mean;
}

// The same where equities are the weights, so that the mean is at most 1. Then a product and its correction are the quotient.
__device__ __forceinline__ double settle_vote(double votes, double weight, bool round) {
  double mean = votes / weight;
  if (!round) return mean;
  double whole = rint(mean * 100.0);
  double rounded = whole * 0.01;
  return fma(fma(-rounded, 100.0, whole), 0.01, rounded);
}

// The sums of a vote on their way through the lengths.
struct __align__(16) Tally { double votes, weight; };

// Below SMALL an equity stays finite through a tile of gains below CALM.
#define SMALL 1e200
#define CALM 1e6

// N lengths of a family.
template <u32 N>
struct Vote {
  u32 was_below, was_above, up, down;
  // The upper halves of the signals; the lower ones are 0.
  u32 signal[N];
  double equity[N];

  __device__ __forceinline__ Vote() : was_below(0), was_above(0), up(0), down(0) {
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      signal[k] = 0;
      equity[k] = NA;
    }
  }

  // Whether all equities are there, and small.
  __device__ __forceinline__ bool is_small() const {
    double sum = equity[0];
#pragma unroll
    for (u32 k = 1; k < N; k++) sum += equity[k];
    return sum < SMALL;
  }

  // PLAIN: the gain is calm, the equities were small when the tile began, and the bar is active. A signal is 1, −1 or 0, so
  // that its products with gain and equity are exact, and a fused multiply-add rounds as the sum alone does.
  template <bool PLAIN>
  __device__ __forceinline__ void push(const Plan& plan, double price, const double* averages, double gain, bool is_active,
                                       Tally& tally) {
    u32 above = 0, below = 0;
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      u32 bit = 1u << k;
      if (PLAIN) {
        double grown = (equity[k] * plan.keep) * fma(signal_of(k), gain, 1.0);
        equity[k] = grown < plan.floor ? plan.floor : grown;
      } else if (is_active) {
        Move change(gain);
        double factor = up & bit ? change.up : down & bit ? change.down : 1.0;
        equity[k] = next_equity(equity[k], factor, plan.start, plan.keep, plan.floor);
      }
      above |= price >= averages[k] ? bit : 0;
      below |= price <= averages[k] ? bit : 0;
    }
    u32 risen = above & ~below & was_below;
    u32 fallen = below & ~above & was_above;
    u32 kept = plan.flags & IMPULSE ? 0 : ~(risen | fallen);
    up = risen | (up & kept);
    down = fallen | (down & kept);
    was_above = above;
    was_below = below;
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      u32 bit = 1u << k;
      signal[k] = up & bit ? 0x3ff00000 : down & bit ? 0xbff00000 : 0;
      tally.votes = fma(signal_of(k), equity[k], tally.votes);
      tally.weight += equity[k];
    }
  }

  __device__ __forceinline__ double signal_of(u32 k) const { return __longlong_as_double((i64)((u64)signal[k] << 32)); }
};

// The vote of a family in the average: +1, −1 or 0.
__device__ __forceinline__ i32 cut(const Plan& plan, double signal) {
  return signal > plan.long_cut ? 1 : signal < plan.short_cut ? -1 : 0;
}

__device__ __forceinline__ i32 class_of(const Plan& plan, double average) {
  return average > plan.long_threshold ? 1 : average < plan.short_threshold ? -1 : 0;
}

// The average of the families' votes at a bar; vote(family) and equity(family) give them.
template <class Votes, class Equities>
__device__ __forceinline__ double average_of(const Plan& plan, u32 bar, const Votes& vote, const Equities& equity) {
  bool is_out = bar < plan.cutout;
  bool skip = plan.flags & SKIP;
  double votes = 0.0, weight = 0.0;
  for (u32 family = 0; family < N_FAMILIES; family++) {
    double here = equity(family);
    here = skip && is_nan(here) ? 0.0 : here;
    votes += (is_out ? 0.0 : (double)vote(family)) * here;
    weight += here;
  }
  double average = votes / weight;
  average = is_finite(average) ? average : 0.0;
  return skip && is_out ? NA : average;
}

}  // namespace atc
