// The options as numbers; see plan.rs.

namespace atc {

#define N_LENGTHS 9
#define N_FAMILIES 6

struct Smoothing { double a[N_LENGTHS], b[N_LENGTHS]; };

struct Weights {
  double now[N_LENGTHS], then[N_LENGTHS], sums[N_LENGTHS], divisor[N_LENGTHS], reciprocal[N_LENGTHS];
};

struct Plan {
  Smoothing ema, dema;
  Weights hma, half, wma, lsma;
  double kama_slowest, kama_range;
  double keep, floor, start, starts[N_FAMILIES];
  double long_cut, short_cut, long_threshold, short_threshold;
  double rate;
  u32 lengths[N_FAMILIES][N_LENGTHS];
  u32 half_lengths[N_LENGTHS], root_lengths[N_LENGTHS];
  u32 cutout, l1_cutout, min_bars, flags, lookback, unused;
};

#define IMPULSE 1
#define KAMA_HEAD 2
#define HULL 4
#define ROUND 8
#define FORWARD_FILL 16
#define IEEE_ZERO 32
#define SKIP 64
#define STRATEGY 128

#define INFINITE __longlong_as_double(0x7ff0000000000000LL)

__device__ __forceinline__ bool is_finite(double x) { return fabs(x) < INFINITE; }
__device__ __forceinline__ bool is_nan(double x) { return x != x; }

// Bars that are taken together; twin of TILE in device.rs. A tile begins at a multiple of it.
#define TILE 4

// Numbers of a row of the ring: for each of 32 symbols two sums and the way walked, in double-double, and the value.
#define ROW (7 * 32)

#define ROW_BYTES (8 * ROW)

// A number that the compiler does not look through: it would compute addresses anew at every bar instead of going on.
__device__ __forceinline__ u32 opaque(u32 number) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(number));
#endif
  return number;
}

// What a block keeps of its latest bars: a row for each, in which the symbols lie side by side, so that a warp reads 32
// neighbours. `capacity` is a multiple of TILE, and TILE more rows repeat the first ones: whoever knows the row of a tile's first
// bar, or of a bar before it, finds the others behind it.
struct Ring {
  // What this lane has of the first row.
  char* pairs;
  char* values;
  u32 capacity;

  __device__ __forceinline__ Ring(double* scratch, u32 capacity, u32 lane)
      : pairs((char*)(scratch + 2 * lane)), values((char*)(scratch + 192 + lane)), capacity(capacity) {}

  // The bytes from the first row to the one that lies so many bars before another, at most `capacity`.
  __device__ __forceinline__ u32 before(u32 row, u32 bars) const {
    return (row >= bars ? row - bars : row + capacity - bars) * ROW_BYTES;
  }

  __device__ __forceinline__ double2& sum(u32 at) const { return *(double2*)(pairs + at); }
  __device__ __forceinline__ double2& sums(u32 at) const { return *(double2*)(pairs + at + 512); }
  __device__ __forceinline__ double2& way(u32 at) const { return *(double2*)(pairs + at + 1024); }
  __device__ __forceinline__ double& value(u32 at) const { return *(double*)(values + at); }
};

// What an average sees of a bar.
struct Sight {
  // The bar's row, where it is, and how far that is behind the row of the tile's first bar, in bytes.
  u32 row, now, onward;
  u32 bar;
  double x;
  bool tame;
};

}  // namespace atc
