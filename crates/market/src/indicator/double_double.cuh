// Numbers of about 106 significant bits, as the unevaluated sum of two doubles; see double_double.rs.

struct __align__(16) DoubleDouble { double hi, lo; };

__device__ __forceinline__ DoubleDouble two_sum(double a, double b) {
  double hi = a + b;
  double b_part = hi - a;
  double a_part = hi - b_part;
  return DoubleDouble{hi, (a - a_part) + (b - b_part)};
}

__device__ __forceinline__ DoubleDouble fast_two_sum(double a, double b) {
  double hi = a + b;
  return DoubleDouble{hi, b - (hi - a)};
}

__device__ __forceinline__ DoubleDouble split(double a) {
  double c = 134217729.0 * a;
  double hi = c - (c - a);
  return DoubleDouble{hi, a - hi};
}

__device__ __forceinline__ DoubleDouble two_prod(double a, double b) {
  double hi = a * b;
  DoubleDouble x = split(a);
  DoubleDouble y = split(b);
  double lo = (((x.hi * y.hi - hi) + x.hi * y.lo) + x.lo * y.hi) + x.lo * y.lo;
  return DoubleDouble{hi, lo};
}

__device__ __forceinline__ DoubleDouble add(DoubleDouble a, double b) {
  DoubleDouble s = two_sum(a.hi, b);
  return fast_two_sum(s.hi, s.lo + a.lo);
}

__device__ __forceinline__ DoubleDouble add(DoubleDouble a, DoubleDouble b) {
  DoubleDouble s = two_sum(a.hi, b.hi);
  return fast_two_sum(s.hi, s.lo + (a.lo + b.lo));
}

__device__ __forceinline__ DoubleDouble subtract(DoubleDouble a, DoubleDouble b) {
  return add(a, DoubleDouble{-b.hi, -b.lo});
}

__device__ __forceinline__ DoubleDouble multiply(DoubleDouble a, double b) {
  DoubleDouble p = two_prod(a.hi, b);
  return fast_two_sum(p.hi, p.lo + a.lo * b);
}

__device__ __forceinline__ DoubleDouble square(DoubleDouble a) {
  DoubleDouble p = two_prod(a.hi, a.hi);
  return fast_two_sum(p.hi, p.lo + 2.0 * (a.hi * a.lo));
}

__device__ __forceinline__ double divide(DoubleDouble a, double divisor, double reciprocal) {
  double q = a.hi * reciprocal;
  DoubleDouble p = two_prod(q, divisor);
  double remainder = ((a.hi - p.hi) - p.lo) + a.lo;
  return q + remainder * reciprocal;
}
