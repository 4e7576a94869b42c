//! A real fault of a CUDA device. It has a process of its own, because the device is lost to that process.

use tidemill_gpu::{Device, DevicePtr, GpuError, Kernel, Launch, Source, Stream};

const TEXT: &str = "
struct PokeArgs { u64* at; };
KERNEL(poke, PokeArgs) { *args.at = 1; }
KERNEL(innocent, PokeArgs) { if (args.at != nullptr) *args.at = 2; }
";

/// Launches a kernel in one thread; it takes one pointer.
fn launch(stream: &Stream, kernel: &Kernel, at: DevicePtr<u64>) -> Result<(), GpuError> {
    // SAFETY: the pointer is that of a buffer that outlives the work; the one that is not is what the test is about.
    unsafe { stream.launch(kernel, Launch::blocks(1, 1), &at) }
}

#[test]
fn an_illegal_address_is_told_with_the_kernel_and_stays() {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_GPU", &error);
            return;
        }
    };
    let module = device.load(&Source::splice("fault test", &[("poke.cu", TEXT)])).unwrap();
    let (poke, innocent) = (module.kernel("poke").unwrap(), module.kernel("innocent").unwrap());
    let buffer = device.alloc::<u64>(1).unwrap();
    let mut pinned = device.pinned::<u64>(1).unwrap();
    let stream = device.stream().unwrap();
    launch(&stream, &innocent, buffer.ptr()).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [2]);

    launch(&stream, &poke, DevicePtr::<u64>::from_address(0x10)).unwrap();
    let error = stream.synchronize().unwrap_err();
    match &error {
        GpuError::Fault { kernels, code, .. } => {
            assert_eq!(kernels, &["poke"]);
            assert_eq!(*code, 700, "{error}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(device.synchronize().unwrap_err(), error);
    assert_eq!(device.alloc::<u64>(1).unwrap_err(), error);
    assert_eq!(stream.download(&buffer, 0, &mut pinned, 0, 1).unwrap_err(), error);
    assert_eq!(pinned.as_slice().unwrap_err(), error);
    // Dropping everything on a lost device neither panics nor hangs.
}
