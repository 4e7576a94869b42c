// How a position is closed inside a bar: by ruin or by a level. Twin of exit.rs.

// How a trade was closed: the number of its exit, or one of these two, and what is known of it.
#define EXIT_NUMBER 0xffffu
#define EXIT_END 0xffffu
#define EXIT_RUIN 0xfffeu
#define LONG_BIT 0x10000u
#define GAP_BIT 0x20000u
#define AMBIGUOUS_BIT 0x40000u
#define CLOSE_BIT 0x80000u

struct Exit {
  u32 bar, how;
  double price;
  bool by_signal;
};

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
template <class S>
__device__ inline bool resolve(const Prices<S::LONG>& prices, double best, const Opening& opening, double ruin, const double* level, Exit& exit) {
  double at[S::N > 0 ? S::N : 1];
#pragma unroll
  for (int k = 0; k < S::N; k++) {
    at[k] = NA;
    if (S::kind(k) == STOP || S::kind(k) == TARGET) {
      at[k] = level[k];
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
      exit.how = EXIT_RUIN | (is_ambiguous<S>(prices, ruin, at) ? AMBIGUOUS_BIT : 0);
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
      exit.how = k | (met.gapped ? GAP_BIT : is_ambiguous<S>(prices, ruin, at) ? AMBIGUOUS_BIT : 0);
      return true;
    }
  }
  return false;
}
