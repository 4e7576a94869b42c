//! An event as one line: `[KERNEL][GPU][stream=2] batch_42 | best=1.93 trials=172032 busy=98.1% | 12.30ms`.

use ratatui::style::{Color, Modifier};
use ratatui::text::{Line, Span};
use tidemill_telemetry::{DeviceMode, Event, Snapshot};

use super::theme::Theme;
use super::{number, phase};

/// The settings that are shown of a run's first and last record; the rest is its whole configuration.
const RUN_SETTINGS: [&str; 3] = ["workload", "title", "outcome"];

/// An event as text on one line, without colours. Score and progress, which the snapshot names, come first.
pub fn line(event: &Event, snapshot: &Snapshot) -> String {
    let tags: String = tags(event).iter().map(|tag| format!("[{tag}]")).collect();
    let mut out = format!("{tags} {}", number::clean(&event.step));
    for part in parts(event, snapshot) {
        out += " | ";
        out += &part;
    }
    out
}

/// The same with the colours of a terminal, as escape sequences.
pub fn coloured_line(event: &Event, snapshot: &Snapshot) -> String {
    styled(event, snapshot, Theme::coloured()).spans.iter().map(escaped).collect()
}

/// A piece of text in its style.
fn escaped(span: &Span<'_>) -> String {
    let colour = match span.style.fg {
        Some(Color::Red) => "31",
        Some(Color::Green) => "32",
        Some(Color::Yellow) => "33",
        Some(Color::Magenta) => "35",
        Some(Color::Cyan) => "36",
        Some(Color::LightBlue) => "94",
        _ => "",
    };
    let has = |modifier, code| if span.style.add_modifier.contains(modifier) { code } else { "" };
    let codes = [colour, has(Modifier::BOLD, "1"), has(Modifier::DIM, "2")];
    let codes: Vec<&str> = codes.into_iter().filter(|code| !code.is_empty()).collect();
    match codes.as_slice() {
        [] => span.content.to_string(),
        codes => format!("\x1b[{}m{}\x1b[0m", codes.join(";"), span.content),
    }
}

/// The same in the colours of its phase, for the screen.
pub fn styled(event: &Event, snapshot: &Snapshot, theme: Theme) -> Line<'static> {
    let style = match event.phase.as_str() {
        "warning" => theme.bad(),
        "improvement" => theme.good(),
        "run" | "hypertune" => theme.strong(),
        _ => theme.phase(phase::idx_of(snapshot, &event.phase)),
    };
    let is_fallback = matches!(event.device, Some(DeviceMode::CpuFallback { .. }));
    let mut spans: Vec<Span<'static>> = tags(event)
        .into_iter()
        .enumerate()
        .map(|(at, tag)| {
            let style = if at == 0 { style } else { theme.faint() };
            Span::styled(format!("[{tag}]"), if at == 1 && is_fallback { theme.bad() } else { style })
        })
        .collect();
    spans.push(Span::raw(format!(" {}", number::clean(&event.step))));
    for part in parts(event, snapshot) {
        spans.push(Span::styled(" | ", theme.faint()));
        spans.push(Span::raw(part));
    }
    Line::from(spans)
}

fn tags(event: &Event) -> Vec<String> {
    let mut tags = vec![number::clean(&event.phase).to_uppercase()];
    match &event.device {
        Some(DeviceMode::Gpu { stream }) => tags.extend(["GPU".to_owned(), format!("stream={stream}")]),
        Some(DeviceMode::CpuFallback { .. }) => tags.push("CPU FALLBACK".to_owned()),
        Some(DeviceMode::Cpu) => tags.push("CPU".to_owned()),
        None => {}
    }
    tags
}

/// Values, settings, duration and sentences: what there is of them.
fn parts(event: &Event, snapshot: &Snapshot) -> Vec<String> {
    let rank = |name: &str| match name {
        _ if name == snapshot.score => 0,
        _ if name == snapshot.progress => 1,
        "busy" | "fill" => 2,
        _ if number::is_duration(name) => 4,
        _ => 3,
    };
    let mut values: Vec<(&str, &f64)> = event.values.iter().filter(|(name, _)| *name != "start_ms").collect();
    values.sort_by_key(|(name, _)| rank(name));
    let values = values.into_iter().map(|(name, value)| number::named(&number::clean(name), *value));
    let settings = event
        .parameters
        .iter()
        .filter(|(name, _)| event.phase != "run" || RUN_SETTINGS.contains(name))
        .map(|(name, value)| format!("{}={}", number::clean(name), number::setting(value)));
    let mut parts = vec![values.collect::<Vec<_>>().join(" "), settings.collect::<Vec<_>>().join(" ")];
    parts.extend(event.duration_ms.map(number::duration));
    if let Some(DeviceMode::CpuFallback { reason }) = &event.device {
        parts.push(number::clean(reason));
    }
    parts.extend(event.notes.as_deref().map(number::clean));
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(event: &Event) -> String {
        line(event, &Snapshot::default())
    }

    #[test]
    fn a_step_on_a_stream_has_the_documented_form() {
        let event = Event::new("r", "kernel", "batch_42")
            .lasting_ms(12.3)
            .on(DeviceMode::Gpu { stream: 2 })
            .value("start_ms", 17.0)
            .value("idle_ms", 0.5)
            .value("busy", 0.981)
            .value("valid", 170_000.0)
            .value("trials", 172_032.0)
            .value("best", 1.93);
        let mut snapshot = Snapshot::default();
        snapshot.apply(&Event::new("r", "run", "start"));
        let text = "[KERNEL][GPU][stream=2] batch_42 | best=1.93 trials=172032 busy=98.1% valid=170000 idle=0.50ms | 12.30ms";
        assert_eq!(line(&event, &snapshot), text);
        assert_eq!(styled(&event, &snapshot, Theme::coloured()).to_string(), text);
    }

    #[test]
    fn colours_add_nothing_but_colours() {
        let event = Event::new("r", "warning", "device").note("\x1b[2J").value("busy", 0.5);
        let text = coloured_line(&event, &Snapshot::default());
        assert!(text.starts_with("\x1b[31;1m[WARNING]\x1b[0m device"), "{text:?}");
        let codes = ["\x1b[31;1m", "\x1b[2m", "\x1b[0m"];
        let bare = codes.iter().fold(text, |text, code| text.replace(code, ""));
        assert_eq!(bare, plain(&event), "and what the event says cannot add any");
    }

    #[test]
    fn a_fall_back_says_why() {
        let reason = "the driver\nwent away".to_owned();
        let event = Event::new("r", "evaluate", "batch_7").on(DeviceMode::CpuFallback { reason });
        assert_eq!(plain(&event), "[EVALUATE][CPU FALLBACK] batch_7 | the driver went away");
    }

    #[test]
    fn an_improvement_shows_its_parameters_and_a_start_not_the_whole_configuration() {
        let event = Event::new("r", "improvement", "trial_9").value("k", 83.0).parameter("tenure", 12);
        assert_eq!(plain(&event), "[IMPROVEMENT] trial_9 | k=83 | tenure=12");
        let event = Event::new("r", "run", "start").parameter("title", "colours").parameter("seed", 1);
        assert_eq!(plain(&event), "[RUN] start | title=colours");
    }

    #[test]
    fn a_value_that_is_not_there_is_a_dash() {
        assert_eq!(
            plain(&Event::new("r", "tell", "batch_1").value("best", f64::NAN)),
            "[TELL] batch_1 | best=–"
        );
    }
}
