// What every kernel text begins with. On the host emulate.h stands before it and has defined KERNEL.
//
// Kernels are also compiled for cards before compute capability 7.0, where the lanes of a warp share one program counter. So no lane waits
// in a loop for what another lane of its warp does, and the lanes that a mask names have come together again before they vote or shuffle.

typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// The quiet NaN that says "not available".
#define NA __longlong_as_double(0x7ff8000000000000LL)

// A kernel takes one struct, `args`, by value. Where the architecture allows it the struct stays where the launch put it; before
// compute capability 7.0 a kernel that hands out references to it works on a copy in local memory, with the same results.
#ifndef KERNEL
#if __CUDA_ARCH__ >= 700
#define ARGS_IN_PLACE __grid_constant__
#else
#define ARGS_IN_PLACE
#endif
#define KERNEL(name, Args) extern "C" __global__ void name(const ARGS_IN_PLACE Args args)
// The same with blocks of at most so many threads, of which at least so many shall fit a multiprocessor.
#define KERNEL_BOUNDED(name, Args, threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const ARGS_IN_PLACE Args args)
#else
#define KERNEL_BOUNDED(name, Args, threads, blocks) KERNEL(name, Args)
#endif

// Where a field lies in its struct. NVRTC has no `offsetof`.
#ifdef __CUDACC_RTC__
#define OFFSET_OF(Struct, field) __INTADDR__(&((Struct*)0)->field)
#else
#define OFFSET_OF(Struct, field) __builtin_offsetof(Struct, field)
#endif

// The barrier of a block for warps that take different ways: each may call it at a place of its own, as long as all call it equally
// often. `__syncthreads` demands one place for all.
__device__ __forceinline__ void meet_block() {
#ifdef __CUDA_ARCH__
  asm volatile("barrier.sync 0;" ::: "memory");
#else
  __syncthreads();
#endif
}
