// Metropolis walks, a warp for each: the twin of metropolis.rs, proposal by proposal.
//
// The lanes look at the next 32 proposals at once. Proposals that are refused change nothing, so the first that is accepted is the next move, and what lies
// behind it is looked at again.

struct WalkTask {
  u32 slot;
  // Slots of the two colourings it is coupled to, if `coupling` is not zero.
  u32 left;
  u32 right;
  u32 unused;
  u64 first;
  u64 count;
  Random random;
  u32 weight;
  u32 coupling;
};

struct WalkState {
  u32 conflicts;
  u32 best_conflicts;
};

struct WalkArgs {
  const WalkTask* tasks;
  const u32* adjacency;
  // Logarithms of 1 + i / 256.
  const u32* logarithms;
  // Colours by slot, as bytes: walks read and write the first, the best go into the second.
  u32* colors;
  u32* best;
  WalkState* states;
  Shape shape;
  u32 is_coupled;
  u32 unused;
};

// Minus the logarithm to the base 2 of a random number below 1, in 65536ths.
__device__ __forceinline__ i64 log_of_chance(const u32* logarithms, u32 bits) {
  u32 number = bits | 1;
  u32 zeros = __clz(number);
  u32 rest = zeros == 31 ? 0 : (number << (zeros + 1)) >> 24;
  return i64(zeros + 1) * 65536 - logarithms[rest];
}

struct Walk {
  u32* colors;
  u32* sizes;
  u32* counts;
  // Of the two colourings it is coupled to: colours, and how many vertices each pair of classes shares, as halves of words.
  u32* others[2];
  u32* overlaps[2];
};

// Vertices of a class that have the colour of `vertex` in a coupled colouring.
__device__ __forceinline__ u32 shared_vertices(const WalkArgs& args, const Walk& walk, u32 vertex, u32 color) {
  u32 sum = 0;
  for (u32 side = 0; side < 2; side++) {
    sum += half_of(walk.overlaps[side], color * args.shape.k + read_byte(walk.others[side], vertex));
  }
  return sum;
}

__device__ __forceinline__ void add_shared(const WalkArgs& args, const Walk& walk, u32 vertex, u32 color, u32 more) {
  for (u32 side = 0; side < 2; side++) {
    u32 at = color * args.shape.k + read_byte(walk.others[side], vertex);
    walk.overlaps[side][at / 2] += more << (at % 2 * 16);
  }
}

// A proposal: whether it is accepted, and the move.
struct Proposal {
  bool is_accepted;
  u32 vertex;
  u32 to;
  i32 change;
};

__device__ __forceinline__ Proposal propose(const WalkArgs& args, const WalkTask& task, const Walk& walk, u64 number) {
  u64 bits = random_bits(task.random, number);
  Proposal made;
  made.is_accepted = false;
  made.vertex = scale_bits(u32(bits >> 32), args.shape.n);
  u32 from = read_byte(walk.colors, made.vertex);
  u32 own = read_byte(walk.counts + u64(from) * args.shape.row_words, made.vertex);
  made.to = scale_bits(u32(bits), args.shape.k - 1);
  made.to += made.to >= from;
  made.change = 0;
  if (own == 0 || walk.sizes[made.to] >= args.shape.limit) return made;
  made.change = i32(read_byte(walk.counts + u64(made.to) * args.shape.row_words, made.vertex)) - i32(own);
  i64 cost = i64(task.weight) * made.change;
  if (task.coupling) {
    // The vertex itself is among those that its class shares, twice.
    i64 lost = i64(shared_vertices(args, walk, made.vertex, from)) - 2;
    i64 gained = shared_vertices(args, walk, made.vertex, made.to);
    cost += i64(task.coupling) * (lost - gained);
  }
  made.is_accepted = cost <= 0 || cost <= log_of_chance(args.logarithms, u32(mix_bits(bits) >> 32));
  return made;
}

KERNEL_BOUNDED(coloring_walk, WalkArgs, 32, 1) {
  extern __shared__ u32 shared[];
  u32 lane = threadIdx.x;
  const Shape& shape = args.shape;
  const WalkTask task = args.tasks[blockIdx.x];
  Walk walk;
  walk.colors = shared;
  walk.sizes = walk.colors + shape.row_words;
  walk.counts = walk.sizes + shape.k;
  u32* coupled = walk.counts + shape.k * shape.row_words;
  u32 overlap_words = (shape.k * shape.k + 1) / 2;
  for (u32 side = 0; side < 2; side++) {
    walk.others[side] = coupled + side * (shape.row_words + overlap_words);
    walk.overlaps[side] = walk.others[side] + shape.row_words;
  }
  u32* colors = args.colors + u64(task.slot) * shape.slot_words;
  u32* best = args.best + u64(task.slot) * shape.slot_words;
  load_colors<1>(shape, colors, walk.colors, walk.sizes);
  count_neighbours<1>(shape, args.adjacency, walk.colors, walk.counts);
  u32 ends = 0;
  for (u32 vertex = lane; vertex < shape.n; vertex += 32) {
    ends += read_byte(walk.counts + u64(read_byte(walk.colors, vertex)) * shape.row_words, vertex);
  }
  u32 conflicts = warp_sum(ends) / 2;
  if (args.is_coupled) {
    for (u32 side = 0; side < 2; side++) {
      const u32* from = args.colors + u64(side ? task.right : task.left) * shape.slot_words;
      for (u32 word = lane; word < shape.row_words; word += 32) walk.others[side][word] = word * 4 < shape.n ? from[word] : 0;
      for (u32 at = lane; at < overlap_words; at += 32) walk.overlaps[side][at] = 0;
      __syncwarp();
      for (u32 vertex = lane; vertex < shape.n; vertex += 32) {
        u32 at = read_byte(walk.colors, vertex) * shape.k + read_byte(walk.others[side], vertex);
        atomicAdd(&walk.overlaps[side][at / 2], 1u << (at % 2 * 16));
      }
    }
    __syncwarp();
  }
  for (u32 word = lane; word * 4 < shape.n; word += 32) best[word] = walk.colors[word];
  u32 best_conflicts = conflicts;
  u64 end = shape.k > 1 ? task.first + task.count : 0;
  for (u64 number = task.first; number < end && conflicts;) {
    Proposal mine;
    mine.is_accepted = false;
    mine.vertex = mine.to = 0;
    mine.change = 0;
    if (number + lane < end) mine = propose(args, task, walk, number + lane);
    u32 accepted = __ballot_sync(FULL_WARP, mine.is_accepted);
    if (!accepted) {
      number += 32;
      continue;
    }
    u32 winner = __ffs(accepted) - 1;
    number += winner + 1;
    u32 vertex = __shfl_sync(FULL_WARP, mine.vertex, winner);
    u32 to = __shfl_sync(FULL_WARP, mine.to, winner);
    conflicts += __shfl_sync(FULL_WARP, mine.change, winner);
    u32 from = read_byte(walk.colors, vertex);
    __syncwarp();
    if (lane == 0) {
      write_byte(walk.colors, vertex, to);
      walk.sizes[from]--;
      walk.sizes[to]++;
      if (args.is_coupled) {
        add_shared(args, walk, vertex, from, ~0u);
        add_shared(args, walk, vertex, to, 1);
      }
    }
    u32* from_row = walk.counts + u64(from) * shape.row_words;
    u32* to_row = walk.counts + u64(to) * shape.row_words;
    for (u32 group = 0; group < shape.n_groups; group++) {
      u32 bits = args.adjacency[(u64(vertex) * shape.n_groups + group) * 32 + lane];
      for (u32 word = group * 256 + lane; bits; word += 32, bits >>= 4) {
        u32 bytes = bits_to_bytes(bits & 15);
        from_row[word] -= bytes;
        to_row[word] += bytes;
      }
    }
    __syncwarp();
    if (conflicts < best_conflicts) {
      best_conflicts = conflicts;
      for (u32 word = lane; word * 4 < shape.n; word += 32) best[word] = walk.colors[word];
    }
  }
  for (u32 word = lane; word * 4 < shape.n; word += 32) colors[word] = walk.colors[word];
  if (lane == 0) args.states[blockIdx.x] = WalkState{conflicts, best_conflicts};
}
