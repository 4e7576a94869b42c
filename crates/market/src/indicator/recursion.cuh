// Averages that run along time: one lane per item and symbol.
//
// A warp has 32 items of one symbol. It goes through the bars in tiles of 32: inputs are read for all lanes together,
// once where all items read the same column, and results leave through a transposed tile, so that neighbouring lanes
// read and write neighbouring bars. A `Step` is what one lane carries from bar to bar: `Step(args, j, x)` begins with
// the parts of the input columns that the symbol has, `push(v, bar)` takes the next bar in.
//
// One bar waits for the one before, so a long symbol takes long however empty the device is. An average that forgets
// is therefore computed in stretches side by side. Each begins with an average of its own as many bars before its
// first one as it takes until the bits no longer depend on the begin: `memory()` guesses how many. Then `mend` compares
// the state at the begin of every stretch with the one at the end of the stretch before, and computes again what was
// guessed wrong. So the bits are those of one walk from the first bar to the last. A `Step` that forgets says what it
// carries along: `save(state)` writes `STATE` numbers, `restore(state)` reads them.

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

// What a warp keeps of a tile of bars.
template <u32 N>
struct RecursionTile {
  // Inputs of each item, where they differ; results take the place of the first one. A column more than there are
  // bars, because the next bar is read while one is computed and because the banks then differ.
  double items[N][32][RECURSION_BARS + 1];
  // Inputs that all items share.
  double row[N][RECURSION_BARS + 1];
};

// 32 items of one symbol, one to a lane.
template <u32 N>
struct ItemGroup {
  const double* x[N];
  bool shared[N];
  double* out;
  u64 out_stride;
  // Bars of the symbol; items of the group; the lane's own item.
  u32 symbol, n, n_items, j;

  __device__ __forceinline__ explicit ItemGroup(const ColumnArgs& args) {
    u32 n_groups = (args.count + 31) / 32;
    u32 first = blockIdx.x % n_groups * 32;
    symbol = blockIdx.x / n_groups;
    n_items = min(args.count - first, 32u);
    // Lanes without an item of their own do the last one's work again and do not write.
    j = first + min(threadIdx.x, n_items - 1);
    u32 start = args.start[symbol];
    n = args.start[symbol + 1] - start;
    for (u32 k = 0; k < N; k++) {
      x[k] = input_of(args, k, j) + start;
      shared[k] = __all_sync(~0u, (u64)x[k] == __shfl_sync(~0u, (u64)x[k], 0));
    }
    out = output_of(args, first) + start;
    out_stride = args.out_stride;
  }
};

// Takes in the bars from `begin` up to `end` and writes the results of the items in `who`.
template <u32 N, class Step>
__device__ __forceinline__ void advance(const ItemGroup<N>& group, RecursionTile<N>& tile, Step& step, u32 begin, u32 end,
                                        u32 who) {
  u32 lane = threadIdx.x, n = group.n;
  double ahead[N];
  // A single input is read a tile ahead even where items differ; there are registers for that.
  const u32 N_AHEAD = N == 1 ? 32 : 16;
  double items_ahead[N_AHEAD];
  for (u32 k = 0; k < N; k++) ahead[k] = group.shared[k] && (u64)begin + lane < n ? group.x[k][begin + lane] : 0.0;
  if (N == 1 && !group.shared[0] && begin < n) read_items<N_AHEAD>(group.x[0], 0, begin, n, items_ahead);
  for (u32 from = begin; from < end; from += RECURSION_BARS) {
    u32 n_bars = min(end - from, (u32)RECURSION_BARS);
    for (u32 k = 0; k < N; k++) {
      if (group.shared[k]) {
        // Read one tile ahead, so that the wait for memory falls into the arithmetic.
        tile.row[k][lane] = ahead[k];
        u64 next = (u64)from + RECURSION_BARS + lane;
        ahead[k] = next < n ? group.x[k][next] : 0.0;
      } else {
        for (u32 first_item = 0; first_item < 32; first_item += N_AHEAD) {
          if (N > 1) read_items<N_AHEAD>(group.x[k], first_item, from, n, items_ahead);
#pragma unroll
          for (u32 item = 0; item < N_AHEAD; item++) tile.items[k][first_item + item][lane] = items_ahead[item];
        }
        if (N == 1 && from + RECURSION_BARS < n) {
          read_items<N_AHEAD>(group.x[k], 0, from + RECURSION_BARS, n, items_ahead);
        }
      }
    }
    __syncwarp();
    double v[N], next[N];
    const double* source[N];
    for (u32 k = 0; k < N; k++) {
      source[k] = group.shared[k] ? tile.row[k] : tile.items[k][lane];
      v[k] = source[k][0];
    }
    for (u32 bar = 0; bar < n_bars; bar++) {
      for (u32 k = 0; k < N; k++) next[k] = source[k][bar + 1];
      tile.items[0][lane][bar] = step.push(v, from + bar);
      for (u32 k = 0; k < N; k++) v[k] = next[k];
    }
    __syncwarp();
    if (who) {
      for (u32 item = 0; item < group.n_items; item++) {
        if (lane < n_bars && who >> item & 1) group.out[(u64)item * group.out_stride + from + lane] = tile.items[0][item][lane];
      }
    }
    __syncwarp();
  }
}

// One walk from the first bar to the last.
template <u32 N, class Step>
__device__ __forceinline__ void recurse(const ColumnArgs& args) {
  __shared__ RecursionTile<N> tile;
  ItemGroup<N> group(args);
  Step step(args, group.j, group.x);
  advance(group, tile, step, 0, group.n, ~0u);
}

// How the bars of a symbol are cut for a group of items.
struct Stretches {
  u32 count, length, memory;

  template <u32 N>
  __device__ __forceinline__ Stretches(const ColumnArgs& args, const ItemGroup<N>& group, u64 lane_memory)
      : count(1), length(group.n), memory(0) {
    u32 mine = (u32)min(lane_memory, (u64)group.n);
    for (u32 by = 16; by; by /= 2) mine = max(mine, __shfl_xor_sync(~0u, mine, by));
    if (mine >= group.n) return;
    // What is walked before stretches begin is at most three times the bars themselves.
    u32 most = (u32)min((u64)args.stretches, 1 + 3ull * group.n / max(mine, 1u));
    u32 each = ((group.n + most - 1) / most + RECURSION_BARS - 1) / RECURSION_BARS * RECURSION_BARS;
    if ((u64)each + mine > group.n / 5ull * 3) return;
    count = (group.n + each - 1) / each;
    length = each;
    memory = mine;
  }
};

// What the lane's item carries along at the begin of a stretch (0) and at its end (1).
template <u32 N, class Step>
__device__ __forceinline__ double* state_of(const ColumnArgs& args, const ItemGroup<N>& group, u32 stretch, u32 which) {
  u64 place = ((u64)group.symbol * args.stretches + stretch) * 2 + which;
  return scratch_of(args, group.j) + place * Step::STATE;
}

// All stretches side by side, each with a guess of what comes before it.
template <u32 N, class Step>
__device__ __forceinline__ void recurse_stretches(const ColumnArgs& args) {
  __shared__ RecursionTile<N> tile;
  ItemGroup<N> group(args);
  Step step(args, group.j, group.x);
  Stretches stretches(args, group, step.memory());
  u32 stretch = blockIdx.y;
  if (stretch >= stretches.count) return;
  u32 first = stretch * stretches.length, end = min(first + stretches.length, group.n);
  bool keeps = stretches.count > 1 && threadIdx.x < group.n_items;
  if (stretch) {
    u32 before = first > stretches.memory ? (first - stretches.memory) / RECURSION_BARS * RECURSION_BARS : 0;
    advance(group, tile, step, before, first, 0u);
    if (keeps) step.save(state_of<N, Step>(args, group, stretch, 0));
  }
  advance(group, tile, step, first, end, ~0u);
  if (keeps) step.save(state_of<N, Step>(args, group, stretch, 1));
}

// Computes again the stretches whose guess was wrong, from the second on.
template <u32 N, class Step>
__device__ __forceinline__ void mend(const ColumnArgs& args) {
  __shared__ RecursionTile<N> tile;
  ItemGroup<N> group(args);
  Step step(args, group.j, group.x);
  Stretches stretches(args, group, step.memory());
  for (u32 stretch = 1; stretch < stretches.count; stretch++) {
    const double* before = state_of<N, Step>(args, group, stretch - 1, 1);
    const double* guess = state_of<N, Step>(args, group, stretch, 0);
    bool differs = false;
    for (u32 k = 0; k < Step::STATE; k++) {
      differs |= __double_as_longlong(before[k]) != __double_as_longlong(guess[k]);
    }
    u32 who = __ballot_sync(~0u, differs);
    if (!who) continue;
    u32 first = stretch * stretches.length;
    step.restore(before);
    advance(group, tile, step, first, min(first + stretches.length, group.n), who);
    if (differs && threadIdx.x < group.n_items) step.save(state_of<N, Step>(args, group, stretch, 1));
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
