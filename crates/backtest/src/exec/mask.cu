// Writes conditions out as bits, 32 bars a word. Twin of mask.rs.
//
// A warp takes one item over one tile of bars. Masks of single factors, exact or a little too wide, are joined first; the bars that survive are tested one per lane.

#define WARPS 4
#define MOST_LISTED 1024  // bars that are tested together, at least those of one step
#define MOST_FRAME 1792  // bytes of what a warp keeps for all its lanes
#define EVALUATE 0
#define EXACT 1
#define LEVEL 2
// What the switches of a trial make of a condition.
#define OPEN 0
#define ALWAYS_TRUE 1
#define NEVER_TRUE 2

struct Tile {
  u32 symbol, first, end;  // bars of the symbol; first is a multiple of 1,024
};

// How the truth of one factor is found: its mask, a mask at a level below its threshold, or only by testing.
struct FactorMask {
  const u32* pool;
  const u32* item_of;
  const u32* level_of;
  u32 mode, n_levels;
};

struct MaskArgs {
  const World* world;
  const Tile* tiles;
  const FactorMask* factors;
  const u32* row;    // a row of each new item
  const u32* order;  // in which order items are taken; null: as they come
  u32* out;          // pool of masks, two words of 32 bars per word of 64
  u32* n_set;        // bars of each item that are set, added up, or null
  u32 first, count, n_tiles, n_factors;
};

// The bits of a word that are bars.
__device__ inline u32 valid_bits(u32 word, u32 n_bars) {
  u32 first = word * 32;
  if (first >= n_bars) return 0;
  return n_bars - first >= 32 ? 0xffffffffu : (1u << (n_bars - first)) - 1;
}

// Keeps those of `n` bars in a list that pass the factors of a set, in their order; how many are left. A factor is tested on all bars
// before the next one, so that every lane has a bar to test; where that is cheap, two bars per lane at once, so that their loads do not
// wait for each other.
template <class C>
__device__ inline u32 sift(u32 set, const typename C::Frame& frame, u32 first, unsigned short* list, u32 n) {
  const u32 all = 0xffffffffu;
  u32 lane = threadIdx.x & 31, below = (1u << lane) - 1;
#pragma unroll
  for (int f = 0; f < C::N; f++) {
    if (!(set >> f & 1)) continue;
    u32 kept = 0;
#pragma unroll 1
    for (u32 base = 0; base < n; base += 32 * C::AT_ONCE) {
      bool holds[C::AT_ONCE];
      unsigned short place[C::AT_ONCE];
#pragma unroll
      for (int k = 0; k < C::AT_ONCE; k++) {
        holds[k] = base + 32 * k + lane < n;
        place[k] = list[holds[k] ? base + 32 * k + lane : 0];
      }
#pragma unroll
      for (int k = 0; k < C::AT_ONCE; k++) holds[k] = holds[k] && C::holds(f, frame, (i64)first + place[k]);
      __syncwarp(all);
#pragma unroll
      for (int k = 0; k < C::AT_ONCE; k++) {
        u32 who = __ballot_sync(all, holds[k]);
        if (holds[k]) list[kept + __popc(who & below)] = place[k];
        kept += __popc(who);
      }
      __syncwarp(all);
    }
    n = kept;
  }
  return n;
}

template <class C> __device__ void write_mask(const MaskArgs& args) {
  typedef typename C::Frame Frame;
  // What all lanes of a warp have in common is there once, as long as it is small: in registers it would leave too few for the rest.
  const bool IS_SMALL = sizeof(Frame) <= MOST_FRAME;
  __shared__ double frames[WARPS][IS_SMALL ? (sizeof(Frame) + 7) / 8 : 1];
  __shared__ const u32* all_masks[WARPS][C::N];
  __shared__ u32 founds[WARPS][TILE / 32];
  __shared__ unsigned short lists[WARPS][MOST_LISTED];
  const u32 all = 0xffffffffu;
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u64 task = (u64)blockIdx.x * WARPS + warp;
  if (task >= (u64)args.count * args.n_tiles) return;
  unsigned short* list = lists[warp];
  u32* found = founds[warp];
  const u32** masks = all_masks[warp];
  // Tile by tile, so that the columns of one tile stay near.
  u32 item = (u32)(task % args.count);
  if (args.order) item = args.order[item];
  const Tile tile = args.tiles[task / args.count];
  const World& world = *args.world;
  u32 row = args.row[item];
  u32 n_bars = world.start[tile.symbol + 1] - world.start[tile.symbol];
  u64 stride = 2 * (u64)world.n_words, symbol_word = 2 * (u64)world.word_start[tile.symbol];
  u32 n_words = 2 * (world.word_start[tile.symbol + 1] - world.word_start[tile.symbol]);
  Frame own;
  if (!IS_SMALL) own = C::bind(world, row, tile.symbol);
  if (IS_SMALL) C::bind_by_lanes(*(Frame*)frames[warp], world, row, tile.symbol);
  __syncwarp(all);
  const Frame& frame = IS_SMALL ? *(const Frame*)frames[warp] : own;

  // A lane looks at a factor: its mask, and whether it must be tested.
  bool is_first = false, is_last = false;
  const u32* mask = 0;
  int decided = lane < C::N ? C::decided(lane, frame) : ALWAYS_TRUE;
  if (decided == OPEN) {
    u32 mode = lane < args.n_factors ? args.factors[lane].mode : EVALUATE;
    if (mode == EXACT) {
      mask = args.factors[lane].pool + args.factors[lane].item_of[row] * stride + symbol_word;
    } else if (mode == LEVEL) {
      const FactorMask& factor = args.factors[lane];
      u32 level = factor.level_of[row];
      is_last = true;
      if (level < factor.n_levels) {
        mask = factor.pool + ((u64)factor.item_of[row] * factor.n_levels + level) * stride + symbol_word;
      }
    } else {
      is_first = true;
    }
  }
  const bool is_never = __any_sync(all, decided == NEVER_TRUE);
  // Factors without a mask reject most, so they are tested first; those with a mask that is a little too wide, last.
  const u32 first_tests = __ballot_sync(all, is_first), last_tests = __ballot_sync(all, is_last);
  const u32 masked = __ballot_sync(all, mask != 0), n_masks = __popc(masked);
  if (mask) masks[__popc(masked & ((1u << lane) - 1))] = mask;
  __syncwarp(all);
  u32 first_word = tile.first / 32, last_word = tile.end == n_bars ? n_words : tile.end / 32;
  u32* out = args.out + (u64)(args.first + item) * stride + symbol_word;
  if (is_never) {
    for (u32 word = first_word + lane; word < last_word; word += 32) out[word] = 0;
    return;
  }
  // The bits that all masks leave, a word per lane and step. Every mask is read from end to end before the next one, so that its loads do not
  // wait for each other.
  u32 bits[TILE / 1024];
#pragma unroll
  for (u32 step = 0; step < TILE / 1024; step++) {
    u32 word = first_word + 32 * step + lane;
    bits[step] = word < last_word ? valid_bits(word, n_bars) : 0;
  }
#pragma unroll 1
  for (u32 k = 0; k < n_masks; k++) {
    const u32* of_mask = masks[k] + first_word + lane;
#pragma unroll
    for (u32 step = 0; step < TILE / 1024; step++) {
      if (first_word + 32 * step + lane < last_word) bits[step] &= of_mask[32 * step];
    }
  }
  u32 n_left = 0;
#pragma unroll
  for (u32 step = 0; step < TILE / 1024; step++) {
    if (first_word + 32 * step < last_word) found[32 * step + lane] = bits[step];
    n_left += __popc(bits[step]);
  }
  const u32 tests = first_tests | last_tests, n_steps = (last_word - first_word + 31) / 32;
  // Bars are tested together, all of the tile if they fit into the list.
  const u32 at_once = sum_of(n_left) <= MOST_LISTED ? n_steps : 1;
#pragma unroll 1
  for (u32 begin = 0; tests && begin < n_steps; begin += at_once) {
    u32 mass = 0, words = 0;
    for (u32 step = 0; step < at_once; step++) {
      u32 n = __popc(found[32 * (begin + step) + lane]);
      mass += n;
      words |= (n > 0) << step;
    }
    u32 at = mass;
    for (u32 by = 1; by < 32; by *= 2) {
      u32 before = __shfl_up_sync(all, at, by);
      if (lane >= by) at += before;
    }
    u32 n = __shfl_sync(all, at, 31);
    at -= mass;
    // A bar each time round, so that lanes whose bars lie in other words do not wait for each other.
    u32 rest = 0, place = 0;
    while (words | rest) {
      if (!rest) {
        place = 32 * (begin + __ffs(words) - 1) + lane;
        words &= words - 1;
        rest = found[place];
        found[place] = 0;
      }
      list[at++] = (unsigned short)(32 * place + __ffs(rest) - 1);
      rest &= rest - 1;
    }
    __syncwarp(all);
#pragma unroll 1
    for (int pass = 0; pass < 2; pass++) {
      n = sift<C>(pass == 0 ? first_tests : last_tests, frame, tile.first, list, n);
    }
    for (u32 k = lane; k < n; k += 32) atomicOr(&found[list[k] >> 5], 1u << (list[k] & 31));
    __syncwarp(all);
  }
  __syncwarp(all);
  u32 n_found = 0;
  for (u32 word = first_word + lane; word < last_word; word += 32) {
    u32 bits = found[word - first_word];
    out[word] = bits;
    n_found += __popc(bits);
  }
  if (args.n_set) {
    n_found = sum_of(n_found);
    if (lane == 0 && n_found) atomicAdd(&args.n_set[item], n_found);
  }
}

// Puts items that read the same columns and masks next to each other, so that the warps of a multiprocessor share them. The order within a
// group depends on timing; no result depends on the order.
struct Sharer {
  const u32* item_of;   // by row
  const u32* level_of;  // by row, or null
  u32 n_items, n_levels;
};
struct GroupArgs {
  const Sharer* sharers;
  const u32* row;
  u32* group_of;  // by item
  u32* counts;    // by group, zero before; then where the next one of the group goes
  u32* order;
  u32 count, n_sharers, n_groups, unused;
};

// Adds one to the count of a group for every lane that is here; the place of each among them. The lanes of one group are added together, because
// some groups are large.
__device__ inline u32 join_group(u32* counts, u32 group, bool here) {
  const u32 all = 0xffffffffu, lane = threadIdx.x & 31;
  u32 place = 0;
  for (u32 waiting = __ballot_sync(all, here); waiting;) {
    u32 first = __ffs(waiting) - 1, theirs = __shfl_sync(all, group, first), begin = 0;
    u32 same = __ballot_sync(all, here && group == theirs);
    if (lane == first) begin = atomicAdd(&counts[group], (u32)__popc(same));
    begin = __shfl_sync(all, begin, first);
    if (same >> lane & 1) place = begin + __popc(same & ((1u << lane) - 1));
    waiting &= ~same;
  }
  return place;
}

KERNEL(group_count, GroupArgs) {
  u32 item = blockIdx.x * blockDim.x + threadIdx.x;
  if (item >= args.count) return;
  u32 row = args.row[item], group = 0;
  for (u32 k = 0; k < args.n_sharers; k++) {
    const Sharer& sharer = args.sharers[k];
    group = group * sharer.n_items + sharer.item_of[row];
    if (sharer.level_of) group = group * (sharer.n_levels + 1) + sharer.level_of[row];
  }
  args.group_of[item] = group;
  atomicAdd(&args.counts[group], 1u);
}

// One block. A thread adds up a stretch of the groups, then all know what stands before them.
KERNEL(group_begin, GroupArgs) {
  __shared__ u32 sums[1024];
  u32 each = (args.n_groups + blockDim.x - 1) / blockDim.x;
  u32 first = threadIdx.x * each, end = first + each < args.n_groups ? first + each : args.n_groups;
  u32 sum = 0;
  for (u32 group = first; group < end; group++) sum += args.counts[group];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (u32 by = 1; by < blockDim.x; by *= 2) {
    u32 before = threadIdx.x >= by ? sums[threadIdx.x - by] : 0;
    __syncthreads();
    sums[threadIdx.x] += before;
    __syncthreads();
  }
  u32 at = sums[threadIdx.x] - sum;
  for (u32 group = first; group < end; group++) {
    u32 n = args.counts[group];
    args.counts[group] = at;
    at += n;
  }
}

KERNEL(group_place, GroupArgs) {
  u32 item = blockIdx.x * blockDim.x + threadIdx.x;
  bool here = item < args.count;
  u32 place = join_group(args.counts, here ? args.group_of[item] : 0, here);
  if (here) args.order[place] = item;
}

// Masks of `x > level` at up to 32 levels, for thresholds that differ from trial to trial.
struct LevelArgs {
  const World* world;
  const Tile* tiles;
  const u32* row;
  const double* levels;
  u32* out;  // item, level, word
  u32 first, count, n_tiles, n_levels;
};

template <class X> __device__ void write_levels(const LevelArgs& args) {
  __shared__ double values[WARPS][64];
  const u32 all = 0xffffffffu;
  u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  u64 task = (u64)blockIdx.x * WARPS + warp;
  if (task >= (u64)args.count * args.n_tiles) return;
  u32 item = (u32)(task % args.count);
  const Tile tile = args.tiles[task / args.count];
  const World& world = *args.world;
  u32 n_bars = world.start[tile.symbol + 1] - world.start[tile.symbol];
  u64 stride = 2 * (u64)world.n_words;
  u32 n_words = 2 * (world.word_start[tile.symbol + 1] - world.word_start[tile.symbol]);
  const typename X::Frame frame = X::bind(world, args.row[item], tile.symbol);
  bool has_level = lane < args.n_levels;
  double level = args.levels[has_level ? lane : 0];
  u32* out = args.out + ((u64)(args.first + item) * args.n_levels + (has_level ? lane : 0)) * stride + 2 * (u64)world.word_start[tile.symbol];
  u32 last_word = tile.end == n_bars ? n_words : tile.end / 32;
  // A lane computes the series at two bars, then compares that of all 64 with its level.
  for (u32 word = tile.first / 32; word < last_word; word += 2) {
    u32 keep[2] = {0, 0};
#pragma unroll
    for (u32 w = 0; w < 2; w++) {
      u32 bar = (word + w) * 32 + lane;
      values[warp][32 * w + lane] = bar < n_bars ? X::value(frame, bar) : NA;
    }
    __syncwarp(all);
#pragma unroll
    for (u32 bit = 0; bit < 32; bit++) {
#pragma unroll
      for (u32 w = 0; w < 2; w++) keep[w] |= X::compare(values[warp][32 * w + bit], level) ? 1u << bit : 0;
    }
    __syncwarp(all);
    if (has_level) {
      out[word] = keep[0];
      out[word + 1] = keep[1];
    }
  }
}

// The levels of one threshold: evenly spread over its values among the trials; the first is passed by all of them.
struct SpreadArgs {
  const double* threshold;  // by row
  double* levels;
  u32* level_of;
  u32 n_rows, above;      // above: the factor is x > threshold, else x < threshold
  u32 n_levels, unused;
};

KERNEL(spread_levels, SpreadArgs) {
  __shared__ double lows[1024], highs[1024];
  double low = INFINITE, high = -INFINITE;
  // Several at once, so that their loads do not wait for each other.
  const u32 AT_ONCE = 8;
  for (u32 base = threadIdx.x; base < args.n_rows; base += AT_ONCE * blockDim.x) {
    double t[AT_ONCE];
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) t[k] = base + k * blockDim.x < args.n_rows ? args.threshold[base + k * blockDim.x] : NA;
#pragma unroll
    for (u32 k = 0; k < AT_ONCE; k++) {
      if (!is_finite(t[k])) continue;
      low = t[k] < low ? t[k] : low;
      high = t[k] > high ? t[k] : high;
    }
  }
  lows[threadIdx.x] = low;
  highs[threadIdx.x] = high;
  for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      double a = lows[threadIdx.x + half], b = highs[threadIdx.x + half];
      lows[threadIdx.x] = a < lows[threadIdx.x] ? a : lows[threadIdx.x];
      highs[threadIdx.x] = b > highs[threadIdx.x] ? b : highs[threadIdx.x];
    }
  }
  __syncthreads();
  if (threadIdx.x < args.n_levels) {
    double part = (double)threadIdx.x / args.n_levels, span = highs[0] - lows[0];
    args.levels[threadIdx.x] = args.above ? lows[0] + span * part : highs[0] - span * part;
  }
}

KERNEL(pick_level, SpreadArgs) {
  u32 row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= args.n_rows) return;
  double t = args.threshold[row];
  u32 best = args.n_levels;  // none: every bar is tested
  for (u32 q = 0; q < args.n_levels; q++) {
    double level = args.levels[q];
    if (args.above ? level <= t : level >= t) best = q;
  }
  args.level_of[row] = best;
}

// A formula written out as a column.
struct FormulaArgs {
  const World* world;
  const Tile* tiles;
  const u32* row;
  double* out;
  u32 first, count, n_tiles, unused;
};

template <class X> __device__ void write_column(const FormulaArgs& args) {
  u32 lane = threadIdx.x & 31;
  u64 task = (u64)blockIdx.x * WARPS + (threadIdx.x >> 5);
  if (task >= (u64)args.count * args.n_tiles) return;
  u32 item = (u32)(task % args.count);
  const Tile tile = args.tiles[task / args.count];
  const World& world = *args.world;
  const typename X::Frame frame = X::bind(world, args.row[item], tile.symbol);
  double* out = args.out + (u64)(args.first + item) * world.n_bars + world.start[tile.symbol];
  for (u32 bar = tile.first + lane; bar < tile.end; bar += 32) out[bar] = X::value(frame, bar);
}
