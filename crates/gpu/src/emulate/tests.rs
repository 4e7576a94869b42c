use std::thread;

use bytemuck::{Pod, Zeroable};

use super::*;
use crate::TIDEMILL_CUH;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Args {
    data: u64,
    out: u64,
    n: u32,
    other: u32,
}

const KERNELS: &str = r#"
struct Args { const u32* data; u32* out; u32 n, other; };

#ifndef ADDED
#define ADDED 1
#endif

KERNEL(add_one, Args) {
  u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < args.n) args.out[i] = args.data[i] + ADDED;
}

// Sections of 8 lanes: the even ones vote, the odd ones shuffle, at the same time.
KERNEL(sections, Args) {
  u32 lane = threadIdx.x % 32;
  u32 section = lane / 8;
  u32 mask = 0xffu << section * 8;
  u32 result = 0;
  for (u32 turn = 0; turn < 3 + section; turn++) {
    if (section % 2 == 0) {
      result = result * 7 + __ballot_sync(mask, (lane + turn) % 3 == 0);
    } else {
      u64 wide = (u64)lane << 32 | turn;
      wide = __shfl_up_sync(mask, wide, 1, 8);
      result = result * 7 + (u32)(wide >> 32) + (u32)wide;
    }
  }
  args.out[threadIdx.x] = result;
}

KERNEL(shuffles, Args) {
  u32 lane = threadIdx.x;
  u32* out = args.out + lane * 6;
  out[0] = __shfl_sync(~0u, lane, 5, 8);
  out[1] = __shfl_up_sync(~0u, lane, 3);
  out[2] = __shfl_down_sync(~0u, lane, 3, 16);
  out[3] = __shfl_xor_sync(~0u, lane, 17);
  out[4] = __any_sync(~0u, lane == 31) * 2 + __all_sync(~0u, lane != 31);
  out[5] = __shfl_sync(~0u, (double)lane, 31 - lane) == 31.0 - lane;
}

// A sum over a block of any shape, through shared memory.
KERNEL(block_sum, Args) {
  __shared__ u32 total;
  extern __shared__ u32 partial[];
  u32 n = blockDim.x * blockDim.y * blockDim.z;
  u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  partial[thread] = args.data[blockIdx.x * n + thread];
  if (thread == 0) total = 0;
  __syncthreads();
  for (u32 step = 1; step < n; step *= 2) {
    u32 other = thread + step < n ? partial[thread + step] : 0;
    __syncthreads();
    partial[thread] += other;
    __syncthreads();
  }
  atomicAdd(&total, args.data[blockIdx.x * n + thread]);
  __syncthreads();
  if (thread == n - 1) args.out[blockIdx.x] = partial[0] == total ? total : ~0u;
}

// Threads leave at different times; the rest go on voting and meeting at the barrier.
KERNEL(leavers, Args) {
  u32 thread = threadIdx.x;
  u32 votes = 0;
  for (u32 turn = 0; turn < thread; turn++) {
    votes += __popc(__ballot_sync(~0u, 1));
    __syncthreads();
  }
  args.out[thread] = votes;
}

KERNEL(atomics, Args) {
  u32 i = threadIdx.x;
  atomicMax(args.out + 0, i);
  atomicMin(args.out + 1, i + 5);
  atomicOr(args.out + 2, 1u << i % 32);
  atomicAnd(args.out + 3, ~(1u << i % 32));
  atomicCAS(args.out + 4, i, i + 1);
  atomicAdd((u64*)(args.out + 6), (u64)1 << 33);
}

KERNEL(divided_barrier, Args) {
  if (threadIdx.x < 16) __ballot_sync(~0u, 1);
  else __syncthreads();
}

KERNEL(wrong_mask, Args) { __syncwarp(1); }
"#;

/// The library, or `None` and a line that says so where there is no compiler.
fn library() -> Option<Library> {
    library_with(&[])
}

fn library_with(options: &[&str]) -> Option<Library> {
    match Library::compile_with("tests.cu", &format!("{TIDEMILL_CUH}{KERNELS}"), options) {
        Ok(library) => Some(library),
        Err(error @ EmulateError::NoCompiler { .. }) => {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn run(
    library: &Library,
    name: &str,
    grid: u32,
    block: [u32; 3],
    data: &[u32],
    out: &mut [u32],
) -> Result<(), EmulateError> {
    let args =
        Args { data: data.as_ptr() as u64, out: out.as_mut_ptr() as u64, n: data.len() as u32, other: 0 };
    let kernel = library.kernel(name).expect("the text has this kernel");
    let shared_bytes = block.iter().product::<u32>() * 4;
    // SAFETY: the kernels stay within `n` elements of `data`, and tests give an `out` for all threads.
    unsafe { kernel.run([grid, 1, 1], block, shared_bytes, bytemuck::bytes_of(&args)) }
}

#[test]
fn every_thread_of_every_block_runs_once() {
    let Some(library) = library() else { return };
    let data: Vec<u32> = (0..100_000).collect();
    let mut out = vec![0; data.len()];
    run(&library, "add_one", 391, [256, 1, 1], &data, &mut out).unwrap();
    assert!(out.iter().zip(&data).all(|(out, data)| *out == data + 1));
}

#[test]
fn other_options_are_another_library_on_disk() {
    for (options, added) in [(&[][..], 1), (&["-DADDED=2"], 2), (&["-DADDED=3"], 3), (&[], 1)] {
        let Some(library) = library_with(options) else { return };
        let mut out = [0];
        run(&library, "add_one", 1, [32, 1, 1], &[10], &mut out).unwrap();
        assert_eq!(out, [10 + added], "{options:?}");
    }
}

#[test]
fn sections_of_a_warp_meet_on_their_own() {
    for options in [&[][..], &["-DEMULATE_UCONTEXT"]] {
        let Some(library) = library_with(options) else { return };
        let mut out = vec![0; 96];
        run(&library, "sections", 1, [96, 1, 1], &[], &mut out).unwrap();
        for (thread, &out) in out.iter().enumerate() {
            let (lane, section) = (thread % 32, thread % 32 / 8);
            let mut expected = 0_u32;
            for turn in 0..3 + section {
                let value = if section % 2 == 0 {
                    (0..8).map(|i| section * 8 + i).filter(|l| (l + turn) % 3 == 0).map(|l| 1_u32 << l).sum()
                } else {
                    ((if lane % 8 == 0 { lane } else { lane - 1 }) + turn) as u32
                };
                expected = expected.wrapping_mul(7).wrapping_add(value);
            }
            assert_eq!(out, expected, "thread {thread}");
        }
    }
}

#[test]
fn shuffles_read_the_lane_they_name() {
    let Some(library) = library() else { return };
    let mut out = vec![0; 32 * 6];
    run(&library, "shuffles", 1, [32, 1, 1], &[], &mut out).unwrap();
    for lane in 0..32_u32 {
        let down = if lane % 16 + 3 < 16 { lane + 3 } else { lane };
        let up = if lane >= 3 { lane - 3 } else { lane };
        let expected = [lane / 8 * 8 + 5, up, down, lane ^ 17, 2, 1];
        assert_eq!(out[lane as usize * 6..][..6], expected, "lane {lane}");
    }
}

#[test]
fn blocks_share_memory_and_barriers_in_any_shape() {
    let Some(library) = library() else { return };
    for block in [[1, 1, 1], [33, 1, 1], [8, 5, 3], [1024, 1, 1]] {
        let n: u32 = block.iter().product();
        let data: Vec<u32> = (0..n * 3).map(|i| i * i % 1_001).collect();
        let mut out = vec![0; 3];
        run(&library, "block_sum", 3, block, &data, &mut out).unwrap();
        let sums: Vec<u32> = data.chunks(n as usize).map(|part| part.iter().sum()).collect();
        assert_eq!(out, sums, "{block:?}");
    }
}

#[test]
fn threads_that_have_left_are_not_waited_for() {
    let Some(library) = library() else { return };
    let mut out = vec![0; 70];
    run(&library, "leavers", 1, [70, 1, 1], &[], &mut out).unwrap();
    for thread in 0..70_u32 {
        let end = (thread / 32 * 32 + 32).min(70);
        let votes: u32 = (0..thread).map(|turn| end - (thread / 32 * 32).max(turn + 1)).sum();
        assert_eq!(out[thread as usize], votes, "thread {thread}");
    }
}

#[test]
fn atomics_return_what_cuda_says() {
    let Some(library) = library() else { return };
    let mut out = vec![0, u32::MAX, 0, u32::MAX, 0, 0, 0, 0];
    run(&library, "atomics", 1, [24, 1, 1], &[], &mut out).unwrap();
    assert_eq!(out, [23, 5, 0x00ff_ffff, 0xff00_0000, 24, 0, 0, 48]);
}

#[test]
fn a_launch_that_cannot_end_is_reported() {
    let Some(library) = library() else { return };
    let mut out = vec![0; 32];
    let error = run(&library, "divided_barrier", 2, [32, 1, 1], &[], &mut out).unwrap_err().to_string();
    assert!(error.contains("divided_barrier") && error.contains("deadlock"), "{error}");
    assert!(error.contains("16 threads wait in __syncthreads for 32"), "{error}");
    assert!(error.contains("__ballot_sync with mask 0xffffffff, lanes 0xffff came"), "{error}");
    let error = run(&library, "wrong_mask", 1, [2, 1, 1], &[], &mut out).unwrap_err().to_string();
    assert!(error.contains("does not name it"), "{error}");
    let error = run(&library, "add_one", 1, [1025, 1, 1], &[], &mut out).unwrap_err().to_string();
    assert!(error.contains("1 to 1024 threads"), "{error}");
    // What failed leaves nothing behind.
    run(&library, "add_one", 1, [32, 1, 1], &[1, 2, 3], &mut out).unwrap();
    assert_eq!(out[..3], [2, 3, 4]);
}

#[test]
fn arguments_of_another_size_are_refused() {
    let Some(library) = library() else { return };
    let kernel = library.kernel("add_one").unwrap();
    assert_eq!(kernel.args_size(), size_of::<Args>());
    // SAFETY: it is refused.
    let refused = unsafe { kernel.run([1; 3], [1; 3], 0, &[0; 8]) };
    assert!(matches!(refused, Err(EmulateError::Arguments { given: 8, .. })));
    assert!(library.kernel("absent").is_none());
}

#[test]
fn several_host_threads_run_kernels_at_once() {
    let Some(library) = library() else { return };
    thread::scope(|scope| {
        for seed in 0..4_u32 {
            let library = library.clone();
            scope.spawn(move || {
                let data: Vec<u32> = (0..128 * 50).map(|i| i ^ seed).collect();
                let mut out = vec![0; 50];
                run(&library, "block_sum", 50, [128, 1, 1], &data, &mut out).unwrap();
                let sums: Vec<u32> = data.chunks(128).map(|part| part.iter().sum()).collect();
                assert_eq!(out, sums);
            });
        }
    });
}

#[test]
fn errors_name_the_text_and_the_line() {
    if library().is_none() {
        return;
    }
    let error = Library::compile("walk.cu", "KERNEL(f, int) {\n  nonsense;\n}\n").unwrap_err().to_string();
    assert!(error.contains("walk.cu:2") && error.contains("nonsense"), "{error}");
}
