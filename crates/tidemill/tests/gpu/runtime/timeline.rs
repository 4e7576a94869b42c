use std::time::{Duration, Instant};

use super::rig::{add, on_every_device};
use tidemill_gpu::Timeline;

#[test]
fn spans_have_the_times_of_their_work() {
    on_every_device(|device| {
        let clock = Instant::now();
        let timeline = Timeline::new(device).unwrap();
        let stream = device.stream().unwrap();
        let pause = |ms| move || std::thread::sleep(Duration::from_millis(ms));
        timeline.span("short", &stream, |stream| stream.host(pause(5))).unwrap();
        timeline.span("long", &stream, |stream| stream.host(pause(20))).unwrap();
        assert!(timeline.collect().is_ok());
        let spans = timeline.spans().unwrap();
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
        let timeline = Timeline::new(device).unwrap();
        let streams: Vec<_> = (0..3).map(|_| device.stream().unwrap()).collect();
        let buffer = device.alloc::<u64>(3000).unwrap();
        for i in 0..60 {
            timeline.span("add", &streams[i % 3], |stream| add(stream, &buffer, 0)).unwrap();
            if i % 7 == 0 {
                timeline.collect().unwrap();
            }
        }
        let spans = timeline.spans().unwrap();
        assert_eq!(spans.len(), 60);
        for stream in &streams {
            let own: Vec<_> = spans.iter().filter(|span| span.stream == stream.number()).collect();
            assert_eq!(own.len(), 20);
            assert!(own.windows(2).all(|pair| pair[0].end_ms <= pair[1].start_ms + 1e-3));
        }
    });
}

#[test]
fn the_trace_is_json_with_one_track_per_stream() {
    on_every_device(|device| {
        let timeline = Timeline::new(device).unwrap();
        let streams = [device.stream().unwrap(), device.stream().unwrap()];
        timeline.name_track(&streams[1], "a \"quoted\" \\ name\n");
        for (i, stream) in [0, 1, 0].map(|i| (i, &streams[i])) {
            timeline.span(&format!("work {i}"), stream, |stream| stream.host(|| ())).unwrap();
        }
        let json: serde_json::Value = serde_json::from_str(&timeline.to_json().unwrap()).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let of = |kind: &str| events.iter().filter(|event| event["ph"] == kind).collect::<Vec<_>>();
        let tracks = of("M");
        assert_eq!(tracks.len(), 2);
        let named = tracks.iter().find(|track| track["tid"] == streams[1].number()).unwrap();
        assert_eq!(named["args"]["name"], "a \"quoted\" \\ name\n");
        let spans = of("X");
        assert_eq!(spans.len(), 3);
        for span in spans {
            assert!(span["ts"].as_f64().unwrap() >= 0.0 && span["dur"].as_f64().unwrap() >= 0.0);
            let stream = if span["name"] == "work 1" { &streams[1] } else { &streams[0] };
            assert_eq!(span["tid"], stream.number());
        }
    });
}

#[test]
fn collecting_gives_events_back() {
    on_every_device(|device| {
        let timeline = Timeline::new(device).unwrap();
        let stream = device.stream().unwrap();
        let round = || {
            for _ in 0..10 {
                timeline.span("nothing", &stream, |_| Ok(())).unwrap();
            }
            stream.synchronize().unwrap();
            timeline.collect().unwrap();
        };
        round();
        let created = device.events().created();
        (0..5).for_each(|_| round());
        assert_eq!(device.events().created(), created);
        assert_eq!(timeline.spans().unwrap().len(), 60);
    });
}

#[test]
fn spans_that_are_taken_are_told_once() {
    on_every_device(|device| {
        let timeline = Timeline::new(device).unwrap();
        let stream = device.stream().unwrap();
        let names =
            |spans: Vec<tidemill_gpu::Span>| spans.into_iter().map(|span| span.name).collect::<Vec<_>>();
        for turn in ["first", "second"] {
            timeline.span(turn, &stream, |stream| stream.host(|| ())).unwrap();
            stream.synchronize().unwrap();
            assert_eq!(names(timeline.take().unwrap()), [turn]);
        }
        assert!(timeline.spans().unwrap().is_empty());
    });
}
