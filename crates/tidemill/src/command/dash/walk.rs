//! What a walk-forward made: its windows one after the other, beside the benchmark.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tidemill_dash::web::{SourceError, WalkSummary};
use tidemill_lab::number;
use tidemill_lab::walkforward::WalkForwardSummary;
use tidemill_market::DAY_MS;
use tidemill_page::report::Curve;

use super::chart;
use super::source::failed;
use crate::command::walkforward::page::sentence;

/// The file that a walk-forward leaves behind.
const FILE: &str = "walkforward.json";

/// Summary of the walk-forward in a folder.
pub fn of(dir: &Path, points: usize) -> Result<WalkSummary, SourceError> {
    let text = match std::fs::read_to_string(dir.join(FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = "its windows are put together when all of them have been traded".to_owned();
            let hint = "the same `tidemill walkforward` goes on with one that was stopped".to_owned();
            return Err(SourceError::Unavailable { message, hint: Some(hint) });
        }
        Err(error) => return Err(failed(&error)),
    };
    let mut setting: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let walked = setting["walk_forward"].take();
    let summary = WalkForwardSummary::deserialize(&walked).map_err(|error| failed(&error))?;
    // Equity that adds in price units is compared with no market.
    let is_additive = summary.market.is_none();
    let marks =
        |equity: &[(i64, f64)]| equity.iter().map(|(day, value)| (day * DAY_MS, *value)).collect::<Vec<_>>();
    let curve =
        Curve { start: 1.0, equity: marks(&summary.equity), buy_hold: marks(&summary.benchmark_equity) };
    Ok(WalkSummary {
        words: match summary.probabilistic_sharpe {
            Some(share) => format!(
                "Sharpe ratio {} as traded: above 0 with a probability of {:.1} %",
                number::short(summary.sharpe),
                100.0 * share
            ),
            None => "No day was traded".into(),
        },
        sentence: sentence(&summary),
        figures: summary.figures().into_iter().map(|(name, text)| (name.to_owned(), text)).collect(),
        windows: walked["windows"].clone(),
        benchmark: setting["benchmark"].as_str().map(str::to_owned),
        is_additive,
        total_return: summary.total_return,
        benchmark_return: summary.market.map(|market| market.benchmark_return),
        curve: chart::curve(&curve, is_additive, points),
        setting,
    })
}
