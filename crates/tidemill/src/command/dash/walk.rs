//! What a walk-forward made: its windows one after the other, beside the benchmark.

use std::path::Path;

use serde_json::Value;
use tidemill_dash::web::{SourceError, WalkSummary};
use tidemill_lab::number;
use tidemill_lab::stored::walk::{HeldWalk, held};
use tidemill_lab::walkforward::window_folder;
use tidemill_page::report::Curve;

use super::chart;
use super::evaluation::Evaluations;
use super::source::{failed, study};

/// The file that a walk-forward leaves behind.
const FILE: &str = "walkforward.json";

const DAY_MS: i64 = 86_400_000;

/// Summary of the walk-forward in a folder.
pub fn of(dir: &Path, evaluations: &Evaluations, points: usize) -> Result<WalkSummary, SourceError> {
    let path = dir.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = "its windows are put together when all of them have been traded".to_owned();
            let hint = "the same `tidemill walkforward` goes on with one that was stopped".to_owned();
            return Err(SourceError::Unavailable { message, hint: Some(hint) });
        }
        Err(error) => return Err(failed(&error)),
    };
    let mut setting: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let mut made = setting["walk_forward"].take();
    let windows = made["windows"].take();
    let n_windows = windows.as_array().map_or(0, Vec::len);
    let equity: Vec<(i64, f64)> = serde_json::from_value(made["equity"].take()).unwrap_or_default();
    let (held, unavailable) = match held_beside(dir, n_windows, evaluations) {
        Ok(held) => (held, None),
        Err(error) => (None, Some(error.to_string())),
    };
    // Of the benchmark, the days that were traded.
    let on = |day: i64, held: &HeldWalk| {
        let after = held.equity.partition_point(|(other, _)| *other <= day);
        after.checked_sub(1).map_or(1.0, |at| held.equity[at].1)
    };
    // Equity that adds in price units is compared with no market.
    let is_additive = made["market"].is_null();
    let ms = |day: i64| day * DAY_MS;
    let drawn = Curve {
        start: 1.0,
        buy_hold: held
            .iter()
            .flat_map(|held| equity.iter().map(|(day, _)| (ms(*day), on(*day, held))))
            .collect(),
        equity: equity.iter().map(|(day, value)| (ms(*day), *value)).collect(),
    };
    let (words, sentence) = in_words(&made, n_windows);
    Ok(WalkSummary {
        words,
        sentence,
        figures: figures(&made),
        windows,
        benchmark: held.as_ref().map(|held| held.name.clone()),
        held: held.map(|held| held.windows).unwrap_or_default(),
        is_additive,
        total_return: made["total_return"].as_f64(),
        market: made["market"].take(),
        curve: chart::curve(&drawn, is_additive, points),
        unavailable,
        setting,
    })
}

/// The benchmark on the days that were traded, from the data that the studies of the windows name.
fn held_beside(
    dir: &Path,
    n_windows: usize,
    evaluations: &Evaluations,
) -> Result<Option<HeldWalk>, SourceError> {
    let studies: Result<Vec<_>, _> =
        (1..=n_windows).map(|number| study(&window_folder(dir, number))).collect();
    let studies = studies?;
    let Some(first) = studies.first() else { return Ok(None) };
    held(&studies, evaluations.data(first)?).map_err(|error| failed(&error))
}

/// The result in words: how sure it is that there is an edge at all, and what the windows made.
fn in_words(made: &Value, n_windows: usize) -> (String, String) {
    let figure = |key: &str| made[key].as_f64();
    let sharpe = number::short(figure("sharpe"));
    let words = match figure("probabilistic_sharpe") {
        Some(share) => {
            format!("Sharpe ratio {sharpe} as traded: above 0 with a probability of {:.1} %", 100.0 * share)
        }
        None => "No day was traded".into(),
    };
    let n_winning = (figure("winning_windows").unwrap_or(0.0) * n_windows as f64).round();
    let kept = match figure("efficiency") {
        Some(share) => format!("Trading kept {:.0} % of what the searches promised.", 100.0 * share),
        None => "The searches promised nothing.".into(),
    };
    (words, format!("{n_winning} of {} made money. {kept}", number::counted(n_windows as u64, "window")))
}

/// Figures of all windows together.
fn figures(made: &Value) -> Vec<(String, String)> {
    let percent =
        |value: &Value| value.as_f64().map_or_else(|| "–".into(), |share| format!("{:.2} %", 100.0 * share));
    let short = |value: &Value| number::short(value.as_f64());
    let market = &made["market"];
    let mut figures = vec![("Stitched return", percent(&made["total_return"]))];
    if market.is_object() {
        figures.push(("Benchmark", percent(&market["benchmark_return"])));
        figures.push(("Excess", percent(&market["excess_return"])));
    }
    figures.extend([
        ("Sharpe ratio", short(&made["sharpe"])),
        ("Max. drawdown", percent(&made["max_drawdown"])),
        ("Trades", short(&made["trades"])),
    ]);
    if market.is_object() {
        figures.push(("Beta", short(&market["beta"])));
        figures.push(("Alpha, a year", percent(&market["alpha"])));
        figures.push(("t of alpha", short(&market["t_alpha"])));
    }
    figures.push(("Walk-forward efficiency", short(&made["efficiency"])));
    figures.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}
