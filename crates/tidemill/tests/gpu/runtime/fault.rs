use super::rig::{add, host_compiles, kernel, launch, source};
use tidemill_gpu::{Device, Fault, GpuError, HostOptions, Launch};

fn with(faults: &[Fault]) -> Device {
    Device::host(HostOptions { faults: faults.to_vec(), ..HostOptions::default() })
}

#[test]
fn an_allocation_can_fail_and_the_next_goes_well() {
    let device = with(&[Fault::OutOfMemory { nth: 2 }]);
    let _first = device.alloc::<u64>(10).unwrap();
    assert!(device.alloc::<u64>(10).unwrap_err().is_out_of_memory());
    device.alloc::<u64>(10).unwrap();
}

#[test]
fn a_refused_launch_leaves_the_device_usable() {
    if !host_compiles() {
        return;
    }
    let device = with(&[Fault::LaunchFails { kernel: "add".into(), nth: 2 }]);
    let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u64>(5).unwrap());
    add(&stream, &buffer, 1).unwrap();
    assert!(matches!(add(&stream, &buffer, 1), Err(GpuError::Launch { kernel, .. }) if kernel == "add"));
    add(&stream, &buffer, 1).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [2; 5]);
}

#[test]
fn a_failing_kernel_is_told_at_the_next_synchronisation_with_its_name() {
    if !host_compiles() {
        return;
    }
    let device = with(&[Fault::KernelFails { kernel: "add".into(), nth: 1 }]);
    let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
    let buffer = device.alloc::<u64>(5).unwrap();
    super::rig::slow(&other, &device.alloc::<u64>(1).unwrap(), 1).unwrap();
    add(&stream, &buffer, 1).unwrap();
    let GpuError::Fault { kernels, .. } = stream.synchronize().unwrap_err() else { panic!("no fault") };
    assert_eq!(kernels, ["add"], "not the kernel of the other stream");
}

#[test]
fn kernels_before_a_good_synchronisation_are_no_suspects() {
    if !host_compiles() {
        return;
    }
    let device = with(&[Fault::DeviceLost { after_launches: 1 }]);
    let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u64>(5).unwrap());
    super::rig::slow(&stream, &buffer, 1).unwrap();
    stream.synchronize().unwrap();
    add(&stream, &buffer, 1).unwrap();
    let GpuError::Fault { kernels, .. } = stream.synchronize().unwrap_err() else { panic!("no fault") };
    assert_eq!(kernels, ["add"]);
}

#[test]
fn after_a_lost_device_every_call_fails_with_the_same_error() {
    if !host_compiles() {
        return;
    }
    let device = with(&[Fault::DeviceLost { after_launches: 2 }]);
    let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u64>(5).unwrap());
    let mut pinned = device.pinned::<u64>(5).unwrap();
    let (early, add_kernel) = (stream.record().unwrap(), kernel(&device, "add"));
    for _ in 0..3 {
        add(&stream, &buffer, 1).unwrap();
    }
    let late = stream.record().unwrap();
    let error = late.wait().unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(error.to_string().contains("`add`"), "{error}");
    let answers = [
        stream.synchronize().err(),
        device.synchronize().err(),
        device.alloc::<u64>(1).err(),
        device.pinned::<u64>(1).err(),
        device.stream().err(),
        device.free_bytes().err(),
        device.load(&source()).err(),
        early.is_done().err(),
        late.since_ms(&early).err(),
        stream.record().err(),
        stream.wait(&early).err(),
        stream.host(|| ()).err(),
        stream.fill(&buffer, 0, 5, 0).err(),
        stream.upload(&pinned, 0, &buffer, 0, 5).err(),
        stream.download(&buffer, 0, &mut pinned, 0, 5).err(),
        launch(&stream, &add_kernel, Launch::blocks(1, 1), &[0u64; 3]).err(),
        pinned.as_slice().err(),
        buffer.to_vec().err(),
    ];
    for (i, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer.as_ref(), Some(&error), "call {i}");
    }
}

#[test]
fn what_a_lost_device_never_runs_is_dropped_without_waiting() {
    if !host_compiles() {
        return;
    }
    let device = with(&[Fault::DeviceLost { after_launches: 0 }]);
    let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u64>(5).unwrap());
    let (owned, pinned) = (device.alloc::<u64>(5).unwrap(), device.pinned::<u64>(5).unwrap());
    add(&stream, &buffer, 1).unwrap();
    stream.upload(&pinned, 0, &owned, 0, 5).unwrap();
    let ran = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = ran.clone();
    stream
        .host(move || {
            flag.store(true, std::sync::atomic::Ordering::Relaxed);
            drop((owned, pinned));
        })
        .unwrap();
    assert!(stream.synchronize().unwrap_err().is_lost());
    assert!(!ran.load(std::sync::atomic::Ordering::Relaxed));
}

#[test]
fn without_a_compiler_the_rest_still_works() {
    let device = with(&[Fault::NoCompiler]);
    assert!(matches!(device.load(&source()), Err(GpuError::Unavailable { .. })));
    assert_eq!(device.alloc_from(&[1u64]).unwrap().to_vec().unwrap(), [1]);
}

#[test]
fn a_kernel_that_waits_for_ever_is_a_fault_of_the_host_device() {
    if !host_compiles() {
        return;
    }
    let text =
        "struct A { u32 n; };\nKERNEL(stuck, A) { if (threadIdx.x) __syncwarp(3); else __syncthreads(); }\n";
    let device = with(&[]);
    let module = device.load(&tidemill_gpu::Source::splice("stuck", &[("stuck.cu", text)])).unwrap();
    let stream = device.stream().unwrap();
    launch(&stream, &module.kernel("stuck").unwrap(), Launch::blocks(1, 2), &0u32).unwrap();
    let error = stream.synchronize().unwrap_err();
    assert!(error.is_lost() && error.to_string().contains("stuck"), "{error}");
}
