//! Probes a machine for driver, NVRTC and devices, for `tidemill doctor`.

use crate::device::DeviceInfo;
use crate::error::GpuError;
use crate::nvrtc::{NvrtcInfo, nvrtc};

/// What [`probe`] found.
#[derive(Debug, Clone)]
pub struct Probe {
    /// Version of the driver, for example `13.0`, or why there is none.
    pub driver: Result<String, GpuError>,
    /// The compiler, or why there is none.
    pub nvrtc: Result<NvrtcInfo, GpuError>,
    /// All CUDA devices, or why they cannot be listed. An empty list does not occur.
    pub devices: Result<Vec<DeviceInfo>, GpuError>,
}

impl Probe {
    /// Everything that keeps this machine from running kernels on a GPU. Empty: nothing does.
    pub fn problems(&self) -> Vec<&GpuError> {
        let driver = self.driver.as_ref().err();
        // Without a driver there is no list of devices either, and for the same reason.
        let devices = self.devices.as_ref().err().filter(|problem| Some(*problem) != driver);
        [driver, self.nvrtc.as_ref().err(), devices].into_iter().flatten().collect()
    }
}

/// Looks for driver, compiler and devices. Never panics and starts nothing on a device.
pub fn probe() -> Probe {
    let devices = crate::cuda::devices().and_then(|devices| {
        if devices.is_empty() {
            return Err(GpuError::Unavailable {
                what: "the driver lists no device".into(),
                cure: "see whether `nvidia-smi` lists one".into(),
            });
        }
        Ok(devices)
    });
    Probe { driver: crate::cuda::driver_version(), nvrtc: nvrtc().map(|nvrtc| nvrtc.info.clone()), devices }
}
