// Logarithm of a ratio; see log_ratio.rs.

__device__ __forceinline__ double natural_logarithm(double x) {
  const u64 ROOT = 0x3fe6a09e;
  if (!(x > 0.0 && is_finite(x))) return NA;
  i32 k = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0;
    k = -54;
  }
  u64 bits = (u64)__double_as_longlong(x);
  u64 high = (bits >> 32) + (0x3ff00000 - ROOT);
  k += (i32)(high >> 20) - 0x3ff;
  double m = __longlong_as_double((i64)(((high & 0x000fffff) + ROOT) << 32 | (bits & 0xffffffff)));
  double f = m - 1.0;
  double half_square = 0.5 * f * f;
  double s = f / (2.0 + f);
  double z = s * s;
  double w = z * z;
  double even = w * (0.3999999999940942 + w * (0.22222198432149784 + w * 0.15313837699209373));
  double odd = z * (0.6666666666666735 +
                    w * (0.2857142874366239 + w * (0.1818357216161805 + w * 0.14798198605116586)));
  double r = odd + even;
  double exponent = (double)k;
  return s * (half_square + r) + exponent * 1.9082149292705877e-10 - half_square + f +
         exponent * 0.6931471803691238;
}

KERNEL(log_ratio, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  const double* x = input_of(args, 0, j);
  const double* y = input_of(args, 1, j);
  fill_bars(args, output_of(args, j), [&](u32, u32 start, u32, u32 bar) {
    return natural_logarithm(x[start + bar] / y[start + bar]);
  });
}
