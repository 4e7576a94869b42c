// Transfer entropies from each vertex to its neighbours: the twin of transfer.rs. A thread is a vertex.

struct TransferArgs {
  NeighbourLists lists;
  // Bit `sample` of a vertex: whether it was in conflict.
  const u32* history;
  // Logarithms to the base 2 of 0 (which is never read), 1, 2, ...
  const double* logarithms;
  double* told;
  u32 n_words;
  // Pairs of a sample and the next.
  u32 n_pairs;
};

KERNEL(coloring_transfer, TransferArgs) {
  u32 from = blockIdx.x * blockDim.x + threadIdx.x;
  if (from >= args.lists.n) return;
  const u32* source = args.history + u64(from) * args.n_words;
  double told = 0.0;
  for (u32 at = args.lists.offsets[from]; at < args.lists.offsets[from + 1]; at++) {
    const u32* target = args.history + u64(args.lists.neighbours[at]) * args.n_words;
    // By next of the target, last of the target, last of the source.
    u32 counts[2][2][2] = {};
    for (u32 first = 0; first < args.n_pairs; first += 32) {
      u32 word = first / 32;
      u32 left = args.n_pairs - first;
      u32 mask = left < 32 ? (1u << left) - 1 : ~0u;
      u32 behind = word + 1 < args.n_words ? target[word + 1] : 0;
      u32 last = target[word], next = last >> 1 | behind << 31, other = source[word];
      for (u32 key = 0; key < 8; key++) {
        u32 bits = (key & 4 ? next : ~next) & (key & 2 ? last : ~last) & (key & 1 ? other : ~other) & mask;
        counts[key >> 2][key >> 1 & 1][key & 1] += __popc(bits);
      }
    }
    double sum = 0.0;
    for (u32 key = 0; key < 8; key++) {
      u32 next = key >> 2, own = key >> 1 & 1, other = key & 1;
      u32 joint = counts[next][own][other];
      if (joint == 0) continue;
      u32 pair = counts[0][own][other] + counts[1][own][other];
      u32 alone = counts[next][own][0] + counts[next][own][1];
      u32 all = counts[0][own][0] + counts[0][own][1] + counts[1][own][0] + counts[1][own][1];
      double bits = (args.logarithms[joint] + args.logarithms[all]) - (args.logarithms[pair] + args.logarithms[alone]);
      sum += double(joint) / double(args.n_pairs) * bits;
    }
    told += sum > 0.0 ? sum : 0.0;
  }
  args.told[from] = told;
}
