// Books the trades of one trial, segment by segment. Twin of book.rs.
//
// A warp keeps the books of one trial over some segments, one after the other: over one, if there is room to keep the daily returns of each
// segment; else over all, because daily returns are summed in their order. Where a walk is not done, the book waits for the next round. A lane
// takes a trade; ledger.cu records what the trades do to equity.

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
  double* daily[2];  // by role: trial, (segment,) day of the calendar; null where there is nothing to pool
  double* blocks;    // block, sum and square, trial: of the one segment that counts; null where there are several, or no blocks
  const u32* block_of;  // by day of the calendar
  u32* n_open;       // books that are not done
  const u32* order;  // in which order trials are booked; null: as they come
  u32 n_segments, capacity;
  u32 n_each, n_days;  // segments of a warp: one, or all; days of the calendar
};

#define TRAIN 0u

// The days of one symbol, and its bars.
struct Days {
  const u32* of_bar;
  const u32* end;
  const double *close, *low, *high;
  const double *bar_low, *bar_high;
};

// The moves of trades.
struct TradeMoves {
  static const bool HAS_CLOSE = true;
  const Ledger& ledger;
  const Days& days;
  u32 longs;  // a bit for each trade

  __device__ bool is_long(u32 item) const { return longs >> item & 1; }

  // Equity with the position at a price.
  __device__ double worth(u32 item, double price) const {
    double entry = ledger.entry[item];
    double pnl = pnl_of(is_long(item) ? 1.0 : -1.0, entry, price, COST_MARKET_BPS);
    return equity_after(ledger.before[item], pnl, pnl / entry, ledger.share[item]);
  }

  __device__ double value(u32 item, u32 day) const { return worth(item, days.close[day]); }

  // Whether a position could sink deeper than `deepest` on a day. A whole day's extreme is at least as bad as that of its bars with the position, and
  // a multiplication tells whether even that would be deeper.
  __device__ bool may_sink(u32 item, u32 day, double peak, double deepest) const {
    double entry = ledger.entry[item], share = ledger.share[item], equity = ledger.before[item];
    double extreme = is_long(item) ? days.low[day] : days.high[day];
    double pnl = (is_long(item) ? 1.0 : -1.0) * (extreme - entry) - (entry + extreme) * (COST_MARKET_BPS * 1e-4);
    double floor = floor_of(peak, deepest);
    return !(ADDITIVE ? equity + pnl > floor + 1e-9 * entry : equity * (entry + share * pnl) > floor * entry);
  }

  // The fall of a position at its adverse extreme of a day, if it could be deeper than all before; 0 for lanes that are not `here`.
  __device__ double sink(bool here, u32 item, u32 day, double peak, double deepest) const {
    here = here && may_sink(item, day, peak, deepest);
    if (!__any_sync(EVERY_LANE, here)) return 0.0;
    // Nothing counts that is not deeper than any fall of any lane.
    deepest = least_of(deepest);
    here = here && may_sink(item, day, peak, deepest);
    double extreme = 0.0;
    u32 from = 0, to = 0;
    bool is_part = false;
    if (here) {
      u32 start = day == 0 ? 0 : days.end[day - 1], end = days.end[day];
      from = ledger.held_from[item] > start ? ledger.held_from[item] : start;
      to = ledger.held_to[item] < end ? ledger.held_to[item] : end;
      here = from < to;
      is_part = here && (from > start || to < end);
      extreme = is_long(item) ? days.low[day] : days.high[day];
    }
    // The whole day's extreme, or that of the bars.
    double of_bars = extremes_between(is_part, is_long(item), from, to);
    if (!here) return 0.0;
    double fall = worth(item, is_part ? of_bars : extreme) / peak - 1.0;
    return fall < 0.0 ? fall : 0.0;
  }

  // For each lane that asks, the lowest low of some bars, or the highest high. Eight lanes look for one that asks, so that there are four at a time.
  __device__ double extremes_between(bool asks, bool low, u32 from, u32 to) const {
    const u32 lane = lane_of(), asking = __ballot_sync(EVERY_LANE, asks), rank = __popc(asking & ((1u << lane) - 1));
    // The lane that these eight look for comes first among those that are left.
    u32 left = asking;
    for (u32 k = 0; k < lane / 8; k++) left &= left - 1;
    double out = 0.0;
    for (u32 n_done = 0; n_done < __popc(asking); n_done += 4) {
      const u32 who = left ? __ffs(left) - 1 : 0;
      const u32 first = __shfl_sync(EVERY_LANE, from, who), behind = __shfl_sync(EVERY_LANE, to, who), end = left ? behind : 0;
      const bool is_low = __shfl_sync(EVERY_LANE, (u32)low, who);
      const double* prices = is_low ? days.bar_low : days.bar_high;
      const double sign = is_low ? 1.0 : -1.0;
      double least = INFINITE;
      for (u32 bar = first + lane % 8; bar < end; bar += 32) {
        double some[4];
#pragma unroll
        for (u32 k = 0; k < 4; k++) some[k] = sign * prices[bar + 8 * k < end ? bar + 8 * k : first];
#pragma unroll
        for (u32 k = 0; k < 4; k++) least = some[k] < least ? some[k] : least;
      }
      least = least_of(least, 8);
      const bool is_served = asks && rank >= n_done && rank < n_done + 4;
      const double found = __shfl_sync(EVERY_LANE, least, is_served ? 8 * (rank - n_done) : 0);
      if (is_served) out = low ? found : -found;
      for (u32 k = 0; k < 4; k++) left &= left - 1;
    }
    return out;
  }
};

// Equity before and after each item, one after the other, until nothing is left; how many there are then. A vote names those after which there is
// nothing.
__device__ inline u32 grow(Ledger& ledger, u32 n_items, u32 ruins) {
  if (ruins == 0 && compound(ledger)) return n_items;
  const u32 lane = lane_of();
  double equity = ledger.book.tally.equity, before = equity, after = equity;
  u32 at = 0;
  while (at < n_items) {
    if (lane >= at) before = equity;
    double value = ADDITIVE ? equity + ledger.change[at] : equity * ledger.change[at];
    equity = ADDITIVE || value > 0.0 ? value : 0.0;
    if (ruins >> at & 1) equity = 0.0;
    if (lane >= at) after = equity;
    at++;
    if (!ADDITIVE && equity <= 0.0) break;
  }
  if (lane >= at) before = equity;
  __syncwarp();
  ledger.before[lane] = before;
  ledger.after[lane] = after;
  if (lane == 0) {
    ledger.book.tally.equity = equity;
    ledger.book.broke = !ADDITIVE && equity <= 0.0;
  }
  __syncwarp();
  return at;
}

// Sums over the trades of the ledger. The cumulated `pnl` is left in the first row.
__device__ inline void sum_trades(Ledger& ledger, double pnl, double ret, double r) {
  const u32 lane = lane_of();
  const bool won = pnl > 0.0;
  ledger.terms[0][lane] = pnl;
  ledger.terms[1][lane] = won ? pnl : 0.0;
  ledger.terms[2][lane] = won ? 0.0 : pnl;
  ledger.terms[3][lane] = ret;
  ledger.terms[4][lane] = won ? ret : 0.0;
  ledger.terms[5][lane] = won ? 0.0 : ret;
  ledger.terms[6][lane] = r;
  ledger.terms[7][lane] = r * r;
  __syncwarp();
  sum_rows(ledger, 8, &ledger.book.tally.sum_pnl);
}

__device__ inline void sum_falls(Ledger& ledger, bool here) {
  Book& book = ledger.book;
  double cumulated = here ? ledger.terms[0][lane_of()] : 0.0;
  double peak = largest_so_far(here && cumulated > book.pnl_peak ? cumulated : book.pnl_peak);
  double peak_ref = largest_so_far(here && cumulated > book.pnl_peak_ref ? cumulated : book.pnl_peak_ref);
  double fall = cumulated - peak, fall_ref = cumulated - peak_ref;
  fall = least_of(here && fall < 0.0 ? fall : 0.0);
  fall_ref = least_of(here && fall_ref < 0.0 ? fall_ref : 0.0);
  __syncwarp();
  if (lane_of() == 31) {
    book.pnl_peak = peak;
    book.pnl_peak_ref = peak_ref;
    if (fall < book.tally.drawdown_pnl) book.tally.drawdown_pnl = fall;
    if (fall_ref < book.tally.drawdown_pnl_ref) book.tally.drawdown_pnl_ref = fall_ref;
  }
}

__device__ inline void count_trades(Tally& tally, const Trade& trade, bool here, u32 longs, u32 wins) {
  u32 how = here ? trade.how : 0;
  u32 n_open = __popc(__ballot_sync(EVERY_LANE, here && (how & EXIT_NUMBER) == EXIT_END));
  u32 n_ambiguous = __popc(__ballot_sync(EVERY_LANE, (how & AMBIGUOUS_BIT) != 0));
  u32 n_trades = __popc(__ballot_sync(EVERY_LANE, here));
  u32 n_skipped = sum_of(here ? trade.skipped : 0u);
  u64 n_bars = sum_of(here ? (u64)(trade.exit_bar - trade.entry_bar) : 0ull);
  if (lane_of() == 0) {
    tally.trades += n_trades;
    tally.longs += __popc(longs);
    tally.wins += __popc(wins);
    tally.open_at_end += n_open;
    tally.ambiguous += n_ambiguous;
    tally.skipped += n_skipped;
    tally.bars_held += n_bars;
  }
}

// Books up to 32 trades, one on each lane, in order, until nothing is left. If they are the last ones, the days that are left are marked along with
// them where there is a lane for that.
__device__ inline void book_trades(Ledger& ledger, const Trade& trade, u32 n_trades, bool are_last, const Days& days, const Daily& daily) {
  const u32 lane = lane_of();
  double pnl = 0.0, ret = 0.0, r = 0.0, share = 0.0;
  if (lane < n_trades) {
    pnl = pnl_of(trade.how & LONG_BIT ? 1.0 : -1.0, trade.entry, trade.exit, out_bps_of(trade.how));
    ret = pnl / trade.entry;
    r = pnl / trade.risk;
    share = ANY_SIZE ? trade.share : share_of(trade.entry, trade.risk);
  }
  // Lanes without a trade change nothing.
  ledger.change[lane] = ADDITIVE ? pnl : 1.0 + share * ret;
  u32 ruins = __ballot_sync(EVERY_LANE, lane < n_trades && (trade.how & EXIT_NUMBER) == EXIT_RUIN);
  __syncwarp();
  const u32 n_booked = grow(ledger, n_trades, ruins);
  const bool here = lane < n_booked;
  u32 longs = __ballot_sync(EVERY_LANE, here && (trade.how & LONG_BIT)), wins = __ballot_sync(EVERY_LANE, here && pnl > 0.0);
  sum_trades(ledger, here ? pnl : 0.0, here ? ret : 0.0, here ? r : 0.0);
  sum_falls(ledger, here);
  count_trades(ledger.book.tally, trade, here, longs, wins);

  u32 entry_day = here ? days.of_bar[trade.entry_bar] : 0, exit_day = here ? days.of_bar[trade.exit_bar] : 0;
  u32 flat_from = __shfl_up_sync(EVERY_LANE, exit_day, 1);
  if (lane == 0) flat_from = ledger.book.day;
  const u32 end = ledger.book.first_day + ledger.book.tally.days;
  const bool ends = n_booked < 32 && (are_last || ledger.book.broke);
  if (ends && lane == n_booked) entry_day = exit_day = end;
  ledger.entry[lane] = trade.entry;
  ledger.share[lane] = share;
  ledger.held_from[lane] = lives_from(trade.entry_bar);
  ledger.held_to[lane] = trade.exit_bar + ((trade.how & CLOSE_BIT) != 0);
  ledger.flat_from[lane] = flat_from;
  ledger.first[lane] = entry_day;
  ledger.n_marks[lane] = exit_day - entry_day;
  u32 n_moves = here ? (exit_day - entry_day) + 1 : 0;
  if (here || (ends && lane == n_booked)) n_moves += flat_from < entry_day;
  ledger.end[lane] = end_of_moves(n_moves);
  __syncwarp();
  if (lane == (ends ? n_booked : n_booked - 1)) ledger.book.day = exit_day;
  record_moves(ledger, TradeMoves{ledger, days, longs}, daily);
}

// Days of a pool, each with one mark; or the days that are left.
struct DayMoves {
  static const bool HAS_CLOSE = false;
  const Ledger& ledger;
  __device__ double value(u32 item, u32) const { return ledger.after[item]; }
  __device__ double sink(bool, u32, u32, double, double) const { return 0.0; }
};

__device__ inline void open_ledger(Ledger& ledger, u32 first_day, u32 last_day, u64 bars) {
  if (lane_of() == 0) ledger.book = open_book(first_day, last_day, bars);
  __syncwarp();
}

// Marks the days that are left, of which there is one at least.
__device__ inline void mark_rest(Ledger& ledger, const Daily& daily, u32 end) {
  const u32 lane = lane_of();
  ledger.before[lane] = ledger.after[lane] = ledger.book.tally.equity;
  ledger.flat_from[lane] = ledger.book.day;
  ledger.first[lane] = end;
  ledger.n_marks[lane] = 0;
  ledger.end[lane] = 1;
  __syncwarp();
  record_moves(ledger, DayMoves{ledger}, daily);
}

__device__ inline void finish_book(Ledger& ledger, const Daily& daily) {
  Book& book = ledger.book;
  Tally& tally = book.tally;
  u32 end = book.first_day + tally.days;
  if (book.day < end) mark_rest(ledger, daily, end);
  // What was marked inside bars counts besides all other marks.
  if (lane_of() == 0) tally.drawdown_bar = tally.drawdown < tally.drawdown_bar ? tally.drawdown : tally.drawdown_bar;
  __syncwarp();
}

KERNEL_BOUNDED(book, BookArgs, 32 * BOOK_WARPS, BOOK_BLOCKS) {
  __shared__ Ledger ledgers[BOOK_WARPS];
  const u32 lane = lane_of();
  const u64 warp = (u64)blockIdx.x * BOOK_WARPS + threadIdx.x / 32;
  const World& world = *args.world;
  if (warp >= (u64)world.n_trials * (args.n_segments / args.n_each)) return;
  Ledger& ledger = ledgers[threadIdx.x / 32];
  u32 trial = (u32)(warp % world.n_trials), group = (u32)(warp / world.n_trials), first_segment = group * args.n_each;
  if (args.order) trial = args.order[trial];
  BookState& state = args.books[(u64)group * world.n_trials + trial];
  u32 n_done = state.n_done, is_open = state.open;
  if (lane == 0) ledger.book = state.book;
  __syncwarp();
  while (n_done < args.n_each) {
    u32 number = first_segment + n_done;
    const Segment segment = args.segments[number];
    u64 at = (u64)number * world.n_trials + trial;
    if (segment.first >= segment.end) {
      Tally nothing = {};
      nothing.equity = 1.0;
      if (lane == 0) args.tallies[at] = nothing;
      n_done++;
      continue;
    }
    u32 start = world.start[segment.symbol], day_start = world.day_start[segment.symbol];
    Days days = {world.day + start, world.day_end + day_start, world.day_close + day_start, world.day_low + day_start,
                 world.day_high + day_start, world.low + start, world.high + start};
    double* sums = args.daily[segment.role];
    if (sums) sums += ((u64)trial * (args.n_segments / args.n_each) + group) * args.n_days;
    double* blocks = args.blocks && segment.role == TRAIN ? args.blocks + trial : 0;
    Daily daily = {sums, blocks, world.calendar + day_start, args.block_of, world.n_trials};
    if (!is_open) open_ledger(ledger, days.of_bar[segment.first], days.of_bar[segment.end - 1], segment.end - segment.first);
    WalkState& walk = args.walks[at];
    const Trade* trades = args.trades + at * args.capacity;
    u32 n_trades = walk.n_trades, status = walk.status;
    // The next trades are on their way while those before them are booked.
    Trade next = {};
    if (lane < n_trades) next = trades[lane];
    for (u32 k = 0; k < n_trades && !ledger.book.broke; k += 32) {
      const Trade trade = next;
      const u32 n_left = n_trades - k;
      if (k + 32 + lane < n_trades) next = trades[k + 32 + lane];
      book_trades(ledger, trade, n_left < 32 ? n_left : 32, status != FULL && n_left <= 32, days, daily);
    }
    bool goes_on = status == FULL && !ledger.book.broke;
    is_open = goes_on;
    __syncwarp();
    if (lane == 0) {
      walk.status = goes_on ? (u32)RUNNING : (u32)DONE;
      walk.n_trades = 0;
      if (goes_on) atomicAdd(args.n_open, 1u);
      if (!goes_on && !ledger.book.broke) ledger.book.tally.skipped += walk.skipped;
    }
    if (goes_on) break;
    finish_book(ledger, daily);
    if (lane == 0) args.tallies[at] = ledger.book.tally;
    __syncwarp();
    n_done++;
  }
  if (lane == 0) {
    state.book = ledger.book;
    state.n_done = n_done;
    state.open = is_open;
  }
}
