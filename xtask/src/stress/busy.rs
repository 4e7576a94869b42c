//! Processes that take all the time they get, so that tests run as on a machine that is busy elsewhere.

use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

/// The command of this program that does nothing but compute.
pub const COMMAND: &str = "spin";

/// Busy processes; they end when this is dropped.
pub struct Busy(Vec<Child>);

impl Busy {
    pub fn start(n: usize) -> Result<Self> {
        let program = std::env::current_exe().context("the path of this program is not known")?;
        // Those that are started already end also if the next one cannot be.
        let mut busy = Self(Vec::new());
        for _ in 0..n {
            let child = Command::new(&program).arg(COMMAND).stdin(Stdio::piped()).spawn();
            busy.0.push(child.context("cannot start a busy process")?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that is gone already is as good.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Computes until standard input ends, which it does also when whoever holds its other end is killed.
pub fn spin() -> ! {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let mut number = 0_u64;
    loop {
        number = std::hint::black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
}
