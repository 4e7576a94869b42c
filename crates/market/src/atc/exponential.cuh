// Exponential and double exponential averages; see exponential.rs.

namespace atc {

__device__ __forceinline__ double blend(double y, double x, double a, double b) {
  double next = b * y + a * x;
  return y == x ? y : next;
}

__device__ __forceinline__ double after_gap(double y, double x, double a, double b, u32 missed) {
  if (missed == 0) return blend(y, x, a, b);
  double weight = b;
#pragma unroll 1
  for (u32 i = 0; i < missed; i++) weight *= b;
  return y == x ? y : (weight * y + a * x) / (weight + a);
}

// N averages of one series.
template <u32 N>
struct Exponential {
  u32 longest, bar, n_seen, gap;
  DoubleDouble sum;
  double y[N];

  __device__ __forceinline__ explicit Exponential(const u32* lengths) : longest(0), bar(0), n_seen(0), gap(0) {
    sum = DoubleDouble{0.0, 0.0};
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      y[k] = NA;
      longest = max(longest, lengths[k]);
    }
  }

  __device__ __forceinline__ void push(const double* a, const double* b, const u32* lengths, double x) {
    bool is_here = is_finite(x);
    if (is_here && gap == 0) {
#pragma unroll
      for (u32 k = 0; k < N; k++) y[k] = blend(y[k], x, a[k], b[k]);
    } else if (is_here) {
#pragma unroll
      for (u32 k = 0; k < N; k++) {
        u32 missed = min(gap, bar > lengths[k] ? bar - lengths[k] : 0u);
        y[k] = after_gap(y[k], x, a[k], b[k], missed);
      }
    }
    if (bar < longest || n_seen == 0) {
      if (is_here) {
        sum = add(sum, x);
        n_seen++;
      }
#pragma unroll
      for (u32 k = 0; k < N; k++) {
        if (bar + 1 == lengths[k] && n_seen > 0) y[k] = divide(sum, (double)n_seen, 1.0 / (double)n_seen);
        else if (bar >= lengths[k] && n_seen == 1 && is_here) y[k] = x;
      }
    }
    gap = is_here ? 0 : gap + 1;
    bar++;
  }
};

// The average of an average: the first of those is its seed.
__device__ __forceinline__ double blend_second(double second, double first, double a, double b) {
  double next = blend(second, first, a, b);
  return is_nan(second) ? first : next;
}

struct ExponentialStep {
  Exponential<N_LENGTHS> averages;

  __device__ __forceinline__ ExponentialStep(const Plan& plan, Ring) : averages(plan.lengths[0]) {}

  __device__ __forceinline__ void push(const Plan& plan, double x, double* out) {
    averages.push(plan.ema.a, plan.ema.b, plan.lengths[0], x);
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) out[k] = averages.y[k];
  }
};

struct DoubleExponentialStep {
  Exponential<N_LENGTHS> first;
  double second[N_LENGTHS];

  __device__ __forceinline__ DoubleExponentialStep(const Plan& plan, Ring) : first(plan.lengths[3]) {
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) second[k] = NA;
  }

  __device__ __forceinline__ void push(const Plan& plan, double x, double* out) {
    first.push(plan.dema.a, plan.dema.b, plan.lengths[3], x);
#pragma unroll
    for (u32 k = 0; k < N_LENGTHS; k++) {
      second[k] = blend_second(second[k], first.y[k], plan.dema.a[k], plan.dema.b[k]);
      out[k] = 2.0 * first.y[k] - second[k];
    }
  }
};

}  // namespace atc
