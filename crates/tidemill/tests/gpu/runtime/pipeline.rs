use std::sync::atomic::{AtomicUsize, Ordering};

use super::rig::{SlowArgs, add, host_compiles, kernel, launch, meet, on_every_device};
use tidemill_gpu::{
    Context, ContextOptions, Device, DeviceBuffer, Fault, GpuError, HostOptions, Launch, Pinned, Pipeline,
    Purpose, StreamMode,
};

const LEN: usize = 512;

struct Lane {
    there: Pinned<u64>,
    buffer: DeviceBuffer<u64>,
    spare: DeviceBuffer<u64>,
    back: Pinned<u64>,
}

fn lanes(device: &Device, n: usize) -> Result<Vec<Lane>, GpuError> {
    let lane = |_| {
        Ok(Lane {
            there: device.pinned(LEN)?,
            buffer: device.alloc(LEN)?,
            spare: device.alloc(1)?,
            back: device.pinned(LEN)?,
        })
    };
    (0..n).map(lane).collect()
}

fn context(device: &Device, mode: StreamMode, streams: usize) -> Context {
    Context::new(device, ContextOptions { mode, ..ContextOptions::parallel(streams) }).unwrap()
}

/// Uploads `batch`, `batch + 1`, ... ; adds 1000; keeps a thread of the device busy for `n_rounds`; downloads.
fn pipeline(context: &Context, n_lanes: usize, n_rounds: u32) -> Pipeline<Lane, u64, u64> {
    let slow = kernel(context.device(), "slow");
    Pipeline::new(context, lanes(context.device(), n_lanes).unwrap())
        .unwrap()
        .stage("upload", Purpose::Upload, |stream, lane: &mut Lane, batch: u64| {
            let elements = lane.there.as_mut_slice()?;
            elements.iter_mut().zip(batch..).for_each(|(element, value)| *element = value);
            stream.upload(&lane.there, 0, &lane.buffer, 0, LEN)?;
            Ok(batch)
        })
        .stage("compute", Purpose::Compute, move |stream, lane, batch| {
            let args = SlowArgs { out: lane.spare.ptr(), seed: batch, n_rounds, unused: 0 };
            launch(stream, &slow, Launch::blocks(1, 1), &args)?;
            add(stream, &lane.buffer, 1000)?;
            Ok(batch)
        })
        .stage("download", Purpose::Download, |stream, lane, batch| {
            stream.download(&lane.buffer, 0, &mut lane.back, 0, LEN)?;
            Ok(batch)
        })
}

/// The same with computations of which two meet each time: batches 0 and 1, 2 and 3, and so on.
fn meeting_pipeline(
    context: &Context,
    n_lanes: usize,
    arrived: Vec<DeviceBuffer<u32>>,
    met: Vec<[DeviceBuffer<u64>; 2]>,
) -> Pipeline<Lane, u64, u64> {
    Pipeline::new(context, lanes(context.device(), n_lanes).unwrap())
        .unwrap()
        .stage("upload", Purpose::Upload, |stream, lane: &mut Lane, batch: u64| {
            stream.upload(&lane.there, 0, &lane.buffer, 0, LEN)?;
            Ok(batch)
        })
        .stage("compute", Purpose::Compute, move |stream, _, batch| {
            let (pair, i) = (batch as usize / 2, batch as usize % 2);
            meet(stream, &arrived[pair], &met[pair], i)?;
            Ok(batch)
        })
        .stage("download", Purpose::Download, |stream, lane, batch| {
            stream.download(&lane.buffer, 0, &mut lane.back, 0, LEN)?;
            Ok(batch)
        })
}

fn take(results: &mut Vec<(u64, Vec<u64>)>) -> impl FnMut(&mut Lane, u64) -> Result<(), GpuError> {
    |lane, batch| {
        results.push((batch, lane.back.as_slice()?.to_vec()));
        Ok(())
    }
}

#[test]
fn a_pipeline_gives_the_results_of_one_batch_after_the_other() {
    on_every_device(|device| {
        let expected: Vec<(u64, Vec<u64>)> =
            (0..25).map(|batch| (batch, (batch + 1000..).take(LEN).collect())).collect();
        for (mode, streams, n_lanes) in [
            (StreamMode::Sequential, 4, 1),
            (StreamMode::Sequential, 4, 3),
            (StreamMode::Parallel, 2, 2),
            (StreamMode::Parallel, 3, 3),
            (StreamMode::Parallel, 6, 5),
            (StreamMode::Parallel, 4, 40),
        ] {
            let mut results = Vec::new();
            let mut pipeline = pipeline(&context(device, mode, streams), n_lanes, 1000);
            let statistics = pipeline.run(0..25, take(&mut results)).unwrap();
            assert!(results == expected, "{mode:?} {streams} {n_lanes}");
            assert_eq!(statistics.iterations, 25);
        }
    });
}

#[test]
fn lanes_overlap_and_the_statistics_say_so() {
    on_every_device(|device| {
        let nothing = |_: &mut Lane, _| Ok::<_, GpuError>(());
        let alone = {
            let mut pipeline = pipeline(&context(device, StreamMode::Sequential, 4), 1, 100_000);
            pipeline.run(0..2, nothing).unwrap();
            pipeline.reset_statistics();
            pipeline.run(0..12, nothing).unwrap()
        };
        let together = {
            let alloc = |_| (device.alloc::<u32>(1).unwrap(), [0, 1].map(|_| device.alloc(1).unwrap()));
            let (arrived, met) = (0..6).map(alloc).unzip();
            let context = context(device, StreamMode::Parallel, 4);
            // In sequence the first of a pair would wait for the second, which does not come.
            meeting_pipeline(&context, 4, arrived, met).run(0..12, nothing).unwrap()
        };
        for statistics in [&alone, &together] {
            assert_eq!(statistics.iterations, 12);
            assert!(statistics.wall_ms > 0.0 && statistics.mean_ms > 0.0, "{statistics:?}");
            assert!((0.0..=1.0).contains(&statistics.busy_share), "{statistics:?}");
            assert!((statistics.busy_share - statistics.busy_ms / statistics.wall_ms).abs() < 1e-9);
            assert!(statistics.fill > 0.0 && statistics.fill <= 2.0, "{statistics:?}");
            assert!((statistics.throughput - 12e3 / statistics.wall_ms).abs() < 1e-6 * statistics.throughput);
            assert!(statistics.busy_ms + statistics.idle_ms <= statistics.wall_ms + 1e-3, "{statistics:?}");
            let names: Vec<_> = statistics.stages.iter().map(|stage| stage.name.as_str()).collect();
            assert_eq!(names, ["upload", "compute", "download"]);
            assert!(statistics.stages[1].total_ms >= statistics.busy_ms - 1e-3);
            assert!((statistics.stages[1].mean_ms * 12.0 - statistics.stages[1].total_ms).abs() < 1e-6);
        }
        // One lane on one stream: no two stages at once. Four lanes on two streams for computations: computations meet.
        assert!(alone.overlap_ms < 0.01, "{alone:?}");
        assert!(together.overlap_ms > 0.0, "{together:?}");
    });
}

#[test]
fn batches_are_finished_in_order_and_no_more_fly_than_there_are_lanes() {
    on_every_device(|device| {
        let mut pipeline = pipeline(&context(device, StreamMode::Parallel, 4), 2, 100_000);
        assert_eq!(pipeline.finish(|_, batch| batch).unwrap(), None);
        assert!(!pipeline.is_ready().unwrap());
        pipeline.submit(5).unwrap();
        pipeline.submit(6).unwrap();
        assert!(!pipeline.has_free_lane() && pipeline.in_flight() == 2 && pipeline.n_lanes() == 2);
        assert!(matches!(pipeline.submit(7), Err(GpuError::Misuse { .. })));
        assert_eq!(pipeline.finish(|_, batch| batch).unwrap(), Some(5));
        pipeline.submit(7).unwrap();
        while !pipeline.is_ready().unwrap() {
            std::thread::yield_now();
        }
        assert_eq!(pipeline.finish(|_, batch| batch).unwrap(), Some(6));
        assert_eq!(pipeline.finish(|lane, _| lane.back.as_slice().unwrap()[0]).unwrap(), Some(1007));
        assert_eq!(pipeline.finish(|_, batch| batch).unwrap(), None);
        assert_eq!(pipeline.statistics().iterations, 3);
    });
}

#[test]
fn stages_pass_on_values_of_any_type() {
    on_every_device(|device| {
        let mut pipeline = Pipeline::new(&context(device, StreamMode::Parallel, 3), vec![(), ()])
            .unwrap()
            .stage("measure", Purpose::Compute, |_, _, text: String| Ok(text.len()))
            .stage("halve", Purpose::Compute, |_, _, len| Ok(len as f64 / 2.0));
        let mut seen = Vec::new();
        let texts = ["a", "bcd"].map(String::from);
        let taken = pipeline.run(texts, |_, half| {
            seen.push(half);
            Ok::<_, GpuError>(())
        });
        taken.unwrap();
        assert_eq!(seen, [0.5, 1.5]);
    });
}

#[test]
fn a_batch_that_runs_out_of_memory_frees_its_lane() {
    let device = Device::host(HostOptions { memory_bytes: 1 << 20, ..HostOptions::default() });
    let own = device.clone();
    let mut pipeline = Pipeline::new(&context(&device, StreamMode::Parallel, 3), vec![None, None])
        .unwrap()
        .stage("allocate", Purpose::Compute, move |_, lane: &mut Option<DeviceBuffer<u8>>, len: usize| {
            *lane = Some(own.alloc(len)?);
            Ok(len)
        });
    let mut chunk = 4 << 20;
    while let Err(error) = pipeline.submit(chunk) {
        assert!(error.is_out_of_memory(), "{error}");
        assert!(pipeline.has_free_lane());
        chunk /= 2;
    }
    assert_eq!(chunk, 1 << 20);
    assert_eq!(pipeline.finish(|_, len| len).unwrap(), Some(chunk));
}

#[test]
fn a_lost_device_ends_the_run_with_its_error() {
    if !host_compiles() {
        return;
    }
    let faults = vec![Fault::DeviceLost { after_launches: 7 }];
    let device = Device::host(HostOptions { faults, ..HostOptions::default() });
    let mut pipeline = pipeline(&context(&device, StreamMode::Parallel, 4), 2, 100);
    let finished = AtomicUsize::new(0);
    let error = pipeline
        .run(0..20, |_, _| {
            finished.fetch_add(1, Ordering::Relaxed);
            Ok::<_, GpuError>(())
        })
        .unwrap_err();
    assert!(error.is_lost(), "{error}");
    assert!(finished.load(Ordering::Relaxed) <= 3);
    assert_eq!(pipeline.submit(0).unwrap_err(), error);
}

#[test]
fn a_timeline_shows_every_stage_of_every_batch() {
    on_every_device(|device| {
        let context = context(device, StreamMode::Parallel, 4);
        let mut pipeline = pipeline(&context, 3, 50_000);
        pipeline.run(0..9, |_, _| Ok::<_, GpuError>(())).unwrap();
        let spans = context.timeline().spans();
        assert_eq!(spans.len(), 27);
        let mut streams: Vec<_> = spans.iter().map(|span| span.stream).collect();
        streams.sort_unstable();
        streams.dedup();
        assert_eq!(streams.len(), 4);
        for stream in streams {
            let own: Vec<_> = spans.iter().filter(|span| span.stream == stream).collect();
            assert!(
                own.windows(2).all(|pair| pair[0].end_ms <= pair[1].start_ms + 1e-3),
                "one after the other"
            );
        }
    });
}

#[test]
fn a_pipeline_without_lanes_is_refused() {
    let device = Device::host(HostOptions::default());
    let made = Pipeline::<(), u64, u64>::new(&context(&device, StreamMode::Parallel, 3), Vec::new());
    assert!(matches!(made, Err(GpuError::Misuse { .. })));
}
