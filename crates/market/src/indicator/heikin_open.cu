// Open of Heikin-Ashi bars; see heikin_open.rs.

struct HeikinOpenStep {
  double y, before;
  bool seen;

  __device__ __forceinline__ HeikinOpenStep(const ColumnArgs&, u32, const double* const*)
      : y(0.0), before(0.0), seen(false) {}

  __device__ __forceinline__ double push(const double* v, u32) {
    if (!is_complete(v[0], v[1], v[2])) return NA;
    y = seen ? (y + before) / 2.0 : (v[0] + v[1]) / 2.0;
    before = v[2];
    seen = true;
    return y;
  }
};

KERNEL(heikin_open, ColumnArgs) { recurse<3, HeikinOpenStep>(args); }
