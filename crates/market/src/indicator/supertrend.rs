//! Supertrend: a stop that trails the price and changes sides when the price crosses it.

use super::column::{common_len, is_complete};

/// The line: `middle − k·range` below the price while the trend is up, where it only rises, `middle + k·range` above it while the
/// trend is down, where it only falls.
///
/// Reference: Pine `ta.supertrend`, with `middle` as `hl2` and `range` as its `ta.atr`. Valid from the first bar on which all
/// three are available, where the trend counts as down; a bar with a non-finite value is NaN and leaves the state as it was.
pub fn supertrend_line(middle: &[f64], range: &[f64], close: &[f64], k: f64, out: &mut [f64]) {
    fill(middle, range, close, k, out, |band| band.line);
}

/// 1 while the trend is up, 0 while it is down.
pub fn supertrend_up(middle: &[f64], range: &[f64], close: &[f64], k: f64, out: &mut [f64]) {
    fill(middle, range, close, k, out, |band| if band.is_up { 1.0 } else { 0.0 });
}

fn fill(middle: &[f64], range: &[f64], close: &[f64], k: f64, out: &mut [f64], value: impl Fn(&Band) -> f64) {
    let n = common_len(out, [middle.len(), range.len(), close.len()]);
    let mut state: Option<Band> = None;
    for i in 0..n {
        out[i] = f64::NAN;
        let width = k * range[i];
        if is_complete(middle[i], width, close[i]) {
            let band = Band::next(state, middle[i], width, close[i]);
            out[i] = value(&band);
            state = Some(band);
        }
    }
}

/// What is carried from bar to bar.
#[derive(Clone, Copy)]
struct Band {
    upper: f64,
    lower: f64,
    line: f64,
    close: f64,
    is_up: bool,
}

impl Band {
    fn next(before: Option<Self>, middle: f64, width: f64, close: f64) -> Self {
        let (mut upper, mut lower) = (middle + width, middle - width);
        let Some(before) = before else {
            return Self { upper, lower, line: upper, close, is_up: false };
        };
        if !(lower > before.lower || before.close < before.lower) {
            lower = before.lower;
        }
        if !(upper < before.upper || before.close > before.upper) {
            upper = before.upper;
        }
        // Where both bands are one, the line counts as the upper one, as in Pine.
        let is_up = if before.line == before.upper { close > upper } else { close >= lower };
        Self { upper, lower, line: if is_up { lower } else { upper }, close, is_up }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_only_rises_in_an_upward_trend_and_changes_sides_when_it_is_crossed() {
        let close = [10.0, 13.0, 15.0, 14.5, 11.0];
        let (mut line, mut up) = ([0.0; 5], [0.0; 5]);
        supertrend_line(&close, &[1.0; 5], &close, 2.0, &mut line);
        supertrend_up(&close, &[1.0; 5], &close, 2.0, &mut up);
        assert_eq!(up, [0.0, 1.0, 1.0, 1.0, 0.0]);
        assert_eq!(line, [12.0, 11.0, 13.0, 13.0, 13.0]);
    }

    #[test]
    fn missing_bars_are_passed_over() {
        let (close, with_gap) = ([10.0, 14.0, 15.0], [10.0, f64::NAN, 14.0, 15.0]);
        let (mut plain, mut gap) = ([0.0; 3], [0.0; 4]);
        supertrend_line(&close, &[1.0; 3], &close, 2.0, &mut plain);
        supertrend_line(&with_gap, &[1.0; 4], &with_gap, 2.0, &mut gap);
        assert!(gap[1].is_nan());
        assert_eq!([gap[0], gap[2], gap[3]], plain);
        supertrend_line(&close, &[1.0; 3], &close, f64::NAN, &mut plain);
        assert!(plain.iter().all(|v| v.is_nan()));
    }
}
