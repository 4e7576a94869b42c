//! Which device a test runs on, and what it says where there is none.

use tidemill_gpu::{Device, DeviceKind, GpuError, HostOptions, Source};
use tidemill_skip::skipped_unless_required;

/// `None`, with the reason on standard error, where something is not there; a failure if the variable `required` is 1.
#[track_caller]
pub fn unless_unavailable<T>(result: Result<T, GpuError>, required: &str) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error @ GpuError::Unavailable { .. }) => {
            skipped_unless_required(required, &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The GPU, where there is one.
pub fn gpu() -> Option<Device> {
    unless_unavailable(Device::cuda(0), "TIDEMILL_REQUIRE_GPU")
}

/// The host, where there is a compiler for its kernels.
pub fn host(options: HostOptions) -> Option<Device> {
    let host = Device::host(options);
    let loaded = host.load(&Source::splice("nothing.cu", &[]));
    unless_unavailable(loaded, "TIDEMILL_REQUIRE_EMULATION").map(|_| host)
}

/// The GPU, or the host in its place.
pub fn gpu_or_host() -> Option<Device> {
    gpu().or_else(|| host(HostOptions::default()))
}

pub fn is_gpu(device: &Device) -> bool {
    device.info().kind == DeviceKind::Cuda
}
