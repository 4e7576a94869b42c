// What every kernel text begins with. On the host emulate.h stands before it and has defined KERNEL.

typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// The quiet NaN that says "not available".
#define NA __longlong_as_double(0x7ff8000000000000LL)

// A kernel takes one struct, `args`, by value.
#ifndef KERNEL
#define KERNEL(name, Args) extern "C" __global__ void name(const __grid_constant__ Args args)
// The same with blocks of at most so many threads, of which at least so many shall fit a multiprocessor.
#define KERNEL_BOUNDED(name, Args, threads, blocks) \
  extern "C" __global__ void __launch_bounds__(threads, blocks) name(const __grid_constant__ Args args)
#else
#define KERNEL_BOUNDED(name, Args, threads, blocks) KERNEL(name, Args)
#endif
