//! Segments: the (symbol, bar range) pairs that a trial is evaluated on.
//!
//! Many symbols, in-sample and out-of-sample, folds and date ranges are all lists of segments.

use std::ops::Range;

use serde::Serialize;
use tidemill_market::Universe;

/// Whether a segment counts for the objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It does.
    Train,
    /// It is only reported.
    Test,
}

/// A range of one symbol's bars.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Segment {
    /// Position of the symbol in the universe.
    pub symbol: usize,
    /// The bars.
    pub range: Range<usize>,
    /// Whether it counts for the objective.
    pub role: Role,
    /// What to call it.
    pub name: String,
}

/// How to cut the data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Layout {
    /// First bar time that counts.
    pub from_ms: Option<i64>,
    /// First bar time that no longer counts.
    pub to_ms: Option<i64>,
    /// Share of the time span that is in-sample; the rest is out-of-sample.
    pub split: Option<f64>,
    /// Number of consecutive blocks of the in-sample part.
    pub folds: Option<usize>,
}

/// Why the data cannot be cut so.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum SegmentError {
    /// The split is not a share.
    #[error("--split must lie between 0 and 1, both excluded; found {0}")]
    Split(f64),
    /// Folds make no sense.
    #[error("--folds must be at least 1 and at most the number of bars; found {0}")]
    Folds(usize),
    /// Nothing lies in the range.
    #[error("no bar lies between --from and --to; the data spans {first} to {last}")]
    Empty {
        /// First bar time of the data.
        first: String,
        /// Last bar time of the data.
        last: String,
    },
}

impl Layout {
    /// Cuts every symbol. Symbols without a bar in the range give no segment.
    ///
    /// A split is a point in time, the same for all symbols, so that nothing of one symbol's future leaks into another's past.
    pub fn segments(&self, universe: &Universe) -> Result<Vec<Segment>, SegmentError> {
        if let Some(split) = self.split
            && !(split > 0.0 && split < 1.0)
        {
            return Err(SegmentError::Split(split));
        }
        let in_range =
            |ts: i64| self.from_ms.is_none_or(|from| ts >= from) && self.to_ms.is_none_or(|to| ts < to);
        let times = || universe.symbols.iter().flat_map(|bars| bars.ts_ms.iter().copied());
        let selected = || times().filter(|ts| in_range(*ts));
        let (Some(first), Some(last)) = (selected().min(), selected().max()) else {
            return Err(SegmentError::Empty {
                first: times().min().map_or_else(|| "nothing".into(), date),
                last: times().max().map_or_else(|| "nothing".into(), date),
            });
        };
        let cut = self.split.map(|split| first + ((last - first) as f64 * split) as i64 + 1);
        let train_end = cut.unwrap_or(i64::MAX);
        let folds = self.folds.unwrap_or(1);
        if folds == 0 || folds > universe.n_bars() {
            return Err(SegmentError::Folds(folds));
        }
        let mut segments = Vec::new();
        for (symbol, bars) in universe.symbols.iter().enumerate() {
            let bar_at = |ts: i64| bars.ts_ms.partition_point(|t| *t < ts);
            let begin = bar_at(self.from_ms.unwrap_or(i64::MIN));
            let end = bar_at(self.to_ms.unwrap_or(i64::MAX)).max(begin);
            let middle = bar_at(train_end).clamp(begin, end);
            let mut push = |range: Range<usize>, role: Role, name: String| {
                if !range.is_empty() {
                    segments.push(Segment { symbol, range, role, name });
                }
            };
            let bars_in = middle - begin;
            for fold in 0..folds {
                let range = begin + bars_in * fold / folds..begin + bars_in * (fold + 1) / folds;
                let name = if folds > 1 {
                    format!("{} fold {}", bars.symbol, fold + 1)
                } else {
                    bars.symbol.clone()
                };
                push(range, Role::Train, name);
            }
            push(middle..end, Role::Test, format!("{} out-of-sample", bars.symbol));
        }
        Ok(segments)
    }
}

/// A time as a date for messages.
fn date(ts_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ts_ms).map_or_else(|_| ts_ms.to_string(), |ts| ts.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemill_market::Bars;

    fn universe(lengths: &[usize]) -> Universe {
        let symbols = lengths
            .iter()
            .enumerate()
            .map(|(at, n)| Bars {
                symbol: format!("S{at}"),
                timeframe_ms: 1,
                ts_ms: (0..*n as i64).collect(),
                ..Bars::default()
            })
            .collect();
        Universe { symbols }
    }

    #[test]
    fn folds_and_split_cover_every_bar_once() {
        let layout = Layout { split: Some(0.7), folds: Some(3), ..Layout::default() };
        let segments = layout.segments(&universe(&[100, 37])).unwrap();
        for (symbol, n) in [(0, 100), (1, 37)] {
            let mut covered = vec![0; n];
            for segment in segments.iter().filter(|segment| segment.symbol == symbol) {
                segment.range.clone().for_each(|bar| covered[bar] += 1);
            }
            assert!(covered.iter().all(|times| *times == 1));
        }
        let first_test = segments.iter().find(|segment| segment.role == Role::Test).unwrap();
        assert_eq!(first_test.range, 70..100);
    }

    #[test]
    fn bad_layouts_are_refused() {
        let data = universe(&[10]);
        assert!(Layout { split: Some(1.0), ..Layout::default() }.segments(&data).is_err());
        assert!(Layout { folds: Some(0), ..Layout::default() }.segments(&data).is_err());
        assert!(Layout { from_ms: Some(99), ..Layout::default() }.segments(&data).is_err());
    }
}
