// The ledger of a warp: a book, the trades or days whose moves of equity are to be recorded, and how they are. Twin of `Book::record` in book.rs.
//
// The order of every sum is that of time, as on the CPU. So a lane takes a move of equity, with its loads and divisions; what is left to one lane
// after the other is an addition from shared memory, each sum on a lane of its own. Peaks are maxima, falls are minima: their order decides no
// bit.

struct Tally {
  u32 trades, wins, longs, open_at_end, days, longest_drawdown, ambiguous, skipped;
  u64 bars_held, bars;
  double sum_pnl, sum_win, sum_loss, sum_ret, sum_ret_win, sum_ret_loss, sum_r, sum_r2, drawdown_pnl, drawdown_pnl_ref, equity;
  double drawdown, drawdown_daily, drawdown_bar, sum_daily, sum_daily2, sum_down2;
};

struct Book {
  Tally tally;
  double peak, peak_daily, mark, pnl_peak, pnl_peak_ref;
  u32 day, first_day, peak_day, broke;
};

#define EVERY_LANE 0xffffffffu

__device__ inline Book open_book(u32 first_day, u32 last_day, u64 bars) {
  Book book = {};
  book.tally.equity = 1.0;
  book.tally.days = last_day - first_day + 1;
  book.tally.bars = bars;
  book.peak = book.peak_daily = book.mark = 1.0;
  book.pnl_peak_ref = -INFINITE;
  book.day = book.first_day = first_day;
  return book;
}

// Where daily returns are summed: those of several segments by the day, those of the whole by the block of time.
struct Daily {
  double* sums;
  double* blocks;
  const u32* calendar;  // null: days are those of the calendar
  const u32* block_of;
  u64 stride;           // from a block's sum to its square, and to the next block
};

// A warp's book, and up to 32 items of which each has some moves of equity: a day without a position before it, days at whose end equity is
// marked, and, for a trade, its close.
struct Ledger {
  Book book;
  double before[32], after[32];  // equity
  double entry[32], share[32];
  u32 held_from[32], held_to[32];  // the bars during which a position is open to the close
  u32 flat_from[32], first[32], n_marks[32];  // days
  u32 end[32];                     // moves up to the end of the item
  double change[32];               // what an item makes of equity
  double terms[8][33];             // of sums, a row for each; the odd length spreads the rows over the banks
  u32 block[32];
};

__device__ inline u32 lane_of() { return threadIdx.x % 32; }

// The largest of this lane and those before it.
template <class T> __device__ inline T largest_so_far(T value) {
  for (u32 by = 1; by < 32; by *= 2) {
    T before = __shfl_up_sync(EVERY_LANE, value, by);
    if (lane_of() >= by && before > value) value = before;
  }
  return value;
}

// The least of all lanes, or of each neighbouring `n_lanes`.
__device__ inline double least_of(double value, u32 n_lanes = 32) {
  for (u32 by = n_lanes / 2; by > 0; by /= 2) {
    double other = __shfl_xor_sync(EVERY_LANE, value, by);
    value = other < value ? other : value;
  }
  return value;
}

// The number of an item's moves becomes where they end.
__device__ inline u32 end_of_moves(u32 n_moves) {
  for (u32 by = 1; by < 32; by *= 2) {
    u32 before = __shfl_up_sync(EVERY_LANE, n_moves, by);
    if (lane_of() >= by) n_moves += before;
  }
  return n_moves;
}

// The value of the nearest lane before this one that a vote names, or another value if there is none.
template <class T> __device__ inline T from_last(u32 vote, T value, T otherwise) {
  u32 earlier = vote & ((1u << lane_of()) - 1);
  T last = __shfl_sync(EVERY_LANE, value, earlier ? 31 - __clz(earlier) : 0);
  return earlier ? last : otherwise;
}

// Adds the terms of the first rows, each row in its order on a lane of its own, to the sums that begin at `sums`. A term becomes the sum up to it.
// Where there is nothing to add the term is 0, which changes no bit of a sum that began with 0.
__device__ inline void sum_rows(Ledger& ledger, u32 n_rows, double* sums) {
  if (lane_of() < n_rows) {
    double sum = sums[lane_of()];
    double* row = ledger.terms[lane_of()];
#pragma unroll
    for (u32 k = 0; k < 32; k++) {
      sum += row[k];
      row[k] = sum;
    }
    sums[lane_of()] = sum;
  }
  __syncwarp();
}

// Equity before and after each of 32 items, one after the other; false if it may have come to nothing on the way, which is then to be found item by
// item. An item without a result has a change that changes nothing.
__device__ inline bool compound(Ledger& ledger) {
  const u32 lane = lane_of();
  if (!__all_sync(EVERY_LANE, ADDITIVE || ledger.change[lane] > 0.0)) return false;
  double equity = ledger.book.tally.equity;
#pragma unroll
  for (u32 k = 0; k < 32; k++) {
    if (lane == 0) ledger.before[k] = equity;
    equity = ADDITIVE ? equity + ledger.change[k] : equity * ledger.change[k];
    if (lane == 0) ledger.after[k] = equity;
  }
  // Once it is 0 it stays so, and NaN likewise.
  if (!ADDITIVE && !(equity > 0.0)) return false;
  __syncwarp();
  if (lane == 0) ledger.book.tally.equity = equity;
  __syncwarp();
  return true;
}

// Equity above this is no deeper fall from a peak than the deepest so far. The margin is far above what rounding could turn round.
__device__ inline double floor_of(double peak, double deepest) { return (1.0 + deepest + 1e-9 * (1.0 - deepest)) * peak; }

// The deepest fall so far, with one more value of equity. It is divided only where that could be deeper.
__device__ inline double deeper(double deepest, bool here, double value, double peak) {
  if (!here || value > floor_of(peak, deepest)) return deepest;
  double fall = value / peak - 1.0;
  return fall < deepest ? fall : deepest;
}

// Sums of daily returns by block of time: one lane sums, another one squares.
struct BlockSums {
  double* sum;  // of the block that is open
  double value;
  u32 open;

  __device__ void add(const Daily& daily, u32 block, double change) {
    u32 which = lane_of() - 3;
    if (block != open) {
      close();
      open = block;
      sum = daily.blocks + (2 * block + which) * daily.stride;
      value = *sum;
    }
    value += which == 0 ? change : change * change;
  }
  __device__ void close() {
    if (sum) *sum = value;
  }
};

// Records the moves of all items: daily returns, drawdown, days under water. `source` gives the value of a mark, and how far equity sinks on a
// day; items have a close if it says so.
template <class Source> __device__ inline void record_moves(Ledger& ledger, const Source& source, const Daily& daily) {
  Book& book = ledger.book;
  const u32 lane = lane_of(), n_moves = ledger.end[31], first_day = book.first_day;
  double peak = book.peak, peak_daily = book.peak_daily, mark = book.mark;
  // The deepest that this lane has seen; the deepest of all is found at the end.
  double drawdown = book.tally.drawdown, drawdown_daily = book.tally.drawdown_daily, drawdown_bar = book.tally.drawdown_bar;
  u32 peak_day = book.peak_day, longest = book.tally.longest_drawdown;
  BlockSums blocks = {0, 0.0, NEVER};
  for (u32 base = 0; base < n_moves; base += 32) {
    u32 move = base + lane;
    bool here = move < n_moves;
    u32 item = 0;
    for (u32 step = 16; step > 0; step /= 2) item += ledger.end[item + step - 1] <= move ? step : 0;
    u32 at = move - (item > 0 ? ledger.end[item - 1] : 0);
    u32 flat_from = ledger.flat_from[item], first = ledger.first[item];
    bool is_flat = at == 0 && flat_from < first;
    at -= flat_from < first ? 1 : 0;
    bool is_close = Source::HAS_CLOSE && !is_flat && at == ledger.n_marks[item];
    bool is_mark = here && !is_close;
    u32 day = is_flat ? flat_from : first + at, next = is_flat ? first : day + 1;
    double value = is_flat ? ledger.before[item] : is_close || !here ? ledger.after[item] : source.value(item, day);

    double last = from_last(__ballot_sync(EVERY_LANE, is_mark), value, mark);
    double change = is_mark ? change_of(last, value) : 0.0;
    double upto = largest_so_far(here && value > peak ? value : peak);
    double before = __shfl_up_sync(EVERY_LANE, upto, 1);
    before = lane > 0 ? before : peak;
    drawdown = deeper(drawdown, here, value, upto);
    double upto_daily = largest_so_far(is_mark && value > peak_daily ? value : peak_daily);
    drawdown_daily = deeper(drawdown_daily, is_mark, value, upto_daily);
    u32 today = next - first_day;
    u32 at_peak = __ballot_sync(EVERY_LANE, is_mark && value >= upto), here_or_before = at_peak & (EVERY_LANE >> (31 - lane));
    u32 since = __shfl_sync(EVERY_LANE, today, here_or_before ? 31 - __clz(here_or_before) : 0);
    since = here_or_before ? since : peak_day;
    longest = is_mark && today - since > longest ? today - since : longest;
    double sunk = source.sink(here && !is_flat, item, day, before, drawdown < drawdown_bar ? drawdown : drawdown_bar);
    drawdown_bar = sunk < drawdown_bar ? sunk : drawdown_bar;

    // Each day of a segment is marked once, so that no two lanes write one place.
    ledger.terms[0][lane] = change;
    ledger.terms[1][lane] = change * change;
    ledger.terms[2][lane] = change < 0.0 ? change * change : 0.0;
    if (change != 0.0 && (daily.sums || daily.blocks)) {
      u32 place = daily.calendar ? daily.calendar[day] : day;
      if (daily.sums) daily.sums[place] += change;
      if (daily.blocks) {
        ledger.block[lane] = daily.block_of[place];
        ledger.terms[3][lane] = change;
      }
    }
    const u32 moves = __ballot_sync(EVERY_LANE, change != 0.0);
    __syncwarp();
    if (daily.blocks && lane >= 3 && lane < 5) {
      for (u32 moved = moves; moved; moved &= moved - 1) {
        u32 k = __ffs(moved) - 1;
        blocks.add(daily, ledger.block[k], ledger.terms[3][k]);
      }
    }
    sum_rows(ledger, 3, &book.tally.sum_daily);
    peak = __shfl_sync(EVERY_LANE, upto, 31);
    peak_daily = __shfl_sync(EVERY_LANE, upto_daily, 31);
    peak_day = __shfl_sync(EVERY_LANE, since, 31);
    u32 marks = __ballot_sync(EVERY_LANE, is_mark);
    if (marks) mark = __shfl_sync(EVERY_LANE, value, 31 - __clz(marks));
  }
  if (daily.blocks && lane >= 3 && lane < 5) blocks.close();
  drawdown = least_of(drawdown);
  drawdown_daily = least_of(drawdown_daily);
  drawdown_bar = least_of(drawdown_bar);
  longest = largest_so_far(longest);
  if (lane == 31) {
    book.peak = peak;
    book.peak_daily = peak_daily;
    book.mark = mark;
    book.peak_day = peak_day;
    book.tally.drawdown = drawdown;
    book.tally.drawdown_daily = drawdown_daily;
    book.tally.drawdown_bar = drawdown_bar;
    book.tally.longest_drawdown = longest;
  }
  __syncwarp();
}
