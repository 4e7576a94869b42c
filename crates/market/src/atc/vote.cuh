// Crossings of price and average, and the vote of a family; see vote.rs.
//
// A signal is +1, −1 or 0: one bit for each of its two sides. Of the bar before, two more bits say all that a crossing needs.

namespace atc {

__device__ __forceinline__ double finish_vote(double votes, double weight, bool round) {
  double mean = votes / weight;
  return round ? rint(mean * 100.0) / 100.0 : mean;
}

struct Vote {
  u32 was_below, was_above, up, down;
  double equity[N_LENGTHS];

  __device__ __forceinline__ Vote() : was_below(0), was_above(0), up(0), down(0) {
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) equity[k] = NA;
  }

  __device__ __forceinline__ double push(const Plan& plan, double price, const double* averages, const Move& change,
                                         bool is_active) {
    u32 above = 0, below = 0, risen = 0, fallen = 0;
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) {
      u32 bit = 1u << k;
      if (is_active) {
        double factor = up & bit ? change.up : down & bit ? change.down : 1.0;
        equity[k] = next_equity(equity[k], factor, plan.start, plan.keep, plan.floor);
      }
      bool is_equal = price == averages[k];
      bool is_above = price > averages[k];
      bool is_below = price < averages[k];
      above |= is_above || is_equal ? bit : 0;
      below |= is_below || is_equal ? bit : 0;
      risen |= is_above ? bit : 0;
      fallen |= is_below ? bit : 0;
    }
    risen &= was_below;
    fallen &= was_above;
    u32 kept = plan.flags & IMPULSE ? 0 : ~(risen | fallen);
    up = risen | (up & kept);
    down = fallen | (down & kept);
    was_above = above;
    was_below = below;
    double votes = 0.0, weight = 0.0;
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) {
      u32 bit = 1u << k;
      double signal = up & bit ? 1.0 : down & bit ? -1.0 : 0.0;
      votes += signal * equity[k];
      weight += equity[k];
    }
    return finish_vote(votes, weight, plan.flags & ROUND);
  }
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
