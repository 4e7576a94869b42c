// The whole classification in one launch: moving averages, crossings, equities, both layers, average and class.
//
// A block has 32 symbols, a warp of it one family, a lane one symbol with all nine lengths. Prices come in tiles through
// shared memory, because lanes that have a symbol each would read one number per line. The families meet in shared memory too:
// at every bar where all averages are wanted, else at the last one alone.

namespace atc {

#define TILE 16
#define FUSED_THREADS (32 * N_FAMILIES)
// Families that keep running sums, and doubles of a bar in their rings.
#define RINGS 4
#define RING_NUMBERS (4 * 32)

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
  u32 n_symbols, unused;
};

struct FusedShared {
  // One more column than there are symbols, so that the banks differ when a tile is turned.
  double price[TILE][33];
  double source[TILE][33];
  double equity[N_FAMILIES][TILE][33];
  signed char vote[N_FAMILIES][TILE][33];
  double last_equity[N_FAMILIES][32];
  signed char last_vote[N_FAMILIES][32];
  u64 offset[32];
  // Bars of a symbol, and those that are computed: none if there are too few.
  u32 n_all[32], n[32];
};

__device__ __forceinline__ void load_tile(double (*tile)[33], const double* series, const FusedShared& shared, u32 from) {
  for (u32 i = threadIdx.x; i < 32 * TILE; i += FUSED_THREADS) {
    u32 row = i / TILE, bar = i % TILE;
    tile[bar][row] = from + bar < shared.n[row] ? __ldg(series + shared.offset[row] + from + bar) : NA;
  }
}

// One warp's way: a family of 32 symbols. All warps of the block meet at the same number of barriers.
template <class Step>
__device__ __forceinline__ void along(const FusedArgs& args, FusedShared& shared, u32 family, u32 longest, Ring ring) {
  const Plan& plan = args.plan;
  u32 lane = threadIdx.x % 32;
  bool has_source = args.source != 0, all = args.averages != 0;
  u32 late = plan.flags & STRATEGY ? 1 : 0;
  // The bar of the average that is given last.
  u32 n = shared.n[lane];
  u32 final = n > late ? n - 1 - late : ~0u;
  Step step(plan, ring);
  Vote vote;
  Account account;
  Returns returns;
  double start = plan.starts[family];
  for (u32 from = 0; from < longest; from += TILE) {
    __syncthreads();
    load_tile(shared.price, args.prices, shared, from);
    if (has_source) load_tile(shared.source, args.source, shared, from);
    __syncthreads();
    u32 n_bars = min(longest - from, (u32)TILE);
    for (u32 k = 0; k < n_bars; k++) {
      u32 bar = from + k;
      double price = shared.price[k][lane];
      double averages[N_LENGTHS];
      step.push(plan, has_source ? shared.source[k][lane] : price, averages);
      Move change = returns.push(plan, price, __ldg(args.growth + bar));
      double signal = vote.push(plan, price, averages, change, bar >= plan.l1_cutout);
      account.push(plan, change, start, bar >= plan.cutout, signal);
      if (all) {
        shared.equity[family][k][lane] = account.equity;
        shared.vote[family][k][lane] = cut(plan, signal);
      }
      if (bar == final) {
        shared.last_equity[family][lane] = account.equity;
        shared.last_vote[family][lane] = cut(plan, signal);
      }
    }
    if (!all) continue;
    __syncthreads();
    for (u32 i = threadIdx.x; i < 32 * TILE; i += FUSED_THREADS) {
      u32 row = i / TILE, k = i % TILE, bar = from + k;
      if (bar + late >= shared.n[row]) continue;
      args.averages[shared.offset[row] + bar + late] = average_of(
          plan, bar, [&](u32 f) { return shared.vote[f][k][row]; }, [&](u32 f) { return shared.equity[f][k][row]; });
    }
  }
}

KERNEL_BOUNDED(atc_fused, FusedArgs, FUSED_THREADS, 2) {
  __shared__ FusedShared shared;
  const Plan& plan = args.plan;
  u32 family = threadIdx.x / 32, lane = threadIdx.x % 32;
  // EMA and DEMA keep nothing but what is in their registers.
  u32 which = family == 1 ? 0 : family == 2 ? 1 : family == 4 ? 2 : 3;
  double* scratch = args.scratch + ((u64)blockIdx.x * RINGS + which) * plan.lookback * RING_NUMBERS;
  u32 late = plan.flags & STRATEGY ? 1 : 0;
  for (u32 group = blockIdx.x; (u64)group * 32 < args.n_symbols; group += gridDim.x) {
    u64 symbol = (u64)group * 32 + lane;
    if (family == 0) {
      bool is_there = symbol < args.n_symbols;
      u32 n = is_there ? args.lengths[symbol] : 0;
      shared.offset[lane] = is_there ? args.offsets[symbol] : 0;
      shared.n_all[lane] = n;
      shared.n[lane] = n >= plan.min_bars && n > plan.cutout ? n : 0;
    }
    __syncthreads();
    u32 longest = shared.n[lane];
    for (u32 step = 16; step; step /= 2) longest = max(longest, __shfl_xor_sync(~0u, longest, step));
    Ring ring(scratch, plan.lookback, lane);
    switch (family) {
      case 0: along<ExponentialStep>(args, shared, 0, longest, ring); break;
      case 1:
        if (plan.flags & HULL) along<HullStep>(args, shared, 1, longest, ring);
        else along<SimpleStep>(args, shared, 1, longest, ring);
        break;
      case 2: along<WeightedStep>(args, shared, 2, longest, ring); break;
      case 3: along<DoubleExponentialStep>(args, shared, 3, longest, ring); break;
      case 4: along<LineStep>(args, shared, 4, longest, ring); break;
      default:
        if (plan.flags & KAMA_HEAD) along<AdaptiveStep<true>>(args, shared, 5, longest, ring);
        else along<AdaptiveStep<false>>(args, shared, 5, longest, ring);
    }
    __syncthreads();
    if (family == 0 && symbol < args.n_symbols) {
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
      for (u32 row = family; row < 32; row += N_FAMILIES) {
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
