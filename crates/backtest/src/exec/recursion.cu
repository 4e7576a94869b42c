// Recursions that a strategy writes down. Twin of recursion.rs.
//
// A thread takes one item over one symbol, bar after bar.

// What a formula reads of the recursion that it is part of.
struct Recursion {
  double itself;
};

// Bars of which a thread reads everything that does not depend on the value before, and only then goes from one to the next: their
// loads are under way together, and what is written fills whole sectors of the memory.
static const u32 RECURSION_BARS = 8;

template <class X> __device__ void write_recursion(const FormulaArgs& args) {
  const World& world = *args.world;
  u64 task = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (task >= (u64)args.count * world.n_symbols) return;
  u32 item = (u32)(task % args.count), symbol = (u32)(task / args.count);
  const typename X::Frame frame = X::bind(world, args.row[item], symbol);
  u32 n_bars = world.start[symbol + 1] - world.start[symbol];
  double* out = args.out + (u64)(args.first + item) * world.n_bars + world.start[symbol];
  Recursion last = {NA};
  u32 bar = 0;
  // Once there is a value, there is always one before.
  for (; bar < n_bars && is_na(last.itself); bar++) out[bar] = last.itself = X::first(frame, bar, last);
  for (; bar + RECURSION_BARS <= n_bars; bar += RECURSION_BARS) {
    typename X::Ahead ahead[RECURSION_BARS];
#pragma unroll
    for (u32 k = 0; k < RECURSION_BARS; k++) ahead[k] = X::look_ahead(frame, bar + k);
    double values[RECURSION_BARS];
#pragma unroll
    for (u32 k = 0; k < RECURSION_BARS; k++) {
      values[k] = X::next(frame, ahead[k], last);
      last.itself = is_na(values[k]) ? last.itself : values[k];
    }
#pragma unroll
    for (u32 k = 0; k < RECURSION_BARS; k++) out[bar + k] = values[k];
  }
  for (; bar < n_bars; bar++) {
    double value = X::next(frame, X::look_ahead(frame, bar), last);
    out[bar] = value;
    last.itself = is_na(value) ? last.itself : value;
  }
}
