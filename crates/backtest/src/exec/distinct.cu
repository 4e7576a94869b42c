// The distinct tuples of some scalars among the rows of a batch. Twin of distinct.rs.
//
// Open addressing. A place holds nothing, the item of a tuple known before this batch, or, marked as pending, the first row of this batch that has the
// tuple; rows that meet a pending place compare themselves with that row. Numbers of new items depend on timing; what they stand for does not.

#define NOTHING 0xffffffffu
#define PENDING 0x80000000u

struct Key {
  u32* table;           // places; their number is a power of two
  double* keys;         // tuples of the items
  u32* item_of;         // out: the item of each row
  u32* place_of;        // scratch: where each new item's first row was put
  u32* row;           // out: for each new item a row that has it
  const u32* scalars;   // which scalars make the tuple
  u32* count;           // items so far
  u32* span;            // items before this batch met the key, and after
  u32 n_scalars, mask;
};
struct DistinctArgs {
  const Key* keys;
  const u32* chains;    // where the keys of each chain begin, and where the last ones end; null where there are no chains
  const double* scalars;
  u32 n_rows, n_keys;
};

KERNEL(distinct_begin, DistinctArgs) {
  u32 key = blockIdx.x * blockDim.x + threadIdx.x;
  if (key < args.n_keys) args.keys[key].span[0] = *args.keys[key].count;
}

KERNEL(distinct_end, DistinctArgs) {
  u32 key = blockIdx.x * blockDim.x + threadIdx.x;
  if (key < args.n_keys) args.keys[key].span[1] = *args.keys[key].count;
}

__device__ inline void insert_row(const DistinctArgs& args, const Key& key, u32 row) {
  const double* mine = args.scalars + row;
  u64 hash = 0x9e3779b97f4a7c15ull;
#pragma unroll 4
  for (u32 k = 0; k < key.n_scalars; k++) {
    hash = (hash ^ (u64)__double_as_longlong(mine[key.scalars[k] * (u64)args.n_rows])) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  for (u32 place = (u32)hash & key.mask;; place = (place + 1) & key.mask) {
    // Most tuples are there already, and a look holds nobody up.
    u32 found = *(volatile u32*)&key.table[place];
    if (found == NOTHING) found = atomicCAS(&key.table[place], NOTHING, PENDING | row);
    if (found == NOTHING) {
      u32 item = atomicAdd(key.count, 1u);
      key.row[item - key.span[0]] = row;
      key.place_of[row] = place;
      key.item_of[row] = item;
      return;
    }
    bool same = true;
#pragma unroll 4
    for (u32 k = 0; k < key.n_scalars; k++) {
      u64 scalar = key.scalars[k] * (u64)args.n_rows;
      double other = found & PENDING ? args.scalars[scalar + (found & ~PENDING)] : key.keys[(u64)found * key.n_scalars + k];
      same &= __double_as_longlong(mine[scalar]) == __double_as_longlong(other);
    }
    if (same) {
      key.item_of[row] = found;
      return;
    }
  }
}

__device__ inline void settle_row(const DistinctArgs& args, const Key& key, u32 row) {
  u32 item = key.item_of[row];
  if (item & PENDING) {
    key.item_of[row] = key.item_of[item & ~PENDING];
  } else if (item >= key.span[0] && key.row[item - key.span[0]] == row) {
    key.table[key.place_of[row]] = item;
    for (u32 k = 0; k < key.n_scalars; k++) {
      key.keys[(u64)item * key.n_scalars + k] = args.scalars[key.scalars[k] * (u64)args.n_rows + row];
    }
  }
}

KERNEL(distinct_insert, DistinctArgs) {
  u32 row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < args.n_rows) insert_row(args, args.keys[blockIdx.y], row);
}

KERNEL(distinct_settle, DistinctArgs) {
  u32 row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < args.n_rows) settle_row(args, args.keys[blockIdx.y], row);
}

// The same for few rows, in one launch: a block takes a chain of keys, one after the other.
KERNEL_BOUNDED(distinct_chains, DistinctArgs, 1024, 1) {
  for (u32 at = args.chains[blockIdx.x]; at < args.chains[blockIdx.x + 1]; at++) {
    const Key& key = args.keys[at];
    volatile u32* count = key.count;
    if (threadIdx.x == 0) key.span[0] = *count;
    __syncthreads();
    for (u32 row = threadIdx.x; row < args.n_rows; row += blockDim.x) insert_row(args, key, row);
    __syncthreads();
    for (u32 row = threadIdx.x; row < args.n_rows; row += blockDim.x) settle_row(args, key, row);
    if (threadIdx.x == 0) key.span[1] = *count;
    __syncthreads();
  }
}
