//! Devices and kernels for the tests.

use std::sync::OnceLock;

use bytemuck::Pod;
use tidemill_gpu::{
    Device, DeviceBuffer, DeviceKind, DevicePtr, GpuError, HostOptions, Kernel, Launch, Source, Stream,
    kernel_structs,
};
use tidemill_skip::{skipped_unless_required, turn};

/// Runs a test on a fresh host device, and on the CUDA device if there is one.
pub fn on_every_device(test: impl Fn(&Device)) {
    if host_compiles() {
        test(&Device::host(HostOptions::default()));
    }
    if let Some(device) = cuda() {
        // One at a time: several tests hold a stream up, or look at times or at the pool of events.
        let _alone = turn::alone();
        test(device);
    }
}

/// Whether there is a C++ compiler for kernels on the host. Without one the reason is printed, and with
/// `TIDEMILL_REQUIRE_EMULATION=1` that is a failure.
pub fn host_compiles() -> bool {
    static COMPILES: OnceLock<Option<GpuError>> = OnceLock::new();
    match COMPILES.get_or_init(|| Device::host(HostOptions::default()).load(&source()).err()) {
        Some(error @ GpuError::Unavailable { .. }) => {
            skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", format!("not on the host: {error}"));
            false
        }
        Some(other) => panic!("{other}"),
        None => true,
    }
}

/// The CUDA device, opened once. Without one the reason is printed, and with `TIDEMILL_REQUIRE_GPU=1` that is a failure.
fn cuda() -> Option<&'static Device> {
    static DEVICE: OnceLock<Result<Device, GpuError>> = OnceLock::new();
    // Kernels are loaded first: the driver may wait for running work to load one, and some tests hold work up.
    let open = || {
        let device = Device::cuda(0)?;
        ["add", "plane", "slow", "meet", "sum"].iter().for_each(|name| drop(kernel(&device, name)));
        Ok(device)
    };
    match DEVICE.get_or_init(open) {
        Ok(device) => Some(device),
        Err(error) => {
            skipped_unless_required("TIDEMILL_REQUIRE_GPU", format!("only on the host: {error}"));
            None
        }
    }
}

pub fn is_host(device: &Device) -> bool {
    device.info().kind == DeviceKind::Host
}

pub fn source() -> Source {
    let pieces = [("tests/runtime/kernels.cu", include_str!("kernels.cu"))];
    Source::splice("runtime tests", &pieces).comparing("", &[LAYOUTS])
}

pub fn kernel(device: &Device, name: &str) -> Kernel {
    device.load(&source()).unwrap().kernel(name).unwrap()
}

kernel_structs! {
    pub const LAYOUTS;

    pub struct AddArgs {
        pub data: DevicePtr<u64>,
        pub amount: u64,
        pub n: u32,
        pub unused: u32,
    }

    pub struct PlaneArgs {
        pub x: DevicePtr<f64>,
        pub y: DevicePtr<f64>,
        pub out: DevicePtr<f64>,
        pub slope: f64,
        pub n: u32,
        pub unused: u32,
    }

    pub struct SlowArgs {
        pub out: DevicePtr<u64>,
        pub seed: u64,
        pub n_rounds: u32,
        pub unused: u32,
    }

    pub struct MeetArgs {
        pub arrived: DevicePtr<u32>,
        pub met: DevicePtr<u64>,
        pub most_looks: u64,
        pub n_all: u32,
        pub unused: u32,
    }

    pub struct SumArgs {
        pub data: DevicePtr<u64>,
        pub sums: DevicePtr<u64>,
        pub n: u32,
        pub unused: u32,
    }
}

/// Launches one of the tests' kernels.
pub fn launch<A: Pod>(stream: &Stream, kernel: &Kernel, shape: Launch, args: &A) -> Result<(), GpuError> {
    // SAFETY: `source` compares the structs. Tests give buffers that are large enough and outlive the work, or arguments that are refused.
    unsafe { stream.launch(kernel, shape, args) }
}

/// Adds `amount` to every element.
pub fn add(stream: &Stream, buffer: &DeviceBuffer<u64>, amount: u64) -> Result<(), GpuError> {
    let kernel = kernel(stream.device(), "add");
    let n = buffer.len() as u32;
    launch(
        stream,
        &kernel,
        Launch::blocks(n.div_ceil(128), 128),
        &AddArgs { data: buffer.ptr(), amount, n, unused: 0 },
    )
}

/// Keeps one thread of the device busy for some ten milliseconds, then writes [`slow_result`] to the first element.
pub fn slow(stream: &Stream, out: &DeviceBuffer<u64>, seed: u64) -> Result<(), GpuError> {
    let kernel = kernel(stream.device(), "slow");
    launch(
        stream,
        &kernel,
        Launch::blocks(1, 1),
        &SlowArgs { out: out.ptr(), seed, n_rounds: SLOW_ROUNDS, unused: 0 },
    )
}

const SLOW_ROUNDS: u32 = 10_000_000;

/// A kernel that ends when as many of its kind as there are in `met` have begun: they are at work at the same time, whoever comes first.
/// The `i`th of them then writes 1 to `met[i]`. If the others never begin, it gives up after a while and writes 0.
pub fn meet(
    stream: &Stream,
    arrived: &DeviceBuffer<u32>,
    met: &[DeviceBuffer<u64>],
    i: usize,
) -> Result<(), GpuError> {
    let kernel = kernel(stream.device(), "meet");
    // Minutes in both cases.
    let most_looks = if is_host(stream.device()) { 1 << 34 } else { 1 << 27 };
    let n_all = met.len() as u32;
    let args = MeetArgs { arrived: arrived.ptr(), met: met[i].ptr(), most_looks, n_all, unused: 0 };
    launch(stream, &kernel, Launch::blocks(1, 1), &args)
}

/// Holds a stream up until the gate is opened or dropped.
pub fn hold(stream: &Stream) -> Gate {
    let (open, opened) = std::sync::mpsc::channel::<()>();
    stream
        .host(move || {
            // An error is a gate that was dropped, which opens it.
            let _ = opened.recv();
        })
        .unwrap();
    Gate { _open: open }
}

/// Opens when it is dropped. What waits for a held stream when it is dropped itself must be declared before the gate, or a test that
/// fails hangs.
pub struct Gate {
    _open: std::sync::mpsc::Sender<()>,
}

impl Gate {
    pub fn open(self) {}
}

/// What `slow` computes.
pub fn slow_result(seed: u64) -> u64 {
    (0..SLOW_ROUNDS).fold(seed, |x, _| x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407))
}
