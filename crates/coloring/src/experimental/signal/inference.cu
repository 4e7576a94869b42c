// Expected conflicts less information gain: the twin of inference.rs. A thread is a vertex.

struct InferenceArgs {
  NeighbourLists lists;
  // How many colourings give a vertex a colour, `k` numbers for each.
  const u32* counts;
  // What learning a colour gives that so many colourings have, in bits.
  const double* surprise;
  double* priority;
  double weight;
  u32 k;
  u32 unused;
};

KERNEL(coloring_inference, InferenceArgs) {
  u32 vertex = blockIdx.x * blockDim.x + threadIdx.x;
  if (vertex >= args.lists.n) return;
  const u32* own = args.counts + u64(vertex) * args.k;
  double expected = 0.0;
  for (u32 at = args.lists.offsets[vertex]; at < args.lists.offsets[vertex + 1]; at++) {
    const u32* other = args.counts + u64(args.lists.neighbours[at]) * args.k;
    double together = 0.0;
    for (u32 color = 0; color < args.k; color++) {
      together += (double(own[color]) * args.weight) * (double(other[color]) * args.weight);
    }
    expected += together;
  }
  double gain = 0.0;
  for (u32 color = 0; color < args.k; color++) gain += args.surprise[own[color]];
  args.priority[vertex] = expected - gain;
}
