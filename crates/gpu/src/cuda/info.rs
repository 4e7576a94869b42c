//! Facts about the driver and its devices that need no context.

use std::ffi::c_int;

use cudarc::driver::result;
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute};

use super::error::{check, message};
use crate::device::{DeviceInfo, DeviceKind};
use crate::error::GpuError;
use crate::nvrtc::nvrtc;

/// The oldest driver whose functions are all there.
const OLDEST_DRIVER: c_int = 12_000;

pub(super) const NO_DEVICE_CURE: &str =
    "see whether `nvidia-smi` lists a device; a container has to be started with access to it";

/// Version of the driver, without starting it or looking for devices.
pub(crate) fn driver_version() -> Result<String, GpuError> {
    raw_driver_version().map(dotted)
}

/// Facts about every device, without a context on any.
pub(crate) fn devices() -> Result<Vec<DeviceInfo>, GpuError> {
    let driver_version = start()?;
    let n_devices = check("cuDeviceGetCount", result::device::get_count())? as usize;
    let nvrtc = nvrtc().map(|nvrtc| nvrtc.info.version.clone()).unwrap_or_default();
    (0..n_devices)
        .map(|ordinal| {
            describe(ordinal, driver_version).map(|(_, info)| DeviceInfo { nvrtc: nvrtc.clone(), ..info })
        })
        .collect()
}

fn raw_driver_version() -> Result<c_int, GpuError> {
    // SAFETY: only tries to load the driver's library.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::Unavailable {
            what: "the NVIDIA driver library (libcuda) was not found".into(),
            cure: "install the NVIDIA driver, or start the container with access to the GPU".into(),
        });
    }
    let mut version = 0;
    // SAFETY: the library is present; the function writes one number.
    check("cuDriverGetVersion", unsafe { sys::cuDriverGetVersion(&mut version) }.result())?;
    if version < OLDEST_DRIVER {
        return Err(GpuError::Unavailable {
            what: format!("the NVIDIA driver is too old: it knows CUDA {}", dotted(version)),
            cure: format!("install a driver for CUDA {} or later", dotted(OLDEST_DRIVER)),
        });
    }
    Ok(version)
}

/// Starts the driver and returns its version.
pub(super) fn start() -> Result<c_int, GpuError> {
    let version = raw_driver_version()?;
    result::init().map_err(|error| GpuError::Unavailable {
        what: format!("the NVIDIA driver does not start: {} (code {})", message(error), error.0 as i32),
        cure: NO_DEVICE_CURE.into(),
    })?;
    Ok(version)
}

pub(super) fn describe(ordinal: usize, driver_version: c_int) -> Result<(CUdevice, DeviceInfo), GpuError> {
    use CUdevice_attribute as Attribute;
    let device = check("cuDeviceGet", result::device::get(ordinal as c_int))?;
    let attribute = |which| {
        // SAFETY: the device was just given by the driver.
        let value = unsafe { result::device::get_attribute(device, which) };
        check("cuDeviceGetAttribute", value).map(|value| value.max(0) as u32)
    };
    let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
    let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    let info = DeviceInfo {
        kind: DeviceKind::Cuda,
        ordinal,
        name: check("cuDeviceGetName", result::device::get_name(device))?,
        architecture: format!("sm_{major}{minor}"),
        // SAFETY: as above.
        memory_bytes: check("cuDeviceTotalMem", unsafe { result::device::total_mem(device) })? as u64,
        multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        l2_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
        shared_bytes: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        driver: dotted(driver_version),
        nvrtc: String::new(),
    };
    Ok((device, info))
}

fn dotted(version: c_int) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}
