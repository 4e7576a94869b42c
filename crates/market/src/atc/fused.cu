// The whole classification in one launch: moving averages, crossings, equities, both layers, average and class.
//
// A block has 32 symbols, a lane one of them. A warp has a third of a family's nine lengths. All the parts walk through the bars
// in tiles, one after another: in the same turn the next tile is prepared, the first parts of the families have the tile before
// that, the second ones the tile before that, and so on, with one barrier a turn. So the vote of a family is handed from part to
// part and summed in the order of its lengths, and the last part finishes it. What all families need of a bar is prepared once:
// its price, its gain, and its running sums, in a ring.
//
// The parts of a family run the same code: all that the warps of a block run has to fit into the instruction cache.

namespace atc {

// Parts of a family, and its lengths in each.
#define PARTS 3
#define PER_PART (N_LENGTHS / PARTS)
// A warp for each part, and one that prepares.
#define FUSED_WARPS (PARTS * N_FAMILIES + 1)
#define FUSED_THREADS (32 * FUSED_WARPS)
// Blocks that a multiprocessor should run at a time; twin of BLOCKS_PER_MULTIPROCESSOR in device.rs.
#define FUSED_BLOCKS 1
// Turns from the preparation of a tile to its last part.
#define STAGES PARTS
#define SLOTS (STAGES + 1)

// What is known of a tile: all values up to its end are tame; they are available; and its gains are calm.
#define IS_TAME 1
#define IS_WHOLE 2
#define IS_CALM 4

struct FusedArgs {
  Plan plan;
  const double* prices;
  const double* source;
  const u64* offsets;
  const u32* lengths;
  const double* growth;
  double* scratch;
  double* last;
  i32* classes;
  double* averages;
  u32 n_symbols, capacity;
};

struct FusedShared {
  // Sums of votes; where all averages are wanted, the last part leaves equity and vote of its family there.
  Tally tally[N_FAMILIES][STAGES][TILE][32];
  double price[SLOTS][TILE][32];
  double gain[SLOTS][TILE][32];
  u32 flags[SLOTS];
  double last_equity[N_FAMILIES][32];
  signed char last_vote[N_FAMILIES][32];
  u64 offset[32];
  // Bars of a symbol, and those that are computed: none if there are too few.
  u32 n_all[32], n[32];
};

// Prepares tiles. The prices of the next one are on their way meanwhile. Beyond a symbol's end they are not available and gain
// nothing; its results are never read.
struct Preparation {
  Sums sums;
  Returns returns;
  bool is_tame_so_far, is_whole;
  double price[TILE], source[TILE];

  __device__ __forceinline__ Preparation() : is_tame_so_far(true), is_whole(true) {}

  __device__ __forceinline__ void begin(const FusedArgs& args, const FusedShared& shared, const Ring& ring) {
    sums.begin(ring);
#pragma unroll
    for (u32 i = 0; i < TILE; i++) fetch(args, shared, threadIdx.x % 32, i, i);
  }

  __device__ __forceinline__ void fetch(const FusedArgs& args, const FusedShared& shared, u32 lane, u32 bar, u32 i) {
    bool is_there = bar < shared.n[lane];
    u64 at = shared.offset[lane] + bar;
    price[i] = is_there ? __ldg(args.prices + at) : NA;
    if (args.source) source[i] = is_there ? __ldg(args.source + at) : NA;
  }

  __device__ __forceinline__ void push(const FusedArgs& args, FusedShared& shared, const Ring& ring, u32 tile, u32 row) {
    u32 lane = threadIdx.x % 32, slot = tile % SLOTS;
    bool is_calm = true;
#pragma unroll
    for (u32 i = 0; i < TILE; i++) {
      u32 bar = tile * TILE + i;
      bool is_there = bar < shared.n[lane];
      double x = args.source ? source[i] : price[i];
      double gain = returns.push(args.plan, price[i], is_there ? __ldg(args.growth + bar) : 0.0);
      gain = is_there ? gain : 0.0;
      shared.price[slot][i][lane] = price[i];
      shared.gain[slot][i][lane] = gain;
      is_tame_so_far = is_tame_so_far && is_tame(x);
      is_whole = is_whole && (is_finite(x) || !is_there);
      is_calm = is_calm && fabs(gain) < CALM;
      sums.push(ring, row + i, x);
      fetch(args, shared, lane, bar + TILE, i);
    }
    u32 flags = (__all_sync(~0u, is_tame_so_far) ? IS_TAME : 0) | (__all_sync(~0u, is_whole) ? IS_WHOLE : 0) |
                (__all_sync(~0u, is_calm) ? IS_CALM : 0);
    if (lane == 0) shared.flags[slot] = flags;
  }
};

// A part of a family.
template <class Step>
struct Part {
  Step step;
  Vote<PER_PART> vote;
  // The family's, of its last part.
  Account account;
  // The part's number, and the bar of the average that is given last.
  u32 family, number, final;

  __device__ __forceinline__ Part(const Plan& plan, u32 family, u32 number, u32 final)
      : step(plan, number * PER_PART), family(family), number(number), final(final) {}

  template <bool PLAIN>
  __device__ __forceinline__ void bars(const FusedArgs& args, FusedShared& shared, const Ring& ring, u32 tile, u32 row,
                                       bool tame) {
    const Plan& plan = args.plan;
    u32 lane = threadIdx.x % 32, slot = tile % SLOTS;
    Tally(*tallies)[32] = shared.tally[family][tile % STAGES];
    u32 start = opaque(row * ROW_BYTES), onward = 0;
#pragma unroll 1
    for (u32 i = 0; i < TILE; i++) {
      u32 bar = tile * TILE + i;
      double price = shared.price[slot][i][lane], gain = shared.gain[slot][i][lane];
      double x = args.source ? ring.value(start + onward) : price;
      double averages[PER_PART];
      step.template push<PLAIN>(plan, ring, Sight{row + i, start + onward, onward, bar, x, tame}, averages);
      onward = opaque(onward + ROW_BYTES);
      Tally tally = number ? tallies[i][lane] : Tally{0.0, 0.0};
      vote.template push<PLAIN>(plan, price, averages, gain, bar >= plan.l1_cutout, tally);
      if (number == PARTS - 1) {
        double signal = settle_vote(tally.votes, tally.weight, plan.flags & ROUND);
        account.push(plan, Move(gain), plan.starts[family], bar >= plan.cutout, signal);
        if (args.averages) tallies[i][lane] = Tally{(double)cut(plan, signal), account.equity};
        if (bar == final) {
          shared.last_equity[family][lane] = account.equity;
          shared.last_vote[family][lane] = cut(plan, signal);
        }
      } else {
        tallies[i][lane] = tally;
      }
    }
  }

  __device__ __forceinline__ void push(const FusedArgs& args, FusedShared& shared, const Ring& ring, u32 tile, u32 row) {
    u32 flags = shared.flags[tile % SLOTS];
    bool is_plain = flags == (IS_TAME | IS_WHOLE | IS_CALM) && tile * TILE >= max(args.plan.lookback, args.plan.l1_cutout);
    step.begin(args.plan, ring, row);
    if (is_plain && __all_sync(~0u, vote.is_small())) bars<true>(args, shared, ring, tile, row, true);
    else bars<false>(args, shared, ring, tile, row, flags & IS_TAME);
  }
};

// The averages of a tile, by one warp.
__device__ __forceinline__ void write_averages(const FusedArgs& args, const FusedShared& shared, u32 tile) {
  u32 late = args.plan.flags & STRATEGY ? 1 : 0;
  for (u32 i = threadIdx.x % 32; i < 32 * TILE; i += 32) {
    u32 row = i / TILE, k = i % TILE, bar = tile * TILE + k;
    if (bar + late >= shared.n[row]) continue;
    auto tally = [&](u32 f) { return shared.tally[f][tile % STAGES][k][row]; };
    args.averages[shared.offset[row] + bar + late] = average_of(
        args.plan, bar, [&](u32 f) { return tally(f).votes; }, [&](u32 f) { return tally(f).weight; });
  }
}

// After a tile, when all warps are done with it. Averages are written by the warp of `writes`.
__device__ __forceinline__ void end_turn(const FusedArgs& args, const FusedShared& shared, u32 turn, bool writes) {
  if (args.averages) {
    meet_block();
    if (writes && turn >= STAGES) write_averages(args, shared, turn - STAGES);
  }
  meet_block();
}

// The way of the warp that prepares, and of one with a part. All warps of the block meet at the same number of barriers.
__device__ __forceinline__ void prepare(const FusedArgs& args, FusedShared& shared, const Ring& ring, u32 n_tiles) {
  Preparation preparation;
  preparation.begin(args, shared, ring);
  u32 row = 0;
#pragma unroll 1
  for (u32 turn = 0; turn < n_tiles + STAGES; turn++) {
    if (turn < n_tiles) preparation.push(args, shared, ring, turn, row);
    row = row + TILE == ring.capacity ? 0 : row + TILE;
    end_turn(args, shared, turn, true);
  }
}

template <class Step>
__device__ __forceinline__ void along(const FusedArgs& args, FusedShared& shared, const Ring& ring, u32 family, u32 number,
                                      u32 n_tiles) {
  u32 late = args.plan.flags & STRATEGY ? 1 : 0;
  u32 n = shared.n[threadIdx.x % 32];
  Part<Step> part(args.plan, family, number, n > late ? n - 1 - late : ~0u);
  u32 row = 0;
#pragma unroll 1
  for (u32 turn = 0; turn < n_tiles + STAGES; turn++) {
    // Before the first tile this is a very large number.
    u32 tile = turn - 1 - number;
    if (tile < n_tiles) {
      part.push(args, shared, ring, tile, row);
      row = row + TILE == ring.capacity ? 0 : row + TILE;
    }
    end_turn(args, shared, turn, false);
  }
}

#define PREPARES N_FAMILIES

// What a warp does: four times its family, or PREPARES, and its part. Each of four schedulers has every fourth warp, and about the same
// work: LSMA, KAMA and WMA are heavy, EMA and HMA are light, last parts finish the vote.
__device__ __forceinline__ u32 role_of(u32 warp) {
  const unsigned char roles[FUSED_WARPS] = {4 * 4,     5 * 4,     2 * 4,     3 * 4 + 2, 5 * 4 + 1, 4 * 4 + 1, 3 * 4,
                                            2 * 4 + 1, 2 * 4 + 2, 3 * 4 + 1, 4 * 4 + 2, 5 * 4 + 2, 0,         1 * 4 + 1,
                                            0 * 4 + 1, 1 * 4,     1 * 4 + 2, 0 * 4 + 2, 4 * PREPARES};
  return roles[warp];
}

KERNEL_BOUNDED(atc_fused, FusedArgs, FUSED_THREADS, FUSED_BLOCKS) {
  __shared__ FusedShared shared;
  const Plan& plan = args.plan;
  u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  Ring ring(args.scratch + (u64)blockIdx.x * (args.capacity + TILE) * ROW, args.capacity, lane);
  u32 late = plan.flags & STRATEGY ? 1 : 0;
  for (u32 group = blockIdx.x; (u64)group * 32 < args.n_symbols; group += gridDim.x) {
    u64 symbol = (u64)group * 32 + lane;
    if (warp == 0) {
      bool is_there = symbol < args.n_symbols;
      u32 n = is_there ? args.lengths[symbol] : 0;
      shared.offset[lane] = is_there ? args.offsets[symbol] : 0;
      shared.n_all[lane] = n;
      shared.n[lane] = n >= plan.min_bars && n > plan.cutout ? n : 0;
    }
    __syncthreads();
    u32 longest = shared.n[lane];
    for (u32 step = 16; step; step /= 2) longest = max(longest, __shfl_xor_sync(~0u, longest, step));
    u32 n_tiles = (longest + TILE - 1) / TILE;
    u32 role = role_of(warp), number = role % 4;
    switch (role / 4) {
      case 0: along<ExponentialStep<PER_PART>>(args, shared, ring, 0, number, n_tiles); break;
      case 1:
        if (plan.flags & HULL) along<HullStep<PER_PART>>(args, shared, ring, 1, number, n_tiles);
        else along<SimpleStep<PER_PART>>(args, shared, ring, 1, number, n_tiles);
        break;
      case 2: along<WeightedStep<PER_PART>>(args, shared, ring, 2, number, n_tiles); break;
      case 3: along<DoubleExponentialStep<PER_PART>>(args, shared, ring, 3, number, n_tiles); break;
      case 4: along<LineStep<PER_PART>>(args, shared, ring, 4, number, n_tiles); break;
      case 5:
        if (plan.flags & KAMA_HEAD) along<AdaptiveStep<true, PER_PART>>(args, shared, ring, 5, number, n_tiles);
        else along<AdaptiveStep<false, PER_PART>>(args, shared, ring, 5, number, n_tiles);
        break;
      default: prepare(args, shared, ring, n_tiles);
    }
    __syncthreads();
    if (warp == 0 && symbol < args.n_symbols) {
      u32 n = shared.n[lane];
      double average = NA;
      if (n > late) {
        average = average_of(
            plan, n - 1 - late, [&](u32 f) { return shared.last_vote[f][lane]; },
            [&](u32 f) { return shared.last_equity[f][lane]; });
      } else if (n > 0) {
        average = 0.0;
      }
      args.last[symbol] = average;
      args.classes[symbol] = class_of(plan, average);
    }
    // What the loop above has not written: symbols that are too short, and the first bar of averages that come late.
    if (args.averages) {
      for (u32 row = warp; row < 32; row += FUSED_WARPS) {
        double* out = args.averages + shared.offset[row];
        if (shared.n[row] == 0) {
          for (u32 bar = lane; bar < shared.n_all[row]; bar += 32) out[bar] = NA;
        } else if (late && lane == 0) {
          out[0] = 0.0;
        }
      }
    }
    __syncthreads();
  }
}

}  // namespace atc
