// TabuCol, a warp for each search: the twin of tabu.rs, move by move.
//
// Counts of neighbours lie by colour, four vertices in a word, in shared memory where they fit. A lane owns the words of its number in every row, so that a
// move, which adds to one row and takes from another, needs no barrier. Rows have an odd number of words, so that the counts of one vertex, which the lanes read colour by colour, lie in different banks.
//
// As on the host a vertex has a bound, here on the least count of the colours it may take, and a vertex of least bound is
// looked at until the bound is true.

#define LARGEST 126u
#define UNLISTED 0x80u
#define DAYS 512u
#define NO_ENTRY 0xffffu
#define LIFTED 0xffffffffu

struct TabuTask {
  u32 slot;
  u32 unused;
  Random random;
};

// A search between two launches.
struct TabuState {
  u64 iteration;
  u32 conflicts;
  u32 best_conflicts;
};

struct TabuArgs {
  const TabuTask* tasks;
  // Bits of neighbours: of each vertex, groups of 32 words, a word per lane with a nibble for each of eight words of a row.
  const u32* adjacency;
  // Colours by slot, as bytes: where searches begin and, if their states are kept, end; and the best.
  u32* colors;
  u32* best;
  // Of each task: the state, and if states are kept, the calendar.
  TabuState* states;
  u32* calendars;
  // Counts of each block, if they do not fit into shared memory.
  u32* counts;
  u64 iterations;
  Shape shape;
  u32 vertex_mask;
  u32 color_mask;
  // 1 if searches go on where the last launch ended, and keep their states.
  u32 keeps;
  u32 unused;
};

// What a search keeps in shared memory besides its counts.
struct Search {
  // At most the least count of the colours that a vertex may take; 255 if there is none.
  u32* bounds;
  // LARGEST less the conflicts of a vertex; UNLISTED without conflicts.
  u32* shifts;
  u32* colors;
  u32* sizes;
  // Bans by the iteration that made them, vertex and colour; and lists of those that end at the same time.
  u32* entries;
  unsigned short* next;
  unsigned short* days;
  u32* counts;
};

// The cost of the best move of each of four vertices, at most; 255 where there is none.
__device__ __forceinline__ u32 costs_of(u32 bounds, u32 shifts) {
  return ((bounds & LOW_BITS) + (shifts & LOW_BITS)) | spread_high(bounds | shifts);
}

__device__ __forceinline__ u32 vertex_rank(const TabuArgs& args, u64 bits, u32 vertex) {
  return (vertex * (u32(bits) | 1) + u32(bits >> 32)) & args.vertex_mask;
}

__device__ __forceinline__ u32 color_rank(const TabuArgs& args, u64 bits, u32 color) {
  return (color * (u32(bits >> 16) | 1) + u32(bits >> 40)) & args.color_mask;
}

// Lets a vertex take a colour again.
__device__ __forceinline__ void allow(const TabuArgs& args, Search& search, u32 vertex, u32 color) {
  u32* row = search.counts + u64(color) * args.shape.row_words;
  u32 count = read_byte(row, vertex) & 0x7f;
  write_byte(row, vertex, count);
  write_byte(search.bounds, vertex, min(read_byte(search.bounds, vertex), count));
}

__device__ __forceinline__ void forbid(const TabuArgs& args, Search& search, u32 vertex, u32 color) {
  u32* row = search.counts + u64(color) * args.shape.row_words;
  write_byte(row, vertex, read_byte(row, vertex) | 0x80);
}

// Writes down that a vertex may take a colour again after `tenure` iterations.
__device__ __forceinline__ void add_ban(Search& search, u64 iteration, u32 tenure, u32 vertex, u32 color) {
  u32 at = u32(iteration) % DAYS;
  u32 day = (u32(iteration) + tenure + 1) % DAYS;
  search.entries[at] = vertex << 8 | color;
  search.next[at] = search.days[day];
  search.days[day] = at;
}

// Colours, classes, counts and shifts of the colouring in memory. Tells the sum of the conflicts of all vertices, and how many have some.
__device__ void begin_search(const TabuArgs& args, Search& search, u32 slot, u32& ends, u32& n_conflicting) {
  u32 lane = threadIdx.x;
  load_colors(args.shape, args.colors + u64(slot) * args.shape.slot_words, search.colors, search.sizes);
  count_neighbours(args.shape, args.adjacency, search.colors, search.counts);
  ends = n_conflicting = 0;
  for (u32 word = lane; word < args.shape.row_words; word += 32) {
    u32 shifts = EACH_BYTE * UNLISTED;
    for (u32 place = 0; place < 4 && word * 4 + place < args.shape.n; place++) {
      u32* at = search.counts + u64(byte_of(search.colors[word], place)) * args.shape.row_words + word;
      u32 own = byte_of(*at, place);
      *at |= 0x80u << (place * 8);
      ends += own;
      if (own) {
        n_conflicting++;
        shifts = with_byte(shifts, place, LARGEST - own);
      }
    }
    search.shifts[word] = shifts;
  }
  ends = warp_sum(ends);
  n_conflicting = warp_sum(n_conflicting);
  __syncwarp();
}

// The calendar of the last launch, or an empty one, and its bans.
__device__ void load_calendar(const TabuArgs& args, Search& search) {
  u32 lane = threadIdx.x;
  const u32* saved = args.calendars + u64(blockIdx.x) * DAYS * 2;
  for (u32 at = lane; at < DAYS; at += 32) {
    search.entries[at] = args.keeps ? saved[at] : LIFTED;
    search.next[at] = args.keeps ? saved[DAYS + at] & 0xffff : NO_ENTRY;
    search.days[at] = args.keeps ? saved[DAYS + at] >> 16 : NO_ENTRY;
  }
  __syncwarp();
  if (lane == 0 && args.keeps) {
    for (u32 at = 0; at < DAYS; at++) {
      u32 entry = search.entries[at];
      if (entry != LIFTED) forbid(args, search, entry >> 8, entry & 0xff);
    }
  }
  __syncwarp();
  for (u32 word = lane; word < args.shape.row_words; word += 32) {
    u32 least = ~0u;
    for (u32 color = 0; color < args.shape.k; color++) {
      u32 counts = search.counts[u64(color) * args.shape.row_words + word];
      least = lesser_bytes(least, counts | spread_high(counts));
    }
    search.bounds[word] = least;
  }
  __syncwarp();
}

__device__ void save_calendar(const TabuArgs& args, Search& search) {
  u32* saved = args.calendars + u64(blockIdx.x) * DAYS * 2;
  for (u32 at = threadIdx.x; at < DAYS; at += 32) {
    saved[at] = search.entries[at];
    saved[DAYS + at] = u32(search.days[at]) << 16 | search.next[at];
  }
}

__device__ void copy_colors(const TabuArgs& args, const Search& search, u32* to, u32 slot) {
  to += u64(slot) * args.shape.slot_words;
  for (u32 word = threadIdx.x; word * 4 < args.shape.n; word += 32) to[word] = search.colors[word];
}

// The least cost in the words of a lane.
__device__ __forceinline__ u32 least_cost(const TabuArgs& args, const Search& search) {
  u32 least = ~0u;
#pragma unroll 8
  for (u32 word = threadIdx.x; word < args.shape.row_words; word += 32) {
    least = lesser_bytes(least, costs_of(search.bounds[word], search.shifts[word]));
  }
  return least;
}

struct Move {
  // Cost, rank of the vertex, rank of the colour: 8, 16 and 8 bits. All ones if there is no move.
  u32 key;
  u32 vertex;
  u32 color;
  // The neighbours of the vertex in the colour.
  u32 count;
};

// The best of the moves that are allowed; `least` is the least cost in the words of the lane, four bytes.
__device__ __forceinline__ Move best_allowed(const TabuArgs& args, Search& search, u64 bits, u32 least) {
  u32 lane = threadIdx.x;
  while (true) {
    u32 cost = warp_min(least_of_bytes(least));
    if (cost == 255) return Move{~0u, 0, 0, 0};
    u32 key = ~0u;
    for (u32 first = lane; first < args.shape.row_words; first += 256) {
      u32 costs[8];
#pragma unroll
      for (u32 i = 0; i < 8; i++) {
        u32 word = first + i * 32;
        costs[i] = word < args.shape.row_words ? costs_of(search.bounds[word], search.shifts[word]) : ~0u;
      }
#pragma unroll
      for (u32 i = 0; i < 8; i++) {
        u32 hits = zero_bytes(costs[i] ^ (cost * EACH_BYTE));
        while (hits) {
          u32 vertex = (first + i * 32) * 4 + (__ffs(hits) - 1) / 8;
          hits &= hits - 1;
          key = min(key, vertex_rank(args, bits, vertex) << 16 | vertex);
        }
      }
    }
    key = warp_min(key);
    u32 vertex = key & 0xffff;
    u32 choice = ~0u;
    for (u32 color = lane; color < args.shape.k; color += 32) {
      u32 count = read_byte(search.counts + u64(color) * args.shape.row_words, vertex);
      if (count < 0x80) choice = min(choice, count << 16 | color_rank(args, bits, color) << 8 | color);
    }
    choice = warp_min(choice);
    u32 count = choice == ~0u ? 255 : choice >> 16;
    u32 shift = read_byte(search.shifts, vertex);
    if (count + shift == cost) {
      return Move{cost << 24 | (key >> 16) << 8 | ((choice >> 8) & 0xff), vertex, choice & 0xff, count};
    }
    __syncwarp();
    // The lane that owns the word corrects the bound.
    if (lane == vertex / 4 % 32) {
      write_byte(search.bounds, vertex, count);
      least = least_cost(args, search);
    }
    __syncwarp();
  }
}

// The best of the moves that are banned and cost less than `below`, if it is better than `best`.
__device__ __noinline__ Move best_excused(const TabuArgs& args, Search& search, u64 bits, u32 below, Move best) {
  Move mine = best;
  for (u32 at = threadIdx.x; at < DAYS; at += 32) {
    u32 entry = search.entries[at];
    if (entry == LIFTED) continue;
    u32 vertex = entry >> 8;
    u32 color = entry & 0xff;
    u32 shift = read_byte(search.shifts, vertex);
    if (shift == UNLISTED) continue;
    u32 count = read_byte(search.counts + u64(color) * args.shape.row_words, vertex) & 0x7f;
    if (count + shift >= below) continue;
    u32 key = (count + shift) << 24 | vertex_rank(args, bits, vertex) << 8 | color_rank(args, bits, color);
    if (key < mine.key) mine = Move{key, vertex, color, count};
  }
  u32 key = warp_min(mine.key);
  u32 lane = __ffs(__ballot_sync(FULL_WARP, mine.key == key)) - 1;
  return Move{key, __shfl_sync(FULL_WARP, mine.vertex, lane), __shfl_sync(FULL_WARP, mine.color, lane),
              __shfl_sync(FULL_WARP, mine.count, lane)};
}

// Whether a vertex has so many conflicts that a banned move of it might cost less than `below`.
__device__ __forceinline__ bool may_excuse(const TabuArgs& args, const Search& search, u32 below) {
  if (below == 0) return false;
  u32 found = 0;
  u32 threshold = (0x80 + min(below - 1, 127u)) * EACH_BYTE;
  for (u32 word = threadIdx.x; word < args.shape.row_words; word += 32) found |= threshold - search.shifts[word];
  return __any_sync(FULL_WARP, (found & HIGH_BITS) != 0);
}

// A vertex goes from one colour to another. Counts, bounds and shifts of its neighbours follow; the least cost in the words of the lane.
__device__ __forceinline__ u32 make_move(const TabuArgs& args, Search& search, u32 vertex, u32 from, u32 to,
                                         u32& n_conflicting) {
  u32 lane = threadIdx.x;
  u32* from_row = search.counts + u64(from) * args.shape.row_words;
  u32* to_row = search.counts + u64(to) * args.shape.row_words;
  u32 least = ~0u;
  u32 change = 0;
  for (u32 group = 0; group < args.shape.n_groups; group++) {
    u32 bits = __ldg(args.adjacency + (u64(vertex) * args.shape.n_groups + group) * 32 + lane);
    u32 first = group * 256 + lane;
    // All words are read before the first is written: the compiler cannot know that the rows are different ones.
    u32 fewer[8], more[8], bounds[8], shifts[8], colors[8];
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
      u32 word = first + i * 32;
      if (word >= args.shape.row_words) continue;
      fewer[i] = from_row[word];
      more[i] = to_row[word];
      bounds[i] = search.bounds[word];
      shifts[i] = search.shifts[word];
      colors[i] = search.colors[word];
    }
#pragma unroll
    for (u32 i = 0; i < 8; i++) {
      u32 word = first + i * 32;
      if (word >= args.shape.row_words) continue;
      u32 bytes = bits_to_bytes((bits >> (i * 4)) & 15);
      fewer[i] -= bytes;
      more[i] += bytes;
      from_row[word] = fewer[i];
      to_row[word] = more[i];
      bounds[i] = lesser_bytes(bounds[i], fewer[i] | spread_high(fewer[i]));
      search.bounds[word] = bounds[i];
      u32 same = zero_bytes(colors[i] ^ (from * EACH_BYTE)) | zero_bytes(colors[i] ^ (to * EACH_BYTE));
      u32 hits = same & (bytes << 7);
      if (hits) {
        while (hits) {
          u32 place = (__ffs(hits) - 1) / 8;
          hits &= hits - 1;
          bool leaves = byte_of(colors[i], place) == from;
          u32 own = byte_of(leaves ? fewer[i] : more[i], place) & 0x7f;
          if (leaves) change -= own == 0;
          else change += own == 1;
          shifts[i] = with_byte(shifts[i], place, own ? LARGEST - own : UNLISTED);
        }
        search.shifts[word] = shifts[i];
      }
      least = lesser_bytes(least, costs_of(bounds[i], shifts[i]));
    }
  }
  n_conflicting += warp_sum(change);
  return least;
}

__device__ void tabu_search(const TabuArgs& args, Search& search) {
  u32 lane = threadIdx.x;
  const TabuTask& task = args.tasks[blockIdx.x];
  u32 slot = task.slot;
  Random random = task.random;
  u32 ends, n_conflicting;
  begin_search(args, search, slot, ends, n_conflicting);
  load_calendar(args, search);
  u32 conflicts = ends / 2;
  u64 iteration = 0;
  u32 best_conflicts = conflicts;
  bool goes_on = args.keeps && args.states[blockIdx.x].iteration > 0;
  if (goes_on) {
    iteration = args.states[blockIdx.x].iteration;
    best_conflicts = args.states[blockIdx.x].best_conflicts;
  } else {
    copy_colors(args, search, args.best, slot);
  }
  u32 least = least_cost(args, search);
  for (u64 left = args.iterations; left && conflicts; left--, iteration++) {
    u64 bits = random_bits(random, iteration);
    u32 ended = search.days[u32(iteration) % DAYS];
    if (ended != NO_ENTRY) {
      __syncwarp();
      if (lane == 0) search.days[u32(iteration) % DAYS] = NO_ENTRY;
      for (u32 at = ended; at != NO_ENTRY; at = search.next[at]) {
        u32 entry = search.entries[at];
        if (entry == LIFTED) continue;
        u32 vertex = entry >> 8;
        if (lane == vertex / 4 % 32) {
          allow(args, search, vertex, entry & 0xff);
          least = lesser_bytes(least, costs_of(search.bounds[vertex / 4], search.shifts[vertex / 4]));
        }
        __syncwarp();
        if (lane == 0) search.entries[at] = LIFTED;
      }
      __syncwarp();
    }
    u32 chance = scale_bits((u32(bits >> 32) ^ u32(bits)) * 0x9e3779b1u, 10);
    u32 tenure = min(chance + n_conflicting * 6 / 10, DAYS - 1);
    Move best = best_allowed(args, search, bits, least);
    if (best_conflicts + LARGEST >= conflicts) {
      u32 below = best_conflicts + LARGEST - conflicts;
      if (best.key != ~0u) below = min(below, (best.key >> 24) + 1);
      if (may_excuse(args, search, below)) best = best_excused(args, search, bits, below, best);
    }
    if (best.key == ~0u) {
      // What best_allowed has corrected is in memory.
      least = least_cost(args, search);
      continue;
    }
    u32 vertex = best.vertex;
    u32 to = best.color;
    u32 from = read_byte(search.colors, vertex);
    u32 entry = vertex << 8 | to;
    bool is_banned = read_byte(search.counts + u64(to) * args.shape.row_words, vertex) >= 0x80;
    bool is_full = search.sizes[to] >= args.shape.limit;
    __syncwarp();
    if (is_full) {
      if (lane == 0 && !is_banned) {
        forbid(args, search, vertex, to);
        add_ban(search, iteration, max(tenure, 1u), vertex, to);
      }
      __syncwarp();
      least = least_cost(args, search);
      continue;
    }
    if (is_banned) {
      for (u32 at = lane; at < DAYS; at += 32) {
        if (search.entries[at] == entry) search.entries[at] = LIFTED;
      }
      __syncwarp();
    }
    if (lane == 0) {
      if (tenure) add_ban(search, iteration, tenure, vertex, from);
      else allow(args, search, vertex, from);
      forbid(args, search, vertex, to);
      search.sizes[from]--;
      search.sizes[to]++;
      write_byte(search.colors, vertex, to);
      write_byte(search.shifts, vertex, best.count ? LARGEST - best.count : UNLISTED);
    }
    __syncwarp();
    if (best.count == 0) n_conflicting--;
    least = make_move(args, search, vertex, from, to, n_conflicting);
    conflicts = conflicts + (best.key >> 24) - LARGEST;
    __syncwarp();
    if (conflicts < best_conflicts) {
      best_conflicts = conflicts;
      copy_colors(args, search, args.best, slot);
    }
  }
  __syncwarp();
  if (args.keeps) {
    copy_colors(args, search, args.colors, slot);
    save_calendar(args, search);
  }
  if (lane == 0) args.states[blockIdx.x] = TabuState{iteration, conflicts, best_conflicts};
}

__device__ __forceinline__ Search shared_search(const TabuArgs& args, u32* shared) {
  Search search;
  search.bounds = shared;
  search.shifts = search.bounds + args.shape.row_words;
  search.colors = search.shifts + args.shape.row_words;
  search.sizes = search.colors + args.shape.row_words;
  search.entries = search.sizes + args.shape.k;
  search.next = (unsigned short*)(search.entries + DAYS);
  search.days = search.next + DAYS;
  search.counts = search.entries + 2 * DAYS;
  return search;
}

// Counts in shared memory.
KERNEL_BOUNDED(coloring_tabu, TabuArgs, 32, 1) {
  extern __shared__ u32 shared[];
  Search search = shared_search(args, shared);
  tabu_search(args, search);
}

// Counts in global memory, for graphs and numbers of colours that are too large.
KERNEL_BOUNDED(coloring_tabu_global, TabuArgs, 32, 1) {
  extern __shared__ u32 shared[];
  Search search = shared_search(args, shared);
  search.counts = args.counts + u64(blockIdx.x) * args.shape.k * args.shape.row_words;
  tabu_search(args, search);
}
