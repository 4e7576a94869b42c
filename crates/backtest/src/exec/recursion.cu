// Recursions that a strategy writes down. Twin of recursion.rs.
//
// A thread takes one item over one symbol, bar after bar.

// What a formula reads of the recursion that it is part of.
struct Recursion {
  double itself;
};

template <class X> __device__ void write_recursion(const FormulaArgs& args) {
  const World& world = *args.world;
  u64 task = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (task >= (u64)args.count * world.n_symbols) return;
  u32 item = (u32)(task % args.count), symbol = (u32)(task / args.count);
  const typename X::Frame frame = X::bind(world, args.row[item], symbol);
  u32 n_bars = world.start[symbol + 1] - world.start[symbol];
  double* out = args.out + (u64)(args.first + item) * world.n_bars + world.start[symbol];
  Recursion last = {NA};
  for (u32 bar = 0; bar < n_bars; bar++) {
    double value = is_na(last.itself) ? X::first(frame, bar, last) : X::next(frame, bar, last);
    out[bar] = value;
    if (!is_na(value)) last.itself = value;
  }
}
