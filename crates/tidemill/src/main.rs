//! The `tidemill` program.

fn main() {
    std::process::exit(tidemill::run(std::env::args_os()))
}
