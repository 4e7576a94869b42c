// A series' value when a condition was last true; see value_when.rs.

KERNEL(value_when, ColumnArgs) {
  const double* x = input_of(args, 1, blockIdx.x % args.count);
  fill_since(args, [x](u32 start, u32, bool any, u32 latest) {
    if (!any) return NA;
    double value = x[start + latest];
    return is_finite(value) ? value : NA;
  });
}
