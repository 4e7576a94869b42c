// Finds the trades of one trial through one segment, a block for each. Its trades are those of walk.cu.
//
// Where there are so few walks that groups would leave the device empty, a block takes a walk and cuts its bars into stretches, one for each group.
// A group walks its stretch as though no position were open where it begins, then goes on until it comes to a signal that a later stretch has taken:
// what follows depends on the signal alone, so from there on the two walks are one. Then the stretches are joined: the first one, the one that its
// walk has met, the one that was met from there, and so on. A position that lasts is followed to its end only if it is on that way, by a whole warp.

// How the walk of a stretch ended, besides FULL and DONE: at a signal that a later stretch has taken, or at one whose position lasts.
#define MET 3
#define LASTS 4

#define MOST_STRETCHES (MOST_WALK_THREADS / WALK_LANES)

struct Stretch {
  u32 n_trades, from, status, skipped;  // as in WalkState
  u32 met, trade;                       // the stretch that was met, and its trade on that signal
};

// A run of trades of one stretch.
struct Piece {
  u32 first, n_trades;  // in the buffer of the walk
  u32 skipped;          // entries before it that were not taken
};

struct Stretches {
  u32 n, first, length, room;  // the first bar of all, bars of each, and trades that each has room for
  u32 n_pieces;
  Trade* trades;
  u32 n_own[MOST_STRETCHES];  // trades on signals of the stretch itself
  Stretch of[MOST_STRETCHES];
  Piece pieces[MOST_STRETCHES];

  // Cuts what is left of a walk.
  __device__ void cut(const WalkState& state, u32 end, u32 capacity, Trade* out) {
    const u32 n_bars = end - state.from, n_left = capacity - state.n_trades;
    u32 most = blockDim.x / WALK_LANES < n_left ? blockDim.x / WALK_LANES : n_left;
    most = n_bars / LEAST_STRETCH + 1 < most ? n_bars / LEAST_STRETCH + 1 : most;
    first = state.from;
    length = (n_bars + most - 1) / most;
    n = (n_bars + length - 1) / length;
    room = n_left / n;
    trades = out + state.n_trades;
  }

  // Whether a trade of a stretch opens on a bar. The search goes on from `at` and leaves the trade there.
  template <int G> __device__ bool opens(const Group<G>& group, u32 stretch, u32 bar, u32& at) const {
    const Trade* list = trades + stretch * room;
    while (true) {
      u32 entry = at + group.lane < n_own[stretch] ? list[at + group.lane].entry_bar : NEVER;
      u32 votes = group.ballot(entry >= bar);
      u32 who = votes ? __ffs(votes) - 1 : 0;
      at += votes ? who : G;
      if (votes) return group.from(entry, who) == bar;
    }
  }
};

// Walks on over signals up to a bar, or until a signal that a later stretch has taken, if that counts. Positions are followed for so many bars.
template <int G>
__device__ inline void walk_on(const Walker<G>& walker, const Stretches& all, Stretch& mine, Trade* out, u32 upto, bool may_meet, u32 most_bars) {
  const u32 end = walker.ground.last + 1;
  u32 other = NEVER, at = 0;
  while (true) {
    u32 signal = walker.next_entry(mine.from, upto);
    // Nothing is filled after the last bar.
    if (signal == NEVER || signal + 1 >= end) {
      mine.from = mine.from < upto ? upto : mine.from;
      mine.status = upto == end ? DONE : RUNNING;
      return;
    }
    if (may_meet) {
      u32 here = (signal - all.first) / all.length;
      at = here == other ? at : 0;
      other = here;
      if (all.opens(walker.group, other, fill_bar(signal), at)) {
        mine.status = MET;
        mine.met = other;
        mine.trade = at;
        return;
      }
    }
    if (mine.n_trades == all.room) {
      mine.status = FULL;
      return;
    }
    Trade trade;
    Exit exit;
    u32 side = walker.side_of(signal);
    if (!walker.trade_on(signal, side, most_bars < end - signal ? signal + most_bars : NEVER, trade, exit)) {
      mine.from = signal + 1;
      mine.skipped++;
      continue;
    }
    if (exit.is_open) {
      mine.from = signal;
      mine.status = LASTS;
      return;
    }
    if (!is_discarded(exit)) {
      trade.skipped = mine.skipped;
      mine.skipped = 0;
      if (walker.group.lane == 0) out[mine.n_trades] = trade;
      mine.n_trades++;
    }
    if (is_last(exit)) {
      mine.status = DONE;
      return;
    }
    mine.from = walker.next_from(exit, side);
  }
}

// Follows the walk from stretch to stretch; how it goes on. One warp does.
__device__ inline WalkState join(Stretches& all, const Walker<32>& walker, const WalkState& before, u32 capacity) {
  const u32 lane = walker.group.lane;
  u32 at = 0, first = 0, skipped = 0, n_pieces = 0, n_trades = 0;
  Stretch now = all.of[0];
  while (true) {
    if (now.status == LASTS) walk_on(walker, all, now, all.trades + at * all.room, walker.ground.last + 1, true, NEVER);
    if (lane == 0) all.pieces[n_pieces] = {at * all.room + first, now.n_trades - first, skipped};
    n_pieces++;
    n_trades += now.n_trades - first;
    if (now.status != MET) break;
    at = now.met;
    first = now.trade;
    skipped = now.skipped;
    now = all.of[at];
  }
  if (lane == 0) all.n_pieces = n_pieces;
  n_trades += before.n_trades;
  // Little room would make for short stretches: the next round has all of it.
  u32 status = now.status == DONE ? DONE : n_trades >= capacity - capacity / 4 ? FULL : RUNNING;
  return {now.from, status, n_trades, now.skipped};
}

// Brings the pieces together, from the front: each moves towards the beginning, if at all.
__device__ inline void gather(Stretches& all) {
  const u32 AT_ONCE = 4, WORDS = sizeof(Trade) / sizeof(u64);
  u32 n_before = 0;
  for (u32 piece = 0; piece < all.n_pieces; piece++) {
    const Piece here = all.pieces[piece];
    const u64* from = (const u64*)(all.trades + here.first);
    u64* to = (u64*)(all.trades + n_before);
    const u32 n_words = from == to ? 0 : here.n_trades * WORDS;
    for (u32 base = threadIdx.x; base - threadIdx.x < n_words; base += AT_ONCE * blockDim.x) {
      u64 words[AT_ONCE];
#pragma unroll
      for (u32 k = 0; k < AT_ONCE; k++) words[k] = base + k * blockDim.x < n_words ? from[base + k * blockDim.x] : 0;
      __syncthreads();
#pragma unroll
      for (u32 k = 0; k < AT_ONCE; k++) {
        if (base + k * blockDim.x < n_words) to[base + k * blockDim.x] = words[k];
      }
    }
    __syncthreads();
    if (piece > 0 && threadIdx.x == 0) all.trades[n_before].skipped = here.skipped;
    n_before += here.n_trades;
  }
}

KERNEL_BOUNDED(walk_block, WalkArgs, MOST_WALK_THREADS, 2) {
  __shared__ Stretches all;
  __shared__ WalkState state;
  __shared__ Ground ground;
  const World& world = *args.world;
  u64 walk = blockIdx.x;
  if (args.states[walk].status != RUNNING) return;
  const Segment segment = args.segments[walk / world.n_trials];
  const Walker<WALK_LANES> walker = {Group<WALK_LANES>(), ground};
  const Walker<32> of_warp = {Group<32>(), ground};
  const u32 end = segment.end, group = threadIdx.x / WALK_LANES;
  if (threadIdx.x == 0) {
    look(ground, args, (u32)(walk % world.n_trials), segment);
    state = args.states[walk];
    state.n_trades = 0;
    if (state.from >= end) state.status = DONE;
  }
  __syncthreads();
  while (state.status == RUNNING) {
    if (threadIdx.x == 0) all.cut(state, end, args.capacity, args.trades + walk * args.capacity);
    __syncthreads();
    const u32 most_bars = all.length > HORIZON ? all.length : HORIZON;
    Trade* out = all.trades + group * all.room;
    Stretch mine = {0, all.first + group * all.length, RUNNING, group == 0 ? state.skipped : 0u, 0, 0};
    if (group < all.n) {
      walk_on(walker, all, mine, out, mine.from + all.length < end ? mine.from + all.length : end, false, most_bars);
      if (walker.group.lane == 0) all.n_own[group] = mine.n_trades;
    }
    __syncthreads();
    if (group < all.n) {
      if (mine.status == RUNNING) walk_on(walker, all, mine, out, end, true, most_bars);
      if (walker.group.lane == 0) all.of[group] = mine;
    }
    __syncthreads();
    if (threadIdx.x < 32) {
      WalkState next = join(all, of_warp, state, args.capacity);
      __syncwarp();
      if (threadIdx.x == 0) state = next;
    }
    __syncthreads();
    gather(all);
    __syncthreads();
  }
  if (threadIdx.x == 0) args.states[walk] = state;
}
