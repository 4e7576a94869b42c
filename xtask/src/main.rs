//! The project's own commands, for people and for CI: `cargo xtask test | check | lint | ci | quality`.

mod browser;
mod import;
mod markdown;
mod nvrtc;
mod reference;
mod repository;
mod root;
mod size;
mod source;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};

use crate::repository::Repository;

const USAGE: &str = "\
Usage: cargo xtask <command>

  test [ARGS]  check the structure, then build and run all tests (release profile); ARGS go to `cargo test`.
               Installs NVRTC from PyPI into target/nvrtc, unless TIDEMILL_NVRTC names one, and Chromium where
               there is none and apt-get may be used
  check        the structure: who may import whom, file names, no printing in libraries; tracked files above 1 MB,
               unknown files in the root; links, images and paths in Markdown
  lint         formatting, clippy and the links of the documentation, warnings are errors
  ci           lint, check and test
  quality [ARGS]
               how good the samplers search, beside recorded results of others; ARGS go to `tidemill bench quality`
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match (command, rest) {
        ("test", rest) => test(rest),
        ("check", []) => check(),
        ("lint", []) => lint(),
        ("ci", []) => lint().and_then(|()| test(&[])),
        ("quality", rest) => quality(rest),
        ("help" | "--help" | "-h", _) => {
            print!("{USAGE}");
            Ok(())
        }
        _ => {
            eprint!("error: cannot understand `{}`\n\n{USAGE}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn test(arguments: &[String]) -> Result<()> {
    check()?;
    if let Err(error) = browser::ensure() {
        eprintln!("note: the tests in a browser will skip, or fail if one is required: {error:#}");
    }
    let mut command = vec!["test", "--workspace", "--release"];
    command.extend(arguments.iter().map(String::as_str));
    cargo_with(&command, nvrtc_variable()?)
}

/// `TIDEMILL_NVRTC` for the tests, unless it is set or there is none to be had.
fn nvrtc_variable() -> Result<Option<(&'static str, OsString)>> {
    let name = "TIDEMILL_NVRTC";
    if std::env::var_os(name).is_some_and(|folder| !folder.is_empty()) {
        return Ok(None);
    }
    match nvrtc::folder(metadata()?.target_directory.as_std_path()) {
        Ok(folder) => Ok(Some((name, folder.into_os_string()))),
        Err(error) => {
            eprintln!("note: NVRTC could not be installed, tests use what the system has or skip: {error:#}");
            Ok(None)
        }
    }
}

fn quality(arguments: &[String]) -> Result<()> {
    let mut command = vec!["run", "--release", "-p", "tidemill", "--", "bench", "quality"];
    command.extend(arguments.iter().map(String::as_str));
    cargo(&command)
}

fn lint() -> Result<()> {
    let hint = "`rustup component add rustfmt clippy` installs the tools, `cargo fmt --all` formats";
    cargo(&["fmt", "--all", "--", "--check"]).context(hint)?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    let denied = ("RUSTDOCFLAGS", OsString::from("-D warnings"));
    cargo_with(&["doc", "--workspace", "--no-deps"], Some(denied))
}

fn check() -> Result<()> {
    step("checking the structure");
    let metadata = metadata()?;
    let crates: Vec<import::Crate> =
        metadata.workspace_packages().into_iter().map(import::Crate::from).collect();
    let mut problems = import::check(&crates);
    for package in metadata.workspace_packages() {
        let dir = package.manifest_path.parent().context("a manifest lies in a folder")?;
        problems.extend(source::check(&package.name, dir.as_std_path())?);
    }
    let root = workspace_root()?;
    let repository = Repository::at(&root)?;
    match &repository.untracked_because {
        None => {
            problems.extend(size::check(&root, &repository)?);
            problems.extend(root::check(&repository));
        }
        Some(reason) => {
            eprintln!("note: the sizes of files and what is in the root are not checked: {reason}")
        }
    }
    problems.extend(reference::check(&root, &repository)?);
    if problems.is_empty() {
        eprintln!("    {} crates, nothing to object", crates.len());
        return Ok(());
    }
    for problem in &problems {
        eprintln!("  - {problem}");
    }
    bail!("the structure has {} problem(s)", problems.len())
}

fn metadata() -> Result<Metadata> {
    MetadataCommand::new()
        .current_dir(xtask_dir())
        .exec()
        .context("`cargo metadata` failed, so that nobody's imports are known")
}

/// Runs cargo in the workspace, after saying so.
fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, None)
}

/// The same with a variable in its environment.
fn cargo_with(arguments: &[&str], variable: Option<(&str, OsString)>) -> Result<()> {
    step(&format!("cargo {}", arguments.join(" ")));
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .args(arguments)
        .envs(variable)
        .current_dir(workspace_root()?)
        .status()
        .context("cannot start cargo")?;
    if status.success() { Ok(()) } else { bail!("`cargo {}` failed", arguments.join(" ")) }
}

fn step(what: &str) {
    eprintln!("==> {what}");
}

fn xtask_dir() -> PathBuf {
    // Cargo says where this package lies now; the folder it was built in may have moved.
    std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into()).into()
}

fn workspace_root() -> Result<PathBuf> {
    xtask_dir().parent().map(Path::to_owned).context("xtask lies in the workspace")
}
