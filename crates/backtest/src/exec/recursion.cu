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
// loads are under way together, and what is written fills whole sectors of the memory.
static const u32 RECURSION_BARS = 8;

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

  // Takes in some bars. With `WRITES` their values are kept; with `MEETS` this ends where a value is the one that is kept already.
  template <bool WRITES, bool MEETS> __device__ __forceinline__ bool advance(u32 bar, u32 end) {
    // Once there is a value, there is always one before.
    for (; bar < end && is_na(last.itself); bar++) {
      last.itself = X::first(frame, bar, last);
      if (MEETS && !is_na(last.itself) && same_bits(last.itself, out[bar])) return true;
      if (WRITES) out[bar] = last.itself;
    }
    for (; bar + RECURSION_BARS <= end; bar += RECURSION_BARS) {
      typename X::Ahead ahead[RECURSION_BARS];
#pragma unroll
      for (u32 k = 0; k < RECURSION_BARS; k++) ahead[k] = X::look_ahead(frame, bar + k);
      double values[RECURSION_BARS];
#pragma unroll
      for (u32 k = 0; k < RECURSION_BARS; k++) {
        values[k] = X::next(frame, ahead[k], last);
        last.itself = is_na(values[k]) ? last.itself : values[k];
      }
      double newest = values[RECURSION_BARS - 1];
      bool meets = MEETS && !is_na(newest) && same_bits(newest, out[bar + RECURSION_BARS - 1]);
#pragma unroll
      for (u32 k = 0; k < RECURSION_BARS; k++) {
        if (WRITES) out[bar + k] = values[k];
      }
      if (meets) return true;
    }
    for (; bar < end; bar++) {
      double value = X::next(frame, X::look_ahead(frame, bar), last);
      if (WRITES) out[bar] = value;
      last.itself = is_na(value) ? last.itself : value;
    }
    return false;
  }
};

// All stretches side by side, each with a guess of what comes before it.
template <class X> __device__ void write_recursion(const RecursionArgs& args) {
  u64 task = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (task >= (u64)args.count * args.world->n_symbols) return;
  RecursionWalk<X> walk(args, *args.world, (u32)(task % args.count), (u32)(task / args.count));
  u32 stretch = blockIdx.y, first = stretch * args.length;
  if (first >= walk.n_bars) return;
  double guess = NA;
  if (stretch) {
    walk.template advance<false, false>(first - args.length / 4, first);
    guess = walk.last.itself;
  }
  walk.template advance<true, false>(first, min(first + args.length, walk.n_bars));
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
    bool meets = walk.template advance<true, true>(first, min(first + args.length, walk.n_bars));
    if (!meets) walk.state(stretch, 1) = walk.last.itself;
  }
}
