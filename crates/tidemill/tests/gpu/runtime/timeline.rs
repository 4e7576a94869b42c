use std::time::{Duration, Instant};

use super::rig::{add, on_every_device};
use tidemill_gpu::{Context, ContextOptions, GpuError, Purpose, Stream};

/// Runs something and waits for it.
fn run(context: &Context, name: &str, work: impl FnOnce(&Stream) -> Result<(), GpuError>) {
    let (_, operation) = context.coordinator().submit(Purpose::Compute, name, &[], work).unwrap();
    context.coordinator().finish(operation).unwrap();
}

#[test]
fn spans_have_the_times_of_their_work() {
    on_every_device(|device| {
        let clock = Instant::now();
        let context = Context::new(device, ContextOptions::sequential()).unwrap();
        let pause = |ms| move || std::thread::sleep(Duration::from_millis(ms));
        run(&context, "short", |stream| stream.host(pause(5)));
        run(&context, "long", |stream| stream.host(pause(20)));
        let spans = context.timeline().spans();
        let wall = clock.elapsed().as_secs_f64() * 1e3;
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["short", "long"]);
        let lengths: Vec<f64> = spans.iter().map(|span| span.end_ms - span.start_ms).collect();
        assert!(lengths[0] >= 4.9 && lengths[1] >= 19.9, "{lengths:?}");
        // However long a busy machine takes, the spans do not take longer than the whole.
        assert!(lengths[0] + lengths[1] <= wall + 1.0, "{lengths:?} of {wall}");
        assert!(spans[0].start_ms >= 0.0 && spans[1].start_ms >= spans[0].end_ms - 1e-3);
    });
}

#[test]
fn spans_of_one_stream_do_not_overlap() {
    on_every_device(|device| {
        let context = Context::new(device, ContextOptions::parallel(5)).unwrap();
        let buffer = device.alloc::<u64>(3000).unwrap();
        let submit =
            |_| context.coordinator().submit(Purpose::Compute, "add", &[], |stream| add(stream, &buffer, 0));
        let operations: Vec<_> = (0..60).map(submit).map(|done| done.unwrap().1).collect();
        for operation in operations {
            context.coordinator().finish(operation).unwrap();
        }
        let spans = context.timeline().spans();
        assert_eq!(spans.len(), 60);
        for lane in 0..3 {
            let number = context.pool().lane(lane).unwrap().number();
            let own: Vec<_> = spans.iter().filter(|span| span.stream == number).collect();
            assert_eq!(own.len(), 20);
            assert!(own.windows(2).all(|pair| pair[0].end_ms <= pair[1].start_ms + 1e-3));
            assert!(own.iter().all(|span| span.fill > 0.0 && span.fill <= 1.0));
        }
    });
}

#[test]
fn the_trace_is_json_with_one_named_track_per_stream() {
    on_every_device(|device| {
        let context = Context::new(device, ContextOptions::parallel(4)).unwrap();
        (0..3).for_each(|i| run(&context, &format!("work \"{i}\""), |stream| stream.host(|| ())));
        let json: serde_json::Value = serde_json::from_str(&context.to_json()).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).collect::<Vec<_>>();
        let tracks: Vec<_> = of("M").into_iter().filter(|event| event["name"] == "thread_name").collect();
        let names: Vec<_> = tracks.iter().map(|track| track["args"]["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["computations 0", "computations 1"]);
        let spans = of("X");
        assert_eq!(spans.len(), 3);
        for (i, span) in spans.into_iter().enumerate() {
            assert_eq!(span["name"], format!("work \"{i}\""));
            assert!(span["ts"].as_f64().unwrap() >= 0.0 && span["dur"].as_f64().unwrap() >= 0.0);
            assert_eq!(span["tid"], context.pool().lane(i % 2).unwrap().number());
        }
    });
}

#[test]
fn finishing_gives_events_back() {
    on_every_device(|device| {
        let context = Context::new(device, ContextOptions::sequential()).unwrap();
        let round = || (0..10).for_each(|_| run(&context, "nothing", |_| Ok(())));
        round();
        let created = device.events().created();
        (0..5).for_each(|_| round());
        assert_eq!(device.events().created(), created);
        assert_eq!(context.timeline().spans().len(), 60);
    });
}

#[test]
fn spans_that_are_taken_are_told_once() {
    on_every_device(|device| {
        let context = Context::new(device, ContextOptions::sequential()).unwrap();
        for turn in ["first", "second"] {
            run(&context, turn, |stream| stream.host(|| ()));
            let names: Vec<_> = context.timeline().take().into_iter().map(|span| span.name).collect();
            assert_eq!(names, [turn]);
        }
        assert!(context.timeline().spans().is_empty());
    });
}
