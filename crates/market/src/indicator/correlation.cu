// Correlation of two series over a window; see correlation.rs.

__device__ double correlation_of(const double* x, const double* y, u32 w) {
  double mean_x = 0.0, mean_y = 0.0;
  bool x_varies = false, y_varies = false;
  for (u32 k = 0; k < w; k++) {
    if (!is_finite(x[k]) || !is_finite(y[k])) return NA;
    mean_x += x[k];
    mean_y += y[k];
    x_varies |= x[k] != x[0];
    y_varies |= y[k] != y[0];
  }
  mean_x /= (double)w;
  mean_y /= (double)w;
  double xx = 0.0, yy = 0.0, xy = 0.0;
  for (u32 k = 0; k < w; k++) {
    double dx = x[k] - mean_x, dy = y[k] - mean_y;
    xx += dx * dx;
    yy += dy * dy;
    xy += dx * dy;
  }
  double size = sqrt(xx) * sqrt(yy);
  if (!(x_varies && y_varies && size > 0.0)) return NA;
  double ratio = xy / size;
  return ratio > 1.0 ? 1.0 : ratio < -1.0 ? -1.0 : ratio;
}

KERNEL(correlation, ColumnArgs) {
  u32 j = blockIdx.x % args.count;
  u32 w = window_of(args, 0, j);
  const double* x = input_of(args, 0, j);
  const double* y = input_of(args, 1, j);
  fill_bars(args, output_of(args, j), [&](u32, u32 start, u32, u32 bar) {
    if (!w || bar + 1 < w) return NA;
    u32 first = start + (bar + 1 - w);
    return correlation_of(x + first, y + first, w);
  });
}
