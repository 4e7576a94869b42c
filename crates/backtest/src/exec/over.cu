// Functions over all symbols whose bar closes at the same time. Twin of over.rs.
//
// A thread takes one item at one time. Neighbouring threads have neighbouring times, and so neighbouring bars of each symbol.

#define OVER_RANK 0
#define OVER_SUM 1
#define OVER_MEAN 2
#define OVER_COUNT 3
#define OVER_MIN 4
#define OVER_MAX 5

struct OverArgs {
  Input input;
  const u32* bars;   // of each time, in the order of names, counted through all symbols
  const u32* start;  // where the bars of each time begin, and the end
  const u32* row;    // a row of each new item
  double* out;
  u32 first, count, n_bars, n_times, over, unused;
};

// The place of a value among all of them: how many are below, and half of the others that equal it.
__device__ inline double rank_of(double x, const double* column, const u32* bars, u32 n) {
  u32 n_values = 0, below = 0, upto = 0;
  for (u32 k = 0; k < n; k++) {
    double other = column[bars[k]];
    n_values += !is_na(other);
    below += other < x;
    upto += other <= x;
  }
  if (is_na(x) || n_values < 2) return NA;
  double place = (double)below + ((double)(upto - below) - 1.0) / 2.0;
  return place / ((double)n_values - 1.0);
}

__device__ inline double fold_over(u32 over, const double* column, const u32* bars, u32 n) {
  u32 n_values = 0;
  double value = NA;
  for (u32 k = 0; k < n; k++) {
    double x = column[bars[k]];
    if (is_na(x)) continue;
    n_values++;
    if (n_values == 1) value = x;
    else if (over == OVER_MIN) value = x < value ? x : value;
    else if (over == OVER_MAX) value = x > value ? x : value;
    else value = value + x;
  }
  if (over == OVER_COUNT) return (double)n_values;
  return over == OVER_MEAN && n_values > 0 ? value / (double)n_values : value;
}

KERNEL(over, OverArgs) {
  u32 item = blockIdx.x % args.count;
  u64 time = (u64)(blockIdx.x / args.count) * blockDim.x + threadIdx.x;
  if (time >= args.n_times) return;
  const Input& input = args.input;
  const double* column = input.pool + (input.item_of ? (u64)input.item_of[args.row[item]] * input.stride : 0);
  const u32* bars = args.bars + args.start[time];
  u32 n = args.start[time + 1] - args.start[time];
  double* out = args.out + (u64)(args.first + item) * args.n_bars;
  double all = args.over == OVER_RANK ? NA : fold_over(args.over, column, bars, n);
  for (u32 k = 0; k < n; k++) out[bars[k]] = args.over == OVER_RANK ? rank_of(column[bars[k]], column, bars, n) : all;
}
