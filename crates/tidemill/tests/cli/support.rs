//! Runs the program in a folder of its own and reads what it says.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder to work in.
pub struct Place {
    dir: TempDir,
}

/// What a run said.
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Place {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// A folder with `lcg.csv` in it: 5,000 bars of 15 minutes, the data of the reference results.
    pub fn with_bars() -> Self {
        let place = Self::new();
        place.ok("data generate --kind lcg --bars 5000 --out lcg.csv");
        place
    }

    /// Writes generated bars that every shipped strategy runs on: the first symbol is the one that others are gated by.
    pub fn with_gate(&self, options: &str, name: &str) {
        self.ok(&format!("data generate {options} --out {name}"));
        self.write(name, self.read(name).replace("SYN0", "BTCUSDT"));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidemill"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        // The terminal of the developer must not decide what a test sees.
        command.env_remove("COLUMNS").env_remove("CLICOLOR_FORCE");
        command
    }

    /// Runs with these arguments, one string each.
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        CommandOutput::new(self.command(args).output().unwrap())
    }

    /// Runs a line whose words are separated by blanks.
    pub fn line(&self, line: &str) -> CommandOutput {
        self.run(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs a line that must succeed.
    pub fn ok(&self, line: &str) -> CommandOutput {
        let said = self.line(line);
        assert_eq!(said.code, Some(0), "{line}: {}", short(&said.stderr));
        said
    }

    /// Runs a line that must succeed and print one JSON value.
    pub fn json(&self, line: &str) -> Value {
        self.ok(&format!("{line} --json")).json()
    }

    /// Runs a line that must be refused: exit code 2, nothing on stdout, the reason on stderr, never a panic.
    pub fn refused(&self, line: &str, reason: &str) -> CommandOutput {
        let said = self.line(line);
        said.is_refusal(line, reason);
        said
    }
}

impl CommandOutput {
    pub fn new(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// stdout as JSON; a NaN or an infinity in it would not parse.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", short(&self.stdout)))
    }

    pub fn is_refusal(&self, what: &str, reason: &str) {
        let (out, err) = (short(&self.stdout), short(&self.stderr));
        assert_eq!(self.code, Some(2), "{what}: {err}{out}");
        assert!(self.stdout.is_empty(), "{what}: {out}");
        assert!(self.stderr.contains(reason), "{what}: `{reason}` is not in: {err}");
        assert!(!self.stderr.contains("panicked"), "{what}: {err}");
    }
}

/// The beginning of a text, which may have a line for each of ten thousand parameters.
fn short(text: &str) -> &str {
    text.char_indices().nth(2000).map_or(text, |(end, _)| &text[..end])
}

/// The table of trials that a sweep prints, behind the verdict and the figures of the winner.
pub fn ranked(stdout: &str) -> &str {
    stdout.split("\n\n").nth(2).unwrap_or_else(|| panic!("there is no table: {stdout}"))
}

/// What a sweep answers, less what depends on the clock.
pub fn timeless(mut answer: Value) -> Value {
    for key in ["seconds", "trials_per_second", "bar_evaluations_per_second"] {
        let removed = answer.as_object_mut().unwrap().remove(key);
        assert!(removed.is_some_and(|value| value.is_number()), "{key}");
    }
    for key in ["busy", "fill"] {
        let removed = answer.as_object_mut().unwrap().remove(key);
        assert!(removed.is_some_and(|value| value.is_number() || value.is_null()), "{key}");
    }
    let timing = answer.as_object_mut().unwrap().remove("timing");
    assert!(timing.is_some_and(|timing| timing["evaluate"].is_number()));
    answer
}

/// `--set` arguments for these parameters; null stands for one that is inactive.
pub fn settings(params: &Value) -> Vec<String> {
    params
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| format!("--set={name}={value}"))
        .collect()
}

/// A folder of data that some checkouts have next to them.
pub fn shared_data() -> Option<PathBuf> {
    let dir = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if dir.is_dir() {
        return Some(dir.to_path_buf());
    }
    tidemill_skip::skipped("there is no shared data next to this checkout");
    None
}
