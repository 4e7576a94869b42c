use super::rig::{add, is_host, on_every_device, slow, slow_result};
use tidemill_gpu::{GpuError, Graph};

#[test]
fn a_graph_does_what_was_captured_each_time() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let (buffer, copy) = (device.alloc_from(&[1u64; 100]).unwrap(), device.alloc::<u64>(100).unwrap());
        let graph = Graph::capture(&stream, |stream| {
            add(stream, &buffer, 1)?;
            add(stream, &buffer, 10)?;
            stream.copy(&buffer, 0, &copy, 0, 50)?;
            stream.fill(&copy, 50, 1, 0xff)
        })
        .unwrap();
        assert_eq!(graph.len(), 4);
        stream.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [1; 100], "capturing runs nothing");
        for round in 1..4 {
            graph.launch(&stream).unwrap();
            stream.synchronize().unwrap();
            assert_eq!(buffer.to_vec().unwrap(), [1 + 11 * round; 100]);
            let copied = copy.to_vec().unwrap();
            assert!(
                copied[..50].iter().all(|&x| x == 1 + 11 * round)
                    && copied[50] == u64::MAX
                    && copied[51] == 0
            );
        }
        // The stream works as before.
        add(&stream, &buffer, 1).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [35; 100]);
    });
}

#[test]
fn streams_fork_and_join_inside_a_graph() {
    on_every_device(|device| {
        let (main, side) = (device.stream().unwrap(), device.stream().unwrap());
        let parts = [device.alloc::<u64>(1).unwrap(), device.alloc::<u64>(1).unwrap()];
        let all = device.alloc::<u64>(2).unwrap();
        let graph = Graph::capture(&main, |main| {
            let fork = main.record()?;
            side.wait(&fork)?;
            slow(&side, &parts[1], 1)?;
            slow(main, &parts[0], 0)?;
            main.wait(&side.record()?)?;
            main.copy(&parts[0], 0, &all, 0, 1)?;
            main.copy(&parts[1], 0, &all, 1, 1)
        })
        .unwrap();
        graph.launch(&main).unwrap();
        main.synchronize().unwrap();
        assert_eq!(all.to_vec().unwrap(), [slow_result(0), slow_result(1)]);
        // Both streams are released.
        add(&side, &all, 1).unwrap();
        side.synchronize().unwrap();
        assert_eq!(all.to_vec().unwrap()[1], slow_result(1).wrapping_add(1));
    });
}

#[test]
fn a_branch_that_was_not_joined_still_ends_before_the_graph_does() {
    on_every_device(|device| {
        let (main, side) = (device.stream().unwrap(), device.stream().unwrap());
        let buffer = device.alloc::<u64>(1).unwrap();
        let graph = Graph::capture(&main, |main| {
            side.wait(&main.record()?)?;
            slow(&side, &buffer, 4)
        })
        .unwrap();
        graph.launch(&main).unwrap();
        add(&main, &buffer, 1).unwrap();
        main.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [slow_result(4).wrapping_add(1)]);
    });
}

#[test]
fn what_a_graph_cannot_hold_is_refused() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let buffer = device.alloc::<u64>(1).unwrap();
        let mut pinned = device.pinned::<u64>(1).unwrap();
        let outside = device.stream().unwrap().record().unwrap();
        let mut seen = None;
        let inner = Graph::capture(&stream, |stream| add(stream, &buffer, 1)).unwrap();
        Graph::capture(&stream, |stream| {
            let event = stream.record()?;
            let answers = [
                stream.upload(&pinned, 0, &buffer, 0, 1),
                stream.download(&buffer, 0, &mut pinned, 0, 1),
                stream.host(|| ()),
                stream.synchronize(),
                stream.wait(&outside),
                event.wait(),
                inner.launch(stream),
                Graph::capture(stream, |_| Ok(())).map(drop),
            ];
            for (i, answer) in answers.iter().enumerate() {
                assert!(matches!(answer, Err(GpuError::Misuse { .. })), "{i}: {answer:?}");
            }
            seen = Some(event);
            Ok(())
        })
        .unwrap();
        assert!(matches!(stream.wait(&seen.unwrap()), Err(GpuError::Misuse { .. })), "after the end");
        stream.synchronize().unwrap();
    });
}

#[test]
fn a_failed_capture_leaves_the_stream_usable() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let buffer = device.alloc::<u64>(1).unwrap();
        let failed = Graph::capture(&stream, |stream| {
            add(stream, &buffer, 1)?;
            Err(GpuError::OutOfMemory { bytes: 1, free: 0 })
        });
        assert!(failed.unwrap_err().is_out_of_memory());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Graph::capture(&stream, |_| panic!("inside a capture")).map(drop)
        }));
        assert!(panicked.is_err());
        add(&stream, &buffer, 5).unwrap();
        stream.synchronize().unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [5]);
    });
}

#[test]
fn a_graph_keeps_the_buffers_it_copies() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let to = device.alloc::<u64>(1000).unwrap();
        let free = device.free_bytes().unwrap();
        let graph = {
            let from = device.alloc_from(&[9u64; 1000]).unwrap();
            Graph::capture(&stream, |stream| stream.copy(&from, 0, &to, 0, 1000)).unwrap()
        };
        graph.launch(&stream).unwrap();
        stream.synchronize().unwrap();
        assert!(to.to_vec().unwrap() == [9; 1000]);
        drop(graph);
        if is_host(device) {
            assert_eq!(device.free_bytes().unwrap(), free);
        }
    });
}

#[test]
fn an_empty_graph_can_be_launched() {
    on_every_device(|device| {
        let stream = device.stream().unwrap();
        let graph = Graph::capture(&stream, |_| Ok(())).unwrap();
        assert!(graph.is_empty());
        graph.launch(&stream).unwrap();
        stream.synchronize().unwrap();
    });
}
