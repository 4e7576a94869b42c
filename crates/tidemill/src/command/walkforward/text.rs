//! A walk-forward as text.

use anyhow::Result;
use serde_json::Value;
use tidemill_backtest::Strategy;
use tidemill_lab::number;
use tidemill_lab::walkforward::WalkForwardSummary;

use crate::table::{ColumnArgs, Screen, Table, TextColumn};

/// Most parameters shown in the table unless they are chosen.
const MOST_PARAMS: usize = 12;

/// All windows in a table, then their results together.
pub fn text(
    summary: &WalkForwardSummary,
    strategy: &Strategy,
    pool_note: Option<&str>,
    columns: &ColumnArgs,
    screen: &Screen,
) -> Result<String> {
    let mut table = table(strategy);
    columns.choose(&mut table)?;
    for (at, step) in summary.windows.iter().enumerate() {
        let mut row = vec![(at + 1).to_string()];
        row.extend([step.train_from.clone(), step.test_from.clone(), step.test_to.clone()]);
        row.extend(step.objective.map(number::short));
        let has_sharpe = has_sharpe(&strategy.objective().text);
        row.extend(step.sharpe.iter().filter(|_| has_sharpe).map(|value| number::short(*value)));
        row.push(format!("{:.2}", 100.0 * step.total_return));
        row.push(number::metric("[%]", step.benchmark_return));
        row.push(step.trades.to_string());
        row.extend(strategy.params.iter().map(|param| value_text(step.parameters.get(&param.name))));
        table.row(row);
    }
    let mut out = table.render(0, screen);
    out += &pool_note.map_or_else(String::new, |note| format!("{note}\n"));
    out.push('\n');
    let figures = summary.figures();
    let longest = figures.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, value) in figures {
        out += &format!("{name:<longest$}  {value}\n");
    }
    Ok(out)
}

/// The table without rows.
pub fn table(strategy: &Strategy) -> Table {
    let objective = &strategy.objective().text;
    let column = |title: &str, name: &str, keep: u8| TextColumn::new(title).named(name).keep(keep);
    let mut header = vec![
        column("#", "window", 10),
        column("search from", "search_from", 3),
        column("trade from", "trade_from", 8),
        column("to", "to", 5),
        column(&format!("{objective} in"), "in", 9),
        column("out", "out", 10),
    ];
    if has_sharpe(objective) {
        header.extend([column("Sharpe in", "sharpe_in", 4), column("out", "sharpe_out", 6)]);
    }
    header.extend([
        column("Return [%]", "return", 9),
        column("Benchmark [%]", "benchmark", 8),
        column("Trades", "trades", 7),
    ]);
    let mut n_shown = 0;
    header.extend(strategy.params.iter().map(|param| {
        n_shown += usize::from(param.fixed.is_none());
        let keep = if param.fixed.is_some() || n_shown > MOST_PARAMS { 0 } else { 6 };
        column(&param.name, &param.name, keep)
    }));
    Table::new(header)
}

/// Whether Sharpe ratios are worth columns of their own: where the objective is another one.
pub fn has_sharpe(objective: &str) -> bool {
    objective != "sharpe"
}

/// The value of a parameter; a dot where it was not active.
pub fn value_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "·".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(value)) => number::short(value.as_f64()),
        Some(other) => other.to_string(),
    }
}
