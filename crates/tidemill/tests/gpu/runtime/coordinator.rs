use super::rig::{self, add, meet, on_every_device};
use tidemill_gpu::{Context, ContextOptions, Device, GpuError, OperationId, Purpose, Stream};

fn context(device: &Device, streams: usize) -> Context {
    Context::new(device, ContextOptions::parallel(streams)).unwrap()
}

fn compute(
    context: &Context,
    name: &str,
    after: &[OperationId],
    work: impl FnOnce(&Stream) -> Result<(), GpuError>,
) -> OperationId {
    context.coordinator().submit(Purpose::Compute, name, after, work).unwrap().1
}

#[test]
fn operations_run_after_what_they_depend_on() {
    on_every_device(|device| {
        for streams in [1, 2, 5] {
            let context = context(device, streams);
            let coordinator = context.coordinator();
            let mut pinned = device.pinned::<u64>(1).unwrap();
            pinned.as_mut_slice().unwrap()[0] = 5;
            let buffer = device.alloc::<u64>(1).unwrap();
            let mut back = device.pinned::<u64>(1).unwrap();
            let mut gate = None;
            let hold = compute(&context, "hold", &[], |stream| {
                gate = Some(rig::hold(stream));
                Ok(())
            });
            let up = |stream: &Stream| stream.upload(&pinned, 0, &buffer, 0, 1);
            let up = coordinator.submit(Purpose::Upload, "upload", &[hold], up).unwrap().1;
            let one = compute(&context, "add", &[up], |stream| add(stream, &buffer, 1));
            let two = compute(&context, "add", &[one], |stream| add(stream, &buffer, 1));
            let down = |stream: &Stream| stream.download(&buffer, 0, &mut back, 0, 1);
            let down = coordinator.submit(Purpose::Download, "download", &[two], down).unwrap().1;
            assert!(!coordinator.is_done(down).unwrap(), "nothing waits on submission");
            gate.unwrap().open();
            let last = coordinator.finish(down).unwrap();
            assert_eq!(back.as_slice().unwrap(), [7]);
            for operation in [hold, up, one, two] {
                assert!(coordinator.is_done(operation).unwrap());
                assert!(coordinator.finish(operation).unwrap().end_ms <= last.end_ms);
            }
            assert!(matches!(coordinator.finish(down), Err(GpuError::Misuse { .. })), "only once");
            // What is finished holds nothing up.
            let later = compute(&context, "add", &[down], |stream| add(stream, &buffer, 1));
            coordinator.finish(later).unwrap();
            assert_eq!(buffer.to_vec().unwrap(), [8]);
        }
    });
}

#[test]
fn finishing_one_does_not_wait_for_others() {
    on_every_device(|device| {
        let context = context(device, 4);
        let coordinator = context.coordinator();
        let buffer = device.alloc::<u64>(1).unwrap();
        let (open, gate) = std::sync::mpsc::channel::<()>();
        let held = compute(&context, "held", &[], |stream| stream.host(move || gate.recv().unwrap()));
        let quick = compute(&context, "quick", &[], |stream| add(stream, &buffer, 1));
        coordinator.finish(quick).unwrap();
        assert!(!coordinator.is_done(held).unwrap());
        open.send(()).unwrap();
        coordinator.finish(held).unwrap();
        assert!(coordinator.is_done(held).unwrap());
    });
}

#[test]
fn branches_overlap_and_meet_again() {
    on_every_device(|device| {
        let context = context(device, 4);
        let origin = device.alloc::<u64>(1).unwrap();
        let parts: Vec<_> = (0..2).map(|_| device.alloc::<u64>(1).unwrap()).collect();
        let arrived = device.alloc::<u32>(1).unwrap();
        let all = device.alloc::<u64>(2).unwrap();
        let first = compute(&context, "first", &[], |stream| add(stream, &origin, 3));
        let branches =
            [0, 1].map(|i| compute(&context, "branch", &[first], |stream| meet(stream, &arrived, &parts, i)));
        let gather = compute(&context, "gather", &branches, |stream| {
            stream.copy(&parts[0], 0, &all, 0, 1)?;
            stream.copy(&parts[1], 0, &all, 1, 1)
        });
        let finish = |operation| context.coordinator().finish(operation).unwrap();
        let (gather, branches, first) = (finish(gather), branches.map(finish), finish(first));
        assert_eq!(all.to_vec().unwrap(), [1, 1], "the branches met");
        assert!(branches[0].start_ms < branches[1].end_ms && branches[1].start_ms < branches[0].end_ms);
        assert!(branches.iter().all(|span| first.end_ms <= span.start_ms && span.end_ms <= gather.start_ms));
        let names: Vec<_> = context.timeline().spans().into_iter().map(|span| span.name).collect();
        assert_eq!(names, ["first", "branch", "branch", "gather"]);
    });
}

#[test]
fn work_that_cannot_be_submitted_is_no_operation() {
    on_every_device(|device| {
        let context = context(device, 3);
        let buffer = device.alloc::<u64>(1).unwrap();
        let failed = context.coordinator().submit(Purpose::Compute, "fails", &[], |stream| {
            add(stream, &buffer, 1)?;
            stream.copy(&buffer, 0, &buffer, 0, 2)
        });
        assert!(matches!(failed, Err(GpuError::Range { .. })));
        assert_eq!(buffer.to_vec().unwrap(), [1], "what went before the failure is done");
        assert_eq!(context.timeline().spans(), []);
    });
}

#[test]
fn operations_of_another_coordinator_are_refused() {
    on_every_device(|device| {
        let (one, two) = (context(device, 2), context(device, 2));
        let foreign = compute(&two, "nothing", &[], |_| Ok(()));
        let nothing = |_: &Stream| Ok(());
        let submitted = one.coordinator().submit(Purpose::Compute, "work", &[foreign], nothing);
        assert!(matches!(submitted, Err(GpuError::Misuse { .. })));
        assert!(matches!(one.coordinator().finish(foreign), Err(GpuError::Misuse { .. })));
        assert!(matches!(one.coordinator().is_done(foreign), Err(GpuError::Misuse { .. })));
    });
}
