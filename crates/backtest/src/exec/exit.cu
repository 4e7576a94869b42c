// How a position is closed: its levels, and how they, ruin, time, a signal or the end of the data close it. Twin of exit.rs.

// How a trade was closed: the number of its exit, or one of these two, and what is known of it.
#define EXIT_NUMBER 0xffffu
#define EXIT_END 0xffffu
#define EXIT_RUIN 0xfffeu
#define LONG_BIT 0x10000u
#define GAP_BIT 0x20000u
#define AMBIGUOUS_BIT 0x40000u
#define CLOSE_BIT 0x80000u
// The kind of order that closed it, a market order if neither.
#define STOP_BIT 0x100000u
#define LIMIT_BIT 0x200000u

// What the order costs that closed a trade so.
__device__ inline double out_bps_of(u32 how) {
  return how & LIMIT_BIT ? COST_LIMIT_BPS : how & STOP_BIT ? COST_STOP_BPS : COST_MARKET_BPS;
}

struct Exit {
  u32 bar, how;
  double price;
  bool by_signal;
  bool is_open;  // not found yet
};

// Whether a formula gives a price.
__device__ inline bool is_price(double value) { return value > 0.0 && is_finite(value); }

// Whether a stop or a target lies on the wrong side of the fill, or at it.
template <bool LONG> __device__ inline bool is_wrong(double entry, double level, bool favourable) {
  return (LONG ? 1.0 : -1.0) * (favourable ? level - entry : entry - level) <= 0.0;
}

// What one R is where the strategy does not say: the distance to the first stop.
template <bool LONG> __device__ inline double stop_distance(double entry, double stop) { return (LONG ? 1.0 : -1.0) * (entry - stop); }

// What one R is, given a distance that may be none.
__device__ inline double risk_of(double distance, double entry) { return is_price(distance) ? distance : 0.01 * entry; }

// The nearest fixed levels below and above the market; infinite if there is none.
struct Nearest {
  double below, above;

  __device__ void take(double level, bool is_below) {
    if (is_below) {
      below = level > below ? level : below;
    } else {
      above = level < above ? level : above;
    }
  }
};

// The earliest bar of a kind of exits, and which of them it is; the first of those on one bar.
struct Due {
  u32 bar;
  u32 exit;

  __device__ void take(u64 other, u32 k) {
    if (other < bar) {
      bar = (u32)other;
      exit = k;
    }
  }
};

// The bar at whose close a time exit closes a position; `n_bars` is finite and not negative.
__device__ inline u64 time_bar(const Fill& fill, double n_bars) {
  u64 bar = fill.bar + (u64)ceil(n_bars < 4294967295.0 ? n_bars : 4294967295.0);
  return bar > fill.first ? bar : fill.first;
}

struct Met {
  bool gapped, touched;
};

// The prices of a bar as a position of this side sees them.
template <bool LONG> struct Prices {
  double open, high, low;

  // A long's stop and a short's target lie below the market.
  __device__ Met meet(double price, bool favourable) const {
    if (LONG != favourable) return {open <= price, low <= price};
    return {open >= price, high >= price};
  }

  // Whether this bar leaves nothing of the position, and at what price.
  __device__ bool ruins(double ruin, double& price) const {
    Met met = meet(ruin, false);
    price = met.gapped ? open : ruin;
    return met.gapped || met.touched;
  }
};

// Whether a bar reaches a level on either side and opens beyond none.
template <class S> __device__ inline bool is_ambiguous(const Prices<S::LONG>& prices, double ruin, const double* at) {
  Met met = prices.meet(ruin, false);
  bool beyond = met.gapped, adverse = met.touched, target = false;
#pragma unroll
  for (int k = 0; k < S::N; k++) {
    const bool favourable = S::kind(k) == TARGET;
    met = prices.meet(at[k], favourable);
    beyond |= met.gapped;
    target |= met.touched && favourable;
    adverse |= met.touched && !favourable;
  }
  return adverse && target && !beyond;
}

// Whether an inspected bar closes a position: ruin where no adverse level is nearer, else the levels in their order, each with its gap rule first.
// `before` is the bar before: a stop that follows a series has its value there.
template <class S>
__device__ inline bool resolve(const Prices<S::LONG>& prices, double best, const Opening& opening, double ruin, const double* level, const WalkFrame& frame,
                               i64 before, Exit& exit) {
  double at[S::N > 0 ? S::N : 1];
#pragma unroll
  for (int k = 0; k < S::N; k++) {
    at[k] = NA;
    if (S::kind(k) == STOP || S::kind(k) == TARGET) {
      at[k] = level[k];
    } else if (S::kind(k) == STOP_SERIES) {
      double value = is_na(level[k]) ? NA : S::value(k, frame, before, opening);
      at[k] = is_price(value) ? value : NA;
    } else if (S::kind(k) == TRAIL) {
      at[k] = S::LONG ? best - level[k] : best + level[k];
    } else if (S::kind(k) == BREAKEVEN) {
      at[k] = (S::LONG ? best >= level[k] : best <= level[k]) ? opening.entry : NA;
    }
  }
  if (prices.ruins(ruin, exit.price)) {
    bool nearer = false;
#pragma unroll
    for (int k = 0; k < S::N; k++) nearer |= S::kind(k) != TARGET && (S::LONG ? at[k] > ruin : at[k] < ruin);
    if (!nearer) {
      exit.how = EXIT_RUIN | STOP_BIT | (is_ambiguous<S>(prices, ruin, at) ? AMBIGUOUS_BIT : 0);
      return true;
    }
  }
#pragma unroll
  for (int k = 0; k < S::N; k++) {
    const bool favourable = S::kind(k) == TARGET;
    Met met = prices.meet(at[k], favourable);
    if (met.gapped || met.touched) {
      const bool at_open = favourable ? GAP_TARGET_OPEN : GAP_STOP_OPEN;
      exit.price = met.gapped && at_open ? prices.open : at[k];
      exit.how = k | (favourable ? LIMIT_BIT : STOP_BIT) | (met.gapped ? GAP_BIT : is_ambiguous<S>(prices, ruin, at) ? AMBIGUOUS_BIT : 0);
      return true;
    }
  }
  return false;
}

// How a trade closes that no level stops: by time, by signal, or with the data.
__device__ inline void run_out(const double* open, const double* close, const Due& time, const Due& leave, u32 last, Exit& exit) {
  bool time_first = FILL_CLOSE && time.bar == leave.bar ? time.exit < leave.exit : time.bar <= leave.bar;
  if (time.bar <= last && time_first) {
    exit.bar = time.bar;
    exit.price = close[time.bar];
    exit.how = time.exit | CLOSE_BIT;
  } else if (!FILL_CLOSE && leave.bar < last) {
    exit.bar = leave.bar + 1;
    exit.price = open[exit.bar];
    exit.how = leave.exit;
    exit.by_signal = true;
  } else if (FILL_CLOSE && leave.bar <= last) {
    exit.bar = leave.bar;
    exit.price = close[leave.bar];
    exit.how = leave.exit | CLOSE_BIT;
  } else {
    exit.bar = last;
    exit.price = close[last];
    exit.how = EXIT_END | CLOSE_BIT;
  }
}
