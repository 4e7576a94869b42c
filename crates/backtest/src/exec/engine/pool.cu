// Several segments as one: a portfolio of equal parts, marked by the day. Twin of pool.rs. A warp pools one trial.

struct PoolArgs {
  const Segment* segments;
  const Tally* tallies;
  const double* daily;
  Tally* pooled;
  double* blocks;       // as in BookArgs; null unless this is the pool that counts, and blocks are kept
  const u32* block_of;
  u32 n_segments, n_trials, role, first_day, last_day, n_symbols;
  u32 n_each, n_days;  // as in BookArgs
  u32 n_blocks, unused;
};

// What the segments of a role have counted and summed.
__device__ inline void pool_tallies(const PoolArgs& args, u32 trial, Tally& pooled) {
  const u32 lane = lane_of();
  Tally mine = {};
  for (u32 segment = lane; segment < args.n_segments; segment += 32) {
    if (args.segments[segment].role != args.role) continue;
    const Tally& tally = args.tallies[(u64)segment * args.n_trials + trial];
    mine.trades += tally.trades;
    mine.wins += tally.wins;
    mine.longs += tally.longs;
    mine.open_at_end += tally.open_at_end;
    mine.ambiguous += tally.ambiguous;
    mine.skipped += tally.skipped;
    mine.bars_held += tally.bars_held;
    mine.bars += tally.bars;
    mine.drawdown_bar = minimum(mine.drawdown_bar, tally.drawdown_bar);
    mine.drawdown_pnl = minimum(mine.drawdown_pnl, tally.drawdown_pnl);
    mine.drawdown_pnl_ref = minimum(mine.drawdown_pnl_ref, tally.drawdown_pnl_ref);
  }
  mine.trades = sum_of(mine.trades);
  mine.wins = sum_of(mine.wins);
  mine.longs = sum_of(mine.longs);
  mine.open_at_end = sum_of(mine.open_at_end);
  mine.ambiguous = sum_of(mine.ambiguous);
  mine.skipped = sum_of(mine.skipped);
  mine.bars_held = sum_of(mine.bars_held);
  mine.bars = sum_of(mine.bars);
  mine.drawdown_bar = least_of(mine.drawdown_bar);
  mine.drawdown_pnl = least_of(mine.drawdown_pnl);
  mine.drawdown_pnl_ref = least_of(mine.drawdown_pnl_ref);
  if (lane == 0) pooled = mine;
  __syncwarp();
  // Sums in the order of the segments, each on a lane of its own.
  if (lane < 8) {
    double sum = 0.0;
    for (u32 segment = 0; segment < args.n_segments; segment++) {
      if (args.segments[segment].role != args.role) continue;
      sum += (&args.tallies[(u64)segment * args.n_trials + trial].sum_pnl)[lane];
    }
    (&pooled.sum_pnl)[lane] = sum;
  }
  __syncwarp();
}

// Equity before and after each of 32 days of which those named by a vote have a return, where it may come to nothing.
__device__ inline void compound_to_nothing(Ledger& ledger, u32 moving) {
  const u32 lane = lane_of();
  double equity = ledger.book.tally.equity, before = equity, after = equity;
  for (u32 k = 0; k < 32; k++) {
    if (!(moving >> k & 1)) continue;
    if (lane >= k) before = equity;
    double value = equity * ledger.change[k];
    equity = value > 0.0 ? value : 0.0;
    if (lane >= k) after = equity;
  }
  __syncwarp();
  ledger.before[lane] = before;
  ledger.after[lane] = after;
  if (lane == 0) ledger.book.tally.equity = equity;
  __syncwarp();
}

// Takes 32 days, of which those without a return have no move.
__device__ inline void pool_days(Ledger& ledger, u32 first, double change, u32 n_symbols, const Daily& daily) {
  const u32 lane = lane_of(), day = first + lane;
  u32 moving = __ballot_sync(EVERY_LANE, change != 0.0);
  if (!moving) return;
  double ret = change / n_symbols;
  // A day without a return changes nothing.
  ledger.change[lane] = ADDITIVE ? change : 1.0 + 1.0 * ret;
  __syncwarp();
  if (!compound(ledger)) compound_to_nothing(ledger, moving);
  u32 flat_from = from_last(moving, day + 1, ledger.book.day);
  ledger.flat_from[lane] = flat_from;
  ledger.first[lane] = day;
  ledger.n_marks[lane] = 1;
  ledger.end[lane] = end_of_moves(change != 0.0 ? (flat_from < day) + 1 : 0u);
  __syncwarp();
  if (lane == 0) ledger.book.day = first + 32 - __clz(moving);
  record_moves(ledger, DayMoves{ledger}, daily);
}

KERNEL(pool, PoolArgs) {
  __shared__ Ledger ledgers[BOOK_WARPS];
  __shared__ Tally tallies[BOOK_WARPS];
  const u32 lane = lane_of(), trial = blockIdx.x * BOOK_WARPS + threadIdx.x / 32;
  if (trial >= args.n_trials) return;
  Ledger& ledger = ledgers[threadIdx.x / 32];
  Tally& pooled = tallies[threadIdx.x / 32];
  pool_tallies(args, trial, pooled);
  open_ledger(ledger, args.first_day, args.last_day, 1);
  double* blocks = args.blocks ? args.blocks + trial : 0;
  const Daily by_block = {0, blocks, 0, args.block_of, args.n_trials};
  // A pool is made again after every round of walking.
  for (u32 at = lane; blocks && at < 2 * args.n_blocks; at += 32) blocks[(u64)at * args.n_trials] = 0.0;
  __syncwarp();
  const u32 n_books = args.n_each == 1 ? args.n_segments : 1;
  const double* returns = args.daily + (u64)trial * n_books * args.n_days;
  for (u32 first = args.first_day; first <= args.last_day; first += 32) {
    u32 day = first + lane;
    double change = 0.0;
    if (day <= args.last_day) {
      // Segments of the other role have no return here; adding 0 changes no bit.
      for (u32 book = 0; book < n_books; book++) change += returns[(u64)book * args.n_days + day];
    }
    pool_days(ledger, first, change, args.n_symbols, by_block);
  }
  finish_book(ledger, by_block);
  if (lane == 0) {
    const Tally& tally = ledger.book.tally;
    pooled.equity = tally.equity;
    pooled.drawdown = tally.drawdown;
    pooled.drawdown_daily = tally.drawdown_daily;
    pooled.days = tally.days;
    pooled.sum_daily = tally.sum_daily;
    pooled.sum_daily2 = tally.sum_daily2;
    pooled.sum_down2 = tally.sum_down2;
    pooled.longest_drawdown = tally.longest_drawdown;
    args.pooled[trial] = pooled;
  }
}
