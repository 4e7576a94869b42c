// Averages that run along time: one lane per item and symbol.
//
// A warp has 32 items of one symbol. It goes through the bars in tiles of 32: inputs are read for all lanes together,
// once where all items read the same column, and results leave through a transposed tile, so that neighbouring lanes
// read and write neighbouring bars. A `Step` is what one lane carries from bar to bar: `Step(args, j, x)` begins with
// the parts of the input columns that the symbol has, `push(v, bar)` takes the next bar in.

#define RECURSION_BARS 32

// Reads one bar for each lane of some items from `first` on, or the last bar where there are no more. All reads are under way at the same time. They
// are of columns that earlier launches have finished.
template <u32 COUNT>
__device__ __forceinline__ void read_items(const double* mine, u32 first, u32 from, u32 n, double* read) {
  u64 bar = min(from + (u64)threadIdx.x, n - 1ull);
#pragma unroll
  for (u32 item = 0; item < COUNT; item++) {
    const double* column = (const double*)__shfl_sync(~0u, (u64)mine, first + item);
    read[item] = __ldg(column + bar);
  }
}

template <u32 N, class Step>
__device__ __forceinline__ void recurse(const ColumnArgs& args) {
  // Inputs of each item, where they differ; results take the place of the first one. A column more than there are
  // bars, because the next bar is read while one is computed and because the banks then differ.
  __shared__ double tile[N][32][RECURSION_BARS + 1];
  // Inputs that all items share.
  __shared__ double row[N][RECURSION_BARS + 1];
  u32 lane = threadIdx.x;
  u32 n_groups = (args.count + 31) / 32;
  u32 symbol = blockIdx.x / n_groups;
  u32 first = blockIdx.x % n_groups * 32;
  u32 n_items = min(args.count - first, 32u);
  // Lanes without an item of their own do the last one's work again and do not write.
  u32 j = first + min(lane, n_items - 1);
  u32 start = args.start[symbol];
  u32 n = args.start[symbol + 1] - start;
  const double* x[N];
  bool shared[N];
  double ahead[N];
  // A single input is read a tile ahead even where items differ; there are registers for that.
  const u32 N_AHEAD = N == 1 ? 32 : 16;
  double items_ahead[N_AHEAD];
  for (u32 k = 0; k < N; k++) {
    x[k] = input_of(args, k, j) + start;
    shared[k] = __all_sync(~0u, (u64)x[k] == __shfl_sync(~0u, (u64)x[k], 0));
    ahead[k] = shared[k] && lane < n ? x[k][lane] : 0.0;
  }
  if (N == 1 && !shared[0] && n > 0) read_items<N_AHEAD>(x[0], 0, 0, n, items_ahead);
  Step step(args, j, x);
  double* out = output_of(args, first) + start;
  for (u32 from = 0; from < n; from += RECURSION_BARS) {
    u32 n_bars = min(n - from, (u32)RECURSION_BARS);
    for (u32 k = 0; k < N; k++) {
      if (shared[k]) {
        // Read one tile ahead, so that the wait for memory falls into the arithmetic.
        row[k][lane] = ahead[k];
        u64 next = (u64)from + RECURSION_BARS + lane;
        ahead[k] = next < n ? x[k][next] : 0.0;
      } else {
        for (u32 first_item = 0; first_item < 32; first_item += N_AHEAD) {
          if (N > 1) read_items<N_AHEAD>(x[k], first_item, from, n, items_ahead);
#pragma unroll
          for (u32 item = 0; item < N_AHEAD; item++) tile[k][first_item + item][lane] = items_ahead[item];
        }
        if (N == 1 && from + RECURSION_BARS < n) read_items<N_AHEAD>(x[k], 0, from + RECURSION_BARS, n, items_ahead);
      }
    }
    __syncwarp();
    double v[N], next[N];
    const double* source[N];
    for (u32 k = 0; k < N; k++) {
      source[k] = shared[k] ? row[k] : tile[k][lane];
      v[k] = source[k][0];
    }
    for (u32 bar = 0; bar < n_bars; bar++) {
      for (u32 k = 0; k < N; k++) next[k] = source[k][bar + 1];
      tile[0][lane][bar] = step.push(v, from + bar);
      for (u32 k = 0; k < N; k++) v[k] = next[k];
    }
    __syncwarp();
    for (u32 item = 0; item < n_items; item++) {
      if (lane < n_bars) out[(u64)item * args.out_stride + from + lane] = tile[0][item][lane];
    }
    __syncwarp();
  }
}

// A division by the same number again and again.
//
// The bits are those of `/`: a quotient from the reciprocal, off by less than two units in the last place, is made
// better once and then, by Markstein's theorem, rounded correctly. It needs remainders without underflow, so other
// numbers are divided plainly.
struct Divisor {
  double divisor, reciprocal;

  __device__ __forceinline__ explicit Divisor(u32 w) : divisor((double)w), reciprocal(1.0 / (double)w) {}

  __device__ __forceinline__ double divide(double a) const {
    double size = fabs(a);
    if (!(size > 1e-250 && size < 1e250)) return a / divisor;
    double q = a * reciprocal;
    q = fma(fma(-q, divisor, a), reciprocal, q);
    return fma(fma(-q, divisor, a), reciprocal, q);
  }
};
