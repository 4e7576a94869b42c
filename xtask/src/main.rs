//! The project's own commands, for people and for CI: `cargo xtask test | stress | check | lint | ci | wheel | quality`.

mod browser;
mod concept;
mod environment;
mod import;
mod long_file;
mod markdown;
mod nvrtc;
mod reference;
mod repository;
mod root;
mod size;
mod skip;
mod source;
mod stress;
mod type_name;
mod unused;
mod wheel;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand};

use crate::repository::Repository;

const USAGE: &str = "\
Usage: cargo xtask <command>

  test [ARGS]  check the structure, then build and run all tests (release profile); ARGS go to `cargo test`.
               Installs NVRTC from PyPI, 13.0 into target/nvrtc and 12.9 into target/nvrtc-12, unless TIDEMILL_NVRTC,
               TIDEMILL_NVRTC_13 and TIDEMILL_NVRTC_12 name others, and Chromium where there is none and apt-get may
               be used. Ends with the tests that were skipped, and why
  stress [--rounds N] [WORDS]
               run the tests that sleep, wait, spawn or race N times (100) beside four busy processes;
               WORDS choose files or tests whose name has one of them in it
  check        the structure: who may import whom, names of files and types, no printing in libraries; long source
               files without a reason, tracked files above 1 MB, unknown files in the root; links, images and paths
               in Markdown
  lint         formatting, clippy and the links of the documentation, warnings are errors
  ci           lint, check and test
  wheel [ARGS] build the wheel of the Python package into target/wheels, by maturin with zig; ARGS go to maturin
  quality [ARGS]
               how good the samplers search, beside recorded results of others; ARGS go to `tidemill-bench quality`
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (command, rest) = match arguments.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => ("help", &[][..]),
    };
    let result = match (command, rest) {
        ("test", rest) => test(rest),
        ("stress", rest) => stress(rest),
        (stress::SPIN, []) => stress::spin(),
        ("check", []) => check(),
        ("lint", []) => lint(),
        ("ci", []) => lint().and_then(|()| test(&[])),
        ("quality", rest) => quality(rest),
        ("wheel", rest) => wheel(rest),
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
    let skips = skip::fresh_file(metadata()?.target_directory.as_std_path())?;
    let mut variables = nvrtc_variables()?;
    variables.push((skip::FILE, skips.clone().into_os_string()));
    let tested = cargo_with(&command, variables);
    // Also after a failure: what failed may not be all that is missing.
    let ignored = skip::ignored(&workspace_root()?)?;
    let is_asked_for = arguments.iter().any(|argument| argument.ends_with("ignored"));
    step(&skip::report(&skips, if is_asked_for { &[] } else { &ignored }));
    tested
}

fn stress(arguments: &[String]) -> Result<()> {
    stress::run(&workspace_root()?, arguments, nvrtc_variables()?)
}

/// Where the tests find each version of NVRTC, and the one that all others use; not those that are set or cannot be had.
fn nvrtc_variables() -> Result<Vec<(&'static str, OsString)>> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|folder| !folder.is_empty());
    let target_dir = metadata()?.target_directory;
    let mut variables = Vec::new();
    for (version, names) in [
        (nvrtc::NEWER, &[nvrtc::NEWER.variable, "TIDEMILL_NVRTC"][..]),
        (nvrtc::OLDER, &[nvrtc::OLDER.variable]),
    ] {
        let unset: Vec<&str> = names.iter().copied().filter(|name| !is_set(name)).collect();
        if unset.is_empty() {
            continue;
        }
        match nvrtc::folder(&version, target_dir.as_std_path()) {
            Ok(folder) => {
                variables.extend(unset.into_iter().map(|name| (name, folder.clone().into_os_string())))
            }
            Err(error) => {
                eprintln!(
                    "note: NVRTC could not be installed, tests use what the system has or skip: {error:#}"
                );
            }
        }
    }
    Ok(variables)
}

fn quality(arguments: &[String]) -> Result<()> {
    let mut command = vec!["run", "--release", "-p", "tidemill-bench", "--", "quality"];
    command.extend(arguments.iter().map(String::as_str));
    cargo(&command)
}

fn wheel(arguments: &[String]) -> Result<()> {
    wheel::build(&workspace_root()?, metadata()?.target_directory.as_std_path(), arguments)
}

fn lint() -> Result<()> {
    let hint = "`rustup component add rustfmt clippy` installs the tools, `cargo fmt --all` formats";
    cargo(&["fmt", "--all", "--", "--check"]).context(hint)?;
    cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    let denied = ("RUSTDOCFLAGS", OsString::from("-D warnings"));
    cargo_with(&["doc", "--workspace", "--no-deps"], [denied])
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
    problems.extend(long_file::check(&root, &repository)?);
    problems.extend(type_name::check(&root, &repository)?);
    problems.extend(unused::check(&root, &repository)?);
    problems.extend(reference::check(&root, &repository)?);
    problems.extend(concept::check(&root)?);
    problems.extend(stress::check(&root)?);
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
        .context("`cargo metadata` failed, so imports cannot be checked")
}

/// Runs cargo in the workspace, after saying so.
fn cargo(arguments: &[&str]) -> Result<()> {
    cargo_with(arguments, [])
}

/// The same with variables in its environment.
fn cargo_with<'a>(
    arguments: &[&str],
    variables: impl IntoIterator<Item = (&'a str, OsString)>,
) -> Result<()> {
    step(&format!("cargo {}", arguments.join(" ")));
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(program)
        .args(arguments)
        .envs(variables)
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
