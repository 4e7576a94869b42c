use std::sync::Arc;

use super::rig::{self, add, meet, on_every_device};
use tidemill_gpu::{Coordinator, Device, GpuError, StreamPool, StreamPoolOptions, Timeline};

fn coordinator(device: &Device, streams: usize) -> Coordinator {
    let options = StreamPoolOptions { streams, ..StreamPoolOptions::default() };
    Coordinator::new(StreamPool::new(device, options).unwrap())
}

#[test]
fn operations_run_after_what_they_depend_on() {
    on_every_device(|device| {
        for streams in [1, 2, 5] {
            let coordinator = coordinator(device, streams);
            let mut pinned = device.pinned::<u64>(1).unwrap();
            pinned.as_mut_slice().unwrap()[0] = 5;
            let buffer = device.alloc::<u64>(1).unwrap();
            let mut back = device.pinned::<u64>(1).unwrap();
            let mut gate = None;
            let hold = coordinator
                .compute("hold", &[], |stream| {
                    gate = Some(rig::hold(stream));
                    Ok(())
                })
                .unwrap();
            let up = coordinator.upload(&pinned, 0, &buffer, 0, 1, &[hold]).unwrap();
            let one = coordinator.compute("add", &[up], |stream| add(stream, &buffer, 1)).unwrap();
            let two = coordinator.compute("add", &[one], |stream| add(stream, &buffer, 1)).unwrap();
            let down = coordinator.download(&buffer, 0, &mut back, 0, 1, &[two]).unwrap();
            assert!(!coordinator.is_done(down).unwrap(), "nothing waits on submission");
            gate.unwrap().open();
            coordinator.wait(down).unwrap();
            assert_eq!(back.as_slice().unwrap(), [7]);
            for operation in [hold, up, one, two, down] {
                assert!(coordinator.is_done(operation).unwrap());
            }
        }
    });
}

#[test]
fn poll_tells_what_finished_and_only_once() {
    on_every_device(|device| {
        let coordinator = coordinator(device, 5);
        let buffer = device.alloc::<u64>(1).unwrap();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let held =
            coordinator.compute("held", &[], |stream| stream.host(move || gate.recv().unwrap())).unwrap();
        let quick = coordinator.compute("quick", &[], |stream| add(stream, &buffer, 1)).unwrap();
        let behind = coordinator.compute("behind", &[held], |stream| add(stream, &buffer, 1)).unwrap();
        let mut told = Vec::new();
        while told.is_empty() {
            told = coordinator.poll().unwrap();
        }
        assert_eq!(told, [quick]);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert_eq!(coordinator.poll().unwrap(), []);
        assert!(!coordinator.is_done(held).unwrap() && !coordinator.is_done(behind).unwrap());
        open.send(()).unwrap();
        coordinator.wait(behind).unwrap();
        assert_eq!(coordinator.poll().unwrap(), [held], "what was waited for is not told again");
        assert_eq!(coordinator.poll().unwrap(), []);
    });
}

#[test]
fn waiting_for_one_does_not_wait_for_others() {
    on_every_device(|device| {
        let coordinator = coordinator(device, 4);
        let buffer = device.alloc::<u64>(1).unwrap();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let held =
            coordinator.compute("held", &[], |stream| stream.host(move || gate.recv().unwrap())).unwrap();
        let quick = coordinator.compute("quick", &[], |stream| add(stream, &buffer, 1)).unwrap();
        coordinator.wait(quick).unwrap();
        assert!(!coordinator.is_done(held).unwrap());
        open.send(()).unwrap();
        coordinator.synchronize().unwrap();
        assert!(coordinator.is_done(held).unwrap());
        assert_eq!(coordinator.poll().unwrap(), [], "a synchronisation tells it all");
    });
}

#[test]
fn forked_work_overlaps_and_joins() {
    on_every_device(|device| {
        let timeline = Arc::new(Timeline::new(device).unwrap());
        let coordinator = coordinator(device, 4).with_timeline(timeline.clone());
        let origin = device.alloc::<u64>(1).unwrap();
        let parts: Vec<_> = (0..2).map(|_| device.alloc::<u64>(1).unwrap()).collect();
        let arrived = device.alloc::<u32>(1).unwrap();
        let all = device.alloc::<u64>(2).unwrap();
        let first = coordinator.compute("first", &[], |stream| add(stream, &origin, 3)).unwrap();
        let work = |i: usize, stream: &tidemill_gpu::Stream| meet(stream, &arrived, &parts, i);
        let branches = coordinator.fork("branch", &[first], 2, work).unwrap();
        let joined = coordinator.join(&branches).unwrap();
        let gather = coordinator
            .compute("gather", &[joined], |stream| {
                stream.copy(&parts[0], 0, &all, 0, 1)?;
                stream.copy(&parts[1], 0, &all, 1, 1)
            })
            .unwrap();
        coordinator.wait(gather).unwrap();
        assert!(coordinator.is_done(joined).unwrap());
        assert_eq!(all.to_vec().unwrap(), [1, 1], "the branches met");
        let spans = timeline.spans().unwrap();
        let of = |name: &str| spans.iter().filter(|span| span.name == name).cloned().collect::<Vec<_>>();
        let (branches, first, gather) = (of("branch"), &of("first")[0], &of("gather")[0]);
        assert_eq!(branches.len(), 2);
        assert!(branches[0].start_ms < branches[1].end_ms && branches[1].start_ms < branches[0].end_ms);
        assert!(branches.iter().all(|span| first.end_ms <= span.start_ms && span.end_ms <= gather.start_ms));
    });
}

#[test]
fn operations_of_another_coordinator_are_refused() {
    on_every_device(|device| {
        let (one, two) = (coordinator(device, 2), coordinator(device, 2));
        let foreign = two.compute("nothing", &[], |_| Ok(())).unwrap();
        assert!(matches!(one.compute("work", &[foreign], |_| Ok(())), Err(GpuError::Misuse { .. })));
        assert!(matches!(one.wait(foreign), Err(GpuError::Misuse { .. })));
        assert!(matches!(one.join(&[foreign]), Err(GpuError::Misuse { .. })));
    });
}
