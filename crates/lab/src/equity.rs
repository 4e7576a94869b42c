//! The equity of a back-test as a table: one row a day, for tools that read returns (QuantStats, pyfolio, a spreadsheet).

use std::collections::BTreeMap;
use std::path::Path;

use tidemill_market::{TableColumn, write_table};

use crate::backtest::BacktestReport;
use crate::error::LabError;
use crate::parts::{EquityMark, PartName};

/// Writes the equity of the whole period as Parquet or CSV, as the path's ending says.
pub fn write(report: &BacktestReport, path: &Path) -> Result<(), LabError> {
    Ok(write_table(path, &columns(report))?)
}

/// The equity of the whole period by the day.
///
/// Columns: `date`, `part`, `equity` at the end of the day, `return` of the day, `exposure` (mean share of equity in the market, long less
/// short), `benchmark` and `benchmark_return`. Equity begins at 1; where it adds in price units it begins at 0, and returns are price units.
pub fn columns(report: &BacktestReport) -> Vec<(&'static str, TableColumn)> {
    let daily = &report.parts.whole.daily;
    let marks = report.parts.equity();
    let exposure: BTreeMap<i64, f64> = report.daily_exposure.iter().copied().collect();
    let number = |of: &dyn Fn(usize) -> f64| TableColumn::Number((0..daily.len()).map(of).collect());
    vec![
        ("date", TableColumn::Day(daily.iter().map(|mark| mark.day).collect())),
        ("part", TableColumn::Text(daily.iter().map(|mark| part(report, mark.day).key().into()).collect())),
        (
            "equity",
            number(&|at| {
                let EquityMark(_, equity, _) = marks[at];
                equity
            }),
        ),
        ("return", number(&|at| daily[at].change)),
        ("exposure", number(&|at| exposure.get(&daily[at].day).copied().unwrap_or(0.0))),
        (
            "benchmark",
            number(&|at| {
                let EquityMark(_, _, held) = marks[at];
                held
            }),
        ),
        ("benchmark_return", number(&|at| daily[at].held)),
    ]
}

/// The part that a day belongs to. One on which a part ends and the next begins has the returns of both and belongs to the earlier.
fn part(report: &BacktestReport, day: i64) -> PartName {
    let parts = [PartName::InSample, PartName::OutOfSample, PartName::Holdout].into_iter();
    let is_past = |name: &PartName| {
        let daily = report.parts.get(*name).map_or(&[][..], |part| &part.daily);
        daily.last().is_some_and(|last| last.day < day)
    };
    let exists = |name: &PartName| report.parts.get(*name).is_some_and(|part| !part.daily.is_empty());
    parts.filter(exists).find(|name| !is_past(name)).unwrap_or(PartName::Whole)
}
