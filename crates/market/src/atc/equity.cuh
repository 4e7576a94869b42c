// Returns, and the equity of a signal that trades them; see equity.rs.

namespace atc {

// What a bar multiplies the equity of a long and of a short position by.
struct Move {
  double up, down;

  __device__ __forceinline__ explicit Move(double gain) : up(1.0 + gain), down(1.0 - gain) {}
};

struct Returns {
  double before;

  __device__ __forceinline__ Returns() : before(NA) {}

  // What the bar gains, never NaN.
  __device__ __forceinline__ double push(const Plan& plan, double price, double growth) {
    if (plan.flags & FORWARD_FILL && is_nan(price)) price = before;
    double change = price / before - 1.0;
    if (before == 0.0 && !(plan.flags & IEEE_ZERO)) change = 0.0;
    before = price;
    double gain = change * growth;
    return is_nan(gain) ? 0.0 : gain;
  }
};

__device__ __forceinline__ double next_equity(double before, double factor, double start, double keep, double floor) {
  double grown = (before * keep) * factor;
  double equity = is_nan(before) ? start : grown;
  return equity < floor ? floor : equity;
}

__device__ __forceinline__ double factor_of(double signal, const Move& change) {
  return signal > 0.0 ? change.up : signal < 0.0 ? change.down : 1.0;
}

// The equity of a family in layer 2.
struct Account {
  double equity, signal;

  __device__ __forceinline__ Account() : equity(NA), signal(NA) {}

  __device__ __forceinline__ void push(const Plan& plan, const Move& change, double start, bool is_active, double now) {
    if (is_active) equity = next_equity(equity, factor_of(signal, change), start, plan.keep, plan.floor);
    signal = now;
  }
};

}  // namespace atc
