//! Why an experiment cannot run.

use std::path::{Path, PathBuf};

use tidemill_backtest::StrategyError;
use tidemill_backtest::diagnostic::nearest;
use tidemill_backtest::segment::SegmentError;
use tidemill_gpu::GpuError;
use tidemill_market::MarketError;
use tidemill_market::timestamp::format_ms;
use tidemill_search::{EnqueueError, FolderError, SamplerError, SpaceError, StudyError};
use tidemill_telemetry::{JournalError, ReadError};

use crate::number;

/// Why an experiment cannot run, or a stored study cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// The strategy has problems.
    #[error(transparent)]
    Strategy(Box<StrategyError>),
    /// There is no shipped strategy of this name.
    #[error("there is no strategy `{name}`\n  hint: {}", strategy_hint(name, known))]
    NoStrategy {
        /// The name that matches no strategy.
        name: String,
        /// The shipped ones.
        known: Vec<&'static str>,
    },
    /// The data cannot be loaded.
    #[error(transparent)]
    Market(Box<MarketError>),
    /// The benchmark cannot be loaded.
    #[error("--benchmark: {0}")]
    BenchmarkData(Box<MarketError>),
    /// A benchmark is one series.
    #[error("--benchmark {name}: the file has {n_symbols} symbols, but a benchmark is one symbol")]
    BenchmarkSymbols {
        /// The file.
        name: String,
        /// Symbols in it.
        n_symbols: usize,
    },
    /// The benchmark is neither a symbol nor a file.
    #[error("--benchmark {name}: neither a symbol of the data nor a file\n  hint: the data has {known}")]
    NoBenchmark {
        /// The name that matches neither symbol nor file.
        name: String,
        /// The first symbols of the data.
        known: String,
    },
    /// A part of the data is named by something that cannot be read.
    #[error("{option} {problem}")]
    Cut {
        /// The option as it was given.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The time between two parts cannot be read.
    #[error("--embargo: {0}")]
    Embargo(Box<MarketError>),
    /// No symbol has a bar that has closed by then.
    #[error(
        "no bar has closed by {}\n  hint: the first one closes at {}; choose a later --at", format_ms(*.at_ms), format_ms(*.first_ms)
    )]
    NoClosedBar {
        /// The time asked for, UTC milliseconds.
        at_ms: i64,
        /// When the first bar closes.
        first_ms: i64,
    },
    /// The data cannot be cut this way.
    #[error(transparent)]
    Segments(#[from] SegmentError),
    /// The parameters make no space.
    #[error("{}", lines(.0))]
    Space(Vec<SpaceError>),
    /// Nothing is left to vary.
    #[error(
        "every parameter is fixed, so there is nothing to sweep\n  hint: use `tidemill backtest`, or leave a parameter free"
    )]
    NothingToSearch,
    /// The sampler cannot be built.
    #[error(transparent)]
    Sampler(#[from] SamplerError),
    /// Points to begin with are wrong.
    #[error("{}", lines(.0))]
    Enqueue(Vec<EnqueueError>),
    /// What is to be tried first cannot be read.
    #[error("--enqueue {argument}: {reason}")]
    EnqueueArgument {
        /// As it was given.
        argument: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no such device.
    #[error(
        "--device {choice}: {error}\n  hint: `tidemill doctor` looks for the cause; with --device cpu the results are the same"
    )]
    NoDevice {
        /// Value of `--device`.
        choice: String,
        /// The underlying error.
        error: GpuError,
    },
    /// The strategy cannot be prepared on a device.
    #[error("{name}: {error}")]
    Device {
        /// The device.
        name: String,
        /// The underlying error.
        error: GpuError,
    },
    /// A device failed while it was compared with the CPU.
    #[error("{case}: {error}")]
    Parity {
        /// Strategy, data and device.
        case: String,
        /// The underlying error.
        error: GpuError,
    },
    /// A study cannot lose trials.
    #[error(
        "the study in {} has {} trials, and {} are requested: trials can be added, not removed\n  hint: --trials {stored} or more goes on with it; \
         fewer trials need another folder",
        dir.display(), number::count(*stored), number::count(*asked)
    )]
    FewerTrials {
        /// Where the study is.
        dir: PathBuf,
        /// Its number of trials.
        stored: u64,
        /// The requested number.
        asked: u64,
    },
    /// A grid cannot get other trials.
    #[error(
        "{} holds a grid of {} trials, and {} are requested: the levels of a grid follow from its number of trials\n  hint: choose another folder, \
         or --trials {stored} to go on with this one; studies of all other samplers can be given more trials",
        dir.display(), number::count(*stored), number::count(*asked)
    )]
    GridTrials {
        /// Where the study is.
        dir: PathBuf,
        /// Its number of trials.
        stored: u64,
        /// The requested number.
        asked: u64,
    },
    /// The study does not have the text of its strategy.
    #[error("the study in {} does not have the text of its strategy, so that no trial of it can be evaluated again", dir.display())]
    NoSource {
        /// Where the study is.
        dir: PathBuf,
    },
    /// The study does not say where its data is.
    #[error("the study in {} does not record where its data came from\n  hint: name the data with --data", dir.display())]
    NoRecipe {
        /// Where the study is.
        dir: PathBuf,
    },
    /// The data of a study is gone.
    #[error("the data {} of the study in {} is not there any more\n  hint: put it back, or name it with --data", path.display(), dir.display())]
    DataGone {
        /// Where the study is.
        dir: PathBuf,
        /// The first file that is missing.
        path: PathBuf,
    },
    /// Data is not that of a study.
    #[error(
        "the data is not that of the study in {}: it has the fingerprint {found}, and the study was made on {stored}\n  hint: name the data \
         that the study was made on with --data",
        dir.display()
    )]
    OtherData {
        /// Where the study is.
        dir: PathBuf,
        /// Fingerprint in the study.
        stored: String,
        /// Fingerprint of the data.
        found: String,
    },
    /// A part of a study cannot be searched or merged.
    #[error("{}: {reason}", dir.display())]
    Part {
        /// Where the part, or the study, is.
        dir: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Parts are for samplers that do not learn.
    #[error(
        "--part: the sampler `{sampler}` learns from all trials, so that its studies cannot be cut into parts
  hint: choose random, sobol or grid, or spread the study over workers with --workers"
    )]
    PartOfLearning {
        /// Name of the sampler.
        sampler: &'static str,
    },
    /// A study cannot take the name of something else.
    #[error("{} is there already\n  hint: choose another name", path.display())]
    NameTaken {
        /// What is there.
        path: PathBuf,
    },
    /// There is no such trial.
    #[error("the study in {} has no trial {trial}: it has {}", dir.display(), number::counted(*n_trials, "trial"))]
    NoTrial {
        /// Where the study is.
        dir: PathBuf,
        /// The number that does not exist.
        trial: u64,
        /// Trials that it has, counted from 0.
        n_trials: u64,
    },
    /// A trial does not give again what the study has.
    #[error(
        "trial {trial} of the study in {} gives {found} now, and the study has {stored}: this version evaluates it differently\n  hint: make \
         the study again in another folder",
        dir.display()
    )]
    NotAsStored {
        /// Where the study is.
        dir: PathBuf,
        /// The trial.
        trial: u64,
        /// Objective in the study.
        stored: String,
        /// Objective now.
        found: String,
    },
    /// Trials of a study are not points of its strategy.
    #[error("the trials of the study in {} do not have the parameters and metrics of its strategy", dir.display())]
    OtherColumns {
        /// Where the study is.
        dir: PathBuf,
    },
    /// The study folder.
    #[error(transparent)]
    Folder(Box<FolderError>),
    /// The search failed.
    #[error(transparent)]
    Study(Box<StudyError>),
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal of an earlier run cannot be read.
    #[error("cannot read the recorded hypertune decisions: {0}")]
    Decisions(ReadError),
    /// Windows of a walk-forward do not fit the data.
    #[error(transparent)]
    Windows(#[from] crate::walkforward::WindowError),
    /// A window of a walk-forward failed.
    #[error("window {number}: {error}")]
    Window {
        /// Which one, from 1.
        number: usize,
        /// The underlying error.
        error: Box<LabError>,
    },
    /// A file of a study is damaged.
    #[error("{} is damaged: {reason}\n  hint: {hint}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
        /// What to do.
        hint: &'static str,
    },
    /// The study cannot be stored as TOML.
    #[error("cannot store the configuration: {0}")]
    Config(#[from] toml::ser::Error),
    /// A file or folder cannot be used.
    #[error("cannot {action} {}: {error}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
}

/// Large errors are boxed, so that results stay small.
macro_rules! boxed {
    ($($variant:ident: $error:ty),*) => {
        $(impl From<$error> for LabError {
            fn from(error: $error) -> Self {
                Self::$variant(Box::new(error))
            }
        })*
    };
}

boxed!(Strategy: StrategyError, Market: MarketError, Folder: FolderError, Study: StudyError);

impl LabError {
    /// For `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |error| Self::Io { action, path: path.to_owned(), error }
    }
}

/// An error with all its causes.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn lines(problems: &[impl ToString]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The strategy that was probably meant, or all that are shipped.
fn strategy_hint(name: &str, known: &[&str]) -> String {
    let stem = name.strip_suffix(".toml").unwrap_or(name).replace('_', "-");
    match nearest(&stem, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("give the path of a .toml file, or one of {}", known.join(", ")),
    }
}
