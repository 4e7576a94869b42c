//! A walk-forward as text.

use serde_json::Value;

use crate::table::Table;
use tidemill_lab::number;
use tidemill_lab::walkforward::WalkForwardSummary;

/// Most parameters shown in the table.
const MOST_PARAMS: usize = 12;

/// All windows in a table, then their results together.
pub fn text(summary: &WalkForwardSummary, objective: &str, pool_note: Option<&str>) -> String {
    let names: Vec<&String> = summary
        .windows
        .iter()
        .find(|step| step.trial.is_some())
        .map(|step| step.parameters.keys().take(MOST_PARAMS).collect())
        .unwrap_or_default();
    let mut header: Vec<String> = ["#", "search from", "trade from", "to"].map(String::from).to_vec();
    header.extend([format!("{objective} in"), "out".into()]);
    if has_sharpe(objective) {
        header.extend(["Sharpe in".into(), "out".into()]);
    }
    header.extend(["Return [%]".into(), "Trades".into()]);
    header.extend(names.iter().map(|name| (*name).clone()));
    let mut table = Table::new(header);
    for (at, step) in summary.windows.iter().enumerate() {
        let mut row = vec![(at + 1).to_string()];
        row.extend([step.train_from.clone(), step.test_from.clone(), step.test_to.clone()]);
        row.extend(step.objective.map(number::short));
        row.extend(step.sharpe.iter().filter(|_| has_sharpe(objective)).map(|value| number::short(*value)));
        row.push(format!("{:.2}", 100.0 * step.total_return));
        row.push(step.trades.to_string());
        row.extend(names.iter().map(|name| value_text(step.parameters.get(*name))));
        table.row(row);
    }
    let mut out = table.render(0);
    out += &pool_note.map_or_else(String::new, |note| format!("{note}\n"));
    out.push('\n');
    for (name, value) in summary.figures() {
        out += &format!("{name:<26}  {value}\n");
    }
    out
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
