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

// What one lane keeps of its latest bars: two pairs of numbers for each. The lanes of a warp lie side by side, so that a
// warp reads 32 neighbouring pairs.
struct Ring {
  double2* pairs;
  u32 capacity;
  // Where the latest entry is.
  u32 latest;

  __device__ __forceinline__ Ring(double* scratch, u32 capacity, u32 lane)
      : pairs((double2*)scratch + lane), capacity(capacity), latest(0) {}

  __device__ __forceinline__ void advance() { latest = latest + 1 == capacity ? 0 : latest + 1; }

  // The place of the entry so many bars before the latest, at most `capacity`.
  __device__ __forceinline__ u32 before(u32 bars) const {
    return latest >= bars ? latest - bars : latest + capacity - bars;
  }

  __device__ __forceinline__ double2& first(u32 place) const { return pairs[(u64)place * 64]; }
  __device__ __forceinline__ double2& second(u32 place) const { return pairs[(u64)place * 64 + 32]; }
};

}  // namespace atc
