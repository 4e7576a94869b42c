// Finds the trades of one trial through one segment, a block for each. Its trades are those of walk.cu.
//
// Where there are so few walks that groups would leave the device empty, a block takes a walk: each of its groups opens a position on one of the
// next signals, though most positions will turn out to begin while another one is open; then those that do not are picked in order. Where a
// position ends depends on its own signal alone, so the trades are the same. A position that lasts is followed to its end only
// if it is picked, by a whole warp.

// The next signals of a walk that a block takes, and what came of each.
#define TAKEN 1u
#define LAST 2u
#define DISCARDED 4u
#define OPEN 8u  // it does not end before the horizon
struct Candidates {
  u32 n, end;  // bars before the end have been searched
  u32 alone;   // whether the first one is searched without a horizon, and no other one
  u32 counts[MOST_WALK_THREADS / 32];
  u32 signal[MOST_WALK_THREADS / WALK_LANES];
  u32 how[MOST_WALK_THREADS / WALK_LANES];      // the bits above
  u32 next[MOST_WALK_THREADS / WALK_LANES];     // where the walk goes on after the trade
  u32 place[MOST_WALK_THREADS / WALK_LANES];    // of the trade among all, or NEVER
  u32 skipped[MOST_WALK_THREADS / WALK_LANES];  // entries before it that were not taken
};

// Finds the next signals from a bar on, one for each group of the block.
template <int G> __device__ inline void find_signals(Candidates& candidates, const Walker<G>& walker, u32 from, u32 end) {
  const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, most = candidates.alone ? 1 : blockDim.x / G;
  u32 word = from / 64 + threadIdx.x;
  u64 bits = (u64)word * 64 < end ? walker.signals(word) : 0;
  if (word == from / 64) bits &= ~0ull << (from % 64);
  if ((u64)word * 64 < end && end - word * 64 < 64) bits &= (1ull << (end - word * 64)) - 1;
  u32 count = __popcll(bits), upto = count;
  for (u32 by = 1; by < 32; by *= 2) {
    u32 before = __shfl_up_sync(0xffffffffu, upto, by);
    if (lane >= by) upto += before;
  }
  if (lane == 31) candidates.counts[warp] = upto;
  __syncthreads();
  u32 place = upto - count, total = 0;
  for (u32 k = 0; k < blockDim.x / 32; k++) {
    if (k == warp) place += total;
    total += candidates.counts[k];
  }
  while (bits && place < most) {
    candidates.signal[place++] = word * 64 + __ffsll(bits) - 1;
    bits &= bits - 1;
  }
  if (threadIdx.x == 0) {
    u64 searched = ((u64)from / 64 + blockDim.x) * 64;
    candidates.n = total < most ? total : most;
    candidates.end = searched < end ? (u32)searched : end;
  }
  __syncthreads();
  if (threadIdx.x == 0 && total > most) candidates.end = candidates.signal[most - 1] + 1;
  __syncthreads();
}

// Picks the trades of a walk among what its next signals have opened, in order. One warp does.
__device__ inline void pick_trades(Candidates& candidates, WalkState& state, u32 capacity, u32 end) {
  const u32 lane = threadIdx.x % 32, n = candidates.n;
  if (lane == 0) candidates.alone = 0;
  while (true) {
    u32 who = NEVER;
    for (u32 base = 0; base < n && who == NEVER; base += 32) {
      u32 votes = __ballot_sync(0xffffffffu, base + lane < n && candidates.signal[base + lane] >= state.from);
      if (votes) who = base + __ffs(votes) - 1;
    }
    if (who == NEVER) {
      if (state.from < candidates.end) state.from = candidates.end;
      if (state.from >= end) state.status = DONE;
      return;
    }
    u32 how = candidates.how[who];
    if (how & OPEN) {
      state.from = candidates.signal[who];
      if (lane == 0) candidates.alone = 1;
      return;
    }
    if (candidates.signal[who] + 1 >= end || (how & DISCARDED)) {
      state.status = DONE;
      return;
    }
    if (!(how & TAKEN)) {
      state.from = candidates.signal[who] + 1;
      state.skipped++;
      continue;
    }
    if (lane == 0) {
      candidates.place[who] = state.n_trades;
      candidates.skipped[who] = state.skipped;
    }
    state.skipped = 0;
    state.n_trades++;
    state.from = candidates.next[who];
    if (how & LAST) {
      state.status = DONE;
      return;
    }
    if (state.n_trades == capacity) {
      state.status = FULL;
      return;
    }
  }
}

// What a signal opens, for those who pick. Bars are searched up to the horizon.
template <int G> __device__ inline void try_signal(Candidates& candidates, const Walker<G>& walker, u32 at, u32 horizon, u32 end, Trade& trade) {
  u32 signal = candidates.signal[at], how = 0, next = end;
  // Nothing is filled after the last bar.
  if (signal + 1 < end) {
    Exit exit;
    u32 side = walker.side_of(signal);
    if (walker.trade_on(signal, side, horizon, trade, exit)) {
      how = exit.is_open ? OPEN : TAKEN | (is_last(exit) ? LAST : 0) | (is_discarded(exit) ? DISCARDED : 0);
      if (how == TAKEN) next = walker.next_from(exit, side);
    }
  }
  if (walker.group.lane == 0) {
    candidates.how[at] = how;
    candidates.next[at] = next;
    candidates.place[at] = NEVER;
  }
}

// The same walk by a whole block.
KERNEL_BOUNDED(walk_block, WalkArgs, MOST_WALK_THREADS, 2) {
  __shared__ Candidates candidates;
  __shared__ WalkState state;
  const World& world = *args.world;
  u64 walk = blockIdx.x;
  if (args.states[walk].status != RUNNING) return;
  const Segment segment = args.segments[walk / world.n_trials];
  const Walker<WALK_LANES> walker = walker_of<WALK_LANES>(args, (u32)(walk % world.n_trials), segment);
  const Walker<32> of_warp = walker_of<32>(args, (u32)(walk % world.n_trials), segment);
  const u32 end = segment.end, group = threadIdx.x / WALK_LANES;
  Trade* out = args.trades + walk * args.capacity;
  if (threadIdx.x == 0) {
    state = args.states[walk];
    state.n_trades = 0;
    candidates.alone = 0;
  }
  __syncthreads();
  while (state.status == RUNNING) {
    find_signals(candidates, walker, state.from, end);
    Trade trade;
    if (!candidates.alone) {
      if (group < candidates.n) try_signal(candidates, walker, group, candidates.signal[group] + HORIZON, end, trade);
    } else if (threadIdx.x < 32 && candidates.n > 0) {
      try_signal(candidates, of_warp, 0, NEVER, end, trade);
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      WalkState mine = state;
      pick_trades(candidates, mine, args.capacity, end);
      __syncwarp();
      if (threadIdx.x == 0) state = mine;
    }
    __syncthreads();
    if (group < candidates.n && candidates.place[group] != NEVER && walker.group.lane == 0) {
      trade.skipped = candidates.skipped[group];
      out[candidates.place[group]] = trade;
    }
  }
  if (threadIdx.x == 0) args.states[walk] = state;
}
