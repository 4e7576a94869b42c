// Several segments as one: a portfolio of equal parts, marked by the day. Twin of pool.rs.

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

KERNEL(pool, PoolArgs) {
  u32 trial = blockIdx.x * blockDim.x + threadIdx.x;
  if (trial >= args.n_trials) return;
  Tally pooled = {};
  for (u32 segment = 0; segment < args.n_segments; segment++) {
    if (args.segments[segment].role != args.role) continue;
    const Tally& tally = args.tallies[(u64)segment * args.n_trials + trial];
    pooled.trades += tally.trades;
    pooled.wins += tally.wins;
    pooled.longs += tally.longs;
    pooled.open_at_end += tally.open_at_end;
    pooled.ambiguous += tally.ambiguous;
    pooled.skipped += tally.skipped;
    pooled.bars_held += tally.bars_held;
    pooled.bars += tally.bars;
    pooled.sum_pnl += tally.sum_pnl;
    pooled.sum_win += tally.sum_win;
    pooled.sum_loss += tally.sum_loss;
    pooled.sum_ret += tally.sum_ret;
    pooled.sum_ret_win += tally.sum_ret_win;
    pooled.sum_ret_loss += tally.sum_ret_loss;
    pooled.sum_r += tally.sum_r;
    pooled.sum_r2 += tally.sum_r2;
    pooled.drawdown_bar = minimum(pooled.drawdown_bar, tally.drawdown_bar);
    pooled.drawdown_pnl = minimum(pooled.drawdown_pnl, tally.drawdown_pnl);
    pooled.drawdown_pnl_ref = minimum(pooled.drawdown_pnl_ref, tally.drawdown_pnl_ref);
  }
  Book book = open_book(args.first_day, args.last_day, 1);
  double* blocks = args.blocks ? args.blocks + trial : 0;
  const Daily by_block = {0, blocks, 0, args.block_of, args.n_trials};
  // A pool is made again after every round of walking.
  for (u32 at = 0; blocks && at < 2 * args.n_blocks; at++) blocks[(u64)at * args.n_trials] = 0.0;
  for (u32 day = args.first_day; day <= args.last_day; day++) {
    double change = 0.0;
    for (u32 segment = 0; segment < (args.n_each == 1 ? args.n_segments : 1); segment++) {
      // Segments of the other role have no return here; adding 0 changes no bit.
      change += args.daily[((u64)segment * args.n_days + day) * args.n_trials + trial];
    }
    if (change == 0.0) continue;
    if (book.day < day) record(book, book.tally.equity, book.day, day, by_block);
    book.tally.equity = equity_after(book.tally.equity, change, change / args.n_symbols, 1.0);
    record(book, book.tally.equity, day, day + 1, by_block);
    book.day = day + 1;
  }
  finish_book(book, by_block);
  pooled.equity = book.tally.equity;
  pooled.drawdown = book.tally.drawdown;
  pooled.drawdown_daily = book.tally.drawdown_daily;
  pooled.days = book.tally.days;
  pooled.sum_daily = book.tally.sum_daily;
  pooled.sum_daily2 = book.tally.sum_daily2;
  pooled.sum_down2 = book.tally.sum_down2;
  pooled.longest_drawdown = book.tally.longest_drawdown;
  args.pooled[trial] = pooled;
}
