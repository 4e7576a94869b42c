//! The page of a walk through time: one file without scripts, drawn here as SVG, that opens without a network.

use serde_json::Value;

use super::summary::Summary;
use super::text::{figures, value_text};
use crate::number;

/// The style sheet of reports, and what this page adds to it.
const STYLES: [&str; 2] =
    [include_str!("../../../../backtest/src/report/page/page.css"), include_str!("page/walkforward.css")];

/// Size of the equity curve.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 300.0;

/// Size of the picture of a parameter.
const SMALL: (f64, f64) = (300.0, 120.0);

/// The page as one HTML text.
pub fn html(title: &str, objective: &str, summary: &Summary) -> String {
    let title = escape(title);
    let style: String = STYLES.concat();
    let figures: String = figures(summary)
        .iter()
        .map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>", escape(name), escape(value)))
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n<style>\n{style}</style>\n</head>\n\
         <body class=\"walkforward\">\n<main>\n<header><p>Walk-forward</p><h1>{title}</h1></header>\n\
         <section><h2>Stitched equity</h2>\n<p class=\"facts\">Each stretch between two lines was traded with what the search before it had found.</p>\n\
         {}\n<dl class=\"pairs\">{figures}</dl></section>\n\
         <section><h2>Parameters through time</h2>\n<div class=\"small\">{}</div></section>\n\
         <section><h2>Windows</h2>\n<div class=\"scroll\">{}</div></section>\n</main>\n\
         <footer><p>Past results of a rule on historical prices; not a forecast.</p></footer>\n</body>\n</html>\n",
        equity(summary),
        parameters(summary),
        table(summary, objective),
    )
}

/// The equity curve, with a line where each window begins.
fn equity(summary: &Summary) -> String {
    let Some(((first, _), (last, _))) = summary.equity.first().zip(summary.equity.last()) else {
        return "<p>No day was traded.</p>".into();
    };
    let values = summary.equity.iter().map(|(_, value)| *value).chain([1.0]);
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
    let x = |day: i64| 4.0 + (WIDTH - 8.0) * (day - first) as f64 / ((last - first).max(1)) as f64;
    let y = |value: f64| HEIGHT - 8.0 - (HEIGHT - 16.0) * (value - low) / (high - low).max(1e-12);
    let begins: String = summary
        .windows
        .iter()
        .filter_map(|step| step.daily.first())
        .map(|(day, _)| format!("<path class=\"cut\" d=\"M{:.1} 0V{HEIGHT}\"/>", x(*day)))
        .collect();
    let line: Vec<String> =
        summary.equity.iter().map(|(day, value)| format!("{:.1},{:.1}", x(*day), y(*value))).collect();
    format!(
        "<svg class=\"equity\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Equity from 1 to {:.3}\">\
         {begins}<path class=\"start\" d=\"M0 {:.1}H{WIDTH}\"/><polyline points=\"{}\"/></svg>",
        1.0 + summary.total_return,
        y(1.0),
        line.join(" ")
    )
}

/// One picture for each parameter whose values are numbers, one level per window.
fn parameters(summary: &Summary) -> String {
    let mut names: Vec<&String> = Vec::new();
    for name in summary.windows.iter().flat_map(|step| step.parameters.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let drawn: Vec<String> = names
        .into_iter()
        .filter_map(|name| {
            let value = |value: &Value| match value {
                Value::Bool(on) => Some(f64::from(u8::from(*on))),
                other => other.as_f64(),
            };
            let values: Vec<Option<f64>> =
                summary.windows.iter().map(|step| step.parameters.get(name).and_then(value)).collect();
            let known = || values.iter().flatten().copied();
            let (low, high) =
                known().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
            (low <= high).then(|| parameter(name, &values, low, high))
        })
        .collect();
    if drawn.is_empty() { "<p>No parameter is a number.</p>".into() } else { drawn.concat() }
}

fn parameter(name: &str, values: &[Option<f64>], low: f64, high: f64) -> String {
    let (width, height) = SMALL;
    let step = width / values.len() as f64;
    let y = |value: f64| {
        let place = if high > low { (value - low) / (high - low) } else { 0.5 };
        height - 6.0 - (height - 12.0) * place
    };
    let line: String = values
        .iter()
        .enumerate()
        .filter_map(|(at, value)| Some((at, (*value)?)))
        .map(|(at, value)| format!("<path d=\"M{:.1} {:.1}h{:.1}\"/>", at as f64 * step, y(value), step))
        .collect();
    format!(
        "<figure><figcaption><b>{}</b><span>{} … {}</span></figcaption>\
         <svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{} through time\">{line}</svg></figure>",
        escape(name),
        number::short(Some(low)),
        number::short(Some(high)),
        escape(name)
    )
}

fn table(summary: &Summary, objective: &str) -> String {
    let cell = |text: &str| format!("<td>{}</td>", escape(text));
    let mut out = format!(
        "<table class=\"rows\"><thead><tr><th>#</th><th>search from</th><th>trade from</th><th>to</th><th>{0} in sample</th><th>out</th>\
         <th>Sharpe in sample</th><th>out</th><th>Return</th><th>Trades</th><th>Parameters</th></tr></thead><tbody>",
        escape(objective)
    );
    for (at, step) in summary.windows.iter().enumerate() {
        let params: Vec<String> = step
            .parameters
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| format!("{name}={}", value_text(Some(value))))
            .collect();
        out += "<tr>";
        out += &cell(&(at + 1).to_string());
        [&step.train_from, &step.test_from, &step.test_to].iter().for_each(|date| out += &cell(date));
        step.objective.iter().chain(&step.sharpe).for_each(|value| out += &cell(&number::short(*value)));
        out += &cell(&format!("{:.2} %", 100.0 * step.total_return));
        out += &cell(&step.trades.to_string());
        out += &cell(if step.trial.is_some() { &params[..] } else { &[] }.join(", ").as_str());
        out += "</tr>";
    }
    out + "</tbody></table>"
}

/// Text that may stand between tags and in attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
