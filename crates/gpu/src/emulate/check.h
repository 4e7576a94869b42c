// Looks at every access of a kernel to shared memory: what racecheck does on a GPU, on the host.
//
// The compiler puts a call before every access (-fsanitize=thread; its library is not linked, the calls end here). Threads of a block run one
// after another, so nothing ever really collides; but it is known which barriers lie between two accesses. Two threads that touch the
// same byte of shared memory, one of them writing, need __syncthreads between, or __syncwarp if they are of one warp. Several that write the same value
// are a hazard too; atomics among themselves are none.

#include <dlfcn.h>
#include <link.h>

namespace emulate {

// The last thread that wrote a byte.
struct Writer { uint32_t block, barrier, sync; uint16_t thread; };

// The threads that did something to a byte since the last barrier: their warps, and of the last of these warps the lanes since it synchronised.
struct Threads { uint32_t block, barrier, sync, warps, lanes; uint16_t warp; };

struct Cell { Writer written; Threads reads, atomics; };

struct Memory {
  uintptr_t from;
  size_t n_bytes, capacity;
  Cell* cells;
};

struct Checker {
  // Blocks so far, from 1 on; barriers of this block; synchronisations of its warps.
  uint32_t block, barrier;
  uint32_t syncs[MAX_THREADS / 32];
  // Dynamic shared memory, and `__shared__` arrays, which are thread-local variables of this library.
  Memory shared[2];
};

enum Access { READ, WRITE, ATOMIC };

// The state of this host thread, once it has launched something.
static thread_local State* launching = nullptr;

EMULATE_UNSEEN inline bool collides(const Checker& c, const Writer& writer, unsigned thread) {
  if (writer.block != c.block || writer.barrier != c.barrier || writer.thread == thread) return false;
  return writer.thread / 32u != thread / 32 || writer.sync == c.syncs[thread / 32];
}

EMULATE_UNSEEN inline bool collides(const Checker& c, const Threads& threads, unsigned thread) {
  if (threads.block != c.block || threads.barrier != c.barrier) return false;
  unsigned warp = thread / 32;
  if (threads.warps & ~(1u << warp)) return true;
  return threads.sync == c.syncs[warp] && threads.lanes & ~(1u << thread % 32);
}

EMULATE_UNSEEN inline void note(const Checker& c, Threads& threads, unsigned thread) {
  unsigned warp = thread / 32;
  if (threads.block != c.block || threads.barrier != c.barrier) threads = Threads{c.block, c.barrier, 0, 0, 0, 0};
  if (threads.warp != warp || threads.sync != c.syncs[warp]) threads.lanes = 0;
  threads.warp = warp;
  threads.sync = c.syncs[warp];
  threads.warps |= 1u << warp;
  threads.lanes |= 1u << thread % 32;
}

// Ends the launch with a message.
EMULATE_UNSEEN inline void report(State& s, Fiber& self, const char* what, size_t byte, const void* place) {
  Dl_info library = {};
  dladdr(place, &library);
  char text[512];
  snprintf(text, sizeof text, "thread %u %s (byte %zu); instruction %#zx of %s", self.thread, what, byte,
           size_t(place) - size_t(library.dli_fbase), library.dli_fname ? library.dli_fname : "the library");
  fail(s, text);
  change(self.context, s.main);
}

EMULATE_UNSEEN inline void check_shared(State& s, Fiber& self, Cell& cell, Access access, size_t byte, const void* place) {
  Checker& c = *s.checker;
  unsigned thread = self.thread;
  char text[160];
  if (collides(c, cell.written, thread)) {
    const char* what = access == READ ? "reads" : "writes";
    snprintf(text, sizeof text, "%s shared memory that thread %u has written, without a barrier between", what,
             unsigned(cell.written.thread));
    report(s, self, text, byte, place);
  }
  if (access != READ && collides(c, cell.reads, thread)) {
    report(s, self, "writes shared memory that another thread has read, without a barrier between", byte, place);
  }
  if (access != ATOMIC && collides(c, cell.atomics, thread)) {
    report(s, self, "touches shared memory that another thread has changed by an atomic, without a barrier between", byte, place);
  }
  if (access == READ) note(c, cell.reads, thread);
  else if (access == ATOMIC) note(c, cell.atomics, thread);
  else cell.written = Writer{c.block, c.barrier, c.syncs[thread / 32], uint16_t(thread)};
}

EMULATE_UNSEEN inline void check(const void* address, size_t bytes, Access access, const void* place) {
  uintptr_t at = reinterpret_cast<uintptr_t>(address);
  uintptr_t region = reinterpret_cast<uintptr_t>(launching);
  // Not what the launch itself does, on the stack of its caller; and not stacks of threads and the emulation's own state.
  if (!launching || here() - region >= REGION_BYTES || at - region < REGION_BYTES) return;
  State& s = *launching;
  Fiber& self = current();
  for (Memory& memory : s.checker->shared) {
    if (at - memory.from >= memory.n_bytes) continue;
    for (size_t byte = at - memory.from; byte < at - memory.from + bytes; byte++) {
      check_shared(s, self, memory.cells[byte], access, byte, place);
    }
    return;
  }
}

EMULATE_UNSEEN inline void make_room(Memory& memory, uintptr_t from, size_t n_bytes) {
  if (n_bytes > memory.capacity) {
    free(memory.cells);
    memory.cells = static_cast<Cell*>(calloc(n_bytes, sizeof(Cell)));
    memory.capacity = memory.cells ? n_bytes : 0;
  }
  memory.from = from;
  memory.n_bytes = n_bytes < memory.capacity ? n_bytes : memory.capacity;
}

// Where this thread has the thread-local variables of this library.
EMULATE_UNSEEN inline int find_variables(dl_phdr_info* info, size_t, void* found) {
  Memory& memory = *static_cast<Memory*>(found);
  uintptr_t own = reinterpret_cast<uintptr_t>(&find_variables);
  const ElfW(Phdr)* variables = nullptr;
  bool is_own = false;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && own - (info->dlpi_addr + part.p_vaddr) < part.p_memsz) is_own = true;
    if (part.p_type == PT_TLS) variables = &part;
  }
  if (!is_own) return 0;
  if (variables) make_room(memory, reinterpret_cast<uintptr_t>(info->dlpi_tls_data), variables->p_memsz);
  return 1;
}

EMULATE_UNSEEN void check_launch(State& s, unsigned shared_bytes) {
  launching = &s;
  if (!s.checker) s.checker = static_cast<Checker*>(calloc(1, sizeof(Checker)));
  make_room(s.checker->shared[0], reinterpret_cast<uintptr_t>(s.shared), shared_bytes);
  dl_iterate_phdr(find_variables, &s.checker->shared[1]);
}

EMULATE_UNSEEN void check_block(State& s) {
  s.checker->block++;
  s.checker->barrier = 0;
  for (uint32_t& syncs : s.checker->syncs) syncs = 0;
}

EMULATE_UNSEEN void check_barrier(State& s) { s.checker->barrier++; }

EMULATE_UNSEEN void check_warp(State& s, unsigned warp) { s.checker->syncs[warp]++; }

EMULATE_UNSEEN void check_atomic(const void* at, unsigned bytes) { check(at, bytes, ATOMIC, __builtin_return_address(0)); }

EMULATE_UNSEEN void forget_checks(State& s) {
  if (!s.checker) return;
  for (Memory& memory : s.checker->shared) free(memory.cells);
  free(s.checker);
}

}  // namespace emulate

// What the compiler calls.
#define EMULATE_CALL extern "C" EMULATE_UNSEEN __attribute__((visibility("hidden"))) void
#define EMULATE_ACCESS(name, kind, bytes) \
  EMULATE_CALL name(void* at) { emulate::check(at, bytes, emulate::kind, __builtin_return_address(0)); }
#define EMULATE_ACCESSES(bytes)                            \
  EMULATE_ACCESS(__tsan_read##bytes, READ, bytes)          \
  EMULATE_ACCESS(__tsan_write##bytes, WRITE, bytes)        \
  EMULATE_ACCESS(__tsan_unaligned_read##bytes, READ, bytes) \
  EMULATE_ACCESS(__tsan_unaligned_write##bytes, WRITE, bytes)
EMULATE_ACCESSES(1)
EMULATE_ACCESSES(2)
EMULATE_ACCESSES(4)
EMULATE_ACCESSES(8)
EMULATE_ACCESSES(16)
EMULATE_CALL __tsan_read_range(void* at, unsigned long bytes) {
  emulate::check(at, bytes, emulate::READ, __builtin_return_address(0));
}
EMULATE_CALL __tsan_write_range(void* at, unsigned long bytes) {
  emulate::check(at, bytes, emulate::WRITE, __builtin_return_address(0));
}
EMULATE_CALL __tsan_init() {}
EMULATE_CALL __tsan_func_entry(void*) {}
EMULATE_CALL __tsan_func_exit() {}
EMULATE_CALL __tsan_vptr_update(void**, void*) {}
EMULATE_CALL __tsan_vptr_read(void**) {}
#ifdef __clang__
extern "C" EMULATE_UNSEEN __attribute__((visibility("hidden"))) void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  emulate::check(from, bytes, emulate::READ, __builtin_return_address(0));
  emulate::check(to, bytes, emulate::WRITE, __builtin_return_address(0));
  return __builtin_memcpy(to, from, bytes);
}
extern "C" EMULATE_UNSEEN __attribute__((visibility("hidden"))) void* __tsan_memset(void* to, int byte, size_t bytes) {
  emulate::check(to, bytes, emulate::WRITE, __builtin_return_address(0));
  return __builtin_memset(to, byte, bytes);
}
#endif
