//! Why a study ended early: sampler, evaluator, controller or folder.

use std::any::Any;

use crate::folder::FolderError;
use crate::study::control::Change;
use crate::study::evaluator::EvaluateError;

/// Why a study ended before its time. All batches that were finished by then are in the folder, unless the folder is what failed.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The sampler panicked.
    #[error("the sampler `{sampler}` failed at batch {batch}: {message}")]
    SamplerPanic {
        /// Name of the sampler.
        sampler: &'static str,
        /// The batch that it proposed or learnt from.
        batch: u64,
        /// The panic message.
        message: String,
    },
    /// The sampler proposed something impossible.
    #[error("the sampler `{sampler}` failed at batch {batch}: expected {expected} {what}, got {got}")]
    SamplerShape {
        /// Name of the sampler.
        sampler: &'static str,
        /// The batch that it proposed.
        batch: u64,
        /// What was counted.
        what: &'static str,
        /// How many there should be, at most.
        expected: usize,
        /// How many there were.
        got: usize,
    },
    /// The evaluator reported an error.
    #[error("the evaluation of batch {batch} failed")]
    Evaluator {
        /// Which batch.
        batch: u64,
        /// The underlying error.
        source: EvaluateError,
    },
    /// The evaluator panicked.
    #[error("the evaluation of batch {batch} failed: {message}")]
    EvaluatorPanic {
        /// Which batch.
        batch: u64,
        /// The panic message.
        message: String,
    },
    /// The evaluator returned results of the wrong shape.
    #[error("the evaluation of batch {batch} failed: expected {expected} {what}, got {got}")]
    EvaluatorShape {
        /// Which batch.
        batch: u64,
        /// What was counted.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        got: usize,
    },
    /// The controller reported an error.
    #[error("cannot read the changes that apply from batch {batch} on")]
    Controller {
        /// Which batch.
        batch: u64,
        /// The underlying error.
        source: EvaluateError,
    },
    /// A change that is impossible.
    #[error("`{}` cannot be set to {} from batch {} on\n  hint: the journal of the study was made by another version, or changed", .0.knob, .0.value, .0.batch)]
    Change(Change),
    /// The results cannot be kept.
    #[error("cannot store the trials")]
    Folder(#[from] FolderError),
    /// The folder holds trials that this sampler would not have proposed.
    #[error(
        "the study cannot be resumed: trial {trial} {problem}\n  hint: the study was made by another version or its files were changed; \
         `study export` still reads it; start a new one in another folder"
    )]
    Replay {
        /// The first trial that is wrong.
        trial: u64,
        /// What is wrong with it.
        problem: String,
    },
}

/// The message of a panic.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
