// Books the trades of one trial, segment by segment. Twin of book.rs.
//
// A thread keeps the books of one trial over some segments, one after the other: over one, if there is room to keep the daily returns of each
// segment; else over all, because daily returns are summed in their order. Where a walk is not done, the book waits for the next round.

struct Tally {
  u32 trades, wins, longs, open_at_end, days, longest_drawdown;
  u64 bars_held, bars;
  double sum_pnl, sum_win, sum_loss, sum_ret, sum_r, sum_r2, drawdown_pnl, drawdown_pnl_ref, equity, drawdown, sum_daily, sum_daily2, sum_down2;
};

struct Book {
  Tally tally;
  double peak, mark, pnl_peak, pnl_peak_ref;
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
  book.peak = book.mark = 1.0;
  book.pnl_peak_ref = -INFINITE;
  book.day = book.first_day = first_day;
  return book;
}

// Equity after a result: it compounds, and does not fall below nothing; or it adds in price units.
__device__ inline double equity_after(double equity, double pnl, double ret, double share) {
  if (ADDITIVE) return equity + pnl;
  double value = equity * (1.0 + share * ret);
  return value > 0.0 ? value : 0.0;
}

// The part of equity that a trade commits.
__device__ inline double share_of(double entry, double risk) {
  if (SIZING_RISK) {
    double share = SIZING_SHARE * entry / risk;
    return share < 1.0 ? share : 1.0;
  }
  return SIZING_SHARE;
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
    if (ADDITIVE) {
      change = value - book.mark;
    } else if (book.mark > 0.0) {
      change = value / book.mark - 1.0;
    }
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
    u32 today = next - book.first_day;
    if (value >= book.peak) book.peak_day = today;
    u32 length = today - book.peak_day;
    tally.longest_drawdown = length > tally.longest_drawdown ? length : tally.longest_drawdown;
  }
}

__device__ inline double result_of(double sign, double entry, double exit) {
  return sign * (exit - entry) - (entry + exit) * COST_BPS / 10000.0;
}

__device__ inline void book_trade(Book& book, const Trade& trade, const u32* day_of, const double* day_close, const Daily& daily) {
  Tally& tally = book.tally;
  bool is_long = trade.entry_bar & LONG_BIT;
  double sign = is_long ? 1.0 : -1.0, entry = trade.entry;
  u32 entry_bar = trade.entry_bar & ~LONG_BIT, exit_bar = trade.exit_bar & ~ENDED_BIT;
  double pnl = result_of(sign, entry, trade.exit);
  double ret = pnl / entry, r = pnl / trade.risk;
  tally.trades++;
  tally.longs += is_long;
  tally.open_at_end += (trade.exit_bar & ENDED_BIT) != 0;
  tally.bars_held += exit_bar - entry_bar;
  bool won = pnl > 0.0;
  tally.wins += won;
  tally.sum_pnl += pnl;
  tally.sum_win += won ? pnl : 0.0;
  tally.sum_loss += won ? 0.0 : pnl;
  tally.sum_ret += ret;
  tally.sum_r += r;
  tally.sum_r2 += r * r;
  double cumulated = tally.sum_pnl;
  book.pnl_peak_ref = cumulated > book.pnl_peak_ref ? cumulated : book.pnl_peak_ref;
  book.pnl_peak = cumulated > book.pnl_peak ? cumulated : book.pnl_peak;
  double fall = cumulated - book.pnl_peak, fall_ref = cumulated - book.pnl_peak_ref;
  tally.drawdown_pnl = fall < tally.drawdown_pnl ? fall : tally.drawdown_pnl;
  tally.drawdown_pnl_ref = fall_ref < tally.drawdown_pnl_ref ? fall_ref : tally.drawdown_pnl_ref;

  u32 entry_day = day_of[entry_bar], exit_day = day_of[exit_bar];
  if (book.day < entry_day) record(book, tally.equity, book.day, entry_day, daily);
  double share = share_of(entry, trade.risk);
  for (u32 held = entry_day; held < exit_day; held++) {
    double open_pnl = result_of(sign, entry, day_close[held]);
    record(book, equity_after(tally.equity, open_pnl, open_pnl / entry, share), held, held + 1, daily);
  }
  tally.equity = equity_after(tally.equity, pnl, ret, share);
  record(book, tally.equity, CLOSE_MOVE, 0, daily);
  book.day = exit_day;
  if (!ADDITIVE && tally.equity <= 0.0) book.broke = 1;
}

// Marks the days that are left.
__device__ inline void finish_book(Book& book, const Daily& daily) {
  u32 end = book.first_day + book.tally.days;
  if (book.day < end) record(book, book.tally.equity, book.day, end, daily);
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
    const u32* day_of = world.day + world.start[segment.symbol];
    u32 days = world.day_start[segment.symbol];
    const double* day_close = world.day_close + days;
    double* sums = args.daily[segment.role];
    if (sums) sums += trial + (args.n_each == 1 ? (u64)number * args.n_days * world.n_trials : 0);
    double* blocks = args.blocks && segment.role == TRAIN ? args.blocks + trial : 0;
    Daily daily = {sums, blocks, world.calendar + days, args.block_of, world.n_trials};
    if (!state.open) {
      state.book = open_book(day_of[segment.first], day_of[segment.end - 1], segment.end - segment.first);
      state.open = 1;
    }
    WalkState& walk = args.walks[at];
    const Trade* trades = args.trades + at * args.capacity;
    u32 n_trades = walk.n_trades;
    for (u32 k = 0; k < n_trades && !state.book.broke; k++) book_trade(state.book, trades[k], day_of, day_close, daily);
    if (walk.status == FULL && !state.book.broke) {
      walk.status = RUNNING;
      walk.n_trades = 0;
      atomicAdd(args.n_open, 1u);
      break;
    }
    walk.status = DONE;
    walk.n_trades = 0;
    finish_book(state.book, daily);
    args.tallies[at] = state.book.tally;
    state.open = 0;
    state.n_done++;
  }
  args.books[thread] = state;
}
