// TabuCol, a block for each search: the twin of tabu.rs, move by move. One file because its two kernels are one search,
// whose steps share one layout of shared memory.
//
// Counts of neighbours lie by colour, four vertices in a word, in shared memory where they fit. A thread owns the words of its number in every row, so that a
// move, which adds to one row and takes from another, needs no barrier. Rows have an odd number of words, so that the counts of one vertex, which lanes read colour by colour, lie in different banks.
//
// Every warp finds the best move of its own vertices and writes it down; after a barrier, the only one of an iteration, all make the best of these. What a warp
// reads before the barrier is its own: bans are in calendars by warp, and the sizes of classes in copies. What is read of other warps, their best moves and their
// bans, is read between two barriers that lie between the writes: best moves have a place for even and one for odd iterations. A warp whose vertices turn out to
// be dearer than they looked also asks whether another one has found something better by now, and gives up: that changes how long it looks, and no move.
//
// As on the host a vertex has a bound, here on the least count of the colours it may take, and a vertex of least bound is
// looked at until the bound is true.

// TABU_WARPS, the warps of a block, is a divisor of eight that the host has chosen.
#define TABU_THREADS (32 * TABU_WARPS)
// Words of a group of adjacency that a thread owns.
#define TABU_TURNS (8 / TABU_WARPS)

#define LARGEST 126u
#define UNLISTED 0x80u
#define DAYS 512u
#define NO_ENTRY 0xffffu
#define LIFTED 0xffffffffu

// A search between two launches.
struct TabuState {
  u64 iteration;
  u32 conflicts;
  u32 best_conflicts;
};

struct TabuArgs {
  const Task* tasks;
  // Bits of neighbours: of each vertex, groups of 32 words, a word per lane with a nibble for each of eight words of a row.
  const u32* adjacency;
  // Colours by slot, as bytes: where searches begin and, if their states are kept, end; and the best.
  u32* colors;
  u32* best;
  // Of each task: the state, and if states are kept, its bans and when they end.
  TabuState* states;
  u32* calendars;
  // Counts of each block, if they do not fit into shared memory.
  u32* counts;
  u64 iterations;
  Shape shape;
  u32 vertex_mask;
  u32 color_mask;
  // 1 if searches continue where the last launch ended, and keep their states.
  u32 keeps;
  u32 unused;
};

// The message of a warp to the others: its best move, and what has changed among its vertices.
struct alignas(16) Word {
  // Cost, rank of the vertex, rank of the colour: 8, 16 and 8 bits. All ones if there is no move.
  u32 key;
  // The vertex, and its colours after and before: 16, 8 and 8 bits.
  u32 places;
  // The neighbours of the vertex in the new colour: 8 bits; the flags below; from bit 16 on the entry of the ban, if the move is banned.
  u32 facts;
  // Vertices that came into conflict since the last message, less those that left it.
  u32 change;
};

#define IS_FULL 0x100u
#define IS_BANNED 0x200u
#define MAY_EXCUSE 0x400u

// What a search keeps in shared memory besides its counts. Of a warp: its calendar and its copy of the sizes.
struct Search {
  // At most the least count of the colours that a vertex may take; 255 if there is none.
  u32* bounds;
  // LARGEST less the conflicts of a vertex; UNLISTED without conflicts.
  u32* shifts;
  u32* colors;
  // Words of all warps: of even and odd iterations, and about moves that are banned.
  Word* words;
  // The least key that a warp has found so far, of even and odd iterations.
  u32* found;
  // Bans by the iteration that made them, vertex and colour; and lists of those that end at the same time.
  u32* entries;
  unsigned short* next;
  unsigned short* days;
  unsigned short* sizes;
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

__device__ __forceinline__ u32* row_of(const TabuArgs& args, const Search& search, u32 color) {
  return search.counts + u64(color) * args.shape.row_words;
}

__device__ __forceinline__ bool is_own(u32 vertex) { return vertex / 4 % TABU_THREADS == threadIdx.x; }

__device__ __forceinline__ bool is_of_warp(u32 vertex) { return vertex / 128 % TABU_WARPS == threadIdx.x / 32; }

// Lifts the ban of a colour for a vertex.
__device__ __forceinline__ void allow(const TabuArgs& args, Search& search, u32 vertex, u32 color) {
  u32* row = row_of(args, search, color);
  u32 count = read_byte(row, vertex) & 0x7f;
  write_byte(row, vertex, count);
  write_byte(search.bounds, vertex, min(read_byte(search.bounds, vertex), count));
}

__device__ __forceinline__ void forbid(const TabuArgs& args, Search& search, u32 vertex, u32 color) {
  u32* row = row_of(args, search, color);
  write_byte(row, vertex, read_byte(row, vertex) | 0x80);
}

// The lane's part of the neighbours of a vertex.
__device__ __forceinline__ const u32* neighbours_of(const TabuArgs& args, u32 vertex) {
  return args.adjacency + u64(vertex) * args.shape.n_groups * 32 + threadIdx.x % 32;
}

// Writes a ban into the list of the day that ends it.
__device__ __forceinline__ void list_ban(Search& search, u32 at, u32 day) {
  search.next[at] = search.days[day];
  search.days[day] = at;
}

// Bans a colour for a vertex for `tenure` iterations.
__device__ __forceinline__ void add_ban(Search& search, u64 iteration, u32 tenure, u32 vertex, u32 color) {
  u32 at = u32(iteration) % DAYS;
  search.entries[at] = vertex << 8 | color;
  list_ban(search, at, (u32(iteration) + tenure + 1) % DAYS);
}

// Colours, classes, counts and shifts of the colouring in memory. Returns the sum of the conflicts of all vertices, and how many have some.
__device__ void begin_search(const TabuArgs& args, Search& search, u32 slot, u32& ends, u32& n_conflicting) {
  // Memory that is not in use yet.
  u32* sizes = search.entries;
  load_colors<TABU_WARPS>(args.shape, args.colors + u64(slot) * args.shape.slot_words, search.colors, sizes);
  for (u32 color = threadIdx.x % 32; color < args.shape.k; color += 32) search.sizes[color] = sizes[color];
  count_neighbours<TABU_WARPS>(args.shape, args.adjacency, search.colors, search.counts);
  u32 own_ends = 0, own_conflicting = 0;
  for (u32 word = threadIdx.x; word < args.shape.row_words; word += TABU_THREADS) {
    u32 shifts = EACH_BYTE * UNLISTED;
    for (u32 place = 0; place < 4 && word * 4 + place < args.shape.n; place++) {
      u32* at = row_of(args, search, byte_of(search.colors[word], place)) + word;
      u32 own = byte_of(*at, place);
      *at |= 0x80u << (place * 8);
      own_ends += own;
      if (own) {
        own_conflicting++;
        shifts = with_byte(shifts, place, LARGEST - own);
      }
    }
    search.shifts[word] = shifts;
  }
  own_ends = warp_sum(own_ends);
  own_conflicting = warp_sum(own_conflicting);
  if (threadIdx.x % 32 == 0) search.words[threadIdx.x / 32] = Word{own_ends, own_conflicting, 0, 0};
  meet<TABU_WARPS>();
  ends = n_conflicting = 0;
  for (u32 warp = 0; warp < TABU_WARPS; warp++) {
    ends += search.words[warp].key;
    n_conflicting += search.words[warp].places;
  }
  meet<TABU_WARPS>();
}

// The bans of the last launch, or none, and the bounds.
__device__ void load_calendar(const TabuArgs& args, Search& search) {
  u32 lane = threadIdx.x % 32;
  const u32* saved = args.calendars + u64(blockIdx.x) * DAYS * 2;
  for (u32 at = threadIdx.x; at < DAYS; at += TABU_THREADS) search.entries[at] = args.keeps ? saved[at] : LIFTED;
  for (u32 day = lane; day < DAYS; day += 32) search.days[day] = NO_ENTRY;
  meet<TABU_WARPS>();
  for (u32 at = 0; args.keeps && at < DAYS; at++) {
    u32 entry = search.entries[at];
    if (entry == LIFTED) continue;
    if (is_own(entry >> 8)) forbid(args, search, entry >> 8, entry & 0xff);
    if (lane == 0 && is_of_warp(entry >> 8)) list_ban(search, at, saved[DAYS + at]);
  }
  for (u32 word = threadIdx.x; word < args.shape.row_words; word += TABU_THREADS) {
    u32 least = ~0u;
    for (u32 color = 0; color < args.shape.k; color++) {
      u32 counts = row_of(args, search, color)[word];
      least = lesser_bytes(least, counts | spread_high(counts));
    }
    search.bounds[word] = least;
  }
  if (threadIdx.x < 2) search.found[threadIdx.x] = ~0u;
  // All have read the bans that the first iteration may lift.
  meet<TABU_WARPS>();
}

__device__ void save_calendar(const TabuArgs& args, Search& search) {
  u32* saved = args.calendars + u64(blockIdx.x) * DAYS * 2;
  for (u32 at = threadIdx.x; at < DAYS; at += TABU_THREADS) saved[at] = search.entries[at];
  for (u32 day = threadIdx.x % 32; day < DAYS; day += 32) {
    for (u32 at = search.days[day]; at != NO_ENTRY; at = search.next[at]) saved[DAYS + at] = day;
  }
}

__device__ void copy_colors(const TabuArgs& args, const Search& search, u32* to, u32 slot) {
  to += u64(slot) * args.shape.slot_words;
  for (u32 word = threadIdx.x; word * 4 < args.shape.n; word += TABU_THREADS) to[word] = search.colors[word];
}

// The best vertex of a thread by the cost of its best move, at most, and then by rank: 8 and 16 bits, and 8 for its place among the thread's own ones, of which
// there are 256 at most. All ones if none is in conflict.
__device__ __forceinline__ u32 first_vertex(const TabuArgs& args, const Search& search, u64 bits) {
  u32 key = ~0u;
  u32 at = 0;
  for (u32 word = threadIdx.x; word < args.shape.row_words; word += TABU_THREADS, at += 4) {
    u32 costs = costs_of(search.bounds[word], search.shifts[word]);
    if (costs == ~0u) continue;
#pragma unroll
    for (u32 place = 0; place < 4; place++) {
      u32 cost = (costs << (24 - place * 8)) & 0xff000000u;
      key = min(key, cost | vertex_rank(args, bits, word * 4 + place) << 8 | (at + place));
    }
  }
  return key < 255u << 24 ? key : ~0u;
}

// The vertex at a place among those of a lane of this warp.
__device__ __forceinline__ u32 vertex_of(u32 lane, u32 place) {
  return (place / 4 * TABU_THREADS + threadIdx.x / 32 * 32 + lane) * 4 + place % 4;
}

// Prefetches memory that is probably read soon.
__device__ __forceinline__ void fetch_ahead(const void* address) {
#ifdef __CUDA_ARCH__
  asm volatile("prefetch.global.L1 [%0];" ::"l"(address));
#endif
}

// The colour with the fewest neighbours of those that a vertex may take: the count, the rank and the colour; the count is 128 or more if there is none.
__device__ __forceinline__ u32 best_color(const TabuArgs& args, const Search& search, u64 bits, u32 vertex) {
  const u32 row_bytes = args.shape.row_words * 4;
  const unsigned char* counts = (const unsigned char*)search.counts + vertex;
  u32 choice = ~0u;
  // Four at a time, so that a lane waits for all of them at once. What is banned counts more than anything else.
  for (u32 first = threadIdx.x % 32; first < args.shape.k; first += 128) {
    u32 found[4];
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      u32 color = first + i * 32;
      found[i] = color < args.shape.k ? counts[color * row_bytes] : 0xff;
    }
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
      u32 color = first + i * 32;
      choice = min(choice, found[i] << 16 | color_rank(args, bits, color) << 8 | color);
    }
  }
  return warp_min(choice);
}

// The best of the moves of the warp that are allowed, or none if another warp has a better one.
__device__ __forceinline__ Word best_allowed(const TabuArgs& args, Search& search, u32* found, u64 bits) {
  u32 own = first_vertex(args, search, bits);
  for (bool is_first = true;; is_first = false) {
    u32 key = warp_min(own);
    if (key == ~0u) return Word{~0u, 0, 0, 0};
    if (TABU_WARPS > 1 && !is_first) {
      u32 best = threadIdx.x % 32 == 0 ? atomicMin(found, ~0u) : 0;
      if ((key & ~0xffu) > __shfl_sync(FULL_WARP, best, 0)) return Word{~0u, 0, 0, 0};
    }
    u32 cost = key >> 24;
    u32 vertex = vertex_of(__ffs(__ballot_sync(FULL_WARP, own == key)) - 1, key & 0xff);
    u32 choice = best_color(args, search, bits, vertex);
    u32 count = choice >> 16;
    if (count + read_byte(search.shifts, vertex) == cost) {
      u32 to = choice & 0xff;
      fetch_ahead(neighbours_of(args, vertex));
      u32 is_full = search.sizes[to] >= args.shape.limit ? IS_FULL : 0;
      Word best{(key & ~0xffu) | ((choice >> 8) & 0xff), vertex << 16 | to << 8 | read_byte(search.colors, vertex),
                count | is_full, 0};
      if (TABU_WARPS > 1 && threadIdx.x % 32 == 0) atomicMin(found, best.key);
      return best;
    }
    __syncwarp();
    if (is_own(vertex)) {
      write_byte(search.bounds, vertex, count < 0x80 ? count : 255);
      own = first_vertex(args, search, bits);
    }
    __syncwarp();
  }
}

// The best of the moves that are banned and cost less than `below`, if it is better than `best`: of those that this warp looks at.
__device__ __forceinline__ Word best_excused(const TabuArgs& args, const Search& search, u64 bits, u32 below, Word best) {
  Word mine = best;
  for (u32 at = threadIdx.x; at < DAYS; at += TABU_THREADS) {
    u32 entry = search.entries[at];
    if (entry == LIFTED) continue;
    u32 vertex = entry >> 8;
    u32 to = entry & 0xff;
    u32 shift = read_byte(search.shifts, vertex);
    if (shift == UNLISTED) continue;
    u32 count = read_byte(row_of(args, search, to), vertex) & 0x7f;
    if (count + shift >= below) continue;
    u32 key = (count + shift) << 24 | vertex_rank(args, bits, vertex) << 8 | color_rank(args, bits, to);
    if (key >= mine.key) continue;
    u32 is_full = search.sizes[to] >= args.shape.limit ? IS_FULL : 0;
    mine = Word{key, vertex << 16 | to << 8 | read_byte(search.colors, vertex), count | is_full | IS_BANNED | at << 16, 0};
  }
  u32 key = warp_min(mine.key);
  u32 lane = __ffs(__ballot_sync(FULL_WARP, mine.key == key)) - 1;
  return Word{key, __shfl_sync(FULL_WARP, mine.places, lane), __shfl_sync(FULL_WARP, mine.facts, lane), 0};
}

// The most conflicts of a vertex in the words of a thread.
__device__ __forceinline__ u32 most_conflicts(const TabuArgs& args, const Search& search) {
  u32 least = EACH_BYTE * UNLISTED;
  for (u32 word = threadIdx.x; word < args.shape.row_words; word += TABU_THREADS) least = lesser_bytes(least, search.shifts[word]);
  return LARGEST - min(least_of_bytes(least), LARGEST);
}

// Whether a vertex of the warp has more conflicts than `many`, so that a banned move of it might be excused. `most` is at least the
// most conflicts of a vertex of the thread, and is that afterwards if it matters.
__device__ __forceinline__ bool may_excuse(const TabuArgs& args, const Search& search, u32 many, u32& most) {
  if (!__any_sync(FULL_WARP, most > many)) return false;
  most = most_conflicts(args, search);
  return __any_sync(FULL_WARP, most > many);
}

// Of the words of all warps the one with the best move; changes are summed, and it may be excused if one may.
__device__ __forceinline__ Word best_of_warps(Word* words, const Word& mine) {
  u32 lane = threadIdx.x % 32;
  if (TABU_WARPS == 1) {
    // Lanes have read of each other what they are about to change.
    meet<TABU_WARPS>();
    return mine;
  }
  if (lane == 0) words[threadIdx.x / 32] = mine;
  meet<TABU_WARPS>();
  Word theirs = lane < TABU_WARPS ? words[lane] : Word{~0u, 0, 0, 0};
  u32 key = warp_min(theirs.key);
  u32 best = __ffs(__ballot_sync(FULL_WARP, theirs.key == key)) - 1;
  u32 excuse = __any_sync(FULL_WARP, theirs.facts & MAY_EXCUSE) ? MAY_EXCUSE : 0;
  return Word{key, __shfl_sync(FULL_WARP, theirs.places, best), __shfl_sync(FULL_WARP, theirs.facts, best) | excuse,
              warp_sum(theirs.change)};
}

// A vertex goes from one colour to another. Counts, bounds and shifts of its neighbours follow, a bound on the most conflicts of a vertex of the thread, and
// the change of vertices in conflict among those of the warp, which is the result.
__device__ __forceinline__ u32 make_move(const TabuArgs& args, Search& search, u32 vertex, u32 from, u32 to, u32& most) {
  u32* from_row = row_of(args, search, from);
  u32* to_row = row_of(args, search, to);
  u32 change = 0;
  for (u32 group = 0; group < args.shape.n_groups; group++) {
    u32 bits = __ldg(neighbours_of(args, vertex) + group * 32) >> (threadIdx.x / 32 * 4);
    u32 first = group * 256 + threadIdx.x;
    // All words are read before the first is written: the compiler cannot know that the rows are different ones.
    u32 fewer[TABU_TURNS], more[TABU_TURNS], bounds[TABU_TURNS], shifts[TABU_TURNS], colors[TABU_TURNS];
#pragma unroll
    for (u32 i = 0; i < TABU_TURNS; i++) {
      u32 word = first + i * TABU_THREADS;
      if (word >= args.shape.row_words) continue;
      fewer[i] = from_row[word];
      more[i] = to_row[word];
      bounds[i] = search.bounds[word];
      shifts[i] = search.shifts[word];
      colors[i] = search.colors[word];
    }
#pragma unroll
    for (u32 i = 0; i < TABU_TURNS; i++) {
      u32 word = first + i * TABU_THREADS;
      if (word >= args.shape.row_words) continue;
      u32 bytes = bits_to_bytes((bits >> (i * TABU_WARPS * 4)) & 15);
      fewer[i] -= bytes;
      more[i] += bytes;
      from_row[word] = fewer[i];
      to_row[word] = more[i];
      search.bounds[word] = lesser_bytes(bounds[i], fewer[i] | spread_high(fewer[i]));
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
          most = max(most, own);
          shifts[i] = with_byte(shifts[i], place, own ? LARGEST - own : UNLISTED);
        }
        search.shifts[word] = shifts[i];
      }
    }
  }
  return warp_sum(change);
}

// Lifts the bans of the warp's vertices that end with this iteration.
__device__ __forceinline__ void end_bans(const TabuArgs& args, Search& search, u64 iteration) {
  u32 lane = threadIdx.x % 32;
  u32 ended = search.days[u32(iteration) % DAYS];
  if (ended == NO_ENTRY) return;
  __syncwarp();
  if (lane == 0) search.days[u32(iteration) % DAYS] = NO_ENTRY;
  for (u32 at = ended; at != NO_ENTRY; at = search.next[at]) {
    u32 entry = search.entries[at];
    if (entry == LIFTED) continue;
    u32 vertex = entry >> 8;
    if (is_own(vertex)) allow(args, search, vertex, entry & 0xff);
    __syncwarp();
    if (lane == 0) search.entries[at] = LIFTED;
  }
  __syncwarp();
}

// Recorded by the warp that owns the vertex that moves.
__device__ __forceinline__ void note_move(const TabuArgs& args, Search& search, u64 iteration, u32 tenure, const Word& move) {
  u32 vertex = move.places >> 16, to = (move.places >> 8) & 0xff, from = move.places & 0xff;
  if (is_own(vertex)) {
    // A vertex and a colour have one ban at most.
    if (move.facts & IS_BANNED) search.entries[move.facts >> 16] = LIFTED;
    u32 count = move.facts & 0xff;
    if (tenure) add_ban(search, iteration, tenure, vertex, from);
    else allow(args, search, vertex, from);
    write_byte(row_of(args, search, to), vertex, count | 0x80);
    write_byte(search.colors, vertex, to);
    write_byte(search.shifts, vertex, count ? LARGEST - count : UNLISTED);
  }
  __syncwarp();
}

__device__ void tabu_search(const TabuArgs& args, Search& search) {
  const Task& task = args.tasks[blockIdx.x];
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
  u32 most = most_conflicts(args, search);
  u32 change = 0;
  // Each lane draws for one of the next 32 iterations.
  u64 drawn = 0;
  u32 n_used = 32;
  for (u64 left = args.iterations; left && conflicts; left--, iteration++) {
    if (n_used == 32) {
      drawn = random_bits(random, iteration + threadIdx.x % 32);
      n_used = 0;
    }
    u64 bits = __shfl_sync(FULL_WARP, drawn, n_used++);
    end_bans(args, search, iteration);
    u32 turn = iteration % 2;
    Word best = best_allowed(args, search, search.found + turn, bits);
    if (may_excuse(args, search, conflicts - best_conflicts, most)) best.facts |= MAY_EXCUSE;
    best.change = change;
    // Nobody asks for it before the next barrier.
    if (threadIdx.x == 0) search.found[1 - turn] = ~0u;
    best = best_of_warps(search.words + turn * TABU_WARPS, best);
    n_conflicting += best.change;
    change = 0;
    if (best.facts & MAY_EXCUSE) {
      u32 below = min(best_conflicts + LARGEST - conflicts, (best.key >> 24) + 1);
      best = best_of_warps(search.words + 2 * TABU_WARPS, best_excused(args, search, bits, below, best));
    }
    if (best.key == ~0u) continue;
    u32 chance = scale_bits((u32(bits >> 32) ^ u32(bits)) * 0x9e3779b1u, 10);
    u32 tenure = min(chance + n_conflicting * 6 / 10, DAYS - 1);
    u32 vertex = best.places >> 16, to = (best.places >> 8) & 0xff, from = best.places & 0xff;
    if (best.facts & IS_FULL) {
      if (is_own(vertex) && !(best.facts & IS_BANNED)) {
        forbid(args, search, vertex, to);
        add_ban(search, iteration, max(tenure, 1u), vertex, to);
      }
      __syncwarp();
      continue;
    }
    if (is_of_warp(vertex)) {
      note_move(args, search, iteration, tenure, best);
      most = max(most, best.facts & 0xff);
    }
    if (threadIdx.x % 32 == 0) {
      search.sizes[from]--;
      search.sizes[to]++;
    }
    if ((best.facts & 0xff) == 0) n_conflicting--;
    change = make_move(args, search, vertex, from, to, most);
    conflicts = conflicts + (best.key >> 24) - LARGEST;
    __syncwarp();
    if (conflicts < best_conflicts) {
      best_conflicts = conflicts;
      copy_colors(args, search, args.best, slot);
    }
  }
  meet<TABU_WARPS>();
  if (args.keeps) {
    copy_colors(args, search, args.colors, slot);
    save_calendar(args, search);
  }
  if (threadIdx.x == 0) args.states[blockIdx.x] = TabuState{iteration, conflicts, best_conflicts};
}

__device__ __forceinline__ Search shared_search(const TabuArgs& args, u32* shared) {
  Search search;
  u32 warp = threadIdx.x / 32;
  search.words = (Word*)shared;
  search.found = (u32*)(search.words + 3 * TABU_WARPS);
  search.entries = search.found + 2;
  search.next = (unsigned short*)(search.entries + DAYS);
  search.days = search.next + (1 + warp) * DAYS;
  search.bounds = search.entries + DAYS + (1 + TABU_WARPS) * DAYS / 2;
  search.shifts = search.bounds + args.shape.row_words;
  search.colors = search.shifts + args.shape.row_words;
  u32 size_words = (args.shape.k + 1) / 2;
  search.sizes = (unsigned short*)(search.colors + args.shape.row_words + warp * size_words);
  search.counts = search.colors + args.shape.row_words + TABU_WARPS * size_words;
  return search;
}

// Counts in shared memory.
KERNEL_BOUNDED(coloring_tabu, TabuArgs, TABU_THREADS, 1) {
  extern __shared__ u32 shared[];
  Search search = shared_search(args, shared);
  tabu_search(args, search);
}

// Counts in global memory, for graphs and numbers of colours that are too large.
KERNEL_BOUNDED(coloring_tabu_global, TabuArgs, TABU_THREADS, 1) {
  extern __shared__ u32 shared[];
  Search search = shared_search(args, shared);
  search.counts = args.counts + u64(blockIdx.x) * args.shape.k * args.shape.row_words;
  tabu_search(args, search);
}
