// Prefix sums and what is made of them; see prefix.rs.
//
// An item holds n + 1 entries per symbol, those of symbol s from start[s] + s on: first the sums of all entries, then
// their counts. Three passes make it: sums inside blocks of 256 bars, one lane per block; the entries at the ends of
// blocks, which are the offsets of the next ones, one after another; and the offsets added to all other entries.

// Sums of values, and of their squares or of index times value.
struct __align__(16) PairSums { DoubleDouble sum, other; };

// Values not available among the first e bars, and bars up to and including e that differ from the one before. The last entry has no bar, and
// its changes are a summary of the symbol: the first bar from which on every value is available, and QUIET if some stretch of SUM_BARS bars
// from a multiple of that on has one value. Where it says enough about a window, no other count is read.
struct __align__(8) Counts { u32 missing, changes; };

#define SUM_BLOCK 256
#define SUM_BARS 16
#define QUIET 0x80000000u
// Until the second pass the last entry of a block has its own summary beside what is missing in it.
#define OF_BLOCK_SHIFT 16

__device__ __forceinline__ bool is_available(double v) { return fabs(v) <= 1e120; }

// Which sums an entry has.
struct ValueSums {
  typedef DoubleDouble Entry;
  static __device__ __forceinline__ Entry zero() { return DoubleDouble{0.0, 0.0}; }
  static __device__ __forceinline__ Entry next(Entry total, double v, u32) { return add(total, v); }
  static __device__ __forceinline__ Entry join(Entry a, Entry b) { return add(a, b); }
};

struct SquareSums {
  typedef PairSums Entry;
  static __device__ __forceinline__ Entry zero() { return PairSums{{0.0, 0.0}, {0.0, 0.0}}; }
  static __device__ __forceinline__ Entry next(Entry total, double v, u32) {
    return PairSums{add(total.sum, v), add(total.other, two_prod(v, v))};
  }
  static __device__ __forceinline__ Entry join(Entry a, Entry b) {
    return PairSums{add(a.sum, b.sum), add(a.other, b.other)};
  }
};

struct IndexSums {
  typedef PairSums Entry;
  static __device__ __forceinline__ Entry zero() { return SquareSums::zero(); }
  static __device__ __forceinline__ Entry next(Entry total, double v, u32 bar) {
    return PairSums{add(total.sum, v), add(total.other, two_prod((double)bar, v))};
  }
  static __device__ __forceinline__ Entry join(Entry a, Entry b) { return SquareSums::join(a, b); }
};

// Entries of all symbols together.
__device__ __forceinline__ u32 n_entries(const ColumnArgs& args) { return args.n_bars + args.n_symbols; }

template <class Entry>
__device__ __forceinline__ const Entry* sums_of(const double* item, u32 start, u32 symbol) {
  return (const Entry*)item + start + symbol;
}

template <class Entry>
__device__ __forceinline__ const Counts* counts_of(const ColumnArgs& args, const double* item, u32 start, u32 symbol) {
  return (const Counts*)((const Entry*)item + n_entries(args)) + start + symbol;
}

#ifndef POINTS_ONLY
#define SUM_ROWS 32

// Pass 1. A warp has 32 blocks of one symbol, a lane each; tiles of 16 bars go through shared memory, so that
// neighbouring lanes read and write neighbouring bars. Grid: (item, symbol) by groups of 32 blocks.
template <class Sums>
__device__ void sum_blocks(const ColumnArgs& args, const double* column, double* item) {
  typedef typename Sums::Entry Entry;
  __shared__ double values[SUM_ROWS][SUM_BARS + 1];
  __shared__ Entry sums[SUM_ROWS][SUM_BARS + 1];
  __shared__ Counts counted[SUM_ROWS][SUM_BARS + 1];
  u32 symbol = blockIdx.x / args.count;
  u32 start = args.start[symbol];
  u32 n = args.start[symbol + 1] - start;
  const double* x = column + start;
  Entry* out = (Entry*)sums_of<Entry>(item, start, symbol);
  Counts* counts = (Counts*)counts_of<Entry>(args, item, start, symbol);
  u32 lane = threadIdx.x;
  if (blockIdx.y == 0 && lane == 0) {
    out[0] = Sums::zero();
    counts[0].missing = 0;
    if (n == 0) counts[n].changes = 0;
  }
  for (u64 chunk = (u64)blockIdx.y * SUM_ROWS * SUM_BLOCK; chunk < n; chunk += (u64)gridDim.y * SUM_ROWS * SUM_BLOCK) {
    u64 mine = chunk + lane * SUM_BLOCK;
    Entry total = Sums::zero();
    u32 missing = 0, changes = 0;
    // The summary of the block: bars up to the last that is not available, and whether a stretch is quiet.
    u32 gap = 0, quiet = 0;
    double previous = mine < n ? x[mine ? mine - 1 : 0] : 0.0;
    for (u32 from = 0; from < SUM_BLOCK; from += SUM_BARS) {
      // All reads under way at once; past the end the last bar again, which is not kept.
      double read[SUM_ROWS / 2];
#pragma unroll
      for (u32 pair = 0; pair < SUM_ROWS / 2; pair++) {
        u64 bar = chunk + (2 * pair + lane / SUM_BARS) * SUM_BLOCK + from + lane % SUM_BARS;
        read[pair] = x[bar < n ? bar : n - 1];
      }
#pragma unroll
      for (u32 pair = 0; pair < SUM_ROWS / 2; pair++) values[2 * pair + lane / SUM_BARS][lane % SUM_BARS] = read[pair];
      __syncwarp();
      u32 inside = 0;
      for (u32 k = 0; k < SUM_BARS; k++) {
        double v = values[lane][k];
        missing += !is_available(v);
        changes += v != previous;
        inside += k > 0 && v != previous;
        if (!is_available(v) && mine + from + k < n) gap = from + k + 1;
        previous = v;
        total = Sums::next(total, is_available(v) ? v : 0.0, (u32)(mine + from + k));
        sums[lane][k] = total;
        counted[lane][k] = Counts{missing, changes};
      }
      if (inside == 0 && mine + from + SUM_BARS <= n) quiet = QUIET;
      if (from + SUM_BARS == SUM_BLOCK) counted[lane][SUM_BARS - 1].missing |= quiet | gap << OF_BLOCK_SHIFT;
      __syncwarp();
      for (u32 pair = 0; pair < SUM_ROWS; pair += 2) {
        u32 row = pair + lane / SUM_BARS;
        u64 bar = chunk + row * SUM_BLOCK + from + lane % SUM_BARS;
        if (bar < n) {
          out[bar + 1] = sums[row][lane % SUM_BARS];
          counts[bar + 1].missing = counted[row][lane % SUM_BARS].missing;
          counts[bar].changes = counted[row][lane % SUM_BARS].changes;
        }
      }
      __syncwarp();
    }
    // The block with the last bar; if it is a full one, it has its own summary elsewhere.
    if (mine < n && n <= mine + SUM_BLOCK) counts[n].changes = n == mine + SUM_BLOCK ? 0 : quiet | gap << OF_BLOCK_SHIFT;
  }
}

__device__ __forceinline__ DoubleDouble read_lane(DoubleDouble v, u32 lane) {
  return DoubleDouble{__shfl_sync(~0u, v.hi, lane), __shfl_sync(~0u, v.lo, lane)};
}

__device__ __forceinline__ PairSums read_lane(PairSums v, u32 lane) {
  return PairSums{read_lane(v.sum, lane), read_lane(v.other, lane)};
}

// Pass 2. A warp per item and symbol runs through the ends of its full blocks, 32 of them read at a time.
template <class Sums>
__device__ void sum_ends(const ColumnArgs& args, double* item) {
  typedef typename Sums::Entry Entry;
  u32 symbol = blockIdx.x / args.count;
  u32 start = args.start[symbol];
  u32 n_bars = args.start[symbol + 1] - start, n_full = n_bars / SUM_BLOCK;
  Entry* out = (Entry*)sums_of<Entry>(item, start, symbol);
  Counts* counts = (Counts*)counts_of<Entry>(args, item, start, symbol);
  u32 lane = threadIdx.x;
  Entry offset = Sums::zero();
  u32 missing = 0, changes = 0;
  // Of the blocks of this lane; the last one, which is not full, is everybody's.
  u32 of_last = counts[n_bars].changes, gap = of_last >> OF_BLOCK_SHIFT & (2 * SUM_BLOCK - 1), quiet = of_last & QUIET;
  u32 available = gap ? n_full * SUM_BLOCK + gap : 0;
  for (u32 from = 0; from < n_full; from += 32) {
    u32 n = min(n_full - from, 32u);
    u64 end = (u64)(from + lane + 1) * SUM_BLOCK;
    Entry inner = lane < n ? out[end] : Sums::zero();
    u32 of_block = lane < n ? counts[end].missing : 0;
    gap = of_block >> OF_BLOCK_SHIFT & (2 * SUM_BLOCK - 1);
    quiet |= of_block & QUIET;
    if (gap) available = max(available, (u32)end - SUM_BLOCK + gap);
    u32 inner_missing = of_block & ((1u << OF_BLOCK_SHIFT) - 1);
    u32 inner_changes = lane < n ? counts[end - 1].changes : 0;
    Entry mine = offset;
    u32 my_missing = 0, my_changes = 0;
    for (u32 k = 0; k < n; k++) {
      offset = Sums::join(offset, read_lane(inner, k));
      missing += __shfl_sync(~0u, inner_missing, k);
      changes += __shfl_sync(~0u, inner_changes, k);
      if (k == lane) {
        mine = offset;
        my_missing = missing;
        my_changes = changes;
      }
    }
    if (lane < n) {
      out[end] = mine;
      counts[end].missing = my_missing;
      counts[end - 1].changes = my_changes;
    }
  }
  quiet = __any_sync(~0u, quiet != 0) ? QUIET : 0;
  for (u32 by = 16; by > 0; by /= 2) available = max(available, __shfl_xor_sync(~0u, available, by));
  if (lane == 0) counts[n_bars].changes = quiet | available;
}

// Pass 3. One thread per entry; those that pass 2 has finished are only read.
template <class Sums>
__device__ void sum_offsets(const ColumnArgs& args, double* item) {
  typedef typename Sums::Entry Entry;
  u32 first = blockIdx.x / args.count * BARS_PER_BLOCK;
  for (u32 k = 0; k < BARS_PER_BLOCK; k += BAR_THREADS) {
    u64 bar = (u64)first + k + threadIdx.x;
    if (bar >= args.n_bars) return;
    u32 symbol = symbol_of(args, (u32)bar);
    u32 start = args.start[symbol];
    Entry* out = (Entry*)sums_of<Entry>(item, start, symbol);
    Counts* counts = (Counts*)counts_of<Entry>(args, item, start, symbol);
    u32 at = (u32)bar - start;
    u32 block = at / SUM_BLOCK * SUM_BLOCK;
    // The entry after the bar has its sums and missing values, the bar's own entry its changes.
    if ((at + 1) % SUM_BLOCK == 0) continue;
    out[at + 1] = Sums::join(out[block], out[at + 1]);
    counts[at + 1].missing += counts[block].missing;
    if (block) counts[at].changes += counts[block - 1].changes;
  }
}

// The three passes into the pool of results.
template <class Sums>
__device__ __forceinline__ void prefix_blocks(const ColumnArgs& args) {
  u32 j = blockIdx.x % args.count;
  sum_blocks<Sums>(args, input_of(args, 0, j), output_of(args, j));
}

template <class Sums>
__device__ __forceinline__ void prefix_ends(const ColumnArgs& args) {
  sum_ends<Sums>(args, output_of(args, blockIdx.x % args.count));
}

template <class Sums>
__device__ __forceinline__ void prefix_offsets(const ColumnArgs& args) {
  sum_offsets<Sums>(args, output_of(args, blockIdx.x % args.count));
}

KERNEL(prefix_sum, ColumnArgs) { prefix_blocks<ValueSums>(args); }
KERNEL(prefix_sum_ends, ColumnArgs) { prefix_ends<ValueSums>(args); }
KERNEL(prefix_sum_offsets, ColumnArgs) { prefix_offsets<ValueSums>(args); }
KERNEL(prefix_squares, ColumnArgs) { prefix_blocks<SquareSums>(args); }
KERNEL(prefix_squares_ends, ColumnArgs) { prefix_ends<SquareSums>(args); }
KERNEL(prefix_squares_offsets, ColumnArgs) { prefix_offsets<SquareSums>(args); }
KERNEL(prefix_index, ColumnArgs) { prefix_blocks<IndexSums>(args); }
KERNEL(prefix_index_ends, ColumnArgs) { prefix_ends<IndexSums>(args); }
KERNEL(prefix_index_offsets, ColumnArgs) { prefix_offsets<IndexSums>(args); }
#endif

// Whether the window of w bars that ends with `bar` is there and holds no value that is not available.
__device__ __forceinline__ bool has_window(const Counts* counts, u32 n, u32 bar, u32 w) {
  if (!w || bar >= n || bar + 1 < w) return false;
  return bar + 1 - w >= (counts[n].changes & ~QUIET) || counts[bar + 1].missing == counts[bar + 1 - w].missing;
}

// Whether a window has one value. One of 2 * SUM_BARS - 1 bars holds a whole stretch, wherever it begins.
__device__ __forceinline__ bool is_flat(const Counts* counts, u32 n, u32 bar, u32 w) {
  if (w >= 2 * SUM_BARS - 1 && !(counts[n].changes & QUIET)) return false;
  return counts[bar].changes == counts[bar + 1 - w].changes;
}

__device__ __forceinline__ DoubleDouble window_sum(const DoubleDouble* sums, u32 bar, u32 w) {
  return subtract(sums[bar + 1], sums[bar + 1 - w]);
}

__device__ __forceinline__ PairSums window_sums(const PairSums* sums, u32 bar, u32 w) {
  PairSums last = sums[bar + 1], first = sums[bar + 1 - w];
  return PairSums{subtract(last.sum, first.sum), subtract(last.other, first.other)};
}

// A window sum turned into a mean.
struct Mean {
  double w, reciprocal;

  __device__ __forceinline__ explicit Mean(u32 window) : w((double)window), reciprocal(1.0 / (double)window) {}

  __device__ __forceinline__ double of(DoubleDouble sum) const { return divide(sum, w, reciprocal); }
};

// A window's sum and sum of squares turned into a standard deviation.
struct Spread {
  double w, divisor;

  static __device__ __forceinline__ Spread population(u32 w) { return Spread{(double)w, (double)w * (double)w}; }

  static __device__ __forceinline__ Spread sample(u32 w) { return Spread{(double)w, (double)w * ((double)w - 1.0)}; }

  __device__ __forceinline__ double of(PairSums sums) const {
    double numerator = subtract(multiply(sums.other, w), square(sums.sum)).hi;
    double variance = numerator / divisor;
    return sqrt(variance > 0.0 ? variance : 0.0);
  }
};

// A window's sum and index sum turned into an average with weights linear in the bar's place.
struct Weighted {
  double slope, level, divisor, reciprocal;

  static __device__ __forceinline__ Weighted wma(u32 w) {
    double divisor = 0.5 * ((double)w * ((double)w + 1.0));
    return Weighted{1.0, 0.0, divisor, 1.0 / divisor};
  }

  static __device__ __forceinline__ Weighted lsma(u32 w) {
    double divisor = (double)w * ((double)w + 1.0);
    return Weighted{6.0, -2.0 * ((double)w + 1.0), divisor, 1.0 / divisor};
  }

  static __device__ __forceinline__ Weighted slope_of(u32 window) {
    double w = (double)window;
    double divisor = w * (w * w - 1.0);
    return Weighted{12.0, -6.0 * (w + 1.0), divisor, 1.0 / divisor};
  }

  __device__ __forceinline__ double of(u32 start, PairSums sums) const {
    double shift = level - slope * ((double)start - 1.0);
    return divide(add(multiply(sums.other, slope), multiply(sums.sum, shift)), divisor, reciprocal);
  }
};

#ifndef POINTS_ONLY
// Fills a column from an item of prefix sums with at(sums, counts, bars of the symbol, bar, first bar of the symbol).
template <class Entry, class At>
__device__ __forceinline__ void fill_from_sums(const ColumnArgs& args, const double* item, double* out, const At& at) {
  fill_bars(args, out, [&](u32 symbol, u32 start, u32 n, u32 bar) {
    return at(sums_of<Entry>(item, start, symbol), counts_of<Entry>(args, item, start, symbol), n, bar, start);
  });
}
#endif
