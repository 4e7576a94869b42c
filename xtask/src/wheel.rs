//! The wheel of the Python package, built by maturin with zig as the linker, so that it runs on old distributions too.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// What builds it.
const BUILDERS: [&str; 2] = ["maturin==1.16.*", "ziglang==0.15.*"];

/// The oldest C library that the wheel of Linux may ask for: that of CentOS 7.
const LINUX: &str = "manylinux2014";

/// Builds the wheel into the target folder; further arguments go to maturin. Only Linux has a C library to care for.
pub fn build(root: &Path, target_dir: &Path, arguments: &[String]) -> Result<()> {
    let python = crate::environment::with(&target_dir.join("wheel-env"), &BUILDERS)?;
    let out = target_dir.join("wheels");
    crate::step("building the wheel");
    // Maturin looks for zig behind the first Python of the path.
    let before = python.parent().context("a program lies in a folder")?.to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(before).chain(std::env::split_paths(&path)))?;
    let mut command = Command::new(python);
    command.env("PATH", path);
    command.args(["-m", "maturin", "build", "--release", "--locked", "--out"]).arg(&out).args(arguments);
    if cfg!(target_os = "linux") {
        command.args(["--zig", "--compatibility", LINUX]);
    }
    if !command.current_dir(root).status().context("cannot start maturin")?.success() {
        bail!("maturin failed");
    }
    crate::step(&format!("the wheel is in {}", out.display()));
    Ok(())
}
