// A column of other bars as these bars see it. Twin of gather.rs.

#define NO_BAR 0xffffffffu

struct GatherArgs {
  Input input;       // columns on the other bars
  const u32* route;  // the bar that each of these bars reads, counted through all symbols
  const u32* row;    // a row of each new item
  double* out;
  u32 first, count, n_bars, unused;
};

KERNEL(gather, GatherArgs) {
  u32 item = blockIdx.x % args.count;
  u64 bar = (u64)(blockIdx.x / args.count) * blockDim.x + threadIdx.x;
  if (bar >= args.n_bars) return;
  const Input& input = args.input;
  const double* column = input.pool + (input.item_of ? (u64)input.item_of[args.row[item]] * input.stride : 0);
  u32 from = args.route[bar];
  args.out[(u64)(args.first + item) * args.n_bars + bar] = from == NO_BAR ? NA : column[from];
}
