// What formulas read: the columns and scalars of one trial over one symbol. Twin of frame.rs.
//
// Scalars depend on a symbol's timeframe where a strategy asks for durations in bars. So a *row* is a trial at one timeframe; with one timeframe rows are trials.

struct World {
  const u32* start;         // first bar of each symbol, and the end
  const u32* word_start;    // first 64-bit word of each symbol in a mask, and the end
  const u32* timeframe;     // which of the timeframes each symbol has
  const double* scalars;    // scalars[scalar * n_rows + row]
  const Input* slots;       // columns by slot; a pool of null: computed at single bars
  const double* open;
  const double* high;
  const double* low;
  const double* close;
  const u32* day;           // number of each bar's day among the days of its symbol
  const u32* day_start;     // first day of each symbol in the tables of days, and the end
  const double* day_close;  // close of the last bar of each day
  const double* day_low;    // lowest low of each day
  const double* day_high;   // highest high of each day
  const u32* day_end;       // the bar of the symbol after the last one of each day
  const double* extremes;   // lowest and highest price of each symbol
  const u32* calendar;      // place of each day among the days of the universe
  u32 n_symbols, n_bars, n_words, n_trials, n_rows, unused;
};

__device__ inline u32 row_of(const World& world, u32 trial, u32 symbol) { return world.timeframe[symbol] * world.n_trials + trial; }

__device__ inline double scalar_of(const World& world, u32 scalar, u32 row) {
  return world.scalars[(u64)scalar * world.n_rows + row];
}

// Bars ago as an offset; negative where it would look ahead or is not available.
__device__ inline i64 bars_ago(double value) {
  if (!(value >= 0.0)) return -1;
  return value < 4294967295.0 ? (i64)value : 4294967295LL;
}

// An item from one of its bars on; null if the slot has no columns.
__device__ inline const double* column_of(const Input& input, u64 item, u32 start) {
  return input.pool ? input.pool + item * input.stride + start : 0;
}

// The column of a row from the first bar of a symbol on; null if the slot has none.
__device__ inline const double* column_of(const World& world, u32 slot, u32 row, u32 symbol) {
  const Input& input = world.slots[slot];
  return column_of(input, input.pool && input.item_of ? input.item_of[row] : 0, world.start[symbol]);
}

// Prefix sums of a row over one symbol: as many entries as all symbols have bars, and one more for each; then the counts.
template <class T> struct Sums {
  const T* entries;
  const Counts* counts;
};
template <class T> __device__ inline Sums<T> sums_of(const World& world, const Input& input, u64 item, u32 first) {
  const T* entries = (const T*)(input.pool + item * input.stride);
  u64 n = (u64)world.n_bars + world.n_symbols;
  return {entries + first, (const Counts*)(entries + n) + first};
}
template <class T> __device__ inline Sums<T> sums_of(const World& world, u32 slot, u32 row, u32 symbol) {
  const Input& input = world.slots[slot];
  return sums_of<T>(world, input, input.item_of ? input.item_of[row] : 0, world.start[symbol] + symbol);
}

// Where a field of a frame comes from.
#define COLUMN_FIELD 0
#define SCALAR_FIELD 1
#define SHIFT_FIELD 2
#define WINDOW_FIELD 3
#define SUM_FIELD 4
#define PAIR_FIELD 5
#define LENGTH_FIELD 6

struct Binding {
  unsigned short kind, at;  // at: bytes from the begin of the frame
  u32 from;                 // slot or scalar
};

// What lanes read from memory they read before they part ways.
__device__ inline void bind_field(char* frame, const Binding& binding, const World& world, u32 row, u32 symbol) {
  const u32 kind = binding.kind, from = binding.from;
  const bool is_scalar = kind == SCALAR_FIELD || kind == SHIFT_FIELD || kind == WINDOW_FIELD;
  const u32 start = world.start[symbol], end = world.start[symbol + 1];
  Input input = {};
  if (!is_scalar && kind != LENGTH_FIELD) input = world.slots[from];
  const double scalar = is_scalar ? scalar_of(world, from, row) : 0.0;
  const u64 item = input.item_of ? input.item_of[row] : 0;
  char* field = frame + binding.at;
  switch (kind) {
    case COLUMN_FIELD: *(const double**)field = column_of(input, item, start); break;
    case SCALAR_FIELD: *(double*)field = scalar; break;
    case SHIFT_FIELD: *(i64*)field = bars_ago(scalar); break;
    case WINDOW_FIELD: *(u32*)field = window(scalar); break;
    case SUM_FIELD: *(Sums<DoubleDouble>*)field = sums_of<DoubleDouble>(world, input, item, start + symbol); break;
    case PAIR_FIELD: *(Sums<PairSums>*)field = sums_of<PairSums>(world, input, item, start + symbol); break;
    default: *(u32*)field = end - start;
  }
}

// Binds a frame that the lanes of a warp share, each lane its fields: one lane alone would wait for memory field by field.
__device__ inline void bind_by_lanes(char* frame, const Binding* bindings, u32 n, const World& world, u32 row, u32 symbol) {
  for (u32 at = threadIdx.x & 31; at < n; at += 32) bind_field(frame, bindings[at], world, row, symbol);
}

__device__ inline double read(const double* column, i64 bar, i64 ago) {
  return ago >= 0 && ago <= bar ? column[bar - ago] : NA;
}

struct ScalarArgs {
  const double* points;  // encoded parameters: points[param * n_trials + trial]
  double* scalars;
  u32 n_trials, n_rows;
};

// Values of the trade being opened.
struct Opening {
  double entry, stop, risk;
};

// Kinds of exits.
#define STOP 0
#define TARGET 1
#define TRAIL 2
#define BREAKEVEN 3
#define SIGNAL 4
#define TIME 5
#define STOP_SERIES 6
