//! Values through the time of the run: how busy the device was, and the pace.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Sparkline, Widget};
use tidemill_telemetry::{Series, Snapshot};

use super::super::draw::ScreenInput;
use super::super::{number, summary};

/// Columns for the labels of an axis.
const LABEL_COLUMNS: u16 = 6;

/// Steps of a bar's height; finer than any terminal.
const STEPS: f64 = 1e4;

/// Draws the share of the time for which the device was busy; the title says how full it was.
pub fn draw_busy(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) {
    let Snapshot { busy, fill, .. } = input.snapshot;
    let title = match (busy.newest(), fill.newest()) {
        (Some(busy), Some(fill)) => {
            let [busy, fill] = [busy, fill].map(|share| number::percent(summary::at_most_all(share)));
            format!("device busy {busy}, full {fill}")
        }
        _ => format!("device {}", summary::share("busy", busy).unwrap_or_default()),
    };
    let inside = super::frame(&title, input.theme, area, buf);
    bars(input, &input.snapshot.busy, 1.0, "100%", input.theme.accent(), inside, buf);
}

/// Draws progress per second.
pub fn draw_rate(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) {
    let series = &input.snapshot.rate;
    let name = number::clean(&input.snapshot.progress);
    let title = match series.newest() {
        Some(newest) => format!("{} {name}/s", number::rough(newest)),
        None => format!("{name}/s"),
    };
    let inside = super::frame(&title, input.theme, area, buf);
    let highest = series.points().map(|(_, value)| value).fold(0.0, f64::max);
    let label = number::rough(highest);
    bars(input, series, highest, &label, input.theme.phase(1), inside, buf);
}

fn bars(
    input: &ScreenInput<'_>,
    series: &Series,
    highest: f64,
    label: &str,
    style: Style,
    area: Rect,
    buf: &mut Buffer,
) {
    if area.is_empty() {
        return;
    }
    if series.newest().is_none() || highest <= 0.0 {
        super::nothing("not reported yet", input.theme, area, buf);
        return;
    }
    let has_labels = area.width >= 30;
    let gutter = if has_labels { LABEL_COLUMNS } else { 0 };
    if has_labels {
        let columns = usize::from(gutter - 1);
        buf.set_stringn(area.x, area.y, format!("{label:>columns$}"), columns, input.theme.faint());
        if area.height > 1 {
            let y = area.bottom() - 1;
            buf.set_stringn(area.x, y, format!("{:>columns$}", "0"), columns, input.theme.faint());
        }
    }
    let plot = Rect { x: area.x + gutter, width: area.width - gutter, ..area };
    let columns = columns(series, input.snapshot.elapsed_s(), plot.width.into());
    let heights = columns.into_iter().map(|value| value.map(|value| (value / highest * STEPS) as u64));
    Sparkline::default().data(heights).max(STEPS as u64).style(style).render(plot, buf);
}

/// The mean of a value over the time of each column. A column between two values has the one before it.
fn columns(series: &Series, elapsed_s: f64, n: usize) -> Vec<Option<f64>> {
    let half_s = series.width_s() / 2.0;
    let end_s = series.points().last().map_or(elapsed_s, |(at_s, _)| elapsed_s.max(at_s));
    let mut sums = vec![(0.0, 0.0); n];
    for (at_s, value) in series.points() {
        let from = (at_s - half_s) / end_s * n as f64;
        let to = ((at_s + half_s) / end_s * n as f64).ceil().max(from + 1.0);
        for sum in sums.iter_mut().take(to as usize).skip(from as usize) {
            *sum = (sum.0 + value, sum.1 + 1.0);
        }
    }
    let last = sums.iter().rposition(|(_, weight)| *weight > 0.0).unwrap_or(0);
    let mut before = None;
    let mean = |(at, (sum, weight)): (usize, (f64, f64))| {
        if weight > 0.0 {
            before = Some(sum / weight);
        }
        before.filter(|_| at <= last)
    };
    sums.into_iter().enumerate().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_means_and_gaps_take_what_was_before() {
        let mut series = Series::default();
        series.push(0.1, 1.0, 1.0);
        series.push(0.9, 0.5, 1.0);
        series.push(1.1, 0.7, 1.0);
        let columns = columns(&series, 2.0, 8);
        let (full, half) = (Some(1.0), Some(0.5));
        assert_eq!(columns, [full, full, full, half, Some(0.7), None, None, None]);
        assert_eq!(super::columns(&series, 2.0, 2), [Some(0.75), Some(0.7)]);
    }
}
