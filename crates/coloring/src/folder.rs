//! The folder of a run: its best colouring, and the state from which it can be resumed.
//!
//! `best.sol` is the certificate of the best colouring so far; `state.json` the state at the beginning of its last pass; `color.json` the
//! resolved options. All are replaced as a whole, so that a run may be killed at any instant.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::certificate::{Certificate, replace};
use crate::controller::State;
use crate::error::ColoringError;
use crate::instance::Instance;

/// Version of the files.
const VERSION: u32 = 1;

/// A folder for one run.
#[derive(Clone, Debug)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// A folder for a new run; it is made if it is not there. One that already holds a run is refused.
    pub fn create(path: &Path) -> Result<Self, ColoringError> {
        let folder = Self { path: path.to_owned() };
        if folder.options_file().exists() {
            return Err(ColoringError::Content {
                path: path.into(),
                problem: "the folder already holds a run".into(),
                hint: "continue it with --resume, or choose another folder".into(),
            });
        }
        std::fs::create_dir_all(path).map_err(ColoringError::write(path))?;
        Ok(folder)
    }

    /// The folder of a run that was begun earlier.
    pub fn open(path: &Path) -> Result<Self, ColoringError> {
        let folder = Self { path: path.to_owned() };
        match folder.options_file().is_file() {
            true => Ok(folder),
            false => Err(ColoringError::Content {
                path: path.into(),
                problem: "the folder holds no colouring run".into(),
                hint: "start one with `tidemill color GRAPH --out FOLDER`".into(),
            }),
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The certificate of the best colouring.
    pub fn best_file(&self) -> PathBuf {
        self.path.join("best.sol")
    }

    /// The journal of the run.
    pub fn journal_file(&self) -> PathBuf {
        self.path.join("journal.jsonl")
    }

    fn options_file(&self) -> PathBuf {
        self.path.join("color.json")
    }

    fn state_file(&self) -> PathBuf {
        self.path.join("state.json")
    }

    /// Writes the resolved options of the run and the identity of its graph.
    pub fn write_options(&self, instance: &Instance, options: Value) -> Result<(), ColoringError> {
        let whole = json!({
            "version": VERSION,
            "graph": instance.name,
            "sha256": instance.sha256(),
            "options": options,
        });
        replace(&self.options_file(), format!("{whole:#}\n").as_bytes())
    }

    /// The options of the run, if it is about this graph.
    pub fn read_options(&self, instance: &Instance) -> Result<Value, ColoringError> {
        let path = self.options_file();
        let mut whole = read_json(&path)?;
        let problem = |problem: String, hint: &str| ColoringError::Content {
            path: path.clone(),
            problem,
            hint: hint.to_owned(),
        };
        if whole["version"] != VERSION {
            return Err(problem(
                format!("version {} of the format", whole["version"]),
                "this program reads version 1",
            ));
        }
        if whole["sha256"] != instance.sha256() {
            let of = whole["graph"].as_str().unwrap_or_default();
            return Err(problem(
                format!("the run belongs to another graph, `{of}`"),
                "use the graph that the run was started with",
            ));
        }
        Ok(whole["options"].take())
    }

    /// Writes the best colouring, which the caller has had verified.
    pub fn write_best(&self, instance: &Instance, k: usize, colors: &[u32]) -> Result<(), ColoringError> {
        Certificate::new(instance, k, colors.to_vec()).write(&self.best_file())
    }

    /// Writes the state from which the run can be resumed.
    pub fn write_state(&self, state: &State) -> Result<(), ColoringError> {
        let text = serde_json::to_string(state).map_err(|error| ColoringError::Content {
            path: self.state_file(),
            problem: error.to_string(),
            hint: "this is a defect of the program".into(),
        })?;
        replace(&self.state_file(), text.as_bytes())
    }

    /// The state from which the run can be resumed; none if it was killed before its first pass.
    pub fn read_state(&self) -> Result<Option<State>, ColoringError> {
        let path = self.state_file();
        if !path.exists() {
            return Ok(None);
        }
        let value = read_json(&path)?;
        serde_json::from_value(value).map(Some).map_err(|error| damaged(&path, &error))
    }
}

fn read_json(path: &Path) -> Result<Value, ColoringError> {
    let text = std::fs::read_to_string(path).map_err(ColoringError::read(path))?;
    serde_json::from_str(&text).map_err(|error| damaged(path, &error))
}

fn damaged(path: &Path, error: &serde_json::Error) -> ColoringError {
    ColoringError::Content {
        path: path.into(),
        problem: format!("it is damaged: {error}"),
        hint: "the best colouring is in best.sol; start a new run in another folder".into(),
    }
}
