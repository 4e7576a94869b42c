//! The `tidemill` program.

/// Columns lie in large pages with it, so that single values are found sooner, and threads give memory to each other at little cost.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    std::process::exit(tidemill::run(std::env::args_os()))
}
