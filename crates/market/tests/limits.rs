//! Bad files stay within a limit of memory: what they claim is not believed.
//!
//! A test of its own, since it counts what the whole process has allocated.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tidemill_market::{LoadOptions, load};

/// Most that a file of the corpus may make the loader allocate: 64 MiB unpacked freely, a page of 128 MiB, and room.
const MOST_BYTES: usize = 320 << 20;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting what is held.
struct Counting;

// SAFETY: every call is handed to the system's allocator with the caller's own arguments.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(held, Ordering::Relaxed);
        // SAFETY: the caller's layout.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's pointer and layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn no_file_of_the_corpus_takes_more_memory_than_the_limits_allow() {
    let corpus = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus"));
    let mut files: Vec<PathBuf> = fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for path in files {
        let held = HELD.load(Ordering::Relaxed);
        MOST.store(held, Ordering::Relaxed);
        let outcome = load(std::slice::from_ref(&path), &LoadOptions::default());
        let most = MOST.load(Ordering::Relaxed).saturating_sub(held);
        assert!(most < MOST_BYTES, "{}: {} MiB", path.display(), most >> 20);
        drop(outcome);
    }
}
