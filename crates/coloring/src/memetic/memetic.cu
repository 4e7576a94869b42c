// The operations of a population on its colourings, a warp for each: the twins of the functions in pool.rs, crossover.rs and distance.rs.

struct CrossTask {
  u32 first;
  u32 second;
  u32 child;
  u32 unused;
  Random random;
};

struct PairTask {
  u32 first;
  u32 second;
};

struct PoolArgs {
  // Colours by slot, as bytes.
  u32* colors;
  const CrossTask* crosses;
  const Task* tasks;
  const PairTask* pairs;
  u32* distances;
  u32 n;
  u32 k;
  u32 slot_words;
  u32 unused;
};

// Random colours for the four vertices of a word.
__device__ __forceinline__ u32 random_colors(const PoolArgs& args, const Random& random, u32 word) {
  u32 colors = 0;
  for (u32 place = 0; place < 4 && word * 4 + place < args.n; place++) {
    u32 color = scale_bits(u32(random_bits(random, word * 4 + place) >> 32), args.k);
    colors |= color << (place * 8);
  }
  return colors;
}

KERNEL(coloring_scatter, PoolArgs) {
  const Task& task = args.tasks[blockIdx.x];
  u32* colors = args.colors + u64(task.slot) * args.slot_words;
  for (u32 word = threadIdx.x; word * 4 < args.n; word += 32) colors[word] = random_colors(args, task.random, word);
}

KERNEL(coloring_copy, PoolArgs) {
  PairTask pair = args.pairs[blockIdx.x];
  const u32* from = args.colors + u64(pair.first) * args.slot_words;
  u32* to = args.colors + u64(pair.second) * args.slot_words;
  for (u32 word = threadIdx.x; word * 4 < args.n; word += 32) to[word] = from[word];
}

// Bytes of a child whose vertices have no class yet.
#define NO_CLASS 0xffu

// A child of two parents. In shared memory: the colours of the parents, those of the child, and the sizes of the parents' classes.
KERNEL(coloring_cross, PoolArgs) {
  extern __shared__ u32 shared[];
  u32 lane = threadIdx.x;
  const CrossTask& task = args.crosses[blockIdx.x];
  u32 n_words = (args.n + 3) / 4;
  u32* parents = shared;
  u32* child = parents + 2 * n_words;
  u32* sizes = child + n_words;
  for (u32 color = lane; color < 2 * args.k; color += 32) sizes[color] = 0;
  __syncwarp();
  for (u32 parent = 0; parent < 2; parent++) {
    const u32* from = args.colors + u64(parent ? task.second : task.first) * args.slot_words;
    for (u32 word = lane; word < n_words; word += 32) {
      u32 colors = from[word];
      parents[parent * n_words + word] = colors;
      child[word] = ~0u;
      for (u32 place = 0; place < 4 && word * 4 + place < args.n; place++) {
        atomicAdd(&sizes[parent * args.k + byte_of(colors, place)], 1u);
      }
    }
  }
  __syncwarp();
  for (u32 color = 0; color < args.k; color++) {
    u32 giver = color % 2;
    u32* giver_sizes = sizes + giver * args.k;
    u32* other_sizes = sizes + (1 - giver) * args.k;
    // The largest class; of equally large ones the first.
    u32 key = ~0u;
    for (u32 other = lane; other < args.k; other += 32) key = min(key, (0xffff - giver_sizes[other]) << 16 | other);
    u32 largest = warp_min(key) & 0xffff;
    __syncwarp();
    for (u32 word = lane; word < n_words; word += 32) {
      u32 hits = zero_bytes(parents[giver * n_words + word] ^ (largest * EACH_BYTE)) & child[word];
      if (!hits) continue;
      u32 made = child[word];
      while (hits) {
        u32 place = (__ffs(hits) - 1) / 8;
        hits &= hits - 1;
        // Beyond the last vertex there is a byte, but no vertex.
        if (byte_of(made, place) != NO_CLASS || word * 4 + place >= args.n) continue;
        made = with_byte(made, place, color);
        atomicSub(&other_sizes[byte_of(parents[(1 - giver) * n_words + word], place)], 1u);
      }
      child[word] = made;
    }
    __syncwarp();
    if (lane == 0) giver_sizes[largest] = 0;
    __syncwarp();
  }
  u32* to = args.colors + u64(task.child) * args.slot_words;
  for (u32 word = lane; word < n_words; word += 32) {
    u32 made = child[word];
    u32 chosen = random_colors(args, task.random, word);
    for (u32 place = 0; place < 4; place++) {
      if (byte_of(made, place) == NO_CLASS) made = with_byte(made, place, byte_of(chosen, place));
    }
    to[word] = made;
  }
}

__device__ __forceinline__ u32 half_of(const u32* halves, u32 at) { return (halves[at / 2] >> (at % 2 * 16)) & 0xffff; }

// The largest overlap of a class of the first colouring with one of the second that is still free: overlap, then the first of such classes.
__device__ __forceinline__ u32 largest_overlap(const PoolArgs& args, const u32* overlaps, const u32* is_free, u32 row) {
  u32 key = ~0u;
  for (u32 column = threadIdx.x; column < args.k; column += 32) {
    if (is_free[column]) key = min(key, (0xffff - half_of(overlaps, row * args.k + column)) << 16 | column);
  }
  return warp_min(key);
}

// The distance of two colourings. In shared memory: overlaps of classes as halves of words, the largest of each row, free columns.
KERNEL(coloring_distance, PoolArgs) {
  extern __shared__ u32 shared[];
  u32 lane = threadIdx.x;
  PairTask pair = args.pairs[blockIdx.x];
  const u32* first = args.colors + u64(pair.first) * args.slot_words;
  const u32* second = args.colors + u64(pair.second) * args.slot_words;
  u32 n_halves = args.k * args.k;
  u32* largest = shared;
  u32* is_free = largest + args.k;
  u32* overlaps = is_free + args.k;
  for (u32 color = lane; color < args.k; color += 32) is_free[color] = 1;
  for (u32 at = lane; at * 2 < n_halves; at += 32) overlaps[at] = 0;
  __syncwarp();
  for (u32 word = lane; word * 4 < args.n; word += 32) {
    u32 a = first[word];
    u32 b = second[word];
    for (u32 place = 0; place < 4 && word * 4 + place < args.n; place++) {
      u32 at = byte_of(a, place) * args.k + byte_of(b, place);
      atomicAdd(&overlaps[at / 2], 1u << (at % 2 * 16));
    }
  }
  __syncwarp();
  for (u32 row = 0; row < args.k; row++) {
    u32 key = largest_overlap(args, overlaps, is_free, row);
    if (lane == 0) largest[row] = key;
  }
  __syncwarp();
  u32 moved = args.n;
  for (u32 step = 0; step < args.k; step++) {
    // The overlap of a row, and then its number: a row that is taken has none.
    u32 key = ~0u;
    for (u32 row = lane; row < args.k; row += 32) key = min(key, (largest[row] & 0xffff0000u) | row);
    key = warp_min(key);
    u32 overlap = 0xffff - (key >> 16);
    if (overlap == 0) break;
    moved -= overlap;
    u32 taken = key & 0xffff;
    u32 column = largest[taken] & 0xffff;
    __syncwarp();
    if (lane == 0) {
      largest[taken] = ~0u;
      is_free[column] = 0;
    }
    __syncwarp();
    for (u32 row = 0; row < args.k; row++) {
      if (largest[row] == ~0u || (largest[row] & 0xffff) != column) continue;
      u32 again = largest_overlap(args, overlaps, is_free, row);
      __syncwarp();
      if (lane == 0) largest[row] = again;
      __syncwarp();
    }
  }
  if (lane == 0) args.distances[blockIdx.x] = moved;
}
