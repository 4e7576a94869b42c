// Kernels of the runtime's own tests.

struct AddArgs {
  u64* data;
  u64 amount;
  u32 n;
};

KERNEL(add, AddArgs) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < args.n) args.data[i] += args.amount;
}

// A multiplication and an addition that must not become one operation.
struct PlaneArgs {
  const double* x;
  const double* y;
  double* out;
  double slope;
  u32 n;
};

KERNEL(plane, PlaneArgs) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < args.n) args.out[i] = args.x[i] * args.slope + args.y[i];
}

// One slow thread.
struct SlowArgs {
  u64* out;
  u64 seed;
  u32 n_rounds;
};

KERNEL(slow, SlowArgs) {
  u64 x = args.seed;
  for (u32 i = 0; i < args.n_rounds; i++) x = x * 6364136223846793005ULL + 1442695040888963407ULL;
  args.out[0] = x;
}

// Ends when all blocks run at the same time, or after a number of polls. Records whether they did.
struct MeetArgs {
  u32* arrived;
  u64* met;
  u64 most_looks;
  u32 n_all;
};

KERNEL(meet, MeetArgs) {
  u64 n_looks = 0;
  u32 n_here = atomicAdd(args.arrived, 1u) + 1;
  while (n_here < args.n_all && n_looks < args.most_looks) {
    n_here = atomicAdd(args.arrived, 0u);
    n_looks++;
  }
  args.met[0] = n_here >= args.n_all ? 1 : 0;
}

// Adds the elements of each block in dynamic shared memory.
struct SumArgs {
  const u64* data;
  u64* sums;
  u32 n;
};

KERNEL(sum, SumArgs) {
  extern __shared__ u64 part[];
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  part[threadIdx.x] = i < args.n ? args.data[i] : 0;
  __syncthreads();
  for (u32 half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) args.sums[blockIdx.x] = part[0];
}
