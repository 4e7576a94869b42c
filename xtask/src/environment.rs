//! Virtual environments of Python under the target folder, each with a few packages from PyPI. They stay there between runs; a mark says
//! what was installed completely.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The Python of an environment with these packages, which is made if it is not there yet.
pub fn with(environment: &Path, packages: &[&str]) -> Result<PathBuf> {
    let python =
        if cfg!(windows) { environment.join("Scripts/python.exe") } else { environment.join("bin/python") };
    let (mark, wanted) = (environment.join("installed"), packages.join(" "));
    if std::fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    crate::step(&format!("installing {wanted}"));
    std::fs::create_dir_all(environment)?;
    run(system()?.args(["-m", "venv", "--clear"]).arg(environment)).context("no virtual environment")?;
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    run(Command::new(&python).args(install).args(packages)).context("pip failed")?;
    std::fs::write(mark, wanted)?;
    Ok(python)
}

/// The Python of the system, under the first name that works.
fn system() -> Result<Command> {
    let works = |name: &&str| {
        let status = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let name = ["python3", "python"].into_iter().find(works).context("there is no Python")?;
    Ok(Command::new(name))
}

/// Runs a command; its last line is the error.
fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        String::from_utf8_lossy(if output.stderr.is_empty() { &output.stdout } else { &output.stderr })
            .into_owned();
    bail!("{}", said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it gave no reason").trim())
}
