use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use super::rig::{add, meet, on_every_device, slow, slow_result};
use tidemill_gpu::{Device, GpuError, HostOptions};

#[test]
fn work_of_one_stream_runs_in_order() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let order = Arc::new(Mutex::new(Vec::new()));
        for i in 0..100 {
            let order = order.clone();
            stream.host(move || order.lock().unwrap().push(i)).unwrap();
        }
        stream.synchronize().unwrap();
        assert_eq!(*order.lock().unwrap(), (0..100).collect::<Vec<_>>());
    });
}

#[test]
fn submitting_does_not_wait() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        stream.host(move || gate.recv().unwrap()).unwrap();
        let after = stream.record().unwrap();
        assert!(!after.is_done().unwrap());
        std::thread::sleep(Duration::from_millis(5));
        assert!(!after.is_done().unwrap());
        open.send(()).unwrap();
        after.wait().unwrap();
        assert!(after.is_done().unwrap());
    });
}

#[test]
fn streams_of_the_host_really_run_side_by_side() {
    // Each waits inside its work for the others: in sequence this would never end.
    let device = Device::host(HostOptions::default());
    let meet = Arc::new(Barrier::new(4));
    let streams: Vec<_> = (0..4).map(|_| device.stream().unwrap()).collect();
    for stream in &streams {
        let meet = meet.clone();
        stream
            .host(move || {
                meet.wait();
            })
            .unwrap();
    }
    device.synchronize().unwrap();
}

#[test]
fn kernels_of_two_streams_overlap_in_time() {
    on_every_device(|device| {
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        let buffers = [device.alloc::<u64>(1).unwrap(), device.alloc::<u64>(1).unwrap()];
        let arrived = device.alloc::<u32>(1).unwrap();
        let zero = streams[0].record().unwrap();
        let spans: Vec<_> = (0..2)
            .map(|i| {
                let start = streams[i].record().unwrap();
                meet(&streams[i], &arrived, &buffers, i).unwrap();
                (start, streams[i].record().unwrap())
            })
            .collect();
        device.synchronize().unwrap();
        let at = |event: &tidemill_gpu::Event| event.since_ms(&zero).unwrap();
        let (first, second) = (&spans[0], &spans[1]);
        assert!(at(&first.0) < at(&second.1) && at(&second.0) < at(&first.1), "no overlap");
        assert!(buffers.iter().all(|met| met.to_vec().unwrap() == [1]), "each waited for the other");
    });
}

#[test]
fn a_stream_waits_for_an_event_of_another() {
    on_every_device(|device| {
        let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
        let buffer = device.alloc::<u64>(1).unwrap();
        for round in 0..5 {
            slow(&first, &buffer, round).unwrap();
            second.wait(&first.record().unwrap()).unwrap();
            add(&second, &buffer, 1).unwrap();
            first.wait(&second.record().unwrap()).unwrap();
            add(&first, &buffer, 1).unwrap();
            first.synchronize().unwrap();
            assert_eq!(buffer.to_vec().unwrap(), [slow_result(round).wrapping_add(2)]);
        }
    });
}

#[test]
fn work_forks_and_joins() {
    on_every_device(|device| {
        let main = device.stream().unwrap();
        let sides: Vec<_> = (0..3).map(|_| device.stream().unwrap()).collect();
        let parts: Vec<_> = (0..3).map(|_| device.alloc::<u64>(1).unwrap()).collect();
        let origin = device.alloc::<u64>(1).unwrap();
        slow(&main, &origin, 9).unwrap();
        let fork = main.record().unwrap();
        for (i, (side, part)) in sides.iter().zip(&parts).enumerate() {
            side.wait(&fork).unwrap();
            side.copy(&origin, 0, part, 0, 1).unwrap();
            add(side, part, i as u64).unwrap();
            main.wait(&side.record().unwrap()).unwrap();
        }
        let all = device.alloc::<u64>(3).unwrap();
        for (i, part) in parts.iter().enumerate() {
            main.copy(part, 0, &all, i, 1).unwrap();
        }
        main.synchronize().unwrap();
        let origin = slow_result(9);
        assert_eq!(all.to_vec().unwrap(), [origin, origin.wrapping_add(1), origin.wrapping_add(2)]);
    });
}

#[test]
fn a_wait_takes_the_record_before_it_not_a_later_use_of_the_event() {
    on_every_device(|device| {
        let (first, second) = (device.stream().unwrap(), device.stream().unwrap());
        let event = first.record().unwrap();
        second.wait(&event).unwrap();
        drop(event);
        // The event comes back from the pool and is recorded behind something that is held up.
        let (open, gate) = std::sync::mpsc::channel::<()>();
        first.host(move || gate.recv().unwrap()).unwrap();
        let again = first.record().unwrap();
        second.synchronize().unwrap();
        assert!(!again.is_done().unwrap());
        open.send(()).unwrap();
        first.synchronize().unwrap();
    });
}

#[test]
fn events_are_used_again() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        stream.record().unwrap().wait().unwrap();
        let created = device.events().created();
        for _ in 0..50 {
            stream.record().unwrap();
        }
        assert_eq!(device.events().created(), created);
        assert!(device.events().idle() >= 1);
    });
}

#[test]
fn time_between_events_is_the_time_of_the_work() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        stream.synchronize().unwrap();
        let clock = Instant::now();
        let start = stream.record().unwrap();
        stream.host(|| std::thread::sleep(Duration::from_millis(30))).unwrap();
        let end = stream.record().unwrap();
        let elapsed = end.since_ms(&start).unwrap();
        let wall = clock.elapsed().as_secs_f64() * 1e3;
        assert!((29.0..=wall + 1.0).contains(&elapsed), "{elapsed} ms of {wall}");
        assert!((start.since_ms(&end).unwrap() + elapsed).abs() < 1e-3);
    });
}

#[test]
fn work_of_a_dropped_stream_still_runs() {
    on_every_device(|device| {
        let buffer = device.alloc::<u64>(1).unwrap();
        let stream = device.stream().unwrap();
        slow(&stream, &buffer, 3).unwrap();
        drop(stream);
        device.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [slow_result(3)]);
    });
}

#[test]
fn a_panic_on_the_host_is_reported_once_and_the_stream_goes_on() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        stream.host(|| panic!("the sum is {}", 42)).unwrap();
        let ran = Arc::new(AtomicBool::new(false));
        let flag = ran.clone();
        stream.host(move || flag.store(true, Ordering::Relaxed)).unwrap();
        assert_eq!(stream.synchronize(), Err(GpuError::HostWork { message: "the sum is 42".into() }));
        assert!(ran.load(Ordering::Relaxed));
        stream.synchronize().unwrap();
        stream.host(|| panic!("again")).unwrap();
        assert_eq!(device.synchronize(), Err(GpuError::HostWork { message: "again".into() }));
        device.synchronize().unwrap();
    });
}

#[test]
fn work_on_the_host_must_not_wait_for_the_device() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, inside, buffer) = (seen.clone(), stream.clone(), device.alloc::<u64>(10).unwrap());
        let event = stream.record().unwrap();
        let pinned = device.pinned::<u64>(10).unwrap();
        stream
            .host(move || {
                let answers = [inside.synchronize(), inside.device().synchronize(), event.wait()];
                log.lock().unwrap().extend(answers);
                // Dropped here, freed later.
                drop((buffer, pinned));
            })
            .unwrap();
        stream.synchronize().unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().all(|answer| matches!(answer, Err(GpuError::Misuse { .. }))), "{seen:?}");
        device.synchronize().unwrap();
    });
}

#[test]
fn a_stream_can_be_dropped_by_work_on_the_host() {
    on_every_device(|device| {
        let (stream, other) = (device.stream().unwrap(), device.stream().unwrap());
        let buffer = device.alloc::<u64>(1).unwrap();
        slow(&other, &buffer, 1).unwrap();
        stream.host(move || drop(other)).unwrap();
        device.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [slow_result(1)]);
    });
}

#[test]
fn memory_dropped_by_work_on_the_host_comes_back() {
    let device = Device::host(HostOptions { memory_bytes: 1000, ..HostOptions::default() });
    let (stream, buffer) = (device.stream().unwrap(), device.alloc::<u8>(1000).unwrap());
    stream.host(move || drop(buffer)).unwrap();
    stream.synchronize().unwrap();
    device.alloc::<u8>(1000).unwrap();
}
