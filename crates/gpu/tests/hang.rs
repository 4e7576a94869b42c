//! A kernel of a CUDA device that never ends. It has a process of its own, which has to end although the kernel does not.

use std::time::Duration;

use tidemill_gpu::{Device, DevicePtr, GpuError, Kernel, Launch, Source, Stream};

const TEXT: &str = "
struct SpinArgs { volatile u64* at; };
KERNEL(spin, SpinArgs) { while (*args.at == 0) {} }
KERNEL(brief, SpinArgs) { *args.at = 0; }
";

/// Launches a kernel in one thread; it takes one pointer.
fn launch(stream: &Stream, kernel: &Kernel, at: DevicePtr<u64>) -> Result<(), GpuError> {
    // SAFETY: the pointer is that of a buffer which outlives the process.
    unsafe { stream.launch(kernel, Launch::blocks(1, 1), &at) }
}

#[test]
fn a_kernel_that_never_ends_is_told_and_nothing_waits_for_it_any_more() {
    let device = match Device::cuda(0) {
        Ok(device) => device,
        Err(error) => {
            let required = std::env::var_os("TIDEMILL_REQUIRE_GPU").is_some_and(|value| value == "1");
            assert!(!required, "TIDEMILL_REQUIRE_GPU=1, but: {error}");
            eprintln!("not tested, because: {error}");
            return;
        }
    };
    let module = device.load(&Source::splice("hang test", &[("spin.cu", TEXT)])).unwrap();
    let (spin, brief) = (module.kernel("spin").unwrap(), module.kernel("brief").unwrap());
    let (buffer, other) = (device.alloc::<u64>(1).unwrap(), device.alloc::<u64>(1).unwrap());
    let mut pinned = device.pinned::<u64>(1).unwrap();
    let (stream, service) = (device.stream().unwrap(), device.stream().unwrap());
    // More than the driver's queue takes: submitting has a limit too.
    for _ in 0..3_000 {
        launch(&stream, &brief, buffer.ptr()).unwrap();
    }
    stream.synchronize().unwrap();

    launch(&stream, &spin, buffer.ptr()).unwrap();
    stream.download(&buffer, 0, &mut pinned, 0, 1).unwrap();
    let event = stream.record().unwrap();
    assert!(!event.is_done().unwrap());
    // Other streams work beside it.
    launch(&service, &brief, other.ptr()).unwrap();
    service.synchronize().unwrap();

    let limit = Duration::from_secs(2);
    device.set_wait_limit(limit);
    let mut submitted = Ok(());
    for _ in 0..3_000 {
        submitted = submitted.and_then(|()| launch(&stream, &brief, buffer.ptr()));
    }
    let error = submitted.unwrap_err();
    match &error {
        GpuError::Hung { kernels, limit: waited } => {
            assert!(kernels.contains(&"spin".to_owned()) && *waited == limit, "{error}");
        }
        other => panic!("{other}"),
    }
    device.set_wait_limit(Duration::MAX);
    assert_eq!(event.wait().unwrap_err(), error);
    assert_eq!(device.synchronize().unwrap_err(), error);
    assert_eq!(pinned.as_slice().unwrap_err(), error);
    // Dropping everything and ending the process wait for nothing.
}

#[test]
fn each_call_that_waits_has_the_limit() {
    // The device of the other test is lost to this process; here every wait is made by a process of its own.
    const STEP: &str = "TIDEMILL_HANG_TEST";
    let Some(step) = std::env::var_os(STEP) else {
        if let Err(error) = Device::cuda(0) {
            eprintln!("not tested, because: {error}");
            return;
        }
        for step in ["stream", "device", "event", "pinned", "load", "free", "unpin", "drop", "end"] {
            let program = std::env::current_exe().unwrap();
            let status = std::process::Command::new(program)
                .args(["--exact", "each_call_that_waits_has_the_limit"])
                .env(STEP, step)
                .status()
                .unwrap();
            assert!(status.success(), "{step}: {status}");
        }
        return;
    };
    let device = Device::cuda(0).unwrap();
    let source = |name: &str| Source::splice(name, &[("spin.cu", TEXT)]);
    let spin = device.load(&source("hang test")).unwrap().kernel("spin").unwrap();
    let (buffer, spare) = (device.alloc::<u64>(1).unwrap(), device.alloc::<u64>(1 << 20).unwrap());
    let (mut pinned, idle) = (device.pinned::<u64>(1).unwrap(), device.pinned::<u64>(1 << 20).unwrap());
    let stream = device.stream().unwrap();
    device.set_wait_limit(Duration::from_secs(1));
    launch(&stream, &spin, buffer.ptr()).unwrap();
    let event = stream.record().unwrap();
    let found = match step.to_str().unwrap() {
        "stream" => stream.synchronize(),
        "device" => device.synchronize(),
        "event" => event.wait(),
        "pinned" => {
            stream.download(&buffer, 0, &mut pinned, 0, 1).unwrap();
            pinned.as_slice().map(drop)
        }
        "load" => device.load(&source("another name")).map(drop),
        "free" => {
            drop(spare);
            device.synchronize()
        }
        "unpin" => {
            drop(idle);
            device.synchronize()
        }
        // Nothing is waited for before everything is dropped, or before the process ends.
        "drop" => return,
        "end" => std::process::exit(0),
        other => panic!("{other}"),
    };
    assert!(matches!(found, Err(GpuError::Hung { .. })), "{found:?}");
    device.set_wait_limit(Duration::MAX);
}
