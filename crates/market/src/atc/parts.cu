// The parts of a classification on their own.

namespace atc {

struct PartArgs {
  Plan plan;
  // The input of the averages.
  const double* source;
  const u64* offsets;
  const u32* lengths;
  double* scratch;
  // One series after another, in the layout of the source.
  double* out;
  u64 stride;
  u32 n_symbols, capacity;
};

// Bars that are read and written together: tiles of the ring would be narrow.
#define PART_TILE 16

struct PartShared {
  double tile[PART_TILE][33];
  double results[N_LENGTHS][PART_TILE][33];
};

// A warp has 32 symbols, a lane all nine averages of one.
template <class Step>
__device__ __forceinline__ void moving_averages(const PartArgs& args, PartShared& shared) {
  u32 lane = threadIdx.x;
  Ring ring(args.scratch + (u64)blockIdx.x * (args.capacity + TILE) * ROW, args.capacity, lane);
  for (u64 first = (u64)blockIdx.x * 32; first < args.n_symbols; first += (u64)gridDim.x * 32) {
    u64 symbol = first + lane;
    bool is_there = symbol < args.n_symbols;
    u64 offset = is_there ? args.offsets[symbol] : 0;
    u32 n = is_there ? args.lengths[symbol] : 0;
    u32 longest = n;
    for (u32 step = 16; step; step /= 2) longest = max(longest, __shfl_xor_sync(~0u, longest, step));
    Step step(args.plan, 0);
    Sums sums;
    sums.begin(ring);
    u32 place = 0;
    bool tame = true;
    for (u32 from = 0; from < longest; from += PART_TILE) {
      __syncwarp();
      for (u32 i = 0; i < PART_TILE; i++) {
        u32 row = (i * 32 + lane) / PART_TILE, bar = lane % PART_TILE;
        u64 row_offset = __shfl_sync(~0u, offset, row);
        u32 row_n = __shfl_sync(~0u, n, row);
        shared.tile[bar][row] = from + bar < row_n ? __ldg(args.source + row_offset + from + bar) : NA;
      }
      __syncwarp();
      u32 n_bars = min(longest - from, (u32)PART_TILE);
      for (u32 k = 0; k < n_bars; k++) {
        double x = shared.tile[k][lane];
        tame = tame && is_tame(x);
        sums.push(ring, place, x);
        u32 onward = k % TILE;
        if (onward == 0) step.begin(args.plan, ring, place);
        Sight sight{place, place * ROW_BYTES, onward * ROW_BYTES, from + k, x, (bool)__all_sync(~0u, tame)};
        place = place + 1 == ring.capacity ? 0 : place + 1;
        double averages[N_LENGTHS];
        step.template push<false>(args.plan, ring, sight, averages);
#pragma unroll
        for (u32 length = 0; length < N_LENGTHS; length++) shared.results[length][k][lane] = averages[length];
      }
      __syncwarp();
      for (u32 i = 0; i < PART_TILE; i++) {
        u32 row = (i * 32 + lane) / PART_TILE, bar = lane % PART_TILE;
        u64 row_offset = __shfl_sync(~0u, offset, row);
        u32 row_n = __shfl_sync(~0u, n, row);
        if (from + bar >= row_n) continue;
        for (u32 length = 0; length < N_LENGTHS; length++) {
          args.out[length * args.stride + row_offset + from + bar] = shared.results[length][bar][row];
        }
      }
    }
  }
}

KERNEL(atc_ema, PartArgs) {
  __shared__ PartShared shared;
  moving_averages<ExponentialStep<N_LENGTHS>>(args, shared);
}

KERNEL(atc_hma, PartArgs) {
  __shared__ PartShared shared;
  if (args.plan.flags & HULL) moving_averages<HullStep<N_LENGTHS>>(args, shared);
  else moving_averages<SimpleStep<N_LENGTHS>>(args, shared);
}

KERNEL(atc_wma, PartArgs) {
  __shared__ PartShared shared;
  moving_averages<WeightedStep<N_LENGTHS>>(args, shared);
}

KERNEL(atc_dema, PartArgs) {
  __shared__ PartShared shared;
  moving_averages<DoubleExponentialStep<N_LENGTHS>>(args, shared);
}

KERNEL(atc_lsma, PartArgs) {
  __shared__ PartShared shared;
  moving_averages<LineStep<N_LENGTHS>>(args, shared);
}

KERNEL(atc_kama, PartArgs) {
  __shared__ PartShared shared;
  if (args.plan.flags & KAMA_HEAD) moving_averages<AdaptiveStep<true, N_LENGTHS>>(args, shared);
  else moving_averages<AdaptiveStep<false, N_LENGTHS>>(args, shared);
}

struct EquityArgs {
  Plan plan;
  const double* prices;
  const double* signals;
  const u64* offsets;
  const u32* lengths;
  const double* growth;
  double* out;
  double start;
  u32 n_symbols, unused;
};

// One thread per symbol.
KERNEL(atc_equity, EquityArgs) {
  u64 symbol = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (symbol >= args.n_symbols) return;
  u64 offset = args.offsets[symbol];
  Returns returns;
  Account account;
  for (u32 bar = 0; bar < args.lengths[symbol]; bar++) {
    Move change(returns.push(args.plan, args.prices[offset + bar], args.growth[bar]));
    account.push(args.plan, change, args.start, bar >= args.plan.cutout, args.signals[offset + bar]);
    args.out[offset + bar] = account.equity;
  }
}

struct WeightedArgs {
  // Nine series each, one after another.
  const double* signals;
  const double* equities;
  double* out;
  u64 stride, n_bars;
  u32 round, unused;
};

// One thread per bar.
KERNEL(atc_weighted_signal, WeightedArgs) {
  u64 bar = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (bar >= args.n_bars) return;
  double votes = 0.0, weight = 0.0;
  for (u32 k = 0; k < N_LENGTHS; k++) {
    double equity = args.equities[k * args.stride + bar];
    votes += args.signals[k * args.stride + bar] * equity;
    weight += equity;
  }
  args.out[bar] = finish_vote(votes, weight, args.round);
}

struct ClassifyArgs {
  Plan plan;
  const double* averages;
  i32* out;
  u64 n_bars;
};

// One thread per bar.
KERNEL(atc_classify, ClassifyArgs) {
  u64 bar = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (bar < args.n_bars) args.out[bar] = class_of(args.plan, args.averages[bar]);
}

}  // namespace atc
