//! How data is cut, as users write it.

use tidemill_backtest::segment::Layout;
use tidemill_market::{timeframe, timestamp};

use crate::error::LabError;

/// The parts of the data by texts such as `2023-01-31` and `2d`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CutTexts {
    /// First bar that counts.
    pub from: Option<String>,
    /// First bar that no longer counts.
    pub to: Option<String>,
    /// Share of the time span that is in sample.
    pub split: Option<f64>,
    /// Blocks that the in-sample part is cut into.
    pub folds: Option<usize>,
    /// What the search never sees: `2024-01-01` or `2024-01-01..2025-01-01`.
    pub holdout: Option<String>,
    /// Time that is left out between two parts.
    pub embargo: Option<String>,
    /// The symbols that are traded; all if none are named.
    pub trade: Option<Vec<String>>,
}

impl CutTexts {
    /// The layout; an error names the option that cannot be read.
    pub fn layout(&self) -> Result<Layout, LabError> {
        let (holdout_from_ms, holdout_to_ms) = match &self.holdout {
            None => (None, None),
            Some(text) => {
                let parts = text.split_once("..");
                // A share or a year alone would be read as a second of 1970.
                let is_number = parts.is_none() && text.trim().parse::<f64>().is_ok();
                let (from, to) = parts.unwrap_or((text, ""));
                if from.trim().is_empty() || is_number {
                    let problem = format!("{text}: write 2024-01-01 or 2024-01-01..2025-01-01");
                    return Err(LabError::Cut { option: "--holdout", problem });
                }
                let end = Some(to.trim()).filter(|to| !to.is_empty());
                (time(Some(from.trim()), "--holdout")?, time(end, "--holdout")?)
            }
        };
        let embargo = self.embargo.as_deref().map(timeframe::parse_span).transpose();
        Ok(Layout {
            from_ms: time(self.from.as_deref(), "--from")?,
            to_ms: time(self.to.as_deref(), "--to")?,
            split: self.split,
            cut_ms: None,
            folds: self.folds,
            trade: self.trade.clone(),
            holdout_from_ms,
            holdout_to_ms,
            embargo_ms: embargo.map_err(|error| LabError::Embargo(Box::new(error)))?,
        })
    }
}

/// A time as users write it, UTC milliseconds; an error names the option.
pub(crate) fn time(text: Option<&str>, option: &'static str) -> Result<Option<i64>, LabError> {
    let Some(text) = text else { return Ok(None) };
    let unreadable = || {
        let problem = format!("{text}: not a time\n  hint: write 2023-01-31 or 2023-01-31T12:00Z");
        LabError::Cut { option, problem }
    };
    timestamp::parse_ms(text).map(Some).ok_or_else(unreadable)
}
