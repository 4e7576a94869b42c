// Work of any length that depends on every element it was given.

struct SpinArgs {
  const u32* from;
  u32* to;
  u32 n_in, n_out;
  u32 seed, n_rounds;
};

KERNEL(spin, SpinArgs) {
  u32 n_threads = gridDim.x * blockDim.x;
  for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < args.n_out; i += n_threads) {
    u32 x = args.from[i % args.n_in] ^ args.seed;
    for (u32 round = 0; round < args.n_rounds; round++) x = x * 1664525u + 1013904223u;
    args.to[i] = x;
  }
}
