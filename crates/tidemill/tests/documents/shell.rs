//! Runs the commands of a page with the built program.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// What would make an output depend on the machine: a GPU, and advice that follows from speed.
const SETTINGS: &str = "[gpu]\ndevice = \"cpu\"\n\n[hypertune]\nmode = \"off\"\n";

/// An empty folder, as a reader may have it, and how many commands were run in it.
pub struct Shell {
    dir: TempDir,
    aside: TempDir,
}

/// Output and exit code of some commands.
#[derive(Debug)]
pub struct CommandOutput {
    /// stdout and stderr as a terminal shows them.
    pub output: String,
    /// Whether the last one ended well; the first that does not ends all.
    pub is_ok: bool,
}

impl Shell {
    pub fn new() -> Self {
        let shell = Self { dir: tempfile::tempdir().unwrap(), aside: tempfile::tempdir().unwrap() };
        fs::write(shell.dir.path().join("tidemill.toml"), SETTINGS).unwrap();
        shell
    }

    /// Saves a file that the page shows.
    pub fn save(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        assert!(Path::new(name).is_relative() && !name.contains(".."), "{name}");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs these commands one after the other.
    pub fn run(&self, commands: &[String]) -> CommandOutput {
        let path = self.aside.path().join("output");
        let file = File::create(&path).unwrap();
        let script =
            format!("set -e\ntidemill() {{ \"$TIDEMILL_PROGRAM\" \"$@\"; }}\n{}\n", commands.join("\n"));
        let status = Command::new("sh")
            .args(["-c", &script])
            .env_remove("COLUMNS")
            .env_remove("CLICOLOR_FORCE")
            .env("TIDEMILL_PROGRAM", env!("CARGO_BIN_EXE_tidemill"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .status()
            .unwrap();
        CommandOutput {
            output: String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned(),
            is_ok: status.success(),
        }
    }
}

/// A block of commands as a list, continued lines joined.
#[derive(Debug, Default, PartialEq)]
pub struct Commands {
    pub run: Vec<String>,
    /// Those that are not, with the reason.
    pub not_run: Vec<(String, &'static str)>,
    /// Those of which it is not known how to run them.
    pub unknown: Vec<String>,
}

impl Commands {
    pub fn read(block: &str) -> Self {
        let mut commands = Self::default();
        for command in block.replace("\\\n", " ").lines().map(str::trim) {
            if command.is_empty() || command.starts_with('#') {
                continue;
            }
            if let Some(arguments) = command.strip_prefix("cargo run --release -- ") {
                commands.run.push(format!("tidemill {}", arguments.trim_start()));
            } else if ["tidemill ", "mkdir "].iter().any(|name| command.starts_with(name)) {
                commands.run.push(command.to_owned());
            } else if command.starts_with("cargo xtask ") {
                commands.not_run.push((command.to_owned(), "`cargo xtask` is what runs this"));
            } else {
                commands.unknown.push(command.to_owned());
            }
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_those_of_the_program() {
        let block = "# first\ntidemill a --b \\\n    c   # d\n\ncargo run --release -- e\ncargo xtask test\npip install x\n";
        assert_eq!(
            Commands::read(block),
            Commands {
                run: vec!["tidemill a --b      c   # d".into(), "tidemill e".into()],
                not_run: vec![("cargo xtask test".into(), "`cargo xtask` is what runs this")],
                unknown: vec!["pip install x".into()],
            }
        );
    }

    #[test]
    fn the_program_runs_in_the_folder_and_stops_at_the_first_failure() {
        let shell = Shell::new();
        shell.save("sub/a.txt", "x");
        let commands = ["tidemill strategies | grep -c ema-cross; ls sub", "tidemill nonsense", "ls sub"];
        let ran = shell.run(&commands.map(str::to_owned));
        assert!(ran.output.starts_with("1\na.txt\n") && !ran.is_ok, "{ran:?}");
        assert_eq!(ran.output.matches("a.txt").count(), 1, "{ran:?}");
    }
}
