// Follows one position of one trial through one segment. Twin of walk.rs.
//
// A group of lanes works together: all of them know the position; bars are searched one per lane.

#define RUNNING 0
#define FULL 1
#define DONE 2
#define NEVER 0xffffffffu

struct Segment {
  u32 symbol, first, end, role;
};

struct Trade {
  double entry, exit, risk;
  double share;  // of equity; only where the strategy has a size
  u32 entry_bar, exit_bar;
  u32 how;      // as in exit.cu
  u32 skipped;  // entries since the trade before that were not taken
};

struct WalkState {
  u32 from;     // the first bar whose signal may open a position
  u32 status, n_trades;
  u32 skipped;  // entries since the last trade that were not taken
};

// The masks of a condition.
struct ConditionMask {
  const u64* pool;
  const u32* item_of;
  const u32* n_set;  // bars of each item that are set; null where walks are not ordered
};

struct WalkArgs {
  const World* world;
  const Segment* segments;
  const ConditionMask* conditions;
  Trade* trades;
  WalkState* states;
  const u32* order;  // in which order trials are walked; null: as they come
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

  // First set bit of the bars from .. end, or NEVER. Several words per lane at once, so that their loads do not wait for each other.
  template <class Words> __device__ u32 next(const Words& words, u32 from, u32 end) const {
    const int AT_ONCE = 2;
    for (u32 base = from / 64; base * 64 < end; base += G * AT_ONCE) {
      u64 bits[AT_ONCE];
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        u32 word = base + k * G + lane;
        bits[k] = (u64)word * 64 < end ? words[word] : 0;
        if (k == 0 && word == from / 64) bits[k] &= ~0ull << (from % 64);
      }
#pragma unroll
      for (int k = 0; k < AT_ONCE; k++) {
        u32 some = ballot(bits[k] != 0);
        if (some) {
          u32 who = __ffs(some) - 1;
          u32 bar = (base + k * G + who) * 64 + __ffsll(this->from(bits[k], who)) - 1;
          return bar < end ? bar : NEVER;
        }
      }
    }
    return NEVER;
  }
};

// What a walk of one trial over one segment looks at. It is the same for all lanes of a group, so there is one copy for them, outside of registers.
struct Ground {
  const double *open, *high, *low, *close;
  const u64* masks[N_CONDITIONS];
  WalkFrame frame;
  const double* extremes;  // lowest and highest price of the symbol
  u32 last;
};

// One trial over one segment.
template <int G> struct Walker {
  const Group<G> group;
  const Ground& ground;

  template <class S> __device__ Prices<S::LONG> prices(u32 bar) const { return {ground.open[bar], ground.high[bar], ground.low[bar]}; }

  // Opens a position on a signal and finds its end; false if it must not be taken. Bars are searched up to the horizon; whether it was too near
  // is in `exit.is_open`.
  template <class S> __device__ bool trade(u32 signal, u32 horizon, Trade& trade, Exit& exit) const {
    const WalkFrame& frame = ground.frame;
    const double *high = ground.high, *low = ground.low;
    const u32 last = ground.last;
    const Fill fill = fill_of(ground.open, ground.close, signal);
    Opening opening = {fill.price, NA, NA};
    double level[S::N > 0 ? S::N : 1];
    Nearest nearest = {-INFINITE, INFINITE};
    bool moving = false;
    // Stops first: risk needs them, and the other levels need risk.
    bool beyond = false;
#pragma unroll
    for (int k = 0; k < S::N; k++) {
      level[k] = NA;
      if (S::kind(k) != STOP && S::kind(k) != STOP_SERIES) continue;
      double value = S::value(k, frame, signal, opening);
      if (!S::when(k, frame, signal, opening)) continue;
      if (S::kind(k) == STOP_SERIES) {
        // What it has on the signal bar is of no matter later, but that it exists.
        level[k] = 0.0;
        moving = true;
      }
      if (is_price(value)) {
        if (S::kind(k) == STOP) {
          level[k] = value;
          nearest.take(value, S::LONG);
        }
        if (is_na(opening.stop)) opening.stop = value;
        beyond |= is_wrong<S::LONG>(opening.entry, value, false);
      }
    }
    if (beyond && SKIP_INVALID_STOP) return false;
    double distance = S::HAS_RISK ? S::risk(frame, signal, opening) : stop_distance<S::LONG>(opening.entry, opening.stop);
    opening.risk = risk_of(distance, opening.entry);
    double share;
    if (S::HAS_SIZE) {
      share = S::size(frame, signal, opening);
      if (!(share > 0.0)) return false;
      share = share < 1.0 ? share : 1.0;
    } else {
      share = share_of(opening.entry, opening.risk);
    }
    double ruin = ruin_of<S::LONG>(ground.extremes, opening.entry, share);
    nearest.take(ruin, S::LONG);
    bool reached = false;
    Due time = {NEVER, 0};
#pragma unroll
    for (int k = 0; k < S::N; k++) {
      if (S::kind(k) == STOP || S::kind(k) == STOP_SERIES || S::kind(k) == SIGNAL || !S::when(k, frame, signal, opening)) continue;
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
      leave.take(group.next(ground.masks[S::condition(k)], signal + 1, until + 1), k);
    }
    until = until < leave.bar ? until : leave.bar;

    trade.entry = opening.entry;
    trade.risk = opening.risk;
    trade.share = ANY_SIZE ? share : 0.0;
    trade.entry_bar = fill.bar;
    trade.how = S::LONG ? LONG_BIT : 0;
    exit.by_signal = exit.is_open = false;
    if (horizon < until) {
      until = horizon;
      exit.is_open = true;
    }
    // A bar during which the position is open before any bar is inspected.
    if (fill.is_uninspected() && prices<S>(fill.bar).ruins(ruin, exit.price)) {
      exit.bar = fill.bar;
      exit.how = EXIT_RUIN | STOP_BIT;
      exit.is_open = false;
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
        bool hit = inside && resolve<S>(prices<S>(bar), mine, opening, ruin, level, frame, (i64)bar - 1, exit);
        u32 hits = group.ballot(hit);
        if (hits) {
          u32 who = __ffs(hits) - 1;
          exit.bar = base + who;
          exit.price = group.from(exit.price, who);
          exit.how = group.from(exit.how, who);
          exit.is_open = false;
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
      if (hit != NEVER && resolve<S>(prices<S>(hit), NA, opening, ruin, level, frame, (i64)hit - 1, exit)) {
        exit.bar = hit;
        exit.is_open = false;
        return true;
      }
    }
    if (!exit.is_open) run_out(ground.open, ground.close, time, leave, last, exit);
    return true;
  }

  __device__ bool wants(u32 side, u32 bar) const {
    const u64* mask = ground.masks[side == 0 ? ENTER_0 : ENTER_1];
    return mask[bar / 64] >> (bar % 64) & 1;
  }

  // The bars of a word on which one side wants to enter: where both do, neither does.
  __device__ u64 operator[](u32 word) const { 
    return N_SIDES == 1 ? ground.masks[ENTER_0][word] : ground.masks[ENTER_0][word] ^ ground.masks[ENTER_1][word];
  }

  // The first signal of the bars from .. end, or NEVER.
  __device__ u32 next_entry(u32 from, u32 end) const { return group.next(*this, from, end); }

  // The side that enters on a signal.
  __device__ u32 side_of(u32 signal) const { return N_SIDES == 1 || wants(0, signal) ? 0 : 1; }

  // The trade that a signal opens; false if it must not be taken.
  __device__ bool trade_on(u32 signal, u32 side, u32 horizon, Trade& out, Exit& exit) const {
    bool is_taken;
    if (N_SIDES == 1) {
      is_taken = trade<FirstSide>(signal, horizon, out, exit);
    } else {
      is_taken = side == 0 ? trade<FirstSide>(signal, horizon, out, exit) : trade<SecondSide>(signal, horizon, out, exit);
    }
    if (is_taken && !exit.is_open) {
      out.exit = exit.price;
      out.exit_bar = exit.bar;
      out.how |= exit.how;
    }
    return is_taken;
  }

  // The first bar after a trade whose signal may open a position. A signal that closes one side and opens the other counts on its own bar.
  __device__ u32 next_from(const Exit& exit, u32 side) const {
    if (N_SIDES == 2 && exit.by_signal && COOLDOWN == 0) {
      u32 bar = exit.bar - 1;
      if (wants(1 - side, bar) && !wants(side, bar)) return bar;
    }
    u64 next = next_signal(exit.bar);
    return next <= ground.last ? (u32)next : ground.last + 1;
  }
};

__device__ inline void look(Ground& ground, const WalkArgs& args, u32 trial, const Segment& segment) {
  const World& world = *args.world;
  u32 start = world.start[segment.symbol], row = row_of(world, trial, segment.symbol);
  ground.open = world.open + start;
  ground.high = world.high + start;
  ground.low = world.low + start;
  ground.close = world.close + start;
  ground.extremes = world.extremes + 2 * segment.symbol;
  ground.last = segment.end - 1;
  u64 words = world.word_start[segment.symbol];
#pragma unroll
  for (int c = 0; c < N_CONDITIONS; c++) {
    ground.masks[c] = args.conditions[c].pool + args.conditions[c].item_of[row] * (u64)world.n_words + words;
  }
  ground.frame = bind_walk(world, row, segment.symbol);
}

// Whether a trade is the last one of its walk.
__device__ inline bool is_last(const Exit& exit) {
  u32 number = exit.how & EXIT_NUMBER;
  return number == EXIT_END || number == EXIT_RUIN;
}

// Whether a position that is open at the end of the data leaves no trade.
__device__ inline bool is_discarded(const Exit& exit) { return DISCARD_OPEN && (exit.how & EXIT_NUMBER) == EXIT_END; }
