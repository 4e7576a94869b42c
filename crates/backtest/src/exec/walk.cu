// Finds the trades of one trial through one segment. Twin of walk.rs.
//
// A group of lanes walks together: all of them know the position; bars are searched one per lane. Trades are left in a buffer that book.cu books; a walk
// whose buffer is full stops and goes on in the next round.

#define RUNNING 0
#define FULL 1
#define DONE 2
#define NEVER 0xffffffffu

struct Segment {
  u32 symbol, first, end, role;
};

struct Trade {
  double entry, exit, risk;
  u32 entry_bar, exit_bar;
  u32 how;      // as in exit.cu
  u32 skipped;  // entries since the trade before that were not taken
};

struct WalkState {
  u32 from;
  u32 reversal;  // bar at which the other side enters, or NEVER
  u32 side;      // that side
  u32 status, n_trades;
  u32 skipped;   // entries since the last trade that were not taken
};

// The masks of a condition.
struct ConditionMask {
  const u64* pool;
  const u32* item_of;
};

struct WalkArgs {
  const World* world;
  const Segment* segments;
  const ConditionMask* conditions;
  Trade* trades;
  WalkState* states;
  u32 n_segments, capacity;
};

template <int G> struct Group {
  u32 lane, shift, mask;
  __device__ Group() {
    lane = threadIdx.x % G;
    shift = threadIdx.x % 32 / G * G;
    mask = (G == 32 ? 0xffffffffu : (1u << G % 32) - 1) << shift;
  }
  __device__ u32 ballot(bool value) const { return (__ballot_sync(mask, value) & mask) >> shift; }
  template <class T> __device__ T from(T value, u32 who) const { return __shfl_sync(mask, value, who, G); }

  // First set bit of the bars from .. end, or NEVER.
  __device__ u32 next(const u64* words, u32 from, u32 end) const {
    for (u32 base = from / 64; base * 64 < end; base += G) {
      u32 word = base + lane;
      u64 bits = (u64)word * 64 < end ? words[word] : 0;
      if (word == from / 64) bits &= ~0ull << (from % 64);
      u32 some = ballot(bits != 0);
      if (some) {
        u32 who = __ffs(some) - 1;
        u32 bar = (base + who) * 64 + __ffsll(this->from(bits, who)) - 1;
        return bar < end ? bar : NEVER;
      }
    }
    return NEVER;
  }
};

// One trial over one segment.
template <int G> struct Walker {
  const Group<G> group;
  const double *open, *high, *low, *close;
  const u64* masks[N_CONDITIONS];
  WalkFrame frame;
  const double* extremes;  // lowest and highest price of the symbol
  u32 last;

  template <class S> __device__ Prices<S::LONG> prices(u32 bar) const { return {open[bar], high[bar], low[bar]}; }

  // Opens a position on a signal and finds its end; false if it must not be taken.
  template <class S> __device__ bool trade(u32 signal, Trade& trade, Exit& exit) const {
    const Fill fill = fill_of(open, close, signal);
    Opening opening = {fill.price, NA, NA};
    double level[S::N > 0 ? S::N : 1];
    Nearest nearest = {-INFINITE, INFINITE};
    bool moving = false;
    // Stops first: risk needs them, and the other levels need risk.
    bool beyond = false;
#pragma unroll
    for (int k = 0; k < S::N; k++) {
      level[k] = NA;
      if (S::kind(k) != STOP) continue;
      double value = S::value(k, frame, signal, opening);
      if (S::when(k, frame, signal, opening) && is_price(value)) {
        level[k] = value;
        if (is_na(opening.stop)) opening.stop = value;
        nearest.take(value, S::LONG);
        beyond |= is_wrong<S::LONG>(opening.entry, value, false);
      }
    }
    if (beyond && SKIP_INVALID_STOP) return false;
    double distance = S::HAS_RISK ? S::risk(frame, signal, opening) : stop_distance<S::LONG>(opening.entry, opening.stop);
    opening.risk = risk_of(distance, opening.entry);
    double ruin = ruin_of<S::LONG>(extremes, opening.entry, opening.risk);
    nearest.take(ruin, S::LONG);
    bool reached = false;
    Due time = {NEVER, 0};
#pragma unroll
    for (int k = 0; k < S::N; k++) {
      if (S::kind(k) == STOP || S::kind(k) == SIGNAL || !S::when(k, frame, signal, opening)) continue;
      double value = S::value(k, frame, signal, opening);
      if (!is_finite(value)) continue;
      if (S::kind(k) == TARGET && is_price(value)) {
        level[k] = value;
        nearest.take(value, !S::LONG);
        reached |= is_wrong<S::LONG>(opening.entry, value, true);
      } else if (S::kind(k) == TRAIL && value >= 0.0) {
        level[k] = value;
        moving = true;
      } else if (S::kind(k) == BREAKEVEN) {
        level[k] = opening.entry + (S::LONG ? 1.0 : -1.0) * (value * opening.risk);
        moving = true;
      } else if (S::kind(k) == TIME && value >= 0.0) {
        time.take(time_bar(fill, value), k);
      }
    }
    if (reached && SKIP_INVALID_TARGET) return false;
    u32 until = last < time.bar ? last : time.bar;
    // A signal after the time exit or after the data would not be heard.
    Due leave = {NEVER, 0};
#pragma unroll
    for (int k = 0; k < S::N; k++) {
      if (S::kind(k) != SIGNAL || !S::when(k, frame, signal, opening)) continue;
      leave.take(group.next(masks[S::condition(k)], signal + 1, until + 1), k);
    }
    until = until < leave.bar ? until : leave.bar;

    trade.entry = opening.entry;
    trade.risk = opening.risk;
    trade.entry_bar = fill.bar;
    trade.how = S::LONG ? LONG_BIT : 0;
    exit.by_signal = false;
    // A bar during which the position is open before any bar is inspected.
    if (fill.is_uninspected() && prices<S>(fill.bar).ruins(ruin, exit.price)) {
      exit.bar = fill.bar;
      exit.how = EXIT_RUIN;
      return true;
    }
    if (moving) {
      double best = opening.entry;
      if (fill.is_uninspected()) {
        double now = S::LONG ? high[fill.bar] : low[fill.bar];
        if (S::LONG ? now > best : now < best) best = now;
      }
      for (u32 base = fill.first; base <= until; base += G) {
        u32 bar = base + group.lane;
        bool inside = bar <= until;
        double now = inside ? (S::LONG ? high[bar] : low[bar]) : (S::LONG ? -INFINITE : INFINITE);
        double upto = now;
        for (u32 by = 1; by < G; by *= 2) {
          double before = __shfl_up_sync(group.mask, upto, by, G);
          if (group.lane >= by && (S::LONG ? before > upto : before < upto)) upto = before;
        }
        double before = __shfl_up_sync(group.mask, upto, 1, G);
        double mine = best;
        if (group.lane > 0 && (S::LONG ? before > mine : before < mine)) mine = before;
        bool hit = inside && resolve<S>(prices<S>(bar), mine, opening, ruin, level, exit);
        u32 hits = group.ballot(hit);
        if (hits) {
          u32 who = __ffs(hits) - 1;
          exit.bar = base + who;
          exit.price = group.from(exit.price, who);
          exit.how = group.from(exit.how, who);
          return true;
        }
        double all = group.from(upto, G - 1);
        if (S::LONG ? all > best : all < best) best = all;
      }
    } else if (nearest.below > -INFINITE || nearest.above < INFINITE) {
      // Several bars per lane at once, so that their loads do not wait for each other.
      const int AT_ONCE = 4;
      u32 hit = NEVER;
      for (u32 base = fill.first; base <= until && hit == NEVER; base += G * AT_ONCE) {
        bool touched[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
          u32 bar = base + u * G + group.lane;
          touched[u] = bar <= until && (low[bar] <= nearest.below || high[bar] >= nearest.above);
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
          u32 hits = group.ballot(touched[u]);
          if (hits && hit == NEVER) hit = base + u * G + __ffs(hits) - 1;
        }
      }
      if (hit != NEVER && resolve<S>(prices<S>(hit), NA, opening, ruin, level, exit)) {
        exit.bar = hit;
        return true;
      }
    }
    run_out(open, close, time, leave, last, exit);
    return true;
  }

  __device__ bool wants(u32 side, u32 bar) const {
    const u64* mask = side == 0 ? masks[ENTER_0] : masks[ENTER_1];
    return mask[bar / 64] >> (bar % 64) & 1;
  }
};

template <int G> __device__ void walk_group(const WalkArgs& args) {
  u64 walk = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / G;
  const World& world = *args.world;
  if (walk >= (u64)args.n_segments * world.n_trials) return;
  WalkState state = args.states[walk];
  if (state.status != RUNNING) return;
  u32 trial = (u32)(walk % world.n_trials);
  const Segment segment = args.segments[walk / world.n_trials];
  u32 start = world.start[segment.symbol], end = segment.end;
  Walker<G> walker = {Group<G>(), world.open + start, world.high + start, world.low + start, world.close + start, {}, {}, world.extremes + 2 * segment.symbol, end - 1};
  u64 words = world.word_start[segment.symbol];
#pragma unroll
  for (int c = 0; c < N_CONDITIONS; c++) {
    u32 item = args.conditions[c].item_of[row_of(world, trial, segment.symbol)];
    walker.masks[c] = args.conditions[c].pool + item * (u64)world.n_words + words;
  }
  walker.frame = bind_walk(world, row_of(world, trial, segment.symbol), segment.symbol);
  const Group<G>& group = walker.group;
  Trade* out = args.trades + walk * args.capacity;
  state.status = DONE;
  state.n_trades = 0;
  u32 from = state.from;
  while (true) {
    u32 signal, side = 0;
    if (state.reversal != NEVER) {
      signal = state.reversal;
      side = state.side;
      state.reversal = NEVER;
    } else if (N_SIDES == 1) {
      signal = group.next(walker.masks[ENTER_0], from, end);
    } else {
      while (true) {
        u32 a = group.next(walker.masks[ENTER_0], from, end), b = group.next(walker.masks[ENTER_1], from, end);
        side = a < b ? 0 : 1;
        signal = a < b ? a : b;
        if (a != b || a == NEVER) break;
        from = a + 1;
      }
    }
    if (signal == NEVER || signal + 1 >= end) break;
    from = signal + 1;
    Trade trade;
    Exit exit;
    bool taken;
    if (N_SIDES == 1) {
      taken = walker.template trade<FirstSide>(signal, trade, exit);
    } else {
      taken = side == 0 ? walker.template trade<FirstSide>(signal, trade, exit) : walker.template trade<SecondSide>(signal, trade, exit);
    }
    if (!taken) {
      state.skipped++;
      continue;
    }
    u32 number = exit.how & EXIT_NUMBER;
    if (number == EXIT_END && DISCARD_OPEN) break;
    trade.exit = exit.price;
    trade.exit_bar = exit.bar;
    trade.how |= exit.how;
    trade.skipped = state.skipped;
    state.skipped = 0;
    if (group.lane == 0) out[state.n_trades] = trade;
    state.n_trades++;
    if (number == EXIT_END || number == EXIT_RUIN) break;
    u64 next = next_signal(exit.bar);
    from = next < end ? (u32)next : end;
    if (N_SIDES == 2 && exit.by_signal && COOLDOWN == 0) {
      u32 bar = exit.bar - 1;
      if (walker.wants(1 - side, bar) && !walker.wants(side, bar)) {
        state.reversal = bar;
        state.side = 1 - side;
      }
    }
    if (state.n_trades == args.capacity) {
      state.status = FULL;
      break;
    }
  }
  state.from = from;
  if (group.lane == 0) args.states[walk] = state;
}

KERNEL_BOUNDED(walk, WalkArgs, 128, WALK_BLOCKS) { walk_group<WALK_LANES>(args); }

// Every walk at the first bar of its segment.
KERNEL(begin_walks, WalkArgs) {
  u64 walk = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  u32 n_trials = args.world->n_trials;
  if (walk >= (u64)args.n_segments * n_trials) return;
  const Segment& segment = args.segments[walk / n_trials];
  args.states[walk] = {segment.first, NEVER, 0, segment.first < segment.end ? (u32)RUNNING : (u32)DONE, 0, 0};
}
