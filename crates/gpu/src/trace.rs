//! Spans of devices in Chrome's trace format, which Perfetto and `chrome://tracing` show.

use std::collections::BTreeSet;
use std::fmt::Write;

/// Something that ran on a device, or beside the devices.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// Number of the device; the host comes behind all of them.
    pub device: usize,
    /// Number of the lane or stream on it.
    pub track: u64,
    /// What ran.
    pub name: String,
    /// When it began, on the device's clock.
    pub begin_ms: f64,
    /// When it was done.
    pub end_ms: f64,
}

/// The trace: a process for each device that has a name, and one for what ran on the host; a thread for each track that has spans.
pub fn chrome_trace(devices: &[&str], track_name: impl Fn(u64) -> String, spans: &[TraceSpan]) -> String {
    let host = devices.len();
    let mut events = Vec::new();
    for (device, name) in devices.iter().enumerate() {
        events.push(named("process_name", &format!("\"pid\":{device}"), &format!("device {device}: {name}")));
    }
    let used: BTreeSet<(usize, u64)> = spans.iter().map(|span| (span.device, span.track)).collect();
    if used.range((host, 0)..).next().is_some() {
        events.push(named("process_name", &format!("\"pid\":{host}"), "host"));
    }
    for (device, track) in used {
        let place = format!("\"pid\":{device},\"tid\":{track}");
        let name = if device == host { "sampler".to_owned() } else { track_name(track) };
        events.push(named("thread_name", &place, &name));
    }
    for TraceSpan { device, track, name, begin_ms, end_ms } in spans {
        let (begin_us, length_us) = (begin_ms * 1e3, (end_ms - begin_ms).max(0.0) * 1e3);
        events.push(format!(
            "{{\"ph\":\"X\",\"pid\":{device},\"tid\":{track},\"name\":{},\"ts\":{begin_us:.3},\"dur\":{length_us:.3}}}",
            quoted(name)
        ));
    }
    format!("{{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{}\n]}}\n", events.join(",\n"))
}

fn named(what: &str, place: &str, name: &str) -> String {
    format!("{{\"ph\":\"M\",{place},\"name\":\"{what}\",\"args\":{{\"name\":{}}}}}", quoted(name))
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            control if control < ' ' => {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{:04x}", control as u32);
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_of_different_devices_are_different_threads() {
        let span = |device, name: &str, begin_ms| TraceSpan {
            device,
            track: 1,
            name: name.into(),
            begin_ms,
            end_ms: begin_ms + 0.5,
        };
        let spans = [span(0, "walk", 2.0), span(1, "a \"book\"\n", 3.0), span(2, "ask", -1.0)];
        let text = chrome_trace(&["A", "B"], |track| format!("lane {track}"), &spans);
        let expected = r#"{"displayTimeUnit":"ms","traceEvents":[
{"ph":"M","pid":0,"name":"process_name","args":{"name":"device 0: A"}},
{"ph":"M","pid":1,"name":"process_name","args":{"name":"device 1: B"}},
{"ph":"M","pid":2,"name":"process_name","args":{"name":"host"}},
{"ph":"M","pid":0,"tid":1,"name":"thread_name","args":{"name":"lane 1"}},
{"ph":"M","pid":1,"tid":1,"name":"thread_name","args":{"name":"lane 1"}},
{"ph":"M","pid":2,"tid":1,"name":"thread_name","args":{"name":"sampler"}},
{"ph":"X","pid":0,"tid":1,"name":"walk","ts":2000.000,"dur":500.000},
{"ph":"X","pid":1,"tid":1,"name":"a \"book\"\u000a","ts":3000.000,"dur":500.000},
{"ph":"X","pid":2,"tid":1,"name":"ask","ts":-1000.000,"dur":500.000}
]}
"#;
        assert_eq!(text, expected);
        assert_eq!(
            chrome_trace(&[], |_| String::new(), &[]),
            "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n\n]}\n"
        );
    }
}
