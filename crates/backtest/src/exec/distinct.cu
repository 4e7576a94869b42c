// The distinct tuples of some scalars among the rows of a batch. Twin of distinct.rs.
//
// Open addressing. A place holds nothing, the item of a tuple known before this batch, or, marked as pending, the first row of this batch that has the
// tuple; rows that meet a pending place compare themselves with that row. Numbers of new items depend on timing; what they stand for does not.
// Where several keys share a table, those of row r of their k-th one are at k * n_rows + r.

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

// Looks the tuple up of what is at `at` among the rows of some keys: true if it is the first one that has it.
__device__ inline bool insert_row(const DistinctArgs& args, const Key* keys, u32 at) {
  const Key& key = keys[at / args.n_rows];
  u32 row = at % args.n_rows;
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
    if (found == NOTHING) found = atomicCAS(&key.table[place], NOTHING, PENDING | at);
    if (found == NOTHING) {
      key.place_of[row] = place;
      return true;
    }
    u32 first = found & ~PENDING;
    bool is_pending = found & PENDING;
    const u32* others = is_pending ? keys[first / args.n_rows].scalars : nullptr;
    bool same = true;
#pragma unroll 4
    for (u32 k = 0; k < key.n_scalars; k++) {
      double other = is_pending ? args.scalars[others[k] * (u64)args.n_rows + first % args.n_rows] : key.keys[(u64)first * key.n_scalars + k];
      same &= __double_as_longlong(mine[key.scalars[k] * (u64)args.n_rows]) == __double_as_longlong(other);
    }
    if (same) {
      key.item_of[row] = found;
      return false;
    }
  }
}

// Gives a tuple to the item of its first row.
__device__ inline void settle_first(const DistinctArgs& args, const Key& key, u32 row, u32 item) {
  key.table[key.place_of[row]] = item;
  for (u32 k = 0; k < key.n_scalars; k++) {
    key.keys[(u64)item * key.n_scalars + k] = args.scalars[key.scalars[k] * (u64)args.n_rows + row];
  }
}

KERNEL(distinct_insert, DistinctArgs) {
  u32 row = blockIdx.x * blockDim.x + threadIdx.x;
  const Key& key = args.keys[blockIdx.y];
  if (row < args.n_rows && insert_row(args, &key, row)) {
    u32 item = atomicAdd(key.count, 1u);
    key.row[item - key.span[0]] = row;
    key.item_of[row] = item;
  }
}

KERNEL(distinct_settle, DistinctArgs) {
  u32 row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= args.n_rows) return;
  const Key& key = args.keys[blockIdx.y];
  u32 item = key.item_of[row];
  if (item & PENDING) {
    key.item_of[row] = key.item_of[item & ~PENDING];
  } else if (item >= key.span[0] && key.row[item - key.span[0]] == row) {
    settle_first(args, key, row, item);
  }
}

// The same for few rows, in one launch: a block takes all keys that share a table.
KERNEL_BOUNDED(distinct_chains, DistinctArgs, 1024, 1) {
  const Key* keys = args.keys + args.chains[blockIdx.x];
  u32 n_keys = args.chains[blockIdx.x + 1] - args.chains[blockIdx.x];
  u32 n_all = n_keys * args.n_rows;
  // Until all are counted, a span has the number of a key's new items.
  for (u32 k = threadIdx.x; k < n_keys; k += blockDim.x) keys[k].span[1] = 0;
  __syncthreads();
  for (u32 at = threadIdx.x; at < n_all; at += blockDim.x) {
    if (!insert_row(args, keys, at)) continue;
    const Key& key = keys[at / args.n_rows];
    key.row[atomicAdd(&key.span[1], 1u)] = at % args.n_rows;
  }
  __syncthreads();
  // Items of a key follow those of the key before it.
  if (threadIdx.x < 32) {
    u32 n_items = *keys[0].count;
    for (u32 base = 0; base < n_keys; base += 32) {
      u32 k = base + threadIdx.x;
      u32 n_new = k < n_keys ? *(volatile u32*)&keys[k].span[1] : 0;
      u32 end = n_new;
      for (u32 lanes = 1; lanes < 32; lanes *= 2) {
        u32 before = __shfl_up_sync(~0u, end, lanes);
        if (threadIdx.x >= lanes) end += before;
      }
      if (k < n_keys) {
        keys[k].span[0] = n_items + end - n_new;
        keys[k].span[1] = n_items + end;
      }
      n_items += __shfl_sync(~0u, end, 31);
    }
    if (threadIdx.x == 0) *keys[0].count = n_items;
  }
  __syncthreads();
  for (u32 at = threadIdx.x; at < n_all; at += blockDim.x) {
    const Key& key = keys[at / args.n_rows];
    u32 item = key.span[0] + at % args.n_rows;
    if (item >= key.span[1]) continue;
    u32 row = key.row[item - key.span[0]];
    key.item_of[row] = item;
    settle_first(args, key, row, item);
  }
  __syncthreads();
  for (u32 at = threadIdx.x; at < n_all; at += blockDim.x) {
    u32* item_of = &keys[at / args.n_rows].item_of[at % args.n_rows];
    u32 first = *item_of & ~PENDING;
    if (*item_of & PENDING) *item_of = keys[first / args.n_rows].item_of[first % args.n_rows];
  }
}
