//! Results of the CUDA driver as errors of this crate.

use cudarc::driver::result::DriverError;
use cudarc::driver::sys::CUresult;

use crate::error::GpuError;

pub(super) fn message(error: DriverError) -> String {
    error
        .error_string()
        .map(|text| text.to_string_lossy().into_owned())
        .unwrap_or_else(|_| format!("{:?}", error.0))
}

/// Turns a driver's result into ours. After some failures the context is dead; those are faults.
pub(super) fn check<T>(call: &'static str, result: Result<T, DriverError>) -> Result<T, GpuError> {
    use CUresult::*;
    result.map_err(|error| {
        let (code, message) = (error.0 as i32, message(error));
        match error.0 {
            CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUDA_ERROR_ECC_UNCORRECTABLE
            | CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUDA_ERROR_ILLEGAL_ADDRESS
            | CUDA_ERROR_LAUNCH_TIMEOUT
            | CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUDA_ERROR_ASSERT
            | CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUDA_ERROR_MISALIGNED_ADDRESS
            | CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUDA_ERROR_INVALID_PC
            | CUDA_ERROR_LAUNCH_FAILED
            | CUDA_ERROR_EXTERNAL_DEVICE
            | CUDA_ERROR_UNKNOWN => GpuError::Fault { kernels: Vec::new(), code, message },
            _ => GpuError::Driver { call, code, message },
        }
    })
}
