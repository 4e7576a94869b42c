//! What ends a scan. A symbol without a signal is no error: it is [`Skipped`](crate::Skipped).

use std::path::PathBuf;

use tidemill_gpu::GpuError;
use tidemill_market::atc::AtcError;

/// Why a scan could not be made or its result not be written.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// An option of the computation is wrong.
    #[error(transparent)]
    Atc(#[from] AtcError),
    /// An option of the scan is wrong.
    #[error("{name} = {value}: expected {expected}")]
    Option {
        /// Its name.
        name: &'static str,
        /// What it was set to.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A device failed.
    #[error("{device}: {error}")]
    Device {
        /// Its name.
        device: String,
        /// What happened.
        error: GpuError,
    },
    /// A worker thread of a device ended in a panic.
    #[error("{device}: its worker ended in a panic")]
    Worker {
        /// Name of the device.
        device: String,
    },
    /// The result cannot be written.
    #[error("{path}: cannot be written: {reason}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system, or the encoder, said.
        reason: String,
    },
}
