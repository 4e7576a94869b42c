// Random numbers by seed, stream and counter: the twin of random.rs.

struct Random {
  u64 start;
  u64 increment;
};

__device__ __forceinline__ u64 mix_bits(u64 bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebULL;
  return bits ^ (bits >> 31);
}

__device__ __forceinline__ u64 random_bits(const Random& random, u64 counter) {
  return mix_bits(random.start + counter * random.increment);
}

// 32 random bits to a number in 0..n.
__device__ __forceinline__ u32 scale_bits(u32 bits, u32 n) { return u32((u64(bits) * n) >> 32); }
