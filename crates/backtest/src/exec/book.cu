// Books the trades of one trial, segment by segment. Twin of book.rs.
//
// A thread keeps the books of one trial over some segments, one after the other: over one, if there is room to keep the daily returns of each
// segment; else over all, because daily returns are summed in their order. Where a walk is not done, the book waits for the next round.

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

struct BookState {
  Book book;
  u32 n_done, open;  // segments that are done, and whether the book of the next one is open
};

struct BookArgs {
  const World* world;
  const Segment* segments;
  const Trade* trades;
  WalkState* walks;
  BookState* books;
  Tally* tallies;    // segment, trial
  double* daily[2];  // by role: (segment,) day of the calendar, trial; null where there is nothing to pool
  double* blocks;    // block, sum and square, trial: of the one segment that counts; null where there are several, or no blocks
  const u32* block_of;  // by day of the calendar
  u32* n_open;       // threads that are not done
  u32 n_segments, capacity;
  u32 n_each, n_days;  // segments of a thread: one, or all; days of the calendar
};

#define CLOSE_MOVE 0xffffffffu
#define TRAIN 0u

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
  u64 stride;
  __device__ void add(u32 day, double change) const {
    if (!sums && !blocks) return;
    u32 at = calendar ? calendar[day] : day;
    if (sums) sums[at * stride] += change;
    if (blocks) {
      double* block = blocks + 2 * block_of[at] * stride;
      block[0] += change;
      block[stride] += change * change;
    }
  }
};

// Equity at one moment: daily return, drawdown, days under water.
__device__ inline void record(Book& book, double value, u32 day, u32 next, const Daily& daily) {
  Tally& tally = book.tally;
  bool is_mark = day != CLOSE_MOVE;
  double change = 0.0;
  if (is_mark) {
    change = change_of(book.mark, value);
    book.mark = value;
  }
  double square = change * change;
  tally.sum_daily += change;
  tally.sum_daily2 += square;
  tally.sum_down2 += change < 0.0 ? square : 0.0;
  if (change != 0.0) daily.add(day, change);
  book.peak = value > book.peak ? value : book.peak;
  double fall = value / book.peak - 1.0;
  tally.drawdown = fall < tally.drawdown ? fall : tally.drawdown;
  if (is_mark) {
    book.peak_daily = value > book.peak_daily ? value : book.peak_daily;
    double daily_fall = value / book.peak_daily - 1.0;
    tally.drawdown_daily = daily_fall < tally.drawdown_daily ? daily_fall : tally.drawdown_daily;
    u32 today = next - book.first_day;
    if (value >= book.peak) book.peak_day = today;
    u32 length = today - book.peak_day;
    tally.longest_drawdown = length > tally.longest_drawdown ? length : tally.longest_drawdown;
  }
}

// The days of one symbol, and its bars.
struct Days {
  const u32* of_bar;
  const u32* end;
  const double *close, *low, *high;
  const double *bar_low, *bar_high;
};

// A position that is open, and the equity before it.
struct Held {
  double sign, entry, share, equity;
  u32 first, end;  // the bars during which it is open to the close
  bool is_long;
  __device__ double worth(double price) const {
    double pnl = pnl_of(sign, entry, price);
    return equity_after(equity, pnl, pnl / entry, share);
  }
};

// Marks a position at its adverse extreme of a day. A whole day's extreme is at least as bad as that of its bars with the position, and a
// multiplication tells whether even that would be deeper than before, so the bars are rarely looked at one by one. The margin is far above what
// rounding could turn round.
__device__ inline void sink(Book& book, const Held& held, const Days& days, u32 day) {
  Tally& tally = book.tally;
  double deepest = tally.drawdown < tally.drawdown_bar ? tally.drawdown : tally.drawdown_bar;
  double extreme = held.is_long ? days.low[day] : days.high[day];
  double pnl = held.sign * (extreme - held.entry) - (held.entry + extreme) * (COST_BPS * 1e-4);
  double floor = (1.0 + deepest + 1e-9) * book.peak;
  if (ADDITIVE ? held.equity + pnl > floor : held.equity * (held.entry + held.share * pnl) > floor * held.entry) return;
  u32 start = day == 0 ? 0 : days.end[day - 1], end = days.end[day];
  u32 from = held.first > start ? held.first : start, to = held.end < end ? held.end : end;
  if (from >= to) return;
  double price = held.is_long ? INFINITE : -INFINITE;
  for (u32 bar = from; bar < to; bar++) {
    price = held.is_long ? minimum(price, days.bar_low[bar]) : maximum(price, days.bar_high[bar]);
  }
  double fall = held.worth(price) / book.peak - 1.0;
  tally.drawdown_bar = fall < tally.drawdown_bar ? fall : tally.drawdown_bar;
}

__device__ inline void book_trade(Book& book, const Trade& trade, const Days& days, const Daily& daily) {
  Tally& tally = book.tally;
  bool is_long = trade.how & LONG_BIT;
  u32 number = trade.how & EXIT_NUMBER;
  double sign = is_long ? 1.0 : -1.0, entry = trade.entry;
  double pnl = pnl_of(sign, entry, trade.exit);
  double ret = pnl / entry, r = pnl / trade.risk;
  tally.trades++;
  tally.longs += is_long;
  tally.open_at_end += number == EXIT_END;
  tally.ambiguous += (trade.how & AMBIGUOUS_BIT) != 0;
  tally.skipped += trade.skipped;
  tally.bars_held += trade.exit_bar - trade.entry_bar;
  bool won = pnl > 0.0;
  tally.wins += won;
  tally.sum_pnl += pnl;
  tally.sum_win += won ? pnl : 0.0;
  tally.sum_loss += won ? 0.0 : pnl;
  tally.sum_ret += ret;
  tally.sum_ret_win += won ? ret : 0.0;
  tally.sum_ret_loss += won ? 0.0 : ret;
  tally.sum_r += r;
  tally.sum_r2 += r * r;
  double cumulated = tally.sum_pnl;
  book.pnl_peak_ref = cumulated > book.pnl_peak_ref ? cumulated : book.pnl_peak_ref;
  book.pnl_peak = cumulated > book.pnl_peak ? cumulated : book.pnl_peak;
  double fall = cumulated - book.pnl_peak, fall_ref = cumulated - book.pnl_peak_ref;
  tally.drawdown_pnl = fall < tally.drawdown_pnl ? fall : tally.drawdown_pnl;
  tally.drawdown_pnl_ref = fall_ref < tally.drawdown_pnl_ref ? fall_ref : tally.drawdown_pnl_ref;

  u32 entry_day = days.of_bar[trade.entry_bar], exit_day = days.of_bar[trade.exit_bar];
  if (book.day < entry_day) record(book, tally.equity, book.day, entry_day, daily);
  u32 end = trade.exit_bar + ((trade.how & CLOSE_BIT) != 0);
  Held held = {sign, entry, share_of(entry, trade.risk), tally.equity, lives_from(trade.entry_bar), end, is_long};
  for (u32 day = entry_day;; day++) {
    sink(book, held, days, day);
    if (day == exit_day) break;
    record(book, held.worth(days.close[day]), day, day + 1, daily);
  }
  tally.equity = number == EXIT_RUIN ? 0.0 : equity_after(tally.equity, pnl, ret, held.share);
  record(book, tally.equity, CLOSE_MOVE, 0, daily);
  book.day = exit_day;
  if (!ADDITIVE && tally.equity <= 0.0) book.broke = 1;
}

// Marks the days that are left.
__device__ inline void finish_book(Book& book, const Daily& daily) {
  u32 end = book.first_day + book.tally.days;
  Tally& tally = book.tally;
  if (book.day < end) record(book, tally.equity, book.day, end, daily);
  // What was marked inside bars counts besides all other marks.
  tally.drawdown_bar = tally.drawdown < tally.drawdown_bar ? tally.drawdown : tally.drawdown_bar;
}

KERNEL(book, BookArgs) {
  u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  const World& world = *args.world;
  if (thread >= (u64)world.n_trials * (args.n_segments / args.n_each)) return;
  u32 trial = (u32)(thread % world.n_trials), first_segment = (u32)(thread / world.n_trials) * args.n_each;
  BookState state = args.books[thread];
  while (state.n_done < args.n_each) {
    u32 number = first_segment + state.n_done;
    const Segment segment = args.segments[number];
    u64 at = (u64)number * world.n_trials + trial;
    if (segment.first >= segment.end) {
      Tally nothing = {};
      nothing.equity = 1.0;
      args.tallies[at] = nothing;
      state.n_done++;
      continue;
    }
    u32 start = world.start[segment.symbol], day_start = world.day_start[segment.symbol];
    Days days = {world.day + start, world.day_end + day_start, world.day_close + day_start, world.day_low + day_start,
                 world.day_high + day_start, world.low + start, world.high + start};
    double* sums = args.daily[segment.role];
    if (sums) sums += trial + (args.n_each == 1 ? (u64)number * args.n_days * world.n_trials : 0);
    double* blocks = args.blocks && segment.role == TRAIN ? args.blocks + trial : 0;
    Daily daily = {sums, blocks, world.calendar + day_start, args.block_of, world.n_trials};
    if (!state.open) {
      state.book = open_book(days.of_bar[segment.first], days.of_bar[segment.end - 1], segment.end - segment.first);
      state.open = 1;
    }
    WalkState& walk = args.walks[at];
    const Trade* trades = args.trades + at * args.capacity;
    u32 n_trades = walk.n_trades;
    for (u32 k = 0; k < n_trades && !state.book.broke; k++) book_trade(state.book, trades[k], days, daily);
    if (walk.status == FULL && !state.book.broke) {
      walk.status = RUNNING;
      walk.n_trades = 0;
      atomicAdd(args.n_open, 1u);
      break;
    }
    walk.status = DONE;
    walk.n_trades = 0;
    if (!state.book.broke) state.book.tally.skipped += walk.skipped;
    finish_book(state.book, daily);
    args.tallies[at] = state.book.tally;
    state.open = 0;
    state.n_done++;
  }
  args.books[thread] = state;
}
