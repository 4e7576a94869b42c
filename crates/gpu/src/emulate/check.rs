//! What `check.h` finds, and what it must not find.

use bytemuck::{Pod, Zeroable};

use super::*;
use crate::TIDEMILL_CUH;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Args {
    out: u64,
    /// Which of the barriers is left out; 0: none.
    without: u64,
}

const KERNELS: &str = r#"
struct Args { u32* out; u64 without; };

// Written by one warp, read by another, written again.
KERNEL(across_warps, Args) {
  __shared__ u32 words[64];
  words[threadIdx.x] = threadIdx.x;
  if (args.without != 1) __syncthreads();
  args.out[threadIdx.x] = words[63 - threadIdx.x];
  if (args.without != 2) __syncthreads();
  words[threadIdx.x] = 1;
}

// The same between the lanes of a warp, in dynamic memory and by bytes. A vote orders nothing.
KERNEL(across_lanes, Args) {
  extern __shared__ unsigned char bytes[];
  bytes[threadIdx.x] = threadIdx.x;
  if (args.without != 1) __syncwarp();
  __ballot_sync(~0u, 1);
  args.out[threadIdx.x] = bytes[threadIdx.x / 32 * 32 + 31 - threadIdx.x % 32];
  if (args.without != 2) __syncwarp();
  bytes[threadIdx.x] = 1;
}

// A warp that synchronises does not wait for the others.
KERNEL(warps_alone, Args) {
  __shared__ u32 word;
  if (threadIdx.x == 0) word = 7;
  if (args.without == 1) __syncwarp();
  else __syncthreads();
  args.out[threadIdx.x] = word;
}

// Several write the same value; by an atomic that is no hazard.
KERNEL(same_value, Args) {
  __shared__ u32 word;
  if (threadIdx.x == 0) word = 0;
  __syncthreads();
  if (args.without == 1) word = 1;
  else atomicOr(&word, 1u);
  if (args.without != 2) __syncthreads();
  args.out[threadIdx.x] = word;
}

// A place for even and one for odd turns, one barrier a turn; with one place for both it takes two.
KERNEL(by_turns, Args) {
  __shared__ u32 words[2];
  u32 sum = 0;
  for (u32 turn = 0; turn < 5; turn++) {
    u32* word = words + (args.without == 1 ? 0 : turn % 2);
    if (threadIdx.x == turn * 7) *word = turn;
    __syncthreads();
    sum += *word;
  }
  args.out[threadIdx.x] = sum;
}

// Neighbouring bytes are not the same byte, and blocks share nothing.
KERNEL(clean, Args) {
  __shared__ unsigned char bytes[64];
  bytes[threadIdx.x]++;
  args.out[threadIdx.x] = bytes[threadIdx.x];
}
"#;

fn library() -> Option<Library> {
    match Library::compile_checked("check.cu", &format!("{TIDEMILL_CUH}{KERNELS}")) {
        Ok(library) => Some(library),
        Err(error @ EmulateError::NoCompiler { .. })
            if env::var_os("TIDEMILL_REQUIRE_EMULATION").is_none_or(|value| value != "1") =>
        {
            tidemill_skip::skipped(&error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What is wrong with a kernel of 64 threads, over two blocks.
fn problem(library: &Library, kernel: &str, without: u64) -> Option<String> {
    let mut out = [0_u32; 64];
    let args = Args { out: out.as_mut_ptr() as u64, without };
    let kernel = library.kernel(kernel).expect("the text has this kernel");
    // SAFETY: each of 64 threads writes its element of `out`, and 64 bytes are what the kernels share.
    let run = unsafe { kernel.run([2, 1, 1], [64, 1, 1], 64, bytemuck::bytes_of(&args)) };
    run.err().map(|error| error.to_string())
}

#[test]
fn hazards_are_found_where_a_barrier_is_missing() {
    let Some(library) = library() else { return };
    for (kernel, without) in [
        ("across_warps", 1),
        ("across_warps", 2),
        ("across_lanes", 1),
        ("across_lanes", 2),
        ("warps_alone", 1),
        ("same_value", 1),
        ("same_value", 2),
        ("by_turns", 1),
    ] {
        let found = problem(&library, kernel, without).unwrap_or_default();
        assert!(found.contains("without a barrier between"), "{kernel} without {without}: {found}");
        assert_eq!(problem(&library, kernel, 0), None, "{kernel}");
    }
    assert_eq!(problem(&library, "clean", 0), None);
}
