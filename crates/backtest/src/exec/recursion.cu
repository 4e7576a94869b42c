// Recursions that a strategy writes down. Twin of recursion.rs.
//
// A thread takes one item over one symbol, bar after bar. One bar waits for the one before, so a long symbol is cut into stretches that are
// walked side by side: each begins a quarter of its bars early, as if nothing were before, and `mend_recursion` compares what it had at its first bar with what
// the stretch before has at its end. Most recursions of strategies have met by then: a stop that follows the price begins anew whenever it is hit.
// Where they have not, the stretch is walked again until they do, so that the bits are those of one walk from the first bar to the last.

// What a formula reads of the recursion that it is part of.
struct Recursion {
  double itself;
};

struct RecursionArgs {
  const World* world;
  // Items, and a row of each.
  const u32* row;
  double* out;
  // By stretch, symbol and item: the last value before its first bar, and at its end.
  double* states;
  u32 first, count;
  // Stretches of the longest symbol, and their bars.
  u32 n_stretches, length;
};

// Bars of which a thread reads everything that does not depend on the value before, and only then goes from one to the next: their
// loads are under way together.
static const u32 RECURSION_BARS = 8;

// What a warp writes of all its items next: bars of one item lie side by side in the memory, those of different items do not. A value more than there
// are bars, because the banks then differ.
struct RecursionTile {
  double values[32][RECURSION_BARS + 1];
  double* out[32];
  u32 end[32];
};

__device__ __forceinline__ bool same_bits(double a, double b) {
  return __double_as_longlong(a) == __double_as_longlong(b);
}

// One item over one symbol.
template <class X> struct RecursionWalk {
  const typename X::Frame frame;
  double* out;
  double* states;
  u64 n_tasks;
  u32 n_bars;
  Recursion last;

  __device__ __forceinline__ RecursionWalk(const RecursionArgs& args, const World& world, u32 item, u32 symbol)
      : frame(X::bind(world, args.row[item], symbol)),
        out(args.out + (u64)(args.first + item) * world.n_bars + world.start[symbol]),
        states(args.states + 2 * ((u64)symbol * args.count + item)),
        n_tasks((u64)args.count * world.n_symbols),
        n_bars(world.start[symbol + 1] - world.start[symbol]) {
    last.itself = NA;
  }

  // The last value before the first bar of a stretch (0), or at its end (1).
  __device__ __forceinline__ double& state(u32 stretch, u32 which) const {
    return states[2 * stretch * n_tasks + which];
  }

  // The value of the next bar. Once there is one, there is always one before.
  __device__ __forceinline__ double step(u32 bar) {
    double value = is_na(last.itself) ? X::first(frame, bar, last) : X::next(frame, X::look_ahead(frame, bar), last);
    last.itself = is_na(value) ? last.itself : value;
    return value;
  }

  // Those of the next bars, where there is one before.
  __device__ __forceinline__ void steps(u32 bar, double* values) {
    typename X::Ahead ahead[RECURSION_BARS];
#pragma unroll
    for (u32 k = 0; k < RECURSION_BARS; k++) ahead[k] = X::look_ahead(frame, bar + k);
#pragma unroll
    for (u32 k = 0; k < RECURSION_BARS; k++) {
      double value = X::next(frame, ahead[k], last);
      last.itself = is_na(value) ? last.itself : value;
      values[k] = value;
    }
  }

  // Takes in some bars. With `MENDS` their values are kept, and this ends where a value is the one that is kept already.
  template <bool MENDS> __device__ __forceinline__ bool advance(u32 bar, u32 end) {
    for (; bar < end && is_na(last.itself); bar++) {
      double value = step(bar);
      if (MENDS && !is_na(value) && same_bits(value, out[bar])) return true;
      if (MENDS) out[bar] = value;
    }
    for (; bar + RECURSION_BARS <= end; bar += RECURSION_BARS) {
      double values[RECURSION_BARS];
      steps(bar, values);
      double newest = values[RECURSION_BARS - 1];
      bool meets = MENDS && !is_na(newest) && same_bits(newest, out[bar + RECURSION_BARS - 1]);
#pragma unroll
      for (u32 k = 0; k < RECURSION_BARS; k++) {
        if (MENDS) out[bar + k] = values[k];
      }
      if (meets) return true;
    }
    for (; bar < end; bar++) {
      double value = step(bar);
      if (MENDS) out[bar] = value;
    }
    return false;
  }

  // Takes in some bars and writes their values, together with all lanes of a warp: these begin at the same bar and may end at different ones.
  __device__ __forceinline__ void write(RecursionTile& tile, u32 bar, u32 end) {
    const u32 lane = threadIdx.x;
    tile.out[lane] = out;
    tile.end[lane] = end;
    u32 last_end = end;
    for (u32 by = 16; by; by /= 2) last_end = max(last_end, __shfl_xor_sync(~0u, last_end, by));
    for (; bar < last_end; bar += RECURSION_BARS) {
      double* values = tile.values[lane];
      if (bar + RECURSION_BARS <= end && !is_na(last.itself)) {
        steps(bar, values);
      } else {
        for (u32 k = 0; k < RECURSION_BARS && bar + k < end; k++) values[k] = step(bar + k);
      }
      __syncwarp();
#pragma unroll
      for (u32 k = 0; k < RECURSION_BARS; k++) {
        u32 item = (32 * k + lane) / RECURSION_BARS, at = lane % RECURSION_BARS;
        if (bar + at < tile.end[item]) tile.out[item][bar + at] = tile.values[item][at];
      }
      __syncwarp();
    }
  }
};

// All stretches side by side, each with a guess of what comes before it. A block is a warp.
template <class X> __device__ void write_recursion(const RecursionArgs& args) {
  __shared__ RecursionTile tile;
  const u64 n_tasks = (u64)args.count * args.world->n_symbols, task = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  // Lanes without a task of their own help others to write.
  const u64 mine = min(task, n_tasks - 1);
  RecursionWalk<X> walk(args, *args.world, (u32)(mine % args.count), (u32)(mine / args.count));
  u32 stretch = blockIdx.y, first = stretch * args.length;
  const bool here = task < n_tasks && first < walk.n_bars;
  double guess = NA;
  if (here && stretch) {
    walk.template advance<false>(first - args.length / 4, first);
    guess = walk.last.itself;
  }
  __syncwarp();
  walk.write(tile, first, here ? min(first + args.length, walk.n_bars) : first);
  if (!here) return;
  walk.state(stretch, 0) = guess;
  walk.state(stretch, 1) = walk.last.itself;
}

// Walks again where a guess was wrong, from the second stretch on.
template <class X> __device__ void mend_recursion(const RecursionArgs& args) {
  u64 task = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (task >= (u64)args.count * args.world->n_symbols) return;
  RecursionWalk<X> walk(args, *args.world, (u32)(task % args.count), (u32)(task / args.count));
  for (u32 stretch = 1; stretch < args.n_stretches && stretch * args.length < walk.n_bars; stretch++) {
    double before = walk.state(stretch - 1, 1);
    if (same_bits(before, walk.state(stretch, 0))) continue;
    walk.last.itself = before;
    u32 first = stretch * args.length;
    bool meets = walk.template advance<true>(first, min(first + args.length, walk.n_bars));
    if (!meets) walk.state(stretch, 1) = walk.last.itself;
  }
}
