//! Devices and kernels for the tests.

use std::sync::{Mutex, OnceLock, PoisonError};

use bytemuck::{Pod, Zeroable};
use tidemill_gpu::{
    Device, DeviceBuffer, DeviceKind, DevicePtr, GpuError, HostOptions, Kernel, Launch, Source, Stream,
};

/// Runs a test on a fresh host device, and on the CUDA device if there is one.
pub fn on_every_device(test: impl Fn(&Device)) {
    if host_compiles() {
        test(&Device::host(HostOptions::default()));
    }
    if let Some(device) = cuda() {
        // One at a time: several tests look at times or at the pool of events.
        static ONE: Mutex<()> = Mutex::new(());
        let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        test(device);
    }
}

/// Whether there is a C++ compiler for kernels on the host. Without one the reason is printed, and with
/// `TIDEMILL_REQUIRE_EMULATION=1` that is a failure.
pub fn host_compiles() -> bool {
    static COMPILES: OnceLock<Option<GpuError>> = OnceLock::new();
    match COMPILES.get_or_init(|| Device::host(HostOptions::default()).load(&source()).err()) {
        Some(error @ GpuError::Unavailable { .. }) => {
            assert!(!required("TIDEMILL_REQUIRE_EMULATION"), "TIDEMILL_REQUIRE_EMULATION=1, but: {error}");
            eprintln!("not on the host, because: {error}");
            false
        }
        Some(other) => panic!("{other}"),
        None => true,
    }
}

fn required(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| value == "1")
}

/// The CUDA device, opened once. Without one the reason is printed, and with `TIDEMILL_REQUIRE_GPU=1` that is a failure.
fn cuda() -> Option<&'static Device> {
    static DEVICE: OnceLock<Result<Device, GpuError>> = OnceLock::new();
    // Kernels are loaded first: the driver may wait for running work to load one, and some tests hold work up.
    let open = || {
        let device = Device::cuda(0)?;
        ["add", "plane", "slow", "sum"].iter().for_each(|name| drop(kernel(&device, name)));
        Ok(device)
    };
    match DEVICE.get_or_init(open) {
        Ok(device) => Some(device),
        Err(error) => {
            assert!(!required("TIDEMILL_REQUIRE_GPU"), "TIDEMILL_REQUIRE_GPU=1, but: {error}");
            eprintln!("only on the host, because: {error}");
            None
        }
    }
}

pub fn is_host(device: &Device) -> bool {
    device.info().kind == DeviceKind::Host
}

pub fn source() -> Source {
    Source::splice("runtime tests", &[("tests/runtime/kernels.cu", include_str!("kernels.cu"))])
}

pub fn kernel(device: &Device, name: &str) -> Kernel {
    device.load(&source()).unwrap().kernel(name).unwrap()
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct AddArgs {
    pub data: DevicePtr<u64>,
    pub amount: u64,
    pub n: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct PlaneArgs {
    pub x: DevicePtr<f64>,
    pub y: DevicePtr<f64>,
    pub out: DevicePtr<f64>,
    pub slope: f64,
    pub n: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct SlowArgs {
    pub out: DevicePtr<u64>,
    pub seed: u64,
    pub n_rounds: u32,
    pub pad: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub struct SumArgs {
    pub data: DevicePtr<u64>,
    pub sums: DevicePtr<u64>,
    pub n: u32,
    pub pad: u32,
}

/// Adds `amount` to every element.
pub fn add(stream: &Stream, buffer: &DeviceBuffer<u64>, amount: u64) -> Result<(), GpuError> {
    let kernel = kernel(stream.device(), "add");
    let n = buffer.len() as u32;
    stream.launch(
        &kernel,
        Launch::blocks(n.div_ceil(128), 128),
        &AddArgs { data: buffer.ptr(), amount, n, pad: 0 },
    )
}

/// Keeps one thread of the device busy for some ten milliseconds, then writes [`slow_result`] to the first element.
pub fn slow(stream: &Stream, out: &DeviceBuffer<u64>, seed: u64) -> Result<(), GpuError> {
    let kernel = kernel(stream.device(), "slow");
    stream.launch(
        &kernel,
        Launch::blocks(1, 1),
        &SlowArgs { out: out.ptr(), seed, n_rounds: SLOW_ROUNDS, pad: 0 },
    )
}

const SLOW_ROUNDS: u32 = 10_000_000;

/// What `slow` computes.
pub fn slow_result(seed: u64) -> u64 {
    (0..SLOW_ROUNDS).fold(seed, |x, _| x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407))
}
