// Bars since a condition was last true; see bars_since.rs.
//
// A warp per item and symbol goes through the words of the mask, 32 of them read at a time, and writes 64 bars per
// word. What it carries is the latest bar where the condition held.

// Fills the warp's symbol with value(its first bar, bar, whether there is a latest bar, latest bar).
template <class Value>
__device__ __forceinline__ void fill_since(const ColumnArgs& args, const Value& value) {
  u32 j = blockIdx.x % args.count;
  u32 symbol = blockIdx.x / args.count;
  u32 start = args.start[symbol];
  u32 n = args.start[symbol + 1] - start;
  const u64* words = (const u64*)input_of(args, 0, j) + args.word_start[symbol];
  double* out = output_of(args, j) + start;
  u32 lane = threadIdx.x;
  u32 n_words = (u32)(((u64)n + 63) / 64);
  bool any = false;
  u32 latest = 0;
  u64 ahead = lane < n_words ? words[lane] : 0;
  for (u32 from = 0; from < n_words; from += 32) {
    u64 mine = ahead;
    u64 next = (u64)from + 32 + lane;
    ahead = next < n_words ? words[next] : 0;
    u32 here = min(n_words - from, 32u);
    for (u32 k = 0; k < here; k++) {
      u64 word = __shfl_sync(~0u, mine, k);
      u32 first = (from + k) * 64;
      for (u32 half = 0; half < 64; half += 32) {
        u32 place = half + lane;
        u64 before = word & (~(u64)0 >> (63 - place));
        u32 bar = first + place;
        if (bar < n) {
          out[bar] = value(start, bar, any || before, before ? first + 63 - __clzll((i64)before) : latest);
        }
      }
      if (word) {
        any = true;
        latest = first + 63 - __clzll((i64)word);
      }
    }
  }
}

KERNEL(bars_since, ColumnArgs) {
  fill_since(args, [](u32, u32 bar, bool any, u32 latest) { return any ? (double)(bar - latest) : NA; });
}
