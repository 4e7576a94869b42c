// Runs CUDA kernels on the host: the same text, one block at a time, every CUDA thread a fiber. One file because
// fibers, collectives and shared memory work on the one state of a running block.
//
// A thread runs until it meets a collective that must wait for others; then the next one runs. Threads that never
// meet one share a single stack and cost a function call each. Nothing is preempted, so a kernel that spins until
// another thread has done something does not end. State lives at the start of an aligned region that also holds the
// stacks, so that the address of a local variable is enough to find it: no thread-local lookups.
//
// `__shared__` arrays become block-scope `thread_local` ones (which are static); `extern __shared__` declarations
// are rewritten by emulate.rs to pointers to the block's dynamic memory.
//
// With EMULATE_CHECKS defined, check.h stands behind this text and looks at every access to memory.

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if !defined(EMULATE_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define EMULATE_UCONTEXT
#endif
#ifdef EMULATE_UCONTEXT
#include <ucontext.h>
#endif

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ thread_local
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#ifndef __restrict__
#define __restrict__ __restrict
#endif

// Functions whose own accesses are not looked at.
#if !defined(EMULATE_CHECKS)
#define EMULATE_UNSEEN
#elif defined(__clang__)
#define EMULATE_UNSEEN __attribute__((disable_sanitizer_instrumentation))
#else
#define EMULATE_UNSEEN __attribute__((no_sanitize_thread))
#endif

struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; };
struct __align__(8) uint2 { unsigned x, y; };
struct __align__(16) uint4 { unsigned x, y, z, w; };
struct __align__(8) int2 { int x, y; };
struct __align__(16) ulonglong2 { unsigned long long x, y; };
struct __align__(16) double2 { double x, y; };
inline uint2 make_uint2(unsigned x, unsigned y) { return uint2{x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return uint4{x, y, z, w}; }
inline int2 make_int2(int x, int y) { return int2{x, y}; }
inline ulonglong2 make_ulonglong2(unsigned long long x, unsigned long long y) { return ulonglong2{x, y}; }
inline double2 make_double2(double x, double y) { return double2{x, y}; }

namespace emulate {

constexpr unsigned MAX_THREADS = 1024;
constexpr unsigned MAX_SHARED_BYTES = 232448;
constexpr size_t STACK_BYTES = size_t(1) << 17;
constexpr size_t REGION_BYTES = size_t(1) << 28;
constexpr uint64_t CANARY = 0x7469646520676f6eULL;
// Threads begin at different offsets, or their hot lines would all fall into one set of the cache.
constexpr size_t COLOUR_BYTES = 64 * 64;

// Where a fiber stands while it does not run.
#ifdef EMULATE_UCONTEXT
struct Context { ucontext_t saved; };

inline void prepare(Context& context, void (*entry)(), char* stack, size_t bytes) {
  getcontext(&context.saved);
  context.saved.uc_stack.ss_sp = stack;
  context.saved.uc_stack.ss_size = bytes;
  context.saved.uc_link = nullptr;
  makecontext(&context.saved, entry, 0);
}

inline void change(Context& from, Context& to) { swapcontext(&from.saved, &to.saved); }
#else
struct Context { void* stack_pointer; };

extern "C" void emulate_change(void** save, void* load) asm("emulate_change");

#if defined(__x86_64__)
asm(R"(
.text
.p2align 4
emulate_change:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
constexpr size_t FRAME_WORDS = 8;
constexpr size_t RETURN_WORD = 6;
#else
asm(R"(
.text
.p2align 4
emulate_change:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
constexpr size_t FRAME_WORDS = 20;
constexpr size_t RETURN_WORD = 11;
#endif

inline void prepare(Context& context, void (*entry)(), char* stack, size_t bytes) {
  uint64_t* frame = reinterpret_cast<uint64_t*>(stack + bytes) - FRAME_WORDS;
  for (size_t i = 0; i < FRAME_WORDS; i++) frame[i] = 0;
  frame[RETURN_WORD] = reinterpret_cast<uint64_t>(entry);
  context.stack_pointer = frame;
}

inline void change(Context& from, Context& to) { emulate_change(&from.stack_pointer, to.stack_pointer); }
#endif

enum Kind : unsigned { SYNC, BALLOT, ANY, ALL, SHUFFLE };

inline const char* kind_name(Kind kind) {
  static const char* const names[] = {"__syncwarp", "__ballot_sync", "__any_sync", "__all_sync", "__shfl_sync"};
  return names[kind];
}

struct Fiber {
  Context context;
  uint3 thread_idx;
  unsigned thread;
  // What it brings to a collective, the lane it reads there, and what it gets.
  unsigned source;
  uint64_t value;
  uint64_t result;
};

// Lanes that wait for each other in one collective.
struct Group { unsigned mask, arrived; Kind kind; };

struct Warp { unsigned alive, n_groups; Group groups[32]; };

// What is known of all accesses; see check.h.
struct Checker;

struct State {
  Checker* checker;
  void (*body)(const void*);
  const void* args;
  dim3 grid, block;
  uint3 block_idx;
  uint3 next_idx;
  unsigned n_threads, n_started, n_alive;
  // Stacks in use or free again, and those that may be touched at all.
  unsigned n_free, n_slots, n_open;
  unsigned n_at_barrier;
  unsigned ready_head, n_ready;
  bool failed;
  // Whether a thread said yes on its way to a barrier.
  bool any;
  char* shared;
  unsigned shared_capacity;
  Context main;
  Warp warps[MAX_THREADS / 32];
  Fiber* of_thread[MAX_THREADS];
  Fiber* ready[MAX_THREADS];
  Fiber* free[MAX_THREADS];
  Fiber* at_barrier[MAX_THREADS];
  Fiber fibers[MAX_THREADS];
  char message[1024];
};

// One more than the state takes: the slot between it and the first stack is never opened.
constexpr size_t HEADER_SLOTS = (sizeof(State) + STACK_BYTES - 1) / STACK_BYTES + 1;
static_assert((HEADER_SLOTS + MAX_THREADS) * STACK_BYTES <= REGION_BYTES, "the stacks fit into the region");

inline __attribute__((always_inline)) uintptr_t here() {
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
}

inline __attribute__((always_inline)) State& state() {
  return *reinterpret_cast<State*>(here() & ~(REGION_BYTES - 1));
}

inline __attribute__((always_inline)) Fiber& current() {
  uintptr_t at = here();
  State& s = *reinterpret_cast<State*>(at & ~(REGION_BYTES - 1));
  return s.fibers[(at & (REGION_BYTES - 1)) / STACK_BYTES - HEADER_SLOTS];
}

inline char* stack_of(State& s, const Fiber& fiber) {
  size_t slot = &fiber - s.fibers;
  return reinterpret_cast<char*>(&s) + (HEADER_SLOTS + slot) * STACK_BYTES + slot * 5 % 64 * 64;
}

// How threads have met: blocks that begin, barriers, and warps that synchronise.
#ifdef EMULATE_CHECKS
void check_launch(State& s, unsigned shared_bytes);
void check_block(State& s);
void check_barrier(State& s);
void check_warp(State& s, unsigned warp);
void check_atomic(const void* at, unsigned bytes);
void forget_checks(State& s);
#else
inline void check_launch(State&, unsigned) {}
inline void check_block(State&) {}
inline void check_barrier(State&) {}
inline void check_warp(State&, unsigned) {}
inline void check_atomic(const void*, unsigned) {}
inline void forget_checks(State&) {}
#endif

inline void push_ready(State& s, Fiber* fiber) {
  s.ready[(s.ready_head + s.n_ready++) % MAX_THREADS] = fiber;
}

inline Fiber* pop_ready(State& s) {
  Fiber* fiber = s.ready[s.ready_head];
  s.ready_head = (s.ready_head + 1) % MAX_THREADS;
  s.n_ready--;
  return fiber;
}

inline void fail(State& s, const char* what) {
  s.failed = true;
  snprintf(s.message, sizeof s.message, "block (%u, %u, %u): %s", s.block_idx.x, s.block_idx.y, s.block_idx.z, what);
}

// Everyone left waits for someone who will not come.
inline void fail_deadlock(State& s) {
  fail(s, "deadlock:");
  size_t length = strlen(s.message);
  auto say = [&](const char* format, unsigned a, const char* name, unsigned b, unsigned c) {
    if (length + 96 < sizeof s.message) {
      length += snprintf(s.message + length, sizeof s.message - length, format, a, name, b, c);
    }
  };
  if (s.n_at_barrier) say(" %u threads wait in %s for %u;", s.n_at_barrier, "__syncthreads", s.n_alive, 0);
  for (unsigned w = 0; w < (s.n_threads + 31) / 32; w++) {
    for (unsigned g = 0; g < s.warps[w].n_groups; g++) {
      const Group& group = s.warps[w].groups[g];
      say(" warp %u waits in %s with mask %#x, lanes %#x came;", w, kind_name(group.kind), group.mask, group.arrived);
    }
  }
}

static void run_threads();

// The fiber to run when the running one cannot: a ready one, else one for the next thread, else none.
inline Context* next_context(State& s) {
  if (s.n_ready) return &pop_ready(s)->context;
  if (s.n_started == s.n_threads) {
    if (s.n_alive) fail_deadlock(s);
    return &s.main;
  }
  Fiber* fiber;
  if (s.n_free) {
    fiber = s.free[--s.n_free];
  } else {
    fiber = &s.fibers[s.n_slots++];
    if (s.n_slots > s.n_open) {
      char* slot = reinterpret_cast<char*>(&s) + (HEADER_SLOTS + s.n_open) * STACK_BYTES;
      if (mprotect(slot, STACK_BYTES, PROT_READ | PROT_WRITE)) {
        fail(s, "no memory for another stack");
        return &s.main;
      }
      s.n_open++;
    }
    memcpy(stack_of(s, *fiber), &CANARY, sizeof CANARY);
  }
  prepare(fiber->context, run_threads, stack_of(s, *fiber), STACK_BYTES - COLOUR_BYTES);
  return &fiber->context;
}

// Hands the results of a collective out; lanes other than `self` become ready.
inline void complete(State& s, unsigned warp, Group group, const Fiber* self) {
  // As on a device only __syncwarp orders memory.
  if (group.kind == SYNC && group.arrived == s.warps[warp].alive) check_warp(s, warp);
  Fiber** lanes = s.of_thread + warp * 32;
  unsigned yes = 0;
  for (unsigned left = group.arrived; left; left &= left - 1) {
    unsigned lane = __builtin_ctz(left);
    yes |= unsigned(lanes[lane]->value != 0) << lane;
  }
  for (unsigned left = group.arrived; left; left &= left - 1) {
    Fiber* fiber = lanes[__builtin_ctz(left)];
    switch (group.kind) {
      case SYNC: break;
      case BALLOT: fiber->result = yes; break;
      case ANY: fiber->result = yes != 0; break;
      case ALL: fiber->result = yes == group.arrived; break;
      // A lane that takes no part has nothing to give: all ones, which is a NaN.
      case SHUFFLE: fiber->result = group.arrived >> fiber->source & 1 ? lanes[fiber->source]->value : ~uint64_t(0);
    }
    if (fiber != self) push_ready(s, fiber);
  }
}

inline void release_barrier(State& s, const Fiber* self) {
  check_barrier(s);
  for (unsigned i = 0; i < s.n_at_barrier; i++) {
    if (s.at_barrier[i] != self) push_ready(s, s.at_barrier[i]);
  }
  s.n_at_barrier = 0;
}

// A thread has ended: those who waited for it alone go on.
inline void retire(State& s, Fiber& self) {
  unsigned index = self.thread / 32;
  Warp& warp = s.warps[index];
  warp.alive &= ~(1u << self.thread % 32);
  s.n_alive--;
  for (unsigned g = 0; g < warp.n_groups;) {
    Group group = warp.groups[g];
    if (group.arrived == (group.mask & warp.alive)) {
      warp.groups[g] = warp.groups[--warp.n_groups];
      complete(s, index, group, nullptr);
    } else {
      g++;
    }
  }
  if (s.n_at_barrier && s.n_at_barrier == s.n_alive) release_barrier(s, nullptr);
}

// What a fiber does: threads, one after another, for as long as nobody else can go on.
static void run_threads() {
  State& s = state();
  Fiber& self = current();
  do {
    self.thread = s.n_started++;
    self.thread_idx = s.next_idx;
    s.of_thread[self.thread] = &self;
    if (++s.next_idx.x == s.block.x) {
      s.next_idx.x = 0;
      if (++s.next_idx.y == s.block.y) {
        s.next_idx.y = 0;
        s.next_idx.z++;
      }
    }
    s.body(s.args);
    retire(s, self);
    uint64_t canary;
    memcpy(&canary, stack_of(s, self), sizeof canary);
    if (canary != CANARY) {
      fail(s, "a thread used more than 128 KiB of stack");
      change(self.context, s.main);
    }
  } while (!s.n_ready && s.n_started < s.n_threads);
  s.free[s.n_free++] = &self;
  change(self.context, *next_context(s));
  __builtin_unreachable();
}

inline uint64_t meet(unsigned mask, Kind kind, uint64_t value, unsigned source) {
  State& s = state();
  Fiber& self = current();
  unsigned index = self.thread / 32;
  unsigned lane = self.thread % 32;
  Warp& warp = s.warps[index];
  if (!(mask >> lane & 1)) {
    fail(s, "a lane called a collective with a mask that does not name it");
    change(self.context, s.main);
  }
  self.value = value;
  self.source = source;
  unsigned g = 0;
  while (g < warp.n_groups && !(warp.groups[g].mask == mask && warp.groups[g].kind == kind)) g++;
  if (g == warp.n_groups) warp.groups[warp.n_groups++] = Group{mask, 0, kind};
  warp.groups[g].arrived |= 1u << lane;
  if (warp.groups[g].arrived == (mask & warp.alive)) {
    Group group = warp.groups[g];
    warp.groups[g] = warp.groups[--warp.n_groups];
    complete(s, index, group, &self);
  } else {
    change(self.context, *next_context(s));
  }
  return self.result;
}

inline void barrier() {
  State& s = state();
  Fiber& self = current();
  s.at_barrier[s.n_at_barrier++] = &self;
  if (s.n_at_barrier == s.n_alive) {
    release_barrier(s, &self);
  } else {
    change(self.context, *next_context(s));
  }
}

// A barrier after which all threads know whether any of them said yes.
inline bool any_at_barrier(bool yes) {
  State& s = state();
  if (yes) s.any = true;
  barrier();
  bool any = s.any;
  barrier();
  s.any = false;
  barrier();
  return any;
}

inline void* dynamic_shared() { return state().shared; }

// One per host thread: the region with the state and the stacks.
struct Region {
  State* state = nullptr;

  bool open() {
    if (state) return true;
    char* all = static_cast<char*>(
        mmap(nullptr, 2 * REGION_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (all == MAP_FAILED) return false;
    uintptr_t from = reinterpret_cast<uintptr_t>(all);
    uintptr_t base = (from + REGION_BYTES - 1) & ~(REGION_BYTES - 1);
    if (base > from) munmap(all, base - from);
    munmap(reinterpret_cast<void*>(base + REGION_BYTES), from + REGION_BYTES - base);
    if (mprotect(reinterpret_cast<void*>(base), (HEADER_SLOTS - 1) * STACK_BYTES, PROT_READ | PROT_WRITE)) {
      munmap(reinterpret_cast<void*>(base), REGION_BYTES);
      return false;
    }
    state = reinterpret_cast<State*>(base);
    return true;
  }

  ~Region() {
    if (!state) return;
    forget_checks(*state);
    free(state->shared);
    munmap(state, REGION_BYTES);
  }
};

inline void run_block(State& s) {
  s.n_started = 0;
  s.next_idx = uint3{0, 0, 0};
  s.n_alive = s.n_threads;
  s.n_at_barrier = s.n_ready = 0;
  s.any = false;
  for (unsigned w = 0; w * 32 < s.n_threads; w++) {
    unsigned lanes = s.n_threads - w * 32;
    s.warps[w].alive = lanes >= 32 ? ~0u : (1u << lanes) - 1;
    s.warps[w].n_groups = 0;
  }
  check_block(s);
  change(s.main, *next_context(s));
}

// Runs the whole grid; a message if it cannot be finished.
inline const char* launch(void (*body)(const void*), const void* args, const unsigned* grid, const unsigned* block,
                          unsigned shared_bytes) {
  static thread_local Region region;
  if (!region.open()) return "no address space for the stacks";
  State& s = *region.state;
  uint64_t n_threads = uint64_t(block[0]) * block[1] * block[2];
  if (n_threads == 0 || n_threads > MAX_THREADS) return "a block has 1 to 1024 threads";
  if (uint64_t(grid[0]) * grid[1] * grid[2] == 0) return "a grid has at least one block";
  if (grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535) return "the grid is too large";
  if (shared_bytes > MAX_SHARED_BYTES) return "more than 227 KiB of dynamic shared memory";
  if (shared_bytes > s.shared_capacity) {
    free(s.shared);
    s.shared_capacity = 0;
    s.shared = static_cast<char*>(aligned_alloc(128, (shared_bytes + 127) / 128 * 128));
    if (!s.shared) return "no memory for shared memory";
    s.shared_capacity = shared_bytes;
  }
  s.body = body;
  s.args = args;
  s.grid = dim3{grid[0], grid[1], grid[2]};
  s.block = dim3{block[0], block[1], block[2]};
  s.n_threads = unsigned(n_threads);
  s.n_free = s.n_slots = s.ready_head = 0;
  s.failed = false;
  check_launch(s, shared_bytes);
  for (unsigned z = 0; z < grid[2]; z++) {
    for (unsigned y = 0; y < grid[1]; y++) {
      for (unsigned x = 0; x < grid[0]; x++) {
        s.block_idx = uint3{x, y, z};
        // Shared memory begins undefined; as NaN it shows when it is read too early.
        if (shared_bytes) memset(s.shared, 0xff, shared_bytes);
        run_block(s);
        if (s.failed) return s.message;
      }
    }
  }
  return nullptr;
}

template <class T>
inline uint64_t to_bits(T value) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "shuffles move 4 or 8 bytes");
  uint64_t bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}

template <class T>
inline T shuffle(unsigned mask, T value, unsigned source) {
  uint64_t bits = meet(mask, SHUFFLE, to_bits(value), source);
  T result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

}  // namespace emulate

#define threadIdx (emulate::current().thread_idx)
#define blockIdx (emulate::state().block_idx)
#define blockDim (emulate::state().block)
#define gridDim (emulate::state().grid)
#define warpSize 32

inline void __syncthreads() { emulate::barrier(); }
inline int __syncthreads_or(int yes) { return emulate::any_at_barrier(yes != 0); }
inline void __syncwarp(unsigned mask = ~0u) { emulate::meet(mask, emulate::SYNC, 0, 0); }
inline unsigned __ballot_sync(unsigned mask, int yes) { return emulate::meet(mask, emulate::BALLOT, yes != 0, 0); }
inline int __any_sync(unsigned mask, int yes) { return emulate::meet(mask, emulate::ANY, yes != 0, 0); }
inline int __all_sync(unsigned mask, int yes) { return emulate::meet(mask, emulate::ALL, yes != 0, 0); }

// `width` cuts the warp into sections; a lane beyond its section keeps its own value.
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  unsigned lane = emulate::current().thread % 32;
  return emulate::shuffle(mask, value, (lane & ~(width - 1)) + (source & (width - 1)));
}

template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned lane = emulate::current().thread % 32;
  unsigned place = lane & (width - 1);
  return emulate::shuffle(mask, value, place >= delta ? lane - delta : lane);
}

template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  unsigned lane = emulate::current().thread % 32;
  unsigned place = lane & (width - 1);
  return emulate::shuffle(mask, value, delta < unsigned(width) - place ? lane + delta : lane);
}

template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32) {
  unsigned lane = emulate::current().thread % 32;
  unsigned source = lane ^ unsigned(lanes);
  return emulate::shuffle(mask, value, source / width <= lane / width && source < 32 ? source : lane);
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline long long __double_as_longlong(double x) { return (long long)emulate::to_bits(x); }

inline double __longlong_as_double(long long bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T>
inline T __ldg(const T* at) { return *at; }

// Several host threads may run kernels over the same memory, so these are real atomics.
#define EMULATE_NOTED(access) (emulate::check_atomic(at, sizeof *at), access)
#define EMULATE_ATOMIC(T) \
  EMULATE_UNSEEN inline T atomicAdd(T* at, T v) { return EMULATE_NOTED(__atomic_fetch_add(at, v, __ATOMIC_RELAXED)); } \
  EMULATE_UNSEEN inline T atomicSub(T* at, T v) { return EMULATE_NOTED(__atomic_fetch_sub(at, v, __ATOMIC_RELAXED)); } \
  EMULATE_UNSEEN inline T atomicOr(T* at, T v) { return EMULATE_NOTED(__atomic_fetch_or(at, v, __ATOMIC_RELAXED)); } \
  EMULATE_UNSEEN inline T atomicAnd(T* at, T v) { return EMULATE_NOTED(__atomic_fetch_and(at, v, __ATOMIC_RELAXED)); } \
  EMULATE_UNSEEN inline T atomicXor(T* at, T v) { return EMULATE_NOTED(__atomic_fetch_xor(at, v, __ATOMIC_RELAXED)); } \
  EMULATE_UNSEEN inline T atomicExch(T* at, T v) { return EMULATE_NOTED(__atomic_exchange_n(at, v, __ATOMIC_RELAXED)); } \
  EMULATE_UNSEEN inline T atomicCAS(T* at, T expected, T v) { \
    EMULATE_NOTED(__atomic_compare_exchange_n(at, &expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)); \
    return expected; \
  } \
  EMULATE_UNSEEN inline T atomicMax(T* at, T v) { \
    T old = EMULATE_NOTED(__atomic_load_n(at, __ATOMIC_RELAXED)); \
    while (old < v && !__atomic_compare_exchange_n(at, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {} \
    return old; \
  } \
  EMULATE_UNSEEN inline T atomicMin(T* at, T v) { \
    T old = EMULATE_NOTED(__atomic_load_n(at, __ATOMIC_RELAXED)); \
    while (v < old && !__atomic_compare_exchange_n(at, &old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {} \
    return old; \
  }
EMULATE_ATOMIC(unsigned)
EMULATE_ATOMIC(int)
EMULATE_ATOMIC(unsigned long long)
EMULATE_ATOMIC(long long)
#undef EMULATE_ATOMIC
#undef EMULATE_NOTED

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// Declared here rather than included: the C++ headers take most of the time of a compilation.
extern "C" {
double sqrt(double) noexcept;
double fabs(double) noexcept;
double floor(double) noexcept;
double ceil(double) noexcept;
double rint(double) noexcept;
double trunc(double) noexcept;
double fma(double, double, double) noexcept;
double fmin(double, double) noexcept;
double fmax(double, double) noexcept;
double copysign(double, double) noexcept;
}
inline bool isnan(double x) { return __builtin_isnan(x); }
inline bool isinf(double x) { return __builtin_isinf(x); }
inline bool isfinite(double x) { return __builtin_isfinite(x); }

template <class T>
inline T min(T a, T b) { return b < a ? b : a; }
template <class T>
inline T max(T a, T b) { return a < b ? b : a; }
inline double min(double a, double b) { return fmin(a, b); }
inline double max(double a, double b) { return fmax(a, b); }

#define EMULATE_EXPORT extern "C" __attribute__((visibility("default")))
#define KERNEL(name, Args)                                                                                      \
  static void name##__body(const Args& args);                                                                   \
  EMULATE_EXPORT const char* name##__launch(const void* bytes, const unsigned* grid, const unsigned* block,     \
                                            unsigned shared_bytes) {                                            \
    Args args;                                                                                                  \
    memcpy(&args, bytes, sizeof args);                                                                          \
    auto body = [](const void* at) { name##__body(*static_cast<const Args*>(at)); };                            \
    return emulate::launch(body, &args, grid, block, shared_bytes);                                             \
  }                                                                                                             \
  EMULATE_EXPORT unsigned name##__args_size() { return sizeof(Args); }                                          \
  static void name##__body(const Args& args)
