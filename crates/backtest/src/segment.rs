//! Segments: the (symbol, bar range) pairs that a trial is evaluated on.
//!
//! Many symbols, in-sample and out-of-sample, folds and date ranges are all lists of segments.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tidemill_market::{Bars, Universe, glob};

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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Layout {
    /// First bar time that counts.
    pub from_ms: Option<i64>,
    /// First bar time that no longer counts.
    pub to_ms: Option<i64>,
    /// Share of the time span that is in-sample; the rest is out-of-sample.
    pub split: Option<f64>,
    /// First bar time that is out-of-sample, in place of a share.
    pub cut_ms: Option<i64>,
    /// Number of consecutive blocks of the in-sample part.
    pub folds: Option<usize>,
    /// First bar time that is held out: neither it nor anything later is in-sample or out-of-sample.
    pub holdout_from_ms: Option<i64>,
    /// First bar time that is no longer held out; later bars are not used at all.
    pub holdout_to_ms: Option<i64>,
    /// Time that is left out at the beginning of a part that follows another one: a fold, the out-of-sample part, what is held out.
    pub embargo_ms: Option<i64>,
    /// The symbols that are traded, with `*` and `?` for any text and character; the others are only read. None: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trade: Option<Vec<String>>,
}

/// Why the data cannot be cut so.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum SegmentError {
    /// The split is not a share.
    #[error("--split must lie between 0 and 1, both excluded; found {0}")]
    Split(f64),
    /// A name of what is traded fits nothing.
    #[error("--trade {pattern}: no symbol of the data fits; it has {known}")]
    Trade {
        /// The name.
        pattern: String,
        /// The symbols that there are.
        known: String,
    },
    /// Folds make no sense.
    #[error("--folds must be at least 1 and at most the number of bars; found {0}")]
    Folds(usize),
    /// The embargo is negative.
    #[error("--embargo must not be negative")]
    Embargo,
    /// The search would see what is held out.
    #[error(
        "--{flag} lies after the beginning of --holdout ({begin}), which the search must not see\n  hint: end the search before it, or hold out later data"
    )]
    Seen {
        /// `from` or `to`.
        flag: &'static str,
        /// Where the holdout begins.
        begin: String,
    },
    /// The holdout is empty.
    #[error("no bar lies in --holdout; the data spans {first} to {last}")]
    EmptyHoldout {
        /// First bar time of the data.
        first: String,
        /// Last bar time of the data.
        last: String,
    },
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
        let embargo = self.embargo_ms.unwrap_or(0);
        if embargo < 0 {
            return Err(SegmentError::Embargo);
        }
        if let Some(begin) = self.holdout_from_ms {
            let bounds = [
                ("from", self.from_ms.filter(|from| *from >= begin)),
                ("to", self.to_ms.filter(|to| *to > begin)),
            ];
            if let Some((flag, _)) = bounds.into_iter().find(|(_, bound)| bound.is_some()) {
                return Err(SegmentError::Seen { flag, begin: date(begin) });
            }
        }
        let to_ms = self.to_ms.or(self.holdout_from_ms);
        let in_range = |ts: i64| self.from_ms.is_none_or(|from| ts >= from) && to_ms.is_none_or(|to| ts < to);
        self.check_trade(universe)?;
        let traded = || universe.symbols.iter().enumerate().filter(|(_, bars)| self.is_traded(bars));
        let times = || traded().flat_map(|(_, bars)| bars.ts_ms.iter().copied());
        let selected = || times().filter(|ts| in_range(*ts));
        let (Some(first), Some(last)) = (selected().min(), selected().max()) else {
            let [first, last] = span(universe);
            return Err(SegmentError::Empty { first, last });
        };
        let share = self.split.map(|split| first + ((last - first) as f64 * split) as i64 + 1);
        let cut = self.cut_ms.or(share);
        let train_end = cut.unwrap_or(i64::MAX);
        let folds = self.folds.unwrap_or(1);
        if folds == 0 || folds > universe.n_bars() {
            return Err(SegmentError::Folds(folds));
        }
        let mut segments = Vec::new();
        for (symbol, bars) in traded() {
            let bar_at = |ts: i64| bars.ts_ms.partition_point(|t| *t < ts);
            let begin = bar_at(self.from_ms.unwrap_or(i64::MIN));
            let end = bar_at(to_ms.unwrap_or(i64::MAX)).max(begin);
            // The first bar of a part that follows another one.
            let after = |bar: usize, end: usize| match bars.ts_ms.get(bar) {
                Some(ts) if embargo > 0 => bar_at(ts.saturating_add(embargo)).min(end),
                _ => bar,
            };
            let middle = bar_at(train_end).clamp(begin, end);
            let mut push = |range: Range<usize>, role: Role, name: String| {
                if !range.is_empty() {
                    segments.push(Segment { symbol, range, role, name });
                }
            };
            let bars_in = middle - begin;
            for fold in 0..folds {
                let range = begin + bars_in * fold / folds..begin + bars_in * (fold + 1) / folds;
                let range = if fold > 0 { after(range.start, range.end)..range.end } else { range };
                let name = if folds > 1 {
                    format!("{} fold {}", bars.symbol, fold + 1)
                } else {
                    bars.symbol.clone()
                };
                push(range, Role::Train, name);
            }
            let first_unseen = if middle > begin { after(middle, end) } else { middle };
            push(first_unseen..end, Role::Test, format!("{} out-of-sample", bars.symbol));
        }
        Ok(segments)
    }

    /// What is held out, as segments that count for nothing; none if nothing is.
    pub fn holdout(&self, universe: &Universe) -> Result<Vec<Segment>, SegmentError> {
        let Some(from) = self.holdout_from_ms else { return Ok(Vec::new()) };
        let from = from.saturating_add(self.embargo_ms.unwrap_or(0));
        self.check_trade(universe)?;
        let mut segments = Vec::new();
        for (symbol, bars) in universe.symbols.iter().enumerate().filter(|(_, bars)| self.is_traded(bars)) {
            let bar_at = |ts: i64| bars.ts_ms.partition_point(|t| *t < ts);
            let range = bar_at(from)..bar_at(self.holdout_to_ms.unwrap_or(i64::MAX));
            if !range.is_empty() {
                segments.push(Segment {
                    symbol,
                    range,
                    role: Role::Test,
                    name: format!("{} holdout", bars.symbol),
                });
            }
        }
        if segments.is_empty() {
            let [first, last] = span(universe);
            return Err(SegmentError::EmptyHoldout { first, last });
        }
        Ok(segments)
    }
}

impl Layout {
    /// Whether a symbol is traded, or only read.
    pub fn is_traded(&self, bars: &Bars) -> bool {
        self.trade.as_ref().is_none_or(|patterns| glob::fits_any(patterns, &bars.symbol))
    }

    /// Every name of what is traded fits a symbol.
    pub fn check_trade(&self, universe: &Universe) -> Result<(), SegmentError> {
        let names = universe.symbols.iter().map(|bars| &bars.symbol);
        let Some(pattern) = glob::unmatched(self.trade.as_deref().unwrap_or_default(), names.clone()) else {
            return Ok(());
        };
        let mut known: Vec<&str> = names.take(20).map(String::as_str).collect();
        if universe.symbols.len() > known.len() {
            known.push("…");
        }
        Err(SegmentError::Trade { pattern: pattern.clone(), known: known.join(", ") })
    }
}

/// First and last bar time of the data, for messages.
fn span(universe: &Universe) -> [String; 2] {
    let times = || universe.symbols.iter().flat_map(|bars| bars.ts_ms.iter().copied());
    [times().min(), times().max()].map(|time| time.map_or_else(|| "nothing".into(), date))
}

/// A time as a date for messages.
fn date(ts_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ts_ms).map_or_else(|_| ts_ms.to_string(), |ts| ts.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn only_what_is_traded_has_segments() {
        let universe = universe(&[10, 20, 30]);
        let trade = |patterns: &[&str]| Layout {
            trade: Some(patterns.iter().map(|pattern| (*pattern).to_owned()).collect()),
            holdout_from_ms: Some(8),
            ..Layout::default()
        };
        let symbols = |segments: Vec<Segment>| -> Vec<usize> {
            segments.into_iter().map(|segment| segment.symbol).collect()
        };
        let layout = trade(&["S0", "*2"]);
        assert_eq!(symbols(layout.segments(&universe).unwrap()), [0, 2]);
        assert_eq!(symbols(layout.holdout(&universe).unwrap()), [0, 2]);
        let error = trade(&["S1", "T*"]).segments(&universe).unwrap_err();
        assert_eq!(error.to_string(), "--trade T*: no symbol of the data fits; it has S0, S1, S2");
        // The span of what is traded is split.
        let layout = Layout { split: Some(0.5), holdout_from_ms: None, ..trade(&["S0"]) };
        assert_eq!(layout.segments(&universe).unwrap()[0].range, 0..5);
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
    fn what_is_held_out_is_in_no_other_part() {
        let data = universe(&[100, 37]);
        let layout = Layout {
            split: Some(0.5),
            folds: Some(2),
            holdout_from_ms: Some(60),
            holdout_to_ms: Some(90),
            ..Layout::default()
        };
        let segments = layout.segments(&data).unwrap();
        assert!(segments.iter().all(|segment| segment.range.end <= 60));
        assert!(segments.iter().any(|segment| segment.role == Role::Test && segment.range.end == 60));
        let held_out = layout.holdout(&data).unwrap();
        assert_eq!(held_out.len(), 1, "the other symbol has no bar there");
        assert_eq!((held_out[0].range.clone(), held_out[0].role), (60..90, Role::Test));
        for (from_ms, to_ms) in [(Some(60), None), (None, Some(61)), (Some(70), Some(80))] {
            let seen = Layout { from_ms, to_ms, ..layout.clone() };
            assert!(matches!(seen.segments(&data), Err(SegmentError::Seen { .. })));
        }
        let late = Layout { holdout_from_ms: Some(1000), holdout_to_ms: None, ..layout };
        assert!(matches!(late.holdout(&data), Err(SegmentError::EmptyHoldout { .. })));
        assert_eq!(Layout::default().holdout(&data), Ok(Vec::new()));
    }

    #[test]
    fn an_embargo_leaves_a_gap_before_every_later_part() {
        let layout = Layout {
            split: Some(0.7),
            folds: Some(2),
            holdout_from_ms: Some(80),
            embargo_ms: Some(3),
            ..Layout::default()
        };
        let data = universe(&[100]);
        let ranges: Vec<Range<usize>> =
            layout.segments(&data).unwrap().into_iter().map(|segment| segment.range).collect();
        assert_eq!(ranges, [0..28, 31..56, 59..80]);
        assert_eq!(layout.holdout(&data).unwrap()[0].range, 83..100);
        let wrong = Layout { embargo_ms: Some(-1), ..layout };
        assert_eq!(wrong.segments(&data), Err(SegmentError::Embargo));
    }

    #[test]
    fn bad_layouts_are_refused() {
        let data = universe(&[10]);
        assert!(Layout { split: Some(1.0), ..Layout::default() }.segments(&data).is_err());
        assert!(Layout { folds: Some(0), ..Layout::default() }.segments(&data).is_err());
        assert!(Layout { from_ms: Some(99), ..Layout::default() }.segments(&data).is_err());
    }
}
