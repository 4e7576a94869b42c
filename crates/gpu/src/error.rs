//! What can go wrong, as data with a message for a person.

use std::time::Duration;

/// An error of the device runtime.
///
/// Errors can be cloned, because a lost device answers every later call with the error that lost it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GpuError {
    /// Something this machine lacks: a driver, a device, a compiler.
    #[error("{what}\n  hint: {cure}")]
    Unavailable {
        /// What is missing.
        what: String,
        /// What to do about it.
        cure: String,
    },
    /// An allocation did not fit. Smaller work may still fit.
    #[error("out of device memory: {bytes} bytes requested, {free} free")]
    OutOfMemory {
        /// Bytes requested.
        bytes: u64,
        /// Bytes free at that moment.
        free: u64,
    },
    /// A source text was refused by the compiler.
    #[error("{name} does not compile:\n{log}")]
    Compile {
        /// Name of the source.
        name: String,
        /// The compiler's log.
        log: String,
    },
    /// A kernel could not be started. The device is still usable.
    #[error("kernel `{kernel}` could not be launched: {message}")]
    Launch {
        /// Name of the kernel.
        kernel: String,
        /// The reason.
        message: String,
    },
    /// The device failed while working (an illegal address, a lost device). It stays unusable in this process.
    #[error("the device failed ({message}, code {code}) in or before {}", named(.kernels))]
    Fault {
        /// Kernels that may have caused it: those launched since the last good synchronisation.
        kernels: Vec<String>,
        /// The driver's code.
        code: i32,
        /// The driver's words.
        message: String,
    },
    /// The device did not finish its work within the limit on waiting. It is lost as after a fault.
    #[error("the device hangs: {} did not end within {} s", named(.kernels), .limit.as_secs_f64())]
    Hung {
        /// Kernels that may be the one: those launched since the last good synchronisation.
        kernels: Vec<String>,
        /// How long it was waited for.
        limit: Duration,
    },
    /// The argument structure of a launch has another size than the kernel's.
    #[error(
        "kernel `{kernel}` takes {expected} bytes of arguments, {given} were given: the two structures differ"
    )]
    ArgumentSize {
        /// Name of the kernel.
        kernel: String,
        /// Size on the kernel's side.
        expected: usize,
        /// Size on the caller's side.
        given: usize,
    },
    /// A module has no kernel of that name.
    #[error("{module} has no kernel `{kernel}`")]
    NoKernel {
        /// Name of the source.
        module: String,
        /// The name that the module lacks.
        kernel: String,
    },
    /// An access outside of a buffer.
    #[error("{what}: elements {at} to {} of a buffer of {size}", .at.saturating_add(*.len))]
    Range {
        /// The operation.
        what: &'static str,
        /// First element.
        at: usize,
        /// Number of elements.
        len: usize,
        /// Length of the buffer.
        size: usize,
    },
    /// A rule of this crate was broken by the caller.
    #[error("{what}")]
    Misuse {
        /// Which rule, in words.
        what: String,
    },
    /// A closure given to `Stream::host` panicked. Reported once, at the next synchronisation.
    #[error("work on the host panicked: {message}")]
    HostWork {
        /// The message of the panic.
        message: String,
    },
    /// Any other failure of a driver call.
    #[error("{call} failed: {message} (code {code})")]
    Driver {
        /// The call.
        call: &'static str,
        /// The driver's code.
        code: i32,
        /// The driver's words.
        message: String,
    },
}

impl GpuError {
    /// Whether smaller work could succeed.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::OutOfMemory { .. })
    }

    /// Whether the device is lost for this process.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Fault { .. } | Self::Hung { .. })
    }

    pub(crate) fn misuse(what: impl Into<String>) -> Self {
        Self::Misuse { what: what.into() }
    }
}

fn named(kernels: &[String]) -> String {
    match kernels {
        [] => "work without a kernel".into(),
        [one] => format!("kernel `{one}`"),
        many => format!("one of the kernels {}", many.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_its_kernels() {
        let fault = |kernels: &[&str]| {
            let kernels = kernels.iter().map(|name| name.to_string()).collect();
            GpuError::Fault { kernels, code: 700, message: "illegal address".into() }.to_string()
        };
        assert_eq!(
            fault(&[]),
            "the device failed (illegal address, code 700) in or before work without a kernel"
        );
        assert!(fault(&["walk"]).ends_with("kernel `walk`"));
        assert!(fault(&["walk", "mask"]).ends_with("one of the kernels walk, mask"));
    }

    #[test]
    fn a_device_that_hangs_names_kernels_and_the_limit() {
        let hung = GpuError::Hung { kernels: vec!["walk".into()], limit: Duration::from_millis(1500) };
        assert_eq!(hung.to_string(), "the device hangs: kernel `walk` did not end within 1.5 s");
        assert!(hung.is_lost());
    }

    #[test]
    fn a_range_error_says_both_ends() {
        let error = GpuError::Range { what: "upload", at: 3, len: 5, size: 4 };
        assert_eq!(error.to_string(), "upload: elements 3 to 8 of a buffer of 4");
    }
}
