//! What ran where and when: the newest spans, a lane for each stream and thread.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span as Text};
use tidemill_telemetry::{Snapshot, Span};

use super::super::draw::ScreenInput;
use super::super::table::{cut, width};
use super::super::{number, phase};

/// Spans per lane that are visible at first.
const SPANS_IN_SIGHT: usize = 8;

/// Columns for a lane's share.
const SHARE_COLUMNS: u16 = 5;

/// Rows that the panel would fill with a row for each lane, frame, axis and legend included.
pub fn n_rows(input: &ScreenInput<'_>) -> u16 {
    lanes(input).len().clamp(1, 40) as u16 + 4
}

/// The same with an empty row between lanes.
pub fn n_roomy_rows(input: &ScreenInput<'_>) -> u16 {
    lanes(input).len().clamp(1, 40) as u16 * 2 + 3
}

/// Draws the lanes from `scroll` on. Returns by how many they can scroll.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer, scroll: usize) -> usize {
    let theme = input.theme;
    let lanes = lanes(input);
    let Some(window) = Window::of(input, lanes.len()) else {
        let inside = super::frame("lanes", theme, area, buf);
        super::nothing("no spans yet", theme, inside, buf);
        return 0;
    };
    let title = format!("lanes, {} in sight", number::round_duration(window.to_ms - window.from_ms));
    let inside = super::frame(&title, theme, area, buf);
    if inside.height < 1 || inside.width < 12 {
        return 0;
    }
    let keys = keys(input.snapshot);
    // Lanes come before their axis and legend: colours are also in the table of phases.
    let n_below = usize::from(inside.height).saturating_sub(lanes.len()).min(2) as u16;
    let n_below = if inside.height >= 3 { n_below } else { 0 };
    let rows = inside.height - n_below;
    let step = if lanes.len() * 2 <= usize::from(rows) + 1 { 2 } else { 1 };
    let label =
        lanes.iter().map(|lane| width(lane)).max().unwrap_or(0).min(usize::from(inside.width) / 4) as u16;
    let has_share = inside.width >= 40;
    let plot = Rect {
        x: inside.x + label + 1,
        width: inside.width - label - 1 - if has_share { SHARE_COLUMNS } else { 0 },
        height: 1,
        ..inside
    };
    let n_shown = rows.div_ceil(step);
    let most = lanes.len().saturating_sub(n_shown.into());
    for (lane, at) in lanes.iter().skip(scroll.min(most)).zip(0..n_shown) {
        let y = inside.y + at * step;
        buf.set_stringn(inside.x, y, cut(lane, label.into()), label.into(), theme.faint());
        let spans: Vec<&Span> = input
            .snapshot
            .spans
            .iter()
            .filter(|span| span.lane == **lane && input.view.shows(&span.phase))
            .collect();
        draw_spans(input, &spans, window, &keys, Rect { y, ..plot }, buf);
        if has_share {
            let share = format!("{:>4.0}%", window.share(&spans) * 100.0);
            buf.set_stringn(plot.right(), y, share, SHARE_COLUMNS.into(), theme.faint());
        }
    }
    if n_below > 1 {
        draw_axis(input, window, Rect { y: inside.bottom() - 2, ..plot }, buf);
    }
    if n_below > 0 {
        let legend = Rect { y: inside.bottom() - 1, height: 1, ..inside };
        draw_legend(input, &keys, legend, buf);
    }
    most
}

/// The lanes that have spans to show, by name, numbers in their order.
fn lanes<'a>(input: &ScreenInput<'a>) -> Vec<&'a str> {
    let mut lanes: Vec<&str> = Vec::new();
    for span in input.snapshot.spans.iter().filter(|span| input.view.shows(&span.phase)) {
        if !lanes.contains(&span.lane.as_str()) {
            lanes.push(&span.lane);
        }
    }
    lanes.sort_by_key(|lane| {
        let name = lane.trim_end_matches(|c: char| c.is_ascii_digit());
        (name, lane[name.len()..].parse::<u64>().unwrap_or(0))
    });
    lanes
}

/// The visible time, in milliseconds since the run was started or resumed last.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Window {
    from_ms: f64,
    to_ms: f64,
}

impl Window {
    fn of(input: &ScreenInput<'_>, n_lanes: usize) -> Option<Self> {
        let spans = || input.snapshot.spans.iter().rev().filter(|span| input.view.shows(&span.phase));
        let end = |span: &Span| span.start_ms + span.duration_ms;
        let newest_ms = spans().map(end).filter(|ms| ms.is_finite()).fold(f64::NEG_INFINITY, f64::max);
        let first_ms = spans()
            .take(SPANS_IN_SIGHT * n_lanes)
            .map(|span| span.start_ms)
            .filter(|ms| ms.is_finite())
            .fold(f64::INFINITY, f64::min);
        if !newest_ms.is_finite() || !first_ms.is_finite() {
            return None;
        }
        // A round width does not flicker while spans come and go.
        let width_ms = round_up((newest_ms - first_ms).max(1e-3)) * f64::from(input.view.zoom).exp2();
        let to_ms = newest_ms - f64::from(input.view.pan) * width_ms / 4.0;
        Some(Self { from_ms: to_ms - width_ms, to_ms })
    }

    /// The visible part of a span, in columns.
    fn columns(self, span: &Span, n: u16) -> Option<(f64, f64)> {
        let scale = f64::from(n) / (self.to_ms - self.from_ms);
        let from = ((span.start_ms - self.from_ms) * scale).max(0.0);
        let to = ((span.start_ms + span.duration_ms - self.from_ms) * scale).min(f64::from(n));
        (from < to).then_some((from, to))
    }

    /// Share of the visible time that spans cover; overlaps count once.
    fn share(self, spans: &[&Span]) -> f64 {
        let mut parts: Vec<(f64, f64)> = spans.iter().filter_map(|span| self.columns(span, 1)).collect();
        parts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut covered = 0.0;
        let mut end = 0.0_f64;
        for (from, to) in parts {
            covered += (to - from.max(end)).max(0.0);
            end = end.max(to);
        }
        covered
    }
}

/// The next of 1, 2, 5, 10, 20, 50, …
fn round_up(value: f64) -> f64 {
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|step| *step >= value).unwrap_or(value)
}

/// A letter for each phase: the first of its name that no phase before it has.
fn keys(snapshot: &Snapshot) -> Vec<(&str, char)> {
    let mut keys: Vec<(&str, char)> = Vec::new();
    for name in snapshot.phases.keys() {
        let is_free = |c: &char| c.is_alphanumeric() && keys.iter().all(|(_, taken)| taken != c);
        let key = name.chars().find(is_free).unwrap_or('·');
        keys.push((name, key));
    }
    keys
}

fn draw_spans(
    input: &ScreenInput<'_>,
    spans: &[&Span],
    window: Window,
    keys: &[(&str, char)],
    area: Rect,
    buf: &mut Buffer,
) {
    // Of every column the span that covers most of it.
    let mut cover: Vec<(f64, usize)> = vec![(0.0, 0); area.width.into()];
    for (idx, span) in spans.iter().enumerate() {
        let Some((from, to)) = window.columns(span, area.width) else { continue };
        for (column, best) in cover.iter_mut().enumerate().take(to.ceil() as usize).skip(from as usize) {
            let part = to.min(column as f64 + 1.0) - from.max(column as f64);
            if part > best.0 {
                *best = (part, idx);
            }
        }
    }
    let mut column = 0;
    while column < cover.len() {
        let (part, idx) = cover[column];
        if part <= 0.0 {
            column += 1;
            continue;
        }
        let span = spans[idx];
        let style = input.theme.phase(phase::idx_of(input.snapshot, &span.phase));
        let x = area.x + column as u16;
        let n = cover[column..].iter().take_while(|(part, of)| *of == idx && *part >= 0.5).count();
        if n == 0 {
            buf.set_string(x, area.y, "│", style);
            column += 1;
            continue;
        }
        let key = keys.iter().find(|(name, _)| *name == span.phase).map_or('·', |(_, key)| *key);
        let text = inscription(span, key, n);
        let text = format!("{text}{}", " ".repeat(n - width(&text)));
        buf.set_string(x, area.y, text, style.patch(input.theme.reversed()));
        column += n;
    }
}

/// The most that can be written into so many columns; one stays free, so that neighbours stay apart.
fn inscription(span: &Span, key: char, columns: usize) -> String {
    let (phase, step) = (number::clean(&span.phase), number::clean(&span.step));
    [format!("{phase} {step}"), phase]
        .into_iter()
        .find(|text| width(text) < columns)
        .unwrap_or_else(|| key.to_string())
}

fn draw_axis(input: &ScreenInput<'_>, window: Window, area: Rect, buf: &mut Buffer) {
    let left = number::duration(window.from_ms.max(0.0));
    let right = number::duration(window.to_ms.max(0.0));
    let n = usize::from(area.width);
    let gap = n.saturating_sub(width(&left) + width(&right));
    let text = if gap > 0 { format!("{left}{}{right}", " ".repeat(gap)) } else { cut(&left, n) };
    buf.set_stringn(area.x, area.y, text, n, input.theme.faint());
}

fn draw_legend(input: &ScreenInput<'_>, keys: &[(&str, char)], area: Rect, buf: &mut Buffer) {
    let mut texts = Vec::new();
    for (idx, (name, key)) in keys.iter().enumerate().filter(|(_, (name, _))| input.view.shows(name)) {
        let style = input.theme.phase(idx).patch(input.theme.reversed());
        texts.push(Text::styled(key.to_string(), style));
        texts.push(Text::raw(format!(" {}  ", number::clean(name))));
    }
    buf.set_line(area.x, area.y, &Line::from(texts), area.width);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(lane: &str, start_ms: f64, duration_ms: f64) -> Span {
        let (phase, step) = ("kernel".to_owned(), "batch_1".to_owned());
        Span { lane: lane.into(), phase: phase.into(), step: step.into(), start_ms, duration_ms }
    }

    #[test]
    fn widths_are_round() {
        assert_eq!([0.7, 1.0, 3.0, 51.0].map(round_up), [1.0, 1.0, 5.0, 100.0]);
    }

    #[test]
    fn time_that_two_spans_cover_counts_once() {
        let window = Window { from_ms: 0.0, to_ms: 100.0 };
        let spans = [span("a", -10.0, 30.0), span("a", 10.0, 30.0), span("a", 90.0, 500.0)];
        let spans: Vec<&Span> = spans.iter().collect();
        assert!((window.share(&spans) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn phases_that_begin_alike_have_different_letters() {
        let mut snapshot = Snapshot::default();
        for name in ["tabu", "tempering", "tell"] {
            snapshot.phases.insert(name.into(), Default::default());
        }
        assert_eq!(keys(&snapshot), [("tabu", 't'), ("tell", 'e'), ("tempering", 'm')]);
    }

    #[test]
    fn as_much_is_written_as_fits() {
        let span = span("a", 0.0, 1.0);
        let texts = [15, 14, 7, 6].map(|columns| inscription(&span, 'k', columns));
        assert_eq!(texts, ["kernel batch_1", "kernel", "kernel", "k"]);
    }
}
