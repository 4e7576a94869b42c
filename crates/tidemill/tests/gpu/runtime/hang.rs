//! Kernels that never end. The kernel of the host device really does not end, so whatever waits for it without a limit waits until
//! [`in_time`] gives up; limits that are to be reached are short, all others are far away.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::rig::{add, host_compiles};
use tidemill_gpu::{
    Context, ContextOptions, Device, Event, Fault, GpuError, HostOptions, Pipeline, Purpose, Stream,
};

const SHORT: Duration = Duration::from_millis(30);
const FAR: Duration = Duration::from_secs(3600);

/// A device whose `nth` launch of `add` never ends.
fn hanging(nth: u64) -> Device {
    let faults = vec![Fault::KernelHangs { kernel: "add".into(), nth }];
    let device = Device::host(HostOptions { faults, ..HostOptions::default() });
    device.set_wait_limit(SHORT);
    device
}

/// What something returns, or a failure if it does not return.
fn in_time<R: Send + 'static>(what: &str, act: impl FnOnce() -> R + Send + 'static) -> R {
    let (done, is_done) = channel();
    std::thread::spawn(move || done.send(act()));
    is_done.recv_timeout(Duration::from_secs(300)).unwrap_or_else(|_| panic!("{what} waits for ever"))
}

fn is_hung(error: &GpuError) -> bool {
    matches!(error, GpuError::Hung { kernels, limit } if kernels == &["add"] && *limit == SHORT)
}

/// Asks until there is an answer.
fn asked(event: &Event) -> Result<(), GpuError> {
    while !event.is_done()? {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

#[test]
fn whatever_waits_for_a_kernel_that_never_ends_says_that_the_device_hangs() {
    type Wait = fn(&Device, &Stream) -> Result<(), GpuError>;
    let waits: [(&str, Wait); 8] = [
        ("synchronising the stream", |_, stream| stream.synchronize()),
        ("synchronising the device", |device, _| device.synchronize()),
        ("waiting for an event", |_, stream| stream.record()?.wait()),
        ("asking for an event", |_, stream| asked(&stream.record()?)),
        ("the time between events", |device, stream| {
            let before = device.stream()?.record()?;
            stream.record()?.since_ms(&before).map(drop)
        }),
        ("an event that waits for another stream", |device, stream| {
            let other = device.stream()?;
            other.wait(&stream.record()?)?;
            other.record()?.wait()
        }),
        ("reading a download", |device, stream| {
            let (buffer, mut pinned) = (device.alloc::<u64>(5)?, device.pinned::<u64>(5)?);
            stream.download(&buffer, 0, &mut pinned, 0, 5)?;
            pinned.as_slice().map(drop)
        }),
        ("reading a buffer", |device, _| device.alloc::<u64>(5)?.to_vec().map(drop)),
    ];
    if !host_compiles() {
        return;
    }
    for (what, wait) in waits {
        in_time(what, move || {
            let device = hanging(1);
            device.set_wait_limit(FAR);
            let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u64>(5).unwrap());
            add(&stream, &buffer, 1).unwrap();
            device.set_wait_limit(SHORT);
            let error = wait(&device, &stream).unwrap_err();
            assert!(is_hung(&error), "{what}: {error}");
            // From now on every call says so at once, and nothing is waited for.
            device.set_wait_limit(FAR);
            assert_eq!(device.alloc::<u64>(1).unwrap_err(), error, "{what}");
            assert_eq!(device.synchronize().unwrap_err(), error, "{what}");
            assert_eq!(stream.record().unwrap_err(), error, "{what}");
        });
    }
}

#[test]
fn dropping_what_a_hanging_device_uses_waits_once_and_then_never_again() {
    if !host_compiles() {
        return;
    }
    type Owned = Box<dyn std::any::Any + Send>;
    type Make = fn(&Device, &Stream) -> Owned;
    let owned: [(&str, Make); 2] = [
        ("pinned memory", |device, stream| {
            let (buffer, mut pinned) = (device.alloc::<u64>(5).unwrap(), device.pinned::<u64>(5).unwrap());
            stream.download(&buffer, 0, &mut pinned, 0, 5).unwrap();
            Box::new((pinned, buffer))
        }),
        ("a buffer", |device, _| Box::new(device.alloc::<u64>(5).unwrap())),
    ];
    for (what, make) in owned {
        in_time(what, move || {
            let device = hanging(1);
            device.set_wait_limit(FAR);
            let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u64>(5).unwrap());
            let idle: Vec<Owned> =
                owned.iter().map(|(_, make)| make(&device, &device.stream().unwrap())).collect();
            device.synchronize().unwrap();
            add(&stream, &buffer, 1).unwrap();
            let first = make(&device, &stream);
            device.set_wait_limit(SHORT);
            drop(first);
            assert!(is_hung(&device.synchronize().unwrap_err()), "{what}");
            device.set_wait_limit(FAR);
            drop((idle, buffer, stream, device));
        });
    }
}

#[test]
fn the_last_owner_of_a_hanging_device_leaves_it() {
    if !host_compiles() {
        return;
    }
    // Nothing has waited before, so dropping the device detects it.
    in_time("the end of a device", || {
        let device = hanging(1);
        device.set_wait_limit(FAR);
        let buffer = device.alloc::<u64>(5).unwrap();
        add(&device.stream().unwrap(), &buffer, 1).unwrap();
        device.set_wait_limit(SHORT);
        drop(device);
        drop(buffer);
    });
}

#[test]
fn what_work_on_the_host_owns_is_left_with_a_hanging_device() {
    if !host_compiles() {
        return;
    }
    in_time("garbage of a hanging device", || {
        let device = hanging(1);
        device.set_wait_limit(FAR);
        let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
        let (buffer, owned) = (device.alloc::<u64>(5).unwrap(), device.alloc::<u64>(5).unwrap());
        add(&stream, &buffer, 1).unwrap();
        other.host(move || drop(owned)).unwrap();
        other.synchronize().unwrap();
        device.set_wait_limit(SHORT);
        // The next allocation would free it.
        assert!(is_hung(&device.alloc::<u64>(1).unwrap_err()));
        device.set_wait_limit(FAR);
        drop((stream, other, buffer, device));
    });
}

#[test]
fn a_pipeline_on_a_hanging_device_ends() {
    if !host_compiles() {
        return;
    }
    in_time("a pipeline", || {
        let device = hanging(2);
        device.set_wait_limit(FAR);
        let context = Context::new(&device, ContextOptions::parallel(4)).unwrap();
        let lanes = (0..3).map(|_| device.alloc::<u64>(5).unwrap()).collect();
        let mut pipeline =
            Pipeline::new(&context, lanes)
                .unwrap()
                .stage("add", Purpose::Compute, |stream, lane, amount| add(stream, lane, amount));
        for amount in 0..3 {
            pipeline.submit(amount).unwrap();
        }
        pipeline.finish(|_, ()| ()).unwrap();
        device.set_wait_limit(SHORT);
        let error = pipeline.finish(|_, ()| ()).unwrap_err();
        assert!(is_hung(&error), "{error}");
        device.set_wait_limit(FAR);
        assert_eq!(pipeline.finish(|_, ()| ()).unwrap_err(), error);
        drop((pipeline, device));
    });
}

#[test]
fn a_wait_within_the_limit_is_as_good_as_one_without() {
    if !host_compiles() {
        return;
    }
    let device = Device::host(HostOptions::default());
    assert_eq!(device.wait_limit(), Duration::MAX);
    for limit in [FAR, Duration::MAX] {
        device.set_wait_limit(limit);
        let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u64>(5).unwrap());
        let (open, gate) = channel::<()>();
        stream.host(move || gate.recv().unwrap()).unwrap();
        add(&stream, &buffer, 3).unwrap();
        let event = stream.record().unwrap();
        for _ in 0..3 {
            assert!(!event.is_done().unwrap());
        }
        let waiting = std::thread::spawn({
            let event = event.clone();
            move || event.wait()
        });
        open.send(()).unwrap();
        waiting.join().unwrap().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [3; 5]);
    }
}
