//! How the score improved.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::symbols::Marker;
use ratatui::text::Span;
use ratatui::widgets::{Axis, Chart, Dataset, GraphType, Widget};
use tidemill_telemetry::{Reached, Snapshot};

use super::super::draw::ScreenInput;
use super::super::number;

/// The first stretch of the way, by share, whose scores do not decide the range that is shown: a search begins anywhere, and what matters is
/// how it went on.
const RUN_UP: f64 = 0.05;

/// A curve as points, and the range that is shown of it.
struct Steps {
    points: Vec<(f64, f64)>,
    x_end: f64,
    y: [f64; 2],
    is_time: bool,
}

/// Draws the best score against progress, or against time where progress says nothing.
pub fn draw(input: &ScreenInput<'_>, area: Rect, buf: &mut Buffer) -> usize {
    let snapshot = input.snapshot;
    let score = number::clean(&snapshot.score);
    let title = match snapshot.convergence.points().last() {
        Some(last) => {
            let (best, done) = (number::short(last.score), number::amount(last.done));
            format!("{score} {best} after {done} {}", number::clean(&snapshot.progress))
        }
        None => format!("{score} so far"),
    };
    let inside = super::frame(&title, input.theme, area, buf);
    let Some(steps) = steps(snapshot) else {
        super::nothing("no score yet", input.theme, inside, buf);
        return 0;
    };
    let x_text = if steps.is_time { number::seconds(steps.x_end) } else { number::rough(steps.x_end) };
    let has_axes = inside.height >= 4 && inside.width >= 24;
    let axis = |bounds, labels: [String; 2]| {
        let axis = Axis::default().bounds(bounds).style(input.theme.faint());
        if has_axes { axis.labels(labels.map(Span::raw)) } else { axis }
    };
    let curve = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(input.theme.accent())
        .data(&steps.points);
    Chart::new(vec![curve])
        .x_axis(axis([0.0, steps.x_end], ["0".to_owned(), x_text]))
        .y_axis(axis(steps.y, steps.y.map(number::short)))
        .legend_position(None)
        .render(inside, buf);
    0
}

fn steps(snapshot: &Snapshot) -> Option<Steps> {
    let reached = snapshot.convergence.points();
    let last = reached.last()?;
    let is_time = snapshot.done <= 0.0;
    let x_of = |point: &Reached| if is_time { point.at_s } else { point.done };
    let x_end = (if is_time { snapshot.elapsed_s() } else { snapshot.done }).max(x_of(last)).max(1e-3);
    let y = range(reached, |point| x_of(point) >= RUN_UP * x_end);
    let mut points = Vec::with_capacity(2 * reached.len() + 1);
    let mut before = None;
    for point in reached {
        let (x, score) = (x_of(point), point.score.clamp(y[0], y[1]));
        points.extend(before.map(|before| (x, before)));
        points.push((x, score));
        before = Some(score);
    }
    points.extend(before.map(|before| (x_end, before)));
    Some(Steps { points, x_end, y, is_time })
}

/// The range of the scores that count, and of the one they started from.
fn range(reached: &[Reached], counts: impl Fn(&Reached) -> bool) -> [f64; 2] {
    let first = reached.iter().position(counts).unwrap_or(reached.len()).saturating_sub(1);
    let scores = reached[first..].iter().map(|point| point.score);
    let (low, high) = scores
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), score| (low.min(score), high.max(score)));
    let air = if low < high { 0.0 } else { (high.abs() * 0.05).max(1e-9) };
    [low - air, high + air]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(done: f64, score: f64) -> Reached {
        Reached { at_s: done, done, score }
    }

    #[test]
    fn the_run_up_does_not_decide_the_range() {
        let reached = [at(1.0, -500.0), at(2.0, 1.0), at(60.0, 1.5), at(90.0, 2.0)];
        assert_eq!(range(&reached, |point| point.done >= 5.0), [1.0, 2.0]);
    }

    #[test]
    fn a_single_score_has_a_range() {
        let [low, high] = range(&[at(1.0, 3.0)], |_| true);
        assert!(low < 3.0 && 3.0 < high);
    }

    #[test]
    fn the_curve_has_steps_and_reaches_the_present() {
        let mut snapshot = Snapshot::default();
        snapshot.done = 100.0;
        snapshot.convergence.push(at(10.0, 1.0));
        snapshot.convergence.push(at(50.0, 2.0));
        let steps = steps(&snapshot).unwrap();
        assert_eq!(steps.points, [(10.0, 1.0), (50.0, 1.0), (50.0, 2.0), (100.0, 2.0)]);
    }
}
