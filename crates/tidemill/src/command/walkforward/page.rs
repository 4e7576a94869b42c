//! The page of a walk through time: one file without scripts, drawn here as SVG, that opens without a network.

mod picture;

use serde_json::Value;

use tidemill_lab::walkforward::{WalkForwardSummary, WindowResult};

use super::text::{has_sharpe, value_text};
use tidemill_lab::number;

/// The style sheet of reports, and what this page adds to it.
const STYLES: [&str; 2] =
    [include_str!("../../../../backtest/src/report/page/page.css"), include_str!("page/walkforward.css")];

/// Figures that are shown large.
const LARGE: usize = 6;

/// The page as one HTML text.
pub fn html(strategy: &str, data: &str, objective: &str, summary: &WalkForwardSummary) -> String {
    let title = escape(strategy);
    let style: String = STYLES.concat();
    let figures: String = summary
        .figures()
        .iter()
        .take(LARGE)
        .map(|(name, value)| {
            format!("<div class=\"figure\"><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value))
        })
        .collect();
    let params = Params::new(summary);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}, walk-forward</title>\n<style>\n{style}</style>\n</head>\n\
         <body class=\"walkforward\">\n<main>\n<header><p id=\"eyebrow\">Walk-forward</p><h1>{title}</h1>\
         <p id=\"subtitle\">{}</p><p id=\"verdict\">{}</p><dl id=\"headline\">{figures}</dl></header>\n\
         <section><h2>Stitched equity</h2>\n<p class=\"facts\">Each stretch between two lines was traded with what the search before it had found.</p>\n{}</section>\n\
         <section><h2>Promised and kept</h2>\n<p class=\"facts\">Sharpe ratio of what each search chose: \
         <span class=\"key searched\">where it was searched</span>, <span class=\"key traded\">where it was traded</span>.</p>\n{}</section>\n\
         <section><h2>Parameters through time</h2>\n<div class=\"small\">{}</div>{}</section>\n\
         <section><h2>Windows</h2>\n<div class=\"scroll\">{}</div></section>\n</main>\n\
         <footer><p>Past results of a rule on historical prices; not a forecast.</p></footer>\n</body>\n</html>\n",
        escape(data),
        escape(&sentence(summary)),
        picture::equity(summary),
        picture::kept(summary),
        params.varied.iter().map(|(name, levels)| picture::levels(name, levels, summary)).collect::<String>(),
        params.constants(),
        table(summary, objective, &params),
    )
}

/// What came of it, in words.
fn sentence(summary: &WalkForwardSummary) -> String {
    let n = summary.windows.len();
    let n_winning = (summary.winning_windows * n as f64).round();
    let kept = match summary.efficiency {
        Some(share) => format!(" Of what the searches promised, {:.0} % were kept.", 100.0 * share),
        None => " The searches promised nothing.".into(),
    };
    format!("{n_winning} of {} made money.{kept}", number::counted(n as u64, "window"))
}

/// Values of a parameter, by window; none where nothing was chosen or it was not active.
type Values<'a> = Vec<Option<&'a Value>>;

/// Parameters that changed from window to window, and those that did not.
struct Params<'a> {
    varied: Vec<(&'a str, Values<'a>)>,
    constant: Vec<(&'a str, &'a Value)>,
}

impl<'a> Params<'a> {
    fn new(summary: &'a WalkForwardSummary) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for name in summary.windows.iter().flat_map(|step| step.parameters.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let (mut varied, mut constant) = (Vec::new(), Vec::new());
        for name in names {
            let value = |step: &'a WindowResult| step.parameters.get(name).filter(|value| !value.is_null());
            let values: Values<'a> = summary.windows.iter().map(value).collect();
            let mut known = values.iter().flatten();
            match known.next() {
                Some(first) if known.all(|other| other == first) => constant.push((name, *first)),
                Some(_) => varied.push((name, values)),
                None => {}
            }
        }
        Self { varied, constant }
    }

    /// Those that did not change, as a line.
    fn constants(&self) -> String {
        let texts: Vec<String> =
            self.constant.iter().map(|(name, value)| format!("{name}={}", value_text(Some(value)))).collect();
        if texts.is_empty() {
            return String::new();
        }
        format!("<p class=\"facts\">The same in all windows: {}.</p>", escape(&texts.join(", ")))
    }
}

fn table(summary: &WalkForwardSummary, objective: &str, params: &Params<'_>) -> String {
    let cell = |text: &str| format!("<td>{}</td>", escape(text));
    let mut header: Vec<String> = ["#", "search from", "trade from", "to"].map(String::from).to_vec();
    header.extend([format!("{objective}, searched"), "traded".into()]);
    if has_sharpe(objective) {
        header.extend(["Sharpe, searched".into(), "traded".into()]);
    }
    header.extend(["return".into(), "trades".into()]);
    header.extend(params.varied.iter().map(|(name, _)| (*name).to_string()));
    let header: String =
        header.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
    let mut out = format!("<table class=\"rows\"><thead><tr>{header}</tr></thead><tbody>");
    for (at, step) in summary.windows.iter().enumerate() {
        out += "<tr>";
        out += &cell(&(at + 1).to_string());
        [&step.train_from, &step.test_from, &step.test_to].iter().for_each(|date| out += &cell(date));
        let sharpe = step.sharpe.iter().filter(|_| has_sharpe(objective));
        step.objective.iter().chain(sharpe).for_each(|value| out += &cell(&number::short(*value)));
        out += &cell(&format!("{:.2} %", 100.0 * step.total_return));
        out += &cell(&step.trades.to_string());
        params.varied.iter().for_each(|(_, values)| out += &cell(&value_text(values[at])));
        out += "</tr>";
    }
    out + "</tbody></table>"
}

/// Text that may stand between tags and in attributes.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn step(params: Value, trial: Option<u64>, first_day: i64) -> WindowResult {
        let Value::Object(parameters) = params else { panic!("no object") };
        WindowResult {
            train_from: "2020-01-01".into(),
            test_from: "2020-02-01".into(),
            test_to: "2020-03-01".into(),
            trials: 10,
            trial,
            parameters,
            objective: [Some(1.5), Some(0.5)],
            sharpe: [Some(2.0), None],
            mean_daily: [Some(0.01), Some(0.0)],
            total_return: 0.1,
            trades: 3,
            daily: vec![(first_day, 0.1), (first_day + 1, -0.05)],
        }
    }

    fn page(windows: Vec<WindowResult>) -> String {
        html("a<b", "1 symbol", "calmar", &WalkForwardSummary::new(windows, 365.0, false, None))
    }

    #[test]
    fn what_changes_is_drawn_and_what_does_not_is_said() {
        let windows = vec![
            step(json!({ "side": "long", "window": 10, "hold": 4 }), Some(1), 0),
            step(json!({ "side": "both", "window": 20, "hold": 4 }), Some(2), 2),
            step(Value::Object(Map::new()), None, 4),
        ];
        let html = page(windows);
        assert!(html.contains("The same in all windows: hold=4."), "{html}");
        for part in ["<b>side</b><span>long / both</span>", "<b>window</b><span>10 … 20</span>", "a&lt;b"] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<b>hold</b>") && !html.contains("<script") && !html.contains("a<b"));
        assert_eq!(html.matches("class=\"cut\"").count(), 3, "one line where each window begins");
        assert_eq!(html.matches("<tr>").count(), 4);
    }

    #[test]
    fn a_walk_without_a_day_or_a_choice_has_a_page_too() {
        let mut empty = step(Value::Object(Map::new()), None, 0);
        (empty.daily, empty.sharpe, empty.mean_daily) = (Vec::new(), [None; 2], [None; 2]);
        let html = page(vec![empty]);
        assert!(
            html.contains("No day was traded.") && html.contains("No window has a Sharpe ratio."),
            "{html}"
        );
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
    }
}
