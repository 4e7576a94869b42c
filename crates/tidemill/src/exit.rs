//! `ExitCode`: how the program ends, as a number that a caller within the process can read.

/// The exit code of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitCode(u8);

impl ExitCode {
    /// Done.
    pub const SUCCESS: Self = Self(0);
    /// Ran, but a check failed.
    pub const FAILURE: Self = Self(1);
}

impl From<u8> for ExitCode {
    fn from(code: u8) -> Self {
        Self(code)
    }
}

impl From<ExitCode> for i32 {
    fn from(code: ExitCode) -> Self {
        code.0.into()
    }
}
