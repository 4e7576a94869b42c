//! The charts of a walk-forward: equity, in-sample beside traded results, parameters.

use super::{Parameter, WalkForwardPage};
use crate::kit::escape;

/// Size of the wide pictures.
const WIDTH: f64 = 1116.0;
const HEIGHT: f64 = 300.0;

/// Size of the picture of a parameter.
const SMALL: (f64, f64) = (300.0, 110.0);

/// Room for the labels at the left and below.
const LEFT: f64 = 52.0;
const BELOW: f64 = 24.0;

/// About how many lines across, and most dates.
const N_LINES: f64 = 4.0;
const MOST_DATES: usize = 9;

/// A range of values, and where they lie.
struct Scale {
    low: f64,
    high: f64,
    height: f64,
}

impl Scale {
    /// Of all values, with some room around them.
    fn new(values: impl Iterator<Item = f64>, height: f64) -> Option<Self> {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        let room = if high > low { 0.05 * (high - low) } else { 0.5 };
        (low <= high).then_some(Self { low: low - room, high: high + room, height })
    }

    fn y(&self, value: f64) -> f64 {
        self.height - self.height * (value - self.low) / (self.high - self.low)
    }

    /// Round values in the range, and lines across with their names.
    fn lines(&self, name: impl Fn(f64, f64) -> String) -> String {
        let rough = (self.high - self.low) / N_LINES;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough);
        let step = step.unwrap_or(rough);
        let mut out = String::new();
        let mut at = (self.low / step).ceil();
        while at * step <= self.high {
            let y = self.y(at * step);
            out += &format!(
                "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{WIDTH}\"/><text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                escape(&name(at * step, step))
            );
            at += 1.0;
        }
        out
    }
}

/// A number with as many digits as a step of the scale needs.
fn digits(value: f64, step: f64) -> String {
    let n = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    // Minus zero is zero.
    format!("{:.n$}", value + 0.0)
}

/// A date below, at this place; on a narrow screen only every fourth is shown.
fn date(x: f64, text: &str, number: usize) -> String {
    let class = if number.is_multiple_of(4) { "date" } else { "date wide-only" };
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>", HEIGHT - 6.0, escape(text))
}

/// Every how manieth window has its date.
fn date_step(n_windows: usize) -> usize {
    n_windows.div_ceil(MOST_DATES).max(1)
}

fn wide(label: &str, inside: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">{inside}</svg>",
        escape(label)
    )
}

/// The equity curve, with a line where each window begins.
pub fn equity(walk: &WalkForwardPage) -> String {
    let Some(((first, _), (last, end))) = walk.equity.first().zip(walk.equity.last()) else {
        return "<p>No day was traded.</p>".into();
    };
    let values = walk.equity.iter().chain(&walk.benchmark).map(|(_, value)| *value).chain([1.0]);
    let Some(scale) = Scale::new(values, HEIGHT - BELOW) else { return String::new() };
    let x = |day: i64| LEFT + (WIDTH - LEFT) * (day - first) as f64 / ((last - first).max(1)) as f64;
    let mut inside = scale.lines(digits);
    let every = date_step(walk.windows.len());
    for (at, step) in walk.windows.iter().enumerate() {
        let Some(day) = step.first_day else { continue };
        inside += &format!("<path class=\"cut\" d=\"M{:.1} 0V{:.1}\"/>", x(day), HEIGHT - BELOW);
        // Near the right edge a date has no room.
        if at % every == 0 && x(day) < WIDTH - 70.0 {
            inside += &date(x(day), &step.test_from, at / every);
        }
    }
    inside += &format!("<path class=\"start\" d=\"M{LEFT} {:.1}H{WIDTH}\"/>", scale.y(1.0));
    inside += &polyline("held", &walk.benchmark, x, &scale);
    inside += &polyline("traded-line", &walk.equity, x, &scale);
    wide(&format!("Equity from 1 to {end:.3}"), &inside)
}

fn polyline(class: &str, line: &[(i64, f64)], x: impl Fn(i64) -> f64, scale: &Scale) -> String {
    if line.is_empty() {
        return String::new();
    }
    let points: Vec<String> =
        line.iter().map(|(day, value)| format!("{:.1},{:.1}", x(*day), scale.y(*value))).collect();
    format!("<polyline class=\"{class}\" points=\"{}\"/>", points.join(" "))
}

/// How far equity was below its highest, the benchmark's beside it.
pub fn drawdown(walk: &WalkForwardPage) -> String {
    let Some(((first, _), (last, _))) = walk.equity.first().zip(walk.equity.last()) else {
        return "<p>No day was traded.</p>".into();
    };
    let under = |line: &[(i64, f64)]| -> Vec<(i64, f64)> {
        let mut peak = 1.0_f64;
        let fall = |(day, value): &(i64, f64)| {
            peak = peak.max(*value);
            (*day, value / peak - 1.0)
        };
        line.iter().map(fall).collect()
    };
    let (own, held) = (under(&walk.equity), under(&walk.benchmark));
    let values = own.iter().chain(&held).map(|(_, value)| *value).chain([0.0]);
    let Some(scale) = Scale::new(values, HEIGHT - BELOW) else { return String::new() };
    let x = |day: i64| LEFT + (WIDTH - LEFT) * (day - first) as f64 / ((last - first).max(1)) as f64;
    let percent = |value: f64, step: f64| format!("{} %", digits(100.0 * value, 100.0 * step));
    let mut inside = scale.lines(percent);
    inside += &polyline("held", &held, x, &scale);
    inside += &polyline("under", &own, x, &scale);
    let deepest = own.iter().map(|(_, value)| *value).fold(0.0, f64::min);
    wide(&format!("Drawdown, {:.1} % at most", -100.0 * deepest), &inside)
}

/// By window, the Sharpe ratio where it was searched beside that where it was traded.
pub fn kept(walk: &WalkForwardPage) -> String {
    let all = walk.windows.iter().flat_map(|step| step.sharpe.iter().flatten()).map(|(value, _)| *value);
    if all.clone().next().is_none() {
        return "<p>No window has a Sharpe ratio.</p>".into();
    }
    let Some(scale) = Scale::new(all.chain([0.0]), HEIGHT - BELOW) else { return String::new() };
    let mut inside = scale.lines(digits);
    inside += &format!("<path class=\"start\" d=\"M{LEFT} {:.1}H{WIDTH}\"/>", scale.y(0.0));
    let width = (WIDTH - LEFT) / walk.windows.len() as f64;
    let every = date_step(walk.windows.len());
    for (at, step) in walk.windows.iter().enumerate() {
        let left = LEFT + width * at as f64;
        for (which, (class, sharpe)) in ["searched", "traded"].into_iter().zip(&step.sharpe).enumerate() {
            let Some((value, text)) = sharpe else { continue };
            let (top, bottom) = (scale.y(value.max(0.0)), scale.y(value.min(0.0)));
            inside += &format!(
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\"><title>window {}: {text} where it was {class}</title></rect>",
                left + width * (0.15 + 0.36 * which as f64),
                width * 0.34,
                bottom - top,
                at + 1,
            );
        }
        if at % every == 0 {
            inside += &date(left + 0.15 * width, &step.test_from, at / every);
        }
    }
    wide("Sharpe ratio of every window where it was searched and where it was traded", &inside)
}

/// The values of a parameter, one level per window.
pub fn levels(param: &Parameter, walk: &WalkForwardPage) -> String {
    let (width, height) = SMALL;
    let Some(scale) = Scale::new(param.levels.iter().flatten().copied(), height) else {
        return String::new();
    };
    let step = width / param.levels.len() as f64;
    let line: String = param
        .levels
        .iter()
        .enumerate()
        .filter_map(|(at, value)| Some((at, (*value)?)))
        .map(|(at, value)| {
            format!("<path d=\"M{:.1} {:.1}h{:.1}\"/>", at as f64 * step, scale.y(value), step)
        })
        .collect();
    let ends = walk.windows.first().zip(walk.windows.last());
    let (from, to) = ends.map_or(("", ""), |(first, last)| (&first.test_from, &last.test_to));
    format!(
        "<figure><figcaption><b>{0}</b><span>{1}</span></figcaption>\
         <svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{0} through time\">{line}</svg>\
         <p class=\"ends\"><span>{from}</span><span>{to}</span></p></figure>",
        escape(&param.name),
        escape(&param.range),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lie_at_round_values_inside_the_range() {
        let scale = Scale::new([0.93, 1.9].into_iter(), 100.0).unwrap();
        let lines = scale.lines(digits);
        for value in [">1.0<", ">1.5<"] {
            assert!(lines.contains(value), "{lines}");
        }
        assert_eq!(lines.matches("<text").count(), 2, "{lines}");
        assert!(scale.y(1.9) > 0.0 && scale.y(0.93) < 100.0);
        assert!(Scale::new([f64::NAN].into_iter(), 100.0).is_none());
        assert_eq!(digits(-0.0, 0.5), "0.0");
    }
}
