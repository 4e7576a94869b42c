// Colourings and counts of neighbours, four vertices in a word. A lane owns the words of its number in every row.

// Twin of `Shape` in device.rs.
struct Shape {
  u32 n;
  u32 k;
  // Words of a row of counts, of a colouring in memory, and groups of adjacency of a vertex.
  u32 row_words;
  u32 slot_words;
  u32 n_groups;
  // Vertices of a class, at most.
  u32 limit;
};

// Something that is done to one colouring with chances of its own. Twin of `Task` in device.rs.
struct Task {
  u32 slot;
  u32 unused;
  Random random;
};

__device__ __forceinline__ u32 read_byte(const u32* row, u32 vertex) { return ((const unsigned char*)row)[vertex]; }

__device__ __forceinline__ void write_byte(u32* row, u32 vertex, u32 byte) { ((unsigned char*)row)[vertex] = byte; }

// Moves vertices out of classes that are too large, one after another.
__device__ __noinline__ void relieve_classes(const Shape& shape, u32* colors, u32* sizes) {
  for (u32 vertex = 0; vertex < shape.n; vertex++) {
    u32 color = read_byte(colors, vertex);
    if (sizes[color] <= shape.limit) continue;
    u32 free = 0;
    while (free < shape.k && sizes[free] >= shape.limit) free++;
    if (free == shape.k) return;
    sizes[color]--;
    sizes[free]++;
    write_byte(colors, vertex, free);
  }
}

// A barrier for all threads that work on one colouring.
template <u32 WARPS>
__device__ __forceinline__ void meet() {
  if (WARPS == 1) __syncwarp();
  else __syncthreads();
}

// A colouring from memory, made to fit, and the sizes of its classes.
template <u32 WARPS>
__device__ void load_colors(const Shape& shape, const u32* from, u32* colors, u32* sizes) {
  for (u32 color = threadIdx.x; color < shape.k; color += 32 * WARPS) sizes[color] = 0;
  meet<WARPS>();
  for (u32 word = threadIdx.x; word < shape.row_words; word += 32 * WARPS) {
    u32 made = 0;
    for (u32 place = 0; place < 4 && word * 4 + place < shape.n; place++) {
      u32 color = min(byte_of(from[word], place), shape.k - 1);
      atomicAdd(&sizes[color], 1u);
      made |= color << (place * 8);
    }
    colors[word] = made;
  }
  meet<WARPS>();
  u32 too_large = 0;
  for (u32 color = threadIdx.x % 32; color < shape.k; color += 32) too_large |= sizes[color] > shape.limit;
  too_large = __any_sync(FULL_WARP, too_large);
  meet<WARPS>();
  if (too_large && threadIdx.x == 0) relieve_classes(shape, colors, sizes);
  meet<WARPS>();
}

// Counts of neighbours by colour. A thread counts for the words it owns.
template <u32 WARPS>
__device__ void count_neighbours(const Shape& shape, const u32* adjacency, const u32* colors, u32* counts) {
  for (u32 color = 0; color < shape.k; color++) {
    for (u32 word = threadIdx.x; word < shape.row_words; word += 32 * WARPS) counts[u64(color) * shape.row_words + word] = 0;
  }
  for (u32 vertex = 0; vertex < shape.n; vertex++) {
    u32* row = counts + u64(read_byte(colors, vertex)) * shape.row_words;
    for (u32 group = 0; group < shape.n_groups; group++) {
      u32 bits = adjacency[(u64(vertex) * shape.n_groups + group) * 32 + threadIdx.x % 32] >> (threadIdx.x / 32 * 4);
      for (u32 word = group * 256 + threadIdx.x; bits; word += 32 * WARPS) {
        row[word] += bits_to_bytes(bits & 15);
        bits = WARPS == 8 ? 0 : bits >> (WARPS % 8 * 4);
      }
    }
  }
  meet<WARPS>();
}
