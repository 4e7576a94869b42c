//! What ends a scan. A symbol without a signal is no error: it is [`Skipped`](crate::Skipped).

use std::path::PathBuf;

use tidemill_gpu::GpuError;
use tidemill_market::atc::AtcError;

/// Why a scan or the writing of its result failed.
#[derive(Debug, thiserror::Error)]
pub enum ScanError {
    /// An option of the computation is wrong.
    #[error(transparent)]
    Atc(#[from] AtcError),
    /// An option of the scan is wrong.
    #[error("{name} = {value}: expected {expected}")]
    Option {
        /// The option.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// The values that are allowed.
        expected: &'static str,
    },
    /// A device failed.
    #[error("{device}: {error}")]
    Device {
        /// Name of the device.
        device: String,
        /// The fault.
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
        /// The error of the operating system or of the encoder.
        reason: String,
    },
}
