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

// The weights of N lengths, from number `first` on.
template <u32 N>
struct OwnSmoothing {
  double a[N], b[N];

  __device__ __forceinline__ OwnSmoothing(const Smoothing& all, u32 first) {
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      a[k] = all.a[first + k];
      b[k] = all.b[first + k];
    }
  }
};

// N averages of one series, from the length number `first` on; weights are those of the N.
template <u32 N>
struct Exponential {
  u32 first, longest, n_seen, gap;
  DoubleDouble sum;
  double y[N];

  __device__ __forceinline__ Exponential(const u32* lengths, u32 first) : first(first), longest(0), n_seen(0), gap(0) {
    sum = DoubleDouble{0.0, 0.0};
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      y[k] = NA;
      longest = max(longest, lengths[first + k]);
    }
  }

  // PLAIN: all values so far are available, and at least as many as the longest seed has.
  template <bool PLAIN, class W>
  __device__ __forceinline__ void push(const W& weights, const u32* lengths, u32 bar, double x) {
    bool is_here = PLAIN || is_finite(x);
    if (is_here && (PLAIN || gap == 0)) {
#pragma unroll
      for (u32 k = 0; k < N; k++) y[k] = blend(y[k], x, weights.a[k], weights.b[k]);
    } else if (is_here) {
#pragma unroll
      for (u32 k = 0; k < N; k++) {
        u32 length = lengths[first + k];
        u32 missed = min(gap, bar > length ? bar - length : 0u);
        y[k] = after_gap(y[k], x, weights.a[k], weights.b[k], missed);
      }
    }
    if (PLAIN) return;
    if (bar < longest || n_seen == 0) {
      if (is_here) {
        sum = add(sum, x);
        n_seen++;
      }
#pragma unroll
      for (u32 k = 0; k < N; k++) {
        u32 length = lengths[first + k];
        if (bar + 1 == length && n_seen > 0) y[k] = divide(sum, (double)n_seen, 1.0 / (double)n_seen);
        else if (bar >= length && n_seen == 1 && is_here) y[k] = x;
      }
    }
    gap = is_here ? 0 : gap + 1;
  }
};

template <u32 N>
struct ExponentialStep {
  Exponential<N> averages;
  OwnSmoothing<N> weights;

  __device__ __forceinline__ ExponentialStep(const Plan& plan, u32 first)
      : averages(plan.lengths[0], first), weights(plan.ema, first) {}

  __device__ __forceinline__ void begin(const Plan&, const Ring&, u32) {}

  template <bool PLAIN>
  __device__ __forceinline__ void push(const Plan& plan, const Ring&, const Sight& sight, double* out) {
    averages.template push<PLAIN>(weights, plan.lengths[0], sight.bar, sight.x);
#pragma unroll
    for (u32 k = 0; k < N; k++) out[k] = averages.y[k];
  }
};

template <u32 N>
struct DoubleExponentialStep {
  Exponential<N> averages;
  OwnSmoothing<N> weights;
  double second[N];

  __device__ __forceinline__ DoubleExponentialStep(const Plan& plan, u32 first)
      : averages(plan.lengths[3], first), weights(plan.dema, first) {
#pragma unroll
    for (u32 k = 0; k < N; k++) second[k] = NA;
  }

  __device__ __forceinline__ void begin(const Plan&, const Ring&, u32) {}

  template <bool PLAIN>
  __device__ __forceinline__ void push(const Plan& plan, const Ring&, const Sight& sight, double* out) {
    averages.template push<PLAIN>(weights, plan.lengths[3], sight.bar, sight.x);
#pragma unroll
    for (u32 k = 0; k < N; k++) {
      double first = averages.y[k];
      double next = blend(second[k], first, weights.a[k], weights.b[k]);
      // The first of the averages is the seed of their average.
      second[k] = !PLAIN && is_nan(second[k]) ? first : next;
      out[k] = 2.0 * first - second[k];
    }
  }
};

}  // namespace atc
