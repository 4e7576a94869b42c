// Four bytes of a word at a time, and reductions over a warp.

#define HIGH_BITS 0x80808080u
#define LOW_BITS 0x7f7f7f7fu
#define EACH_BYTE 0x01010101u
#define FULL_WARP 0xffffffffu

// 0xff where the highest bit of a byte is set, else 0.
__device__ __forceinline__ u32 spread_high(u32 x) {
#ifdef __CUDA_ARCH__
  u32 spread;
  asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(spread) : "r"(x));
  return spread;
#else
  return ((x & HIGH_BITS) >> 7) * 255u;
#endif
}

// The lesser of each pair of bytes.
__device__ __forceinline__ u32 lesser_bytes(u32 a, u32 b) {
  u32 difference = (a | HIGH_BITS) - (b & LOW_BITS);
  u32 mask = spread_high((a & ~b) | (~(a ^ b) & difference));
  return (b & mask) | (a & ~mask);
}

// The highest bit of each byte that is zero.
__device__ __forceinline__ u32 zero_bytes(u32 x) { return ~(((x & LOW_BITS) + LOW_BITS) | x | LOW_BITS); }

// A byte with the value 1 for each of four bits.
__device__ __forceinline__ u32 bits_to_bytes(u32 nibble) { return (nibble * 0x00204081u) & EACH_BYTE; }

__device__ __forceinline__ u32 byte_of(u32 word, u32 place) { return (word >> (place * 8)) & 0xff; }

__device__ __forceinline__ u32 with_byte(u32 word, u32 place, u32 byte) {
  return (word & ~(0xffu << (place * 8))) | (byte << (place * 8));
}

__device__ __forceinline__ u32 least_of_bytes(u32 word) {
  u32 a = min(word & 0xff, (word >> 8) & 0xff);
  return min(a, min((word >> 16) & 0xff, word >> 24));
}

// One instruction from compute capability 8.0 on; the same number in five steps before it, and on the host.
__device__ __forceinline__ u32 warp_min(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(FULL_WARP, x);
#else
  for (int lanes = 16; lanes; lanes /= 2) x = min(x, __shfl_xor_sync(FULL_WARP, x, lanes));
  return x;
#endif
}

__device__ __forceinline__ u32 warp_sum(u32 x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(FULL_WARP, x);
#else
  for (int lanes = 16; lanes; lanes /= 2) x += __shfl_xor_sync(FULL_WARP, x, lanes);
  return x;
#endif
}
