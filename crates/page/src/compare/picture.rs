//! The best value so far of several studies, over their trials on a logarithmic scale.

use super::ConvergenceCurve;
use crate::kit::escape;

/// Size of the picture.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 320.0;

/// Room for the labels at the left and below.
const LEFT: f64 = 80.0;
const BELOW: f64 = 40.0;

/// About how many lines across.
const N_LINES: f64 = 4.0;

/// Colours that the style has; further curves repeat them.
const N_COLOURS: usize = 6;

/// The curves, with a key that names them.
pub fn convergence(curves: &[ConvergenceCurve]) -> String {
    let values = curves.iter().flat_map(|curve| curve.improvements.iter().map(|(_, value)| *value));
    // What the very first trials found would flatten all that follows.
    let first = |curve: &ConvergenceCurve| {
        curve.improvements.get(curve.improvements.len() / 4).map(|(_, value)| *value)
    };
    let low = curves.iter().filter_map(first).fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    if low > high {
        return "<p>No trial was valid.</p>".into();
    }
    let room = if high > low { 0.08 * (high - low) } else { 0.5 };
    let (low, high) = (low - room, high + room);
    let longest = curves.iter().map(|curve| curve.n_trials).max().unwrap_or(1).max(2);
    let x = |trial: u64| LEFT + (WIDTH - LEFT) * (trial.max(1) as f64).ln() / (longest as f64).ln();
    let floor = HEIGHT - BELOW;
    let y = |value: f64| floor - floor * (value.max(low) - low) / (high - low);

    let mut inside = String::new();
    let step = round_step((high - low) / N_LINES);
    let n_digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    let mut at = (low / step).ceil();
    while at * step <= high {
        let (value, level) = (at * step + 0.0, y(at * step));
        inside += &format!(
            "<path class=\"grid\" d=\"M{LEFT} {level:.1}H{WIDTH}\"/><text class=\"value\" x=\"{:.1}\" y=\"{:.1}\">{value:.n_digits$}</text>",
            LEFT - 8.0,
            level + 4.0,
        );
        at += 1.0;
    }
    let powers = std::iter::successors(Some(1_u64), |n| n.checked_mul(10)).take_while(|n| *n <= longest);
    for power in powers {
        let text = match power {
            0..1000 => power.to_string(),
            1000..1_000_000 => format!("{}k", power / 1000),
            _ => format!("{}M", power / 1_000_000),
        };
        // Near the right edge a label would leave the picture.
        let left = x(power).min(WIDTH - 40.0);
        inside += &format!("<text class=\"trial\" x=\"{left:.1}\" y=\"{:.1}\">{text}</text>", HEIGHT - 8.0);
    }
    for (at, curve) in curves.iter().enumerate() {
        inside += &format!("<path class=\"curve c{}\" d=\"{}\"/>", at % N_COLOURS, steps(curve, &x, &y));
    }
    let key: String = curves
        .iter()
        .enumerate()
        .map(|(at, curve)| format!("<span class=\"key c{}\">{}</span>", at % N_COLOURS, escape(&curve.name)))
        .collect();
    format!(
        "<p class=\"keys\">{key}</p><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"Best value so far over the number of trials\">{inside}</svg>"
    )
}

/// The path of a curve: level until the next improvement, and to the end of the study.
fn steps(curve: &ConvergenceCurve, x: &dyn Fn(u64) -> f64, y: &dyn Fn(f64) -> f64) -> String {
    let mut path = String::new();
    for (trial, value) in &curve.improvements {
        path += &match path.is_empty() {
            true => format!("M{:.1} {:.1}", x(trial + 1), y(*value)),
            false => format!("H{:.1}V{:.1}", x(trial + 1), y(*value)),
        };
    }
    if !path.is_empty() {
        path += &format!("H{:.1}", x(curve.n_trials));
    }
    path
}

/// The next round number from a rough one on.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough).unwrap_or(rough)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(n_trials: u64, improvements: &[(u64, f64)]) -> ConvergenceCurve {
        ConvergenceCurve { name: "a".into(), n_trials, improvements: improvements.to_vec() }
    }

    #[test]
    fn a_curve_goes_from_its_first_valid_trial_to_the_end_of_its_study() {
        let svg = convergence(&[curve(100, &[(0, 1.0), (9, 2.0)]), curve(10, &[(4, 1.5)])]);
        // The first ends at the right edge, the second where ten trials are: half way on a logarithmic scale.
        let half = LEFT + (WIDTH - LEFT) / 2.0;
        assert!(svg.contains(&format!("H{WIDTH:.1}\"/>")), "{svg}");
        assert!(svg.contains(&format!("H{half:.1}\"/>")), "{svg}");
        assert!(svg.contains("class=\"curve c1\""), "{svg}");
        assert_eq!(convergence(&[curve(9, &[])]), "<p>No trial was valid.</p>");
    }

    #[test]
    fn steps_are_round() {
        assert_eq!([0.3, 1.0, 4.2, 70.0].map(round_step), [0.5, 1.0, 5.0, 100.0]);
    }
}
