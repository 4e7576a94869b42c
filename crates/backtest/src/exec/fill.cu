// How an entry is filled: where, at what price, which bars count from then on, and where the next signal may be. Twin of fill.rs.

struct Fill {
  u32 bar, first;  // of the fill, and the first whose high and low are looked at
  double price;

  // Whether a position is open during the bar of its fill before any bar is inspected.
  __device__ bool is_uninspected() const { return !FILL_CLOSE && first > bar; }
};

// The bar of the fill of a signal.
__device__ inline u32 fill_bar(u32 signal) { return FILL_CLOSE ? signal : signal + 1; }

__device__ inline Fill fill_of(const double* open, const double* close, u32 signal) {
  if (FILL_CLOSE) return {signal, signal + 1, close[signal]};
  return {signal + 1, CHECK_ENTRY_BAR ? signal + 1 : signal + 2, open[signal + 1]};
}

// The first bar during which a position is open to the close.
__device__ inline u32 lives_from(u32 entry_bar) { return entry_bar + FILL_CLOSE; }

// The first bar after an exit whose signal may open a position.
__device__ inline u64 next_signal(u32 exit_bar) { return (u64)exit_bar + (FILL_CLOSE && COOLDOWN < 1 ? 1 : COOLDOWN); }
