//! The windows of a walk-forward: a period to search on, and the period that follows it.

use tidemill_backtest::segment::Layout;
use tidemill_market::Universe;

/// Milliseconds of a day.
const DAY_MS: i64 = 86_400_000;

/// Most windows: more would be a mistake of units.
const MOST_WINDOWS: usize = 10_000;

/// Why windows do not fit the data.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    /// There are far too many.
    #[error("--test makes more than {MOST_WINDOWS} windows\n  hint: a longer --test makes fewer")]
    TooMany,
    /// Not one fits.
    #[error("the data is shorter than one --train\n  hint: give more data, or a shorter --train")]
    TooShort,
}

/// One window, by times of bars; each end is the first time that no longer belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Where the search begins.
    pub from_ms: i64,
    /// Where it ends, and the trading of what it found begins.
    pub cut_ms: i64,
    /// Where that ends.
    pub to_ms: i64,
}

/// How windows follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Length of the period that is searched.
    pub train_ms: i64,
    /// Length of the period that follows; the next window is that much later.
    pub test_ms: i64,
    /// Whether every search begins where the first did, so that it sees more and more.
    pub anchored: bool,
}

impl Window {
    /// The windows over the data between two times; the last one may be cut short.
    pub fn all(
        universe: &Universe,
        from_ms: Option<i64>,
        to_ms: Option<i64>,
        pace: Pace,
    ) -> Result<Vec<Self>, WindowError> {
        let times =
            universe.symbols.iter().flat_map(|bars| [bars.ts_ms.first(), bars.ts_ms.last()]).flatten();
        let (first, last) = times.fold((i64::MAX, i64::MIN), |(a, b), ts| (a.min(*ts), b.max(*ts)));
        // Windows begin with a day, so that no day belongs to two of them where lengths are whole days.
        let begin = from_ms.unwrap_or(first).max(first).div_euclid(DAY_MS) * DAY_MS;
        let end = to_ms.unwrap_or(i64::MAX).min(last.saturating_add(1));
        let mut windows = Vec::new();
        let mut cut_ms = begin.saturating_add(pace.train_ms);
        while cut_ms < end {
            let from_ms = if pace.anchored { begin } else { cut_ms - pace.train_ms };
            windows.push(Self { from_ms, cut_ms, to_ms: cut_ms.saturating_add(pace.test_ms).min(end) });
            cut_ms = cut_ms.saturating_add(pace.test_ms);
            if windows.len() > MOST_WINDOWS {
                return Err(WindowError::TooMany);
            }
        }
        if windows.is_empty() {
            return Err(WindowError::TooShort);
        }
        Ok(windows)
    }

    /// The window as a cut of the data, with the symbols and the embargo of another one.
    pub fn layout(&self, whole: &Layout) -> Layout {
        Layout {
            from_ms: Some(self.from_ms),
            to_ms: Some(self.to_ms),
            cut_ms: Some(self.cut_ms),
            embargo_ms: whole.embargo_ms,
            trade: whole.trade.clone(),
            ..Layout::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use tidemill_backtest::segment::Role;
    use tidemill_market::synth::walk;

    use super::*;

    fn pace(train: i64, test: i64, anchored: bool) -> Pace {
        Pace { train_ms: train * DAY_MS, test_ms: test * DAY_MS, anchored }
    }

    #[test]
    fn test_parts_follow_each_other_without_gap_or_overlap() {
        let universe = walk(1, 2, 24 * 100);
        for anchored in [false, true] {
            let windows = Window::all(&universe, None, None, pace(40, 15, anchored)).unwrap();
            assert_eq!(windows.len(), 4);
            let mut tested = vec![0; 24 * 100];
            for window in &windows {
                let segments = window.layout(&Layout::default()).segments(&universe).unwrap();
                assert_eq!(segments.len(), 4);
                for segment in segments.iter().filter(|segment| segment.symbol == 0) {
                    match segment.role {
                        Role::Test => segment.range.clone().for_each(|bar| tested[bar] += 1),
                        Role::Train if anchored => assert_eq!(segment.range.start, 0),
                        Role::Train => assert_eq!(segment.range.len(), 40 * 24),
                    }
                }
            }
            assert!(tested[..40 * 24].iter().all(|times| *times == 0));
            assert!(tested[40 * 24..].iter().all(|times| *times == 1));
        }
    }

    #[test]
    fn too_little_data_and_too_many_windows_are_refused() {
        let universe = walk(1, 1, 24 * 10);
        assert!(Window::all(&universe, None, None, pace(10, 1, false)).is_err());
        assert_eq!(Window::all(&universe, None, None, pace(9, 5, false)).unwrap().len(), 1);
        let tiny = Pace { train_ms: DAY_MS, test_ms: 1, anchored: false };
        assert!(Window::all(&universe, None, None, tiny).is_err());
    }
}
