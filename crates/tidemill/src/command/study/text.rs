//! Trials, convergence and importance as plain text.

use anyhow::Result;
use tidemill_search::Value;

use crate::table::{ColumnArgs, Screen, Table, TextColumn};
use crate::verdict_text::{check_line, drop_text};
use tidemill_lab::number;
use tidemill_lab::stored::rows::Row;
use tidemill_lab::stored::survey::Survey;

/// Metrics shown beside the objective, where the study has them.
pub const SHOWN: [&str; 8] = [
    "sharpe",
    "total_return",
    "max_drawdown",
    "trades",
    "win_rate",
    "profit_factor",
    "test_objective",
    "test_total_return",
];

/// Most parameters shown in a table.
const MAX_PARAMS: usize = 16;

/// Longest heading that is not replaced.
const MAX_HEADING: usize = 20;

/// Width of the curve in characters.
const CURVE_WIDTH: usize = 60;

/// Columns that are left for what stands behind the curve.
const CURVE_LABEL: usize = 24;

/// Most improvements that are listed.
const MAX_STEPS: usize = 12;

/// Width of the longest bar in characters.
const BAR_WIDTH: usize = 40;

/// Most parameters in the list of importance.
const MAX_BARS: usize = 20;

pub use tidemill_lab::test_column::label;

/// A parameter's value in few digits; a dot where it was not active.
pub fn short(value: &Option<Value>) -> String {
    match value {
        None => "·".into(),
        Some(Value::Float(value)) => number::short(Some(*value)),
        Some(value) => value.to_string(),
    }
}

/// An objective's value in few digits.
pub fn score(value: f64) -> String {
    number::short(Some(value).filter(|value| !value.is_nan()))
}

/// Places of the metrics worth a column: the usual ones, or the first few of a study that has none of them. One that repeats the
/// objective is left out.
pub fn shown_metrics(survey: &Survey, rows: &[&Row]) -> Vec<usize> {
    let names = &survey.metric_names;
    let mut places: Vec<usize> =
        SHOWN.iter().filter_map(|shown| names.iter().position(|name| name == shown)).collect();
    if places.is_empty() {
        places = (0..names.len().min(SHOWN.len())).collect();
    }
    let repeats = |place: &usize| {
        rows.iter().all(|row| row.objectives.iter().any(|value| row.metrics[*place] == Some(*value)))
    };
    places.retain(|place| rows.is_empty() || !repeats(place));
    places
}

/// Trials as a table: objectives, the most telling metrics, parameters.
pub fn trials(
    survey: &Survey,
    objective_names: &[String],
    rows: &[&Row],
    columns: &ColumnArgs,
    screen: &Screen,
) -> Result<String> {
    let metrics = shown_metrics(survey, rows);
    // What is not shown can be chosen.
    let hidden = (0..survey.metric_names.len()).filter(|place| !metrics.contains(place));
    let places: Vec<usize> = metrics.iter().copied().chain(hidden).collect();
    let n_varied = survey.axes.0.iter().filter(|axis| axis.is_varied()).count();
    let mut header = vec![TextColumn::new("trial").keep(10)];
    // A long expression would make a wide column of short numbers.
    let is_short = |name: &String| name.chars().count() <= MAX_HEADING;
    header.extend(
        objective_names
            .iter()
            .map(|name| TextColumn::new(if is_short(name) { name.as_str() } else { "objective" }).keep(10)),
    );
    header.extend(places.iter().enumerate().map(|(at, place)| {
        let name = &survey.metric_names[*place];
        let is_first =
            ["sharpe", "total_return", "max_drawdown", "trades", "test_objective"].contains(&name.as_str());
        let keep = if at >= metrics.len() {
            0
        } else if is_first {
            8
        } else {
            3
        };
        TextColumn::new(label(name)).named(name.as_str()).keep(keep)
    }));
    let mut n_shown = 0;
    header.extend(survey.axes.0.iter().map(|axis| {
        n_shown += usize::from(axis.is_varied());
        let keep = if !axis.is_varied() || n_shown > MAX_PARAMS {
            0
        } else if n_shown <= 4 {
            6
        } else {
            4
        };
        TextColumn::new(axis.name.as_str()).named(axis.name.as_str()).keep(keep)
    }));
    let mut table = Table::new(header);
    columns.choose(&mut table)?;
    for row in rows {
        let mut cells = vec![row.trial.to_string()];
        cells.extend(row.objectives.iter().map(|value| score(*value)));
        cells.extend(
            places.iter().map(|at| number::metric(label(&survey.metric_names[*at]), row.metrics[*at])),
        );
        cells.extend(row.params.iter().map(short));
        table.row(cells);
    }
    let mut out = table.render(0, screen);
    if n_varied > MAX_PARAMS {
        let n_more = n_varied - MAX_PARAMS;
        out += &format!("({n_more} more parameters; `tidemill study best` and --json show them)\n");
    }
    Ok(out)
}

/// The best value so far over the length of the study, as a curve of one line and the improvements beneath.
pub fn convergence(improvements: &[(u64, f64)], n_trials: u64, screen: &Screen) -> String {
    let (Some((_, last)), Some(_)) = (improvements.last(), n_trials.checked_sub(1)) else {
        return "no trial was valid\n".into();
    };
    let room =
        screen.width.map_or(CURVE_WIDTH, |width| width.saturating_sub(CURVE_LABEL).clamp(8, CURVE_WIDTH));
    let width = room.min(usize::try_from(n_trials).unwrap_or(room));
    let best_after = |n: u64| {
        let known = improvements.partition_point(|(trial, _)| *trial < n);
        known.checked_sub(1).map(|at| improvements[at].1)
    };
    let columns: Vec<Option<f64>> =
        (1..=width as u64).map(|column| best_after(column * n_trials / width as u64)).collect();
    // The lowest level is what the first trials found; their own bad luck would flatten all that follows.
    let low = columns.iter().flatten().next().copied().unwrap_or(*last);
    let level = |value: f64| if *last > low { (value - low) / (last - low) } else { 1.0 };
    let curve: String = columns
        .iter()
        .map(|value| match value {
            None => ' ',
            Some(value) => ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'][(level(*value) * 7.0).round() as usize],
        })
        .collect();
    let mut table = Table::new(["trial", "best so far"]);
    for (trial, value) in steps(improvements) {
        table.row([number::count(trial), number::short(Some(value))]);
    }
    let from_to = format!("{} to {}", number::short(Some(low)), number::short(Some(*last)));
    let listed = table.render(0, screen);
    let hidden = improvements.len().saturating_sub(MAX_STEPS);
    let note = if hidden > 0 { format!("({hidden} improvements in between not shown)\n") } else { "".into() };
    format!("{curve}  {from_to}\n\n{listed}{note}")
}

/// The improvements worth a line: all if they are few, otherwise some of them with both ends.
fn steps(improvements: &[(u64, f64)]) -> Vec<(u64, f64)> {
    tidemill_lab::stored::survey::thinned(improvements.len(), MAX_STEPS).map(|at| improvements[at]).collect()
}

/// Whether the winners hold up: each in a line, the first with all checks. What is missing in the document is left out.
pub fn holding(document: &serde_json::Value, screen: &Screen) -> String {
    let Some(winners) = document["winners"].as_array().filter(|winners| !winners.is_empty()) else {
        return String::new();
    };
    let parts: Vec<(&str, &str)> = [("out_of_sample", "out of sample"), ("holdout", "holdout")]
        .into_iter()
        .filter(|(key, _)| winners.iter().any(|winner| winner["objective"][*key].is_number()))
        .collect();
    let mut header = vec!["trial", "survives", "verdict", "in sample"];
    header.extend(parts.iter().flat_map(|(_, name)| [*name, "drop [%]"]));
    let mut table = Table::new(header);
    for winner in winners {
        let value = |part: &str| winner["objective"][part].as_f64();
        let whole = |key: &str| winner[key].as_u64().unwrap_or(0);
        let verdict = winner["sentence"].as_str().unwrap_or_default().rsplit(": ").next().unwrap_or_default();
        let mut row = vec![
            whole("trial").to_string(),
            format!("{} of {}", whole("n_survived"), whole("n_checks")),
            verdict.to_owned(),
            number::short(value("in_sample")),
        ];
        for (key, _) in &parts {
            row.extend([number::short(value(key)), drop_text(value("in_sample"), value(key))]);
        }
        table.row(row);
    }
    let mut out = format!("\nDoes it hold up?\n\n{}\n", table.render(3, screen));
    let best = &winners[0];
    out += &format!("trial {} {}\n", best["trial"], best["sentence"].as_str().unwrap_or_default());
    for check in best["checks"].as_array().into_iter().flatten() {
        let text = |key: &str| check[key].as_str().unwrap_or_default();
        out += &check_line(check["survived"] == true, text("name"), text("words"), screen);
    }
    if let Some(benchmark) = document["benchmark"].as_str().filter(|_| best["has_market"] == true) {
        out += &format!("  (the benchmark is {benchmark})\n");
    }
    out
}

/// Shares as bars, largest first.
pub fn importance(survey: &Survey, shares: &[f64], screen: &Screen) -> String {
    let ranked = ranked(survey, shares);
    if ranked.first().is_none_or(|(_, share)| *share <= 0.0) {
        return "unknown: too few trials, or all alike\n".into();
    }
    let largest = ranked[0].1;
    let longest = ranked.iter().take(MAX_BARS).map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    // A name, two gaps and `100.0 %` stand before a bar.
    let bar_width =
        screen.width.map_or(BAR_WIDTH, |width| width.saturating_sub(longest + 12).clamp(4, BAR_WIDTH));
    let mut table: Vec<[String; 3]> = Vec::new();
    for (name, share) in ranked.iter().take(MAX_BARS) {
        let eighths = (share / largest * (bar_width * 8) as f64).round() as usize;
        let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
        let bar =
            if eighths == 0 { "▏".to_string() } else { format!("{}{part}", "█".repeat(eighths / 8)) };
        table.push([(*name).to_string(), format!("{:.1} %", share * 100.0), bar]);
    }
    let width = |at: usize| table.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let (names, numbers) = (width(0), width(1));
    let mut out: String = table
        .iter()
        .map(|[name, share, bar]| format!("{name:<names$}  {share:>numbers$}  {bar}\n"))
        .collect();
    if ranked.len() > MAX_BARS {
        let rest: f64 = ranked[MAX_BARS..].iter().map(|(_, share)| share).sum();
        out += &format!("({} more parameters: {:.1} % together)\n", ranked.len() - MAX_BARS, rest * 100.0);
    }
    out
}

/// The varied parameters with their shares, largest first, equal ones in the order of the study.
pub fn ranked<'a>(survey: &'a Survey, shares: &[f64]) -> Vec<(&'a str, f64)> {
    let mut ranked: Vec<(&str, f64)> = survey
        .axes
        .0
        .iter()
        .zip(shares)
        .filter(|(axis, _)| axis.is_varied())
        .map(|(axis, share)| (axis.name.as_str(), *share))
        .collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranked
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn winners_are_shown_in_and_out_of_sample_and_the_first_with_its_checks() {
        let check =
            |name: &str, survived: bool| json!({ "name": name, "survived": survived, "words": "why" });
        let winner = |trial: u64, unseen: Option<f64>| {
            json!({ "trial": trial, "n_survived": 1, "n_checks": 2, "sentence": "survives 1 of 2 checks: doubtful",
                "objective": { "in_sample": 2.0, "out_of_sample": unseen, "holdout": null },
                "checks": [check("luck", true), check("costs", false)] })
        };
        let text = holding(&json!({ "winners": [winner(7, Some(1.5)), winner(9, None)] }), &Screen::PLAIN);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(lines[3], "trial survives verdict in sample out of sample drop [%]");
        assert_eq!(lines[5..7], ["7 1 of 2 doubtful 2 1.500 25", "9 1 of 2 doubtful 2 – –"]);
        assert!(
            text.ends_with("\ntrial 7 survives 1 of 2 checks: doubtful\n  + luck: why\n  - costs: why\n")
        );
        assert_eq!(holding(&json!({}), &Screen::PLAIN), "");
    }

    #[test]
    fn the_curve_rises_where_the_study_did() {
        let text = convergence(&[(1, 0.0), (3, 7.0)], 4, &Screen::PLAIN);
        assert_eq!(text.lines().next(), Some(" ▁▁█  0 to 7"));
        assert!(text.contains("    3            7\n"), "{text}");
    }

    #[test]
    fn a_flat_curve_is_full_and_no_valid_trial_is_said() {
        assert_eq!(convergence(&[(0, 2.0)], 3, &Screen::PLAIN).lines().next(), Some("███  2 to 2"));
        assert_eq!(convergence(&[], 3, &Screen::PLAIN), "no trial was valid\n");
        assert_eq!(convergence(&[], 0, &Screen::PLAIN), "no trial was valid\n");
    }

    #[test]
    fn many_improvements_are_thinned_with_both_ends_kept() {
        let improvements: Vec<(u64, f64)> = (0..100_u32).map(|at| (u64::from(at), f64::from(at))).collect();
        let text = convergence(&improvements, 100, &Screen::PLAIN);
        assert!(text.contains("\n    0            0\n") && text.contains("\n   99           99\n"), "{text}");
        assert!(text.ends_with("(88 improvements in between not shown)\n"), "{text}");
    }
}
