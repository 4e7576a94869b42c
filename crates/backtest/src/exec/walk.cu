// Finds the trades of one trial through one segment, a group of lanes for each. Twin of walk.rs.
//
// Trades are left in a buffer that book.cu books; a walk whose buffer is full stops and goes on in the next round.

#define MOST_GROUND 2560  // bytes of what a group keeps for all its lanes

template <int G> __device__ void walk_group(const WalkArgs& args) {
  const bool IS_SMALL = sizeof(Ground) <= MOST_GROUND;
  __shared__ double grounds[WALK_THREADS / G][IS_SMALL ? (sizeof(Ground) + 7) / 8 : 1];
  u64 walk = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / G;
  const World& world = *args.world;
  WalkState state = {0, DONE, 0, 0};
  Segment segment = {};
  if (walk < (u64)args.n_segments * world.n_trials) {
    state = args.states[walk];
    segment = args.segments[walk / world.n_trials];
  }
  const Group<G> group;
  Ground own;
  Ground& ground = IS_SMALL ? *(Ground*)grounds[threadIdx.x / G] : own;
  if (state.status == RUNNING && (!IS_SMALL || group.lane == 0)) look(ground, args, (u32)(walk % world.n_trials), segment);
  __syncwarp();
  if (state.status != RUNNING) return;
  const Walker<G> walker = {group, ground};
  const u32 end = segment.end;
  Trade* out = args.trades + walk * args.capacity;
  state.status = DONE;
  state.n_trades = 0;
  while (true) {
    u32 signal = walker.next_entry(state.from, end);
    if (signal == NEVER || signal + 1 >= end) break;
    Trade trade;
    Exit exit;
    u32 side = walker.side_of(signal);
    if (!walker.trade_on(signal, side, NEVER, trade, exit)) {
      state.from = signal + 1;
      state.skipped++;
      continue;
    }
    if (is_discarded(exit)) break;
    trade.skipped = state.skipped;
    state.skipped = 0;
    if (group.lane == 0) out[state.n_trades] = trade;
    state.n_trades++;
    if (is_last(exit)) break;
    state.from = walker.next_from(exit, side);
    if (state.n_trades == args.capacity) {
      state.status = FULL;
      break;
    }
  }
  if (group.lane == 0) args.states[walk] = state;
}

KERNEL_BOUNDED(walk, WalkArgs, WALK_THREADS, WALK_BLOCKS) { walk_group<WALK_LANES>(args); }

// Every walk at the first bar of its segment.
KERNEL(begin_walks, WalkArgs) {
  u64 walk = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  u32 n_trials = args.world->n_trials;
  if (walk >= (u64)args.n_segments * n_trials) return;
  const Segment& segment = args.segments[walk / n_trials];
  args.states[walk] = {segment.first, segment.first < segment.end ? (u32)RUNNING : (u32)DONE, 0, 0};
}
