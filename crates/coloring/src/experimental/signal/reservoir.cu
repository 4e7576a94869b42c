// A step of the leaky network: the twin of reservoir.rs. A thread is a neuron.

struct ReservoirArgs {
  NeighbourLists lists;
  // Bit `sample` of a vertex: whether it was in conflict.
  const u32* history;
  const double* state;
  double* next;
  double* response;
  double scale;
  u32 n_words;
  u32 sample;
  u32 is_counted;
  u32 unused;
};

// Lambert's continued fraction for tanh, cut to what lies within 1.
__device__ __forceinline__ double squashed(double x) {
  double square = x * x;
  double above = x * (135135.0 + square * (17325.0 + square * (378.0 + square)));
  double below = 135135.0 + square * (62370.0 + square * (3150.0 + square * 28.0));
  double value = above / below;
  return value > 1.0 ? 1.0 : value < -1.0 ? -1.0 : value;
}

KERNEL(coloring_reservoir, ReservoirArgs) {
  u32 vertex = blockIdx.x * blockDim.x + threadIdx.x;
  if (vertex >= args.lists.n) return;
  double around = 0.0;
  for (u32 at = args.lists.offsets[vertex]; at < args.lists.offsets[vertex + 1]; at++) {
    around += args.state[args.lists.neighbours[at]];
  }
  u32 word = args.history[u64(vertex) * args.n_words + args.sample / 32];
  double input = word >> (args.sample % 32) & 1 ? 1.0 : 0.0;
  double value = 0.7 * args.state[vertex] + 0.3 * squashed(args.scale * around + input);
  args.next[vertex] = value;
  if (args.is_counted) args.response[vertex] += value < 0.0 ? -value : value;
}
