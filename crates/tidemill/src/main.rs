//! The `tidemill` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidemill::run(std::env::args_os())
}
