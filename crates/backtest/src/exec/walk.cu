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
  u32 trial = 0;
  if (walk < (u64)args.n_segments * world.n_trials) {
    u32 number = (u32)(walk / world.n_trials), place = (u32)(walk % world.n_trials);
    trial = args.order ? args.order[place] : place;
    walk = (u64)number * world.n_trials + trial;
    state = args.states[walk];
    segment = args.segments[number];
  }
  const Group<G> group;
  Ground own;
  Ground& ground = IS_SMALL ? *(Ground*)grounds[threadIdx.x / G] : own;
  if (state.status == RUNNING && (!IS_SMALL || group.lane == 0)) look(ground, args, trial, segment);
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

// Puts trials with about as many entries next to each other, those with most of them first: the walks of a warp then come to their end together, and
// long ones do not begin last. The order decides no result.
struct OrderArgs {
  const ConditionMask* conditions;
  u32* group_of;  // by trial
  u32* counts;    // by group, zero before
  u32 n_trials, n_groups;
};

// Few entries make a group each; of more, a sixty-fourth part does.
KERNEL(order_walks, OrderArgs) {
  u32 trial = blockIdx.x * blockDim.x + threadIdx.x;
  bool here = trial < args.n_trials;
  u32 n = 0;
  if (here) {
    const ConditionMask &first = args.conditions[ENTER_0], &second = args.conditions[ENTER_1];
    n = first.n_set[first.item_of[trial]];
    if (N_SIDES == 2) n += second.n_set[second.item_of[trial]];
  }
  u32 power = n < 256 ? 8 : 31 - __clz(n);
  u32 level = n < 256 ? n : 256 + (power - 8) * 64 + (n >> (power - 6) & 63);
  u32 group = args.n_groups - 1 - (level < args.n_groups ? level : args.n_groups - 1);
  if (here) args.group_of[trial] = group;
  join_group(args.counts, group, here);
}

// Every walk at the first bar of its segment.
KERNEL(begin_walks, WalkArgs) {
  u64 walk = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  u32 n_trials = args.world->n_trials;
  if (walk >= (u64)args.n_segments * n_trials) return;
  const Segment& segment = args.segments[walk / n_trials];
  args.states[walk] = {segment.first, segment.first < segment.end ? (u32)RUNNING : (u32)DONE, 0, 0};
}
