//! A browser for the tests of the dashboard, installed where that is possible without asking anybody.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// Names under which a browser that the tests can drive may be in the path.
const NAMES: [&str; 5] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];

/// Makes sure that there is a browser.
pub fn ensure() -> Result<()> {
    if std::env::var_os("TIDEMILL_BROWSER").is_some_and(|named| !named.is_empty())
        || NAMES.iter().any(is_in_path)
    {
        return Ok(());
    }
    if !is_in_path(&"apt-get") {
        bail!("there is no Chromium in the path, and no apt-get to install it with");
    }
    if !is_root() {
        bail!("there is no Chromium in the path, and only root may install it: `apt-get install chromium`");
    }
    crate::step("installing Chromium for the tests");
    run(&["update"])?;
    run(&["install", "--yes", "--no-install-recommends", "chromium"])
}

fn is_in_path(name: &&str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder: PathBuf| folder.join(name)).any(|file| file.is_file())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").stderr(Stdio::null()).output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

fn run(arguments: &[&str]) -> Result<()> {
    let output = Command::new("apt-get")
        .args(["-o", "Acquire::Retries=3"])
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .stdin(Stdio::null())
        .output()
        .context("cannot start apt-get")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    bail!("`apt-get {}` failed: {}", arguments.join(" "), said.trim().lines().last().unwrap_or_default())
}
