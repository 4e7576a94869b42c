// Pointwise operations on single values. Twin of point.rs; truth as a number is 1 true, 0 false, NaN not available.

__device__ inline double truth(bool value) { return value ? 1.0 : 0.0; }
__device__ inline bool is_na(double a) { return a != a; }

__device__ inline double minimum(double a, double b) { return a < b ? a : (b <= a ? b : NA); }
__device__ inline double maximum(double a, double b) { return a > b ? a : (b >= a ? b : NA); }

// The sum of what all lanes of a warp have.
template <class T> __device__ inline T sum_of(T value) {
  for (u32 by = 16; by > 0; by /= 2) value += __shfl_xor_sync(0xffffffffu, value, by);
  return value;
}

__device__ inline double known(double a, double b, bool value) { return is_na(a) || is_na(b) ? NA : truth(value); }
__device__ inline double less(double a, double b) { return known(a, b, a < b); }
__device__ inline double less_equal(double a, double b) { return known(a, b, a <= b); }
__device__ inline double greater(double a, double b) { return known(a, b, a > b); }
__device__ inline double greater_equal(double a, double b) { return known(a, b, a >= b); }
__device__ inline double equal(double a, double b) { return known(a, b, a == b); }
__device__ inline double not_equal(double a, double b) { return known(a, b, a != b); }
__device__ inline double both(double a, double b) { return a == 0.0 || b == 0.0 ? 0.0 : (a == 1.0 && b == 1.0 ? 1.0 : NA); }
__device__ inline double either(double a, double b) { return a == 1.0 || b == 1.0 ? 1.0 : (a == 0.0 && b == 0.0 ? 0.0 : NA); }
__device__ inline double choose(double c, double a, double b) { return c == 1.0 ? a : (c == 0.0 ? b : NA); }
