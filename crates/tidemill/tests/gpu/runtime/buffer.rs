use super::rig::{add, hold, is_host, on_every_device, slow, slow_result};
use tidemill_gpu::{Device, DevicePtr, GpuError, HostOptions};

#[test]
fn new_memory_is_zero_also_where_old_memory_was() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        for _ in 0..3 {
            let buffer = device.alloc::<u64>(5000).unwrap();
            assert!(buffer.to_vec().unwrap().iter().all(|&x| x == 0));
            stream.fill(&buffer, 0, 5000, 0xff).unwrap();
            let pinned = device.pinned::<u32>(100).unwrap();
            assert!(pinned.as_slice().unwrap().iter().all(|&x| x == 0));
        }
    });
}

#[test]
fn elements_make_the_round_trip() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let mut there = device.pinned::<u64>(1000).unwrap();
        for (i, x) in there.as_mut_slice().unwrap().iter_mut().enumerate() {
            *x = i as u64 * 3;
        }
        let (first, second) = (device.alloc::<u64>(1000).unwrap(), device.alloc::<u64>(1000).unwrap());
        let mut back = device.pinned::<u64>(1000).unwrap();
        stream.upload(&there, 100, &first, 0, 900).unwrap();
        stream.copy(&first, 0, &second, 50, 900).unwrap();
        stream.fill(&second, 60, 2, 0xff).unwrap();
        stream.download(&second, 50, &mut back, 10, 900).unwrap();
        let back = back.as_slice().unwrap();
        let expected = |i: usize| match i {
            10..20 | 22..910 => (i as u64 + 90) * 3,
            20..22 => u64::MAX,
            _ => 0,
        };
        assert!(back.iter().enumerate().all(|(i, &x)| x == expected(i)));
        assert_eq!(device.alloc_from(&[1.5f64, -0.0]).unwrap().to_vec().unwrap(), [1.5, -0.0]);
    });
}

#[test]
fn reading_pinned_memory_waits_for_the_download() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let buffer = device.alloc::<u64>(1).unwrap();
        let mut pinned = device.pinned::<u64>(1).unwrap();
        let gate = hold(&stream);
        slow(&stream, &buffer, 1).unwrap();
        stream.download(&buffer, 0, &mut pinned, 0, 1).unwrap();
        assert!(!stream.record().unwrap().is_done().unwrap(), "the submission does not wait");
        gate.open();
        assert_eq!(pinned.as_slice().unwrap(), [slow_result(1)]);
    });
}

#[test]
fn changing_pinned_memory_waits_for_every_upload_from_it() {
    on_every_device(|device| {
        let mut pinned = device.pinned::<u64>(1).unwrap();
        pinned.as_mut_slice().unwrap()[0] = 7;
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let busy = device.alloc::<u64>(1).unwrap();
        let to = [device.alloc::<u64>(1).unwrap(), device.alloc::<u64>(1).unwrap()];
        // The second upload is done long before the first.
        slow(&streams[0], &busy, 1).unwrap();
        streams[0].upload(&pinned, 0, &to[0], 0, 1).unwrap();
        streams[1].upload(&pinned, 0, &to[1], 0, 1).unwrap();
        pinned.as_mut_slice().unwrap()[0] = 8;
        assert_eq!(to[0].to_vec().unwrap(), [7]);
        assert_eq!(to[1].to_vec().unwrap(), [7]);
    });
}

#[test]
fn dropping_memory_waits_for_its_work() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let free = device.free_bytes().unwrap();
        for seed in 0..3 {
            let buffer = device.alloc::<u64>(1 << 20).unwrap();
            let pinned = device.pinned::<u64>(1 << 20).unwrap();
            slow(&stream, &buffer, seed).unwrap();
            let before = stream.record().unwrap();
            stream.upload(&pinned, 0, &buffer, 0, 1 << 20).unwrap();
            drop(pinned);
            assert!(before.is_done().unwrap());
            slow(&stream, &buffer, seed).unwrap();
            let after = stream.record().unwrap();
            drop(buffer);
            assert!(after.is_done().unwrap());
        }
        if is_host(device) {
            assert_eq!(device.free_bytes().unwrap(), free);
        }
    });
}

#[test]
fn elements_outside_of_a_buffer_are_refused() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let buffer = device.alloc::<u32>(10).unwrap();
        let other = device.alloc::<u32>(20).unwrap();
        let mut pinned = device.pinned::<u32>(20).unwrap();
        let refused = |result: Result<(), GpuError>| matches!(result, Err(GpuError::Range { .. }));
        assert!(refused(stream.upload(&pinned, 0, &buffer, 0, 11)));
        assert!(refused(stream.upload(&pinned, 15, &buffer, 0, 6)));
        assert!(refused(stream.upload(&pinned, 0, &buffer, usize::MAX, 2)));
        assert!(refused(stream.download(&buffer, 5, &mut pinned, 0, 6)));
        assert!(refused(stream.download(&buffer, 0, &mut pinned, 15, 6)));
        assert!(refused(stream.copy(&other, 15, &buffer, 0, 6)));
        assert!(refused(stream.copy(&other, 0, &buffer, 5, 6)));
        assert!(refused(stream.fill(&buffer, 10, 1, 0)));
        assert!(matches!(stream.copy(&buffer, 0, &buffer, 4, 5), Err(GpuError::Misuse { .. })), "overlap");
        stream.copy(&buffer, 0, &buffer, 5, 5).unwrap();
        stream.fill(&buffer, 10, 0, 0).unwrap();
        stream.synchronize().unwrap();
    });
}

#[test]
fn empty_buffers_are_buffers() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let buffer = device.alloc::<f64>(0).unwrap();
        let mut pinned = device.pinned::<f64>(0).unwrap();
        assert!(buffer.is_empty() && buffer.ptr().is_null());
        stream.upload(&pinned, 0, &buffer, 0, 0).unwrap();
        stream.download(&buffer, 0, &mut pinned, 0, 0).unwrap();
        assert!(pinned.as_mut_slice().unwrap().is_empty());
        assert!(buffer.to_vec().unwrap().is_empty());
    });
}

#[test]
fn too_much_memory_is_an_error_that_leaves_the_device_usable() {
    on_every_device(|device| {
        let too_much = device.info().memory_bytes as usize / 8 + 1;
        let error = device.alloc::<u64>(too_much).unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        assert!(matches!(device.alloc::<u64>(usize::MAX / 4), Err(GpuError::Range { .. })));
        let buffer = device.alloc_from(&[1u64; 10]).unwrap();
        let stream = device.stream().unwrap();
        add(&stream, &buffer, 2).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [3; 10]);
    });
}

#[test]
fn the_limit_of_a_host_device_counts_what_is_in_use() {
    let device = Device::host(HostOptions { memory_bytes: 1000, ..HostOptions::default() });
    let first = device.alloc::<u8>(600).unwrap();
    assert_eq!(device.alloc::<u8>(500).unwrap_err(), GpuError::OutOfMemory { bytes: 500, free: 400 });
    drop(first);
    assert_eq!(device.free_bytes().unwrap(), 1000);
    device.alloc::<u8>(1000).unwrap();
}

#[test]
fn things_of_two_devices_do_not_mix() {
    let (one, two) = (Device::host(HostOptions::default()), Device::host(HostOptions::default()));
    let stream = one.stream().unwrap();
    let event = two.stream().unwrap().record().unwrap();
    assert!(matches!(stream.wait(&event), Err(GpuError::Misuse { .. })));
    let buffer = two.alloc::<u64>(1).unwrap();
    assert!(matches!(stream.fill(&buffer, 0, 1, 0), Err(GpuError::Misuse { .. })));
    assert!(matches!(stream.copy(&buffer, 0, &buffer, 0, 0), Err(GpuError::Misuse { .. })));
    assert!(matches!(event.since_ms(&stream.record().unwrap()), Err(GpuError::Misuse { .. })));
    one.synchronize().unwrap();
}

#[test]
fn pointers_count_in_elements() {
    let at = DevicePtr::<u32>::from_address(0x1000);
    assert_eq!(at.add(3).address(), 0x100c);
    assert_eq!(at.cast::<f64>().add(1).address(), 0x1008);
    assert!(DevicePtr::<u32>::NULL.is_null() && !at.is_null());
    assert_eq!(size_of::<DevicePtr<[u8; 100]>>(), 8);
}

#[test]
fn a_buffer_grows_where_it_is_while_its_work_goes_on() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let mut buffer = device.growable::<u64>(1 << 20).unwrap();
        if !buffer.can_grow(1) {
            return;
        }
        assert!(buffer.is_empty() && !buffer.can_grow((1 << 20) + 1));
        buffer.grow(1000).unwrap();
        let (begin, free) = (buffer.ptr(), device.free_bytes().unwrap());
        let gate = hold(&stream);
        stream.fill(&buffer, 0, 1000, 0xff).unwrap();
        let filled = stream.record().unwrap();
        buffer.grow(1 << 20).unwrap();
        assert!(!filled.is_done().unwrap(), "growing does not wait");
        assert_eq!((buffer.ptr(), buffer.len()), (begin, 1 << 20));
        assert!(device.free_bytes().unwrap() < free);
        gate.open();
        stream.fill(&buffer, 1000, (1 << 20) - 1000, 1).unwrap();
        let values = buffer.to_vec().unwrap();
        assert!(values[..1000].iter().all(|&x| x == u64::MAX));
        assert!(values[1000..].iter().all(|&x| x == 0x0101_0101_0101_0101));
        assert!(matches!(buffer.grow((1 << 20) + 1), Err(GpuError::Range { .. })));
        buffer.grow(10).unwrap();
        assert_eq!(buffer.len(), 1 << 20, "it never shrinks");
    });
}

#[test]
fn a_buffer_that_cannot_grow_for_want_of_memory_stays_as_it_is() {
    let device = Device::host(HostOptions { memory_bytes: 1000, ..HostOptions::default() });
    let mut buffer = device.growable::<u8>(5000).unwrap();
    buffer.grow(600).unwrap();
    assert_eq!(buffer.grow(1100).unwrap_err(), GpuError::OutOfMemory { bytes: 500, free: 400 });
    assert_eq!((buffer.len(), device.free_bytes().unwrap()), (600, 400));
    buffer.grow(1000).unwrap();
    drop(buffer);
    assert_eq!(device.free_bytes().unwrap(), 1000);
    assert!(matches!(device.alloc::<u8>(10).unwrap().grow(11), Err(GpuError::Range { .. })));
}
