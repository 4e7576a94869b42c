// The growth of the weight of returns; see growth.rs.

namespace atc {

__device__ __forceinline__ double power_of_two(double n) { return __longlong_as_double(((i64)n + 1023) << 52); }

__device__ __forceinline__ double exponential(double x) {
  if (x > 709.78) return __longlong_as_double(0x7fefffffffffffffLL);
  if (x < -708.0) return 0.0;
  double n = rint(x * 1.44269504088896338700);
  double r = (x - n * 6.931471803691238e-1) - n * 1.9082149292705877e-10;
  const double taylor[12] = {1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0,
                             1.0 / 362880.0,     1.0 / 40320.0,     1.0 / 5040.0,     1.0 / 720.0,
                             1.0 / 120.0,        1.0 / 24.0,        1.0 / 6.0,        0.5};
  double sum = taylor[0];
#pragma unroll
  for (u32 k = 1; k < 12; k++) sum = sum * r + taylor[k];
  double value = 1.0 + (r + (r * r) * sum);
  double half = floor(n * 0.5);
  return (value * power_of_two(half)) * power_of_two(n - half);
}

__device__ __forceinline__ double growth_factor(double rate, u32 cutout, u32 bar) {
  u32 at = max(bar, 1u);
  return at >= cutout ? exponential(rate * ((double)at - (double)cutout)) : 1.0;
}

}  // namespace atc
