// How kernels find their columns.
//
// All symbols' bars lie one after another: symbol s has the bars start[s] .. start[s + 1]. A pool holds columns of one
// kind, item after item; trials say which item of a pool they use. A call makes the items first .. first + count, each
// as the trial `trial[j]` wants it.
//
// With POINTS_ONLY defined the texts hold what other kernels need to have a value at one bar, and no kernels.

struct Input {
  const double* pool;
  // Doubles from one item to the next.
  u64 stride;
  // The item of each trial; null: item 0 for all.
  const u32* item_of;
};

struct ColumnArgs {
  Input inputs[3];
  // arguments[k][trial]
  const double* arguments[3];
  const u32* trial;
  double* out;
  u64 out_stride;
  // First bar of each symbol, and one past the last.
  const u32* start;
  // The same for the 64-bit words of masks.
  const u32* word_start;
  double* scratch;
  u64 scratch_stride;
  u32 first, count, n_symbols, n_bars;
  // Into how many stretches averages that forget may cut the bars of a symbol.
  u32 stretches, unused;
};

#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

__device__ __forceinline__ bool is_finite(double x) { return fabs(x) < INFINITE; }

__device__ __forceinline__ bool is_complete(double high, double low, double close) {
  return is_finite(high) && is_finite(low) && is_finite(close);
}

// A scalar as a window length: 0 where it makes no sense.
__device__ __forceinline__ u32 window(double scalar) {
  return scalar >= 1.0 && scalar < 4294967295.0 ? (u32)scalar : 0;
}

// The window that new item j has as its k-th argument.
__device__ __forceinline__ u32 window_of(const ColumnArgs& args, u32 k, u32 j) {
  return window(args.arguments[k][args.trial[j]]);
}

// The item that new item j has as its k-th input.
__device__ __forceinline__ const double* input_of(const ColumnArgs& args, u32 k, u32 j) {
  const Input& in = args.inputs[k];
  return in.pool + (in.item_of ? (u64)in.item_of[args.trial[j]] * in.stride : 0);
}

__device__ __forceinline__ double* output_of(const ColumnArgs& args, u32 j) {
  return args.out + (u64)(args.first + j) * args.out_stride;
}

__device__ __forceinline__ double* scratch_of(const ColumnArgs& args, u32 j) {
  return args.scratch + (u64)j * args.scratch_stride;
}

// The symbol that has the bar: the last one that starts there or before.
__device__ __forceinline__ u32 symbol_of(const ColumnArgs& args, u32 bar) {
  u32 low = 0, high = args.n_symbols;
  while (high - low > 1) {
    u32 middle = (low + high) / 2;
    if (args.start[middle] <= bar) low = middle;
    else high = middle;
  }
  return low;
}

// Kernels with one thread per bar: blocks of 256 threads, each of which has four bars of one item. Neighbouring blocks
// have the same bars of different items, which mostly read the same inputs.
#define BAR_THREADS 256
#define BARS_PER_BLOCK 1024

// Calls value(symbol, first bar of the symbol, its number of bars, bar in the symbol), with which `out` is filled.
template <class Value>
__device__ __forceinline__ void fill_bars(const ColumnArgs& args, double* out, const Value& value) {
  u32 first = blockIdx.x / args.count * BARS_PER_BLOCK;
  for (u32 k = 0; k < BARS_PER_BLOCK; k += BAR_THREADS) {
    u64 bar = (u64)first + k + threadIdx.x;
    if (bar >= args.n_bars) return;
    u32 symbol = symbol_of(args, (u32)bar);
    u32 start = args.start[symbol];
    out[bar] = value(symbol, start, args.start[symbol + 1] - start, (u32)bar - start);
  }
}
