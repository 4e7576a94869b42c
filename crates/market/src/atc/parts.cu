// The parts of a classification on their own.

namespace atc {

struct PartArgs {
  Plan plan;
  // What averages are taken of.
  const double* source;
  const u64* offsets;
  const u32* lengths;
  double* scratch;
  // One series after another, in the layout of the source.
  double* out;
  u64 stride;
  u32 n_symbols, unused;
};

struct PartShared {
  double tile[TILE][33];
  double results[N_LENGTHS][TILE][33];
};

// A warp has 32 symbols, a lane all nine averages of one.
template <class Step>
__device__ __forceinline__ void moving_averages(const PartArgs& args, PartShared& shared) {
  u32 lane = threadIdx.x;
  double* scratch = args.scratch + (u64)blockIdx.x * args.plan.lookback * RING_NUMBERS;
  for (u64 first = (u64)blockIdx.x * 32; first < args.n_symbols; first += (u64)gridDim.x * 32) {
    u64 symbol = first + lane;
    bool is_there = symbol < args.n_symbols;
    u64 offset = is_there ? args.offsets[symbol] : 0;
    u32 n = is_there ? args.lengths[symbol] : 0;
    u32 longest = n;
    for (u32 step = 16; step; step /= 2) longest = max(longest, __shfl_xor_sync(~0u, longest, step));
    Step step(args.plan, Ring(scratch, args.plan.lookback, lane));
    for (u32 from = 0; from < longest; from += TILE) {
      __syncwarp();
      for (u32 i = 0; i < TILE; i++) {
        u32 row = (i * 32 + lane) / TILE, bar = lane % TILE;
        u64 row_offset = __shfl_sync(~0u, offset, row);
        u32 row_n = __shfl_sync(~0u, n, row);
        shared.tile[bar][row] = from + bar < row_n ? __ldg(args.source + row_offset + from + bar) : NA;
      }
      __syncwarp();
      u32 n_bars = min(longest - from, (u32)TILE);
      for (u32 k = 0; k < n_bars; k++) {
        double averages[N_LENGTHS];
        step.push(args.plan, shared.tile[k][lane], averages);
#pragma unroll
        for (u32 length = 0; length < N_LENGTHS; length++) shared.results[length][k][lane] = averages[length];
      }
      __syncwarp();
      for (u32 i = 0; i < TILE; i++) {
        u32 row = (i * 32 + lane) / TILE, bar = lane % TILE;
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
  moving_averages<ExponentialStep>(args, shared);
}

KERNEL(atc_hma, PartArgs) {
  __shared__ PartShared shared;
  if (args.plan.flags & HULL) moving_averages<HullStep>(args, shared);
  else moving_averages<SimpleStep>(args, shared);
}

KERNEL(atc_wma, PartArgs) {
  __shared__ PartShared shared;
  moving_averages<WeightedStep>(args, shared);
}

KERNEL(atc_dema, PartArgs) {
  __shared__ PartShared shared;
  moving_averages<DoubleExponentialStep>(args, shared);
}

KERNEL(atc_lsma, PartArgs) {
  __shared__ PartShared shared;
  moving_averages<LineStep>(args, shared);
}

KERNEL(atc_kama, PartArgs) {
  __shared__ PartShared shared;
  if (args.plan.flags & KAMA_HEAD) moving_averages<AdaptiveStep<true>>(args, shared);
  else moving_averages<AdaptiveStep<false>>(args, shared);
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
    Move change = returns.push(args.plan, args.prices[offset + bar], args.growth[bar]);
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
