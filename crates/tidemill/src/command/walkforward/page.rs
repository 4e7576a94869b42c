//! What the page of a walk-forward shows.

use serde_json::Value;
use tidemill_lab::number;
use tidemill_lab::walkforward::{WalkForwardSummary, WindowResult};
use tidemill_page::walkforward::{Parameter, WalkForwardPage, Window, Year};

use super::text::{has_sharpe, value_text};

/// The page as one HTML text.
pub fn html(strategy: &str, data: &str, objective: &str, summary: &WalkForwardSummary) -> String {
    let params = Params::new(summary);
    let varied = params.varied.iter().map(|(name, values)| {
        let (levels, range) = placed(values);
        Parameter { name: (*name).to_string(), levels, range }
    });
    tidemill_page::walkforward::html(&WalkForwardPage {
        strategy: strategy.into(),
        data: data.into(),
        verdict: sentence(summary),
        figures: summary.figures().into_iter().map(|(name, value)| (name.to_string(), value)).collect(),
        equity: summary.equity.clone(),
        benchmark: summary.benchmark_equity.clone(),
        months: months(summary),
        windows: summary.windows.iter().map(window).collect(),
        parameters: varied.collect(),
        constant: params.constants(),
        header: header(objective, &params),
        rows: (0..summary.windows.len()).map(|at| row(summary, objective, &params, at)).collect(),
    })
}

/// Returns by month, and by year beside the benchmark's.
fn months(summary: &WalkForwardSummary) -> Vec<Year> {
    let mut years: Vec<Year> = Vec::new();
    for month in &summary.months {
        let Some((name, number)) = month.month.split_once('-') else { continue };
        if years.last().is_none_or(|year| year.year != name) {
            years.push(Year { year: name.into(), months: [None; 12], total: 0.0, benchmark: None });
        }
        let Some(year) = years.last_mut() else { continue };
        let place = number.parse::<usize>().unwrap_or(0).wrapping_sub(1);
        if let Some(cell) = year.months.get_mut(place) {
            *cell = Some(month.total_return);
        }
        year.total = (1.0 + year.total) * (1.0 + month.total_return) - 1.0;
        year.benchmark =
            month.benchmark_return.map(|held| (1.0 + year.benchmark.unwrap_or(0.0)) * (1.0 + held) - 1.0);
    }
    years
}

fn window(step: &WindowResult) -> Window {
    Window {
        test_from: step.test_from.clone(),
        test_to: step.test_to.clone(),
        first_day: step.daily.first().map(|(day, _)| *day),
        sharpe: step.sharpe.map(|value| value.map(|value| (value, number::short(Some(value))))),
    }
}

/// The result in words.
fn sentence(summary: &WalkForwardSummary) -> String {
    let n = summary.windows.len();
    let n_winning = (summary.winning_windows * n as f64).round();
    let kept = match summary.efficiency {
        Some(share) => format!(" Trading kept {:.0} % of what the searches promised.", 100.0 * share),
        None => " The searches promised nothing.".into(),
    };
    let percent = |share: f64| format!("{:.2} %", 100.0 * share);
    let held = summary.market.as_ref().map_or_else(String::new, |market| {
        format!(" while the benchmark made {}", percent(market.benchmark_return))
    });
    format!(
        "Traded with what the searches before had chosen it made {}{held}. {n_winning} of {} made money.{kept}",
        percent(summary.total_return),
        number::counted(n as u64, "window")
    )
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

    /// Those that did not change, as text.
    fn constants(&self) -> String {
        let texts: Vec<String> =
            self.constant.iter().map(|(name, value)| format!("{name}={}", value_text(Some(value)))).collect();
        texts.join(", ")
    }
}

fn header(objective: &str, params: &Params<'_>) -> Vec<String> {
    let mut header: Vec<String> = ["#", "search from", "trade from", "to"].map(String::from).to_vec();
    header.extend([format!("{objective}, searched"), "traded".into()]);
    if has_sharpe(objective) {
        header.extend(["Sharpe, searched".into(), "traded".into()]);
    }
    header.extend(["return", "benchmark", "drawdown", "trades"].map(String::from));
    header.extend(params.varied.iter().map(|(name, _)| (*name).to_string()));
    header
}

fn row(summary: &WalkForwardSummary, objective: &str, params: &Params<'_>, at: usize) -> Vec<String> {
    let step = &summary.windows[at];
    let mut row = vec![(at + 1).to_string()];
    row.extend([&step.train_from, &step.test_from, &step.test_to].map(String::clone));
    let sharpe = step.sharpe.iter().filter(|_| has_sharpe(objective));
    row.extend(step.objective.iter().chain(sharpe).map(|value| number::short(*value)));
    let percent =
        |share: Option<f64>| share.map_or_else(|| "–".into(), |share| format!("{:.2} %", 100.0 * share));
    row.extend([Some(step.total_return), step.benchmark_return, Some(step.max_drawdown)].map(percent));
    row.push(step.trades.to_string());
    row.extend(params.varied.iter().map(|(_, values)| value_text(values[at])));
    row
}

/// Values as numbers, and the range they span. What is no number is numbered in the order in which it comes.
fn placed(values: &Values<'_>) -> (Vec<Option<f64>>, String) {
    let numbers: Vec<Option<f64>> = values.iter().map(|value| value.and_then(Value::as_f64)).collect();
    if values.iter().zip(&numbers).all(|(value, number)| value.is_none() || number.is_some()) {
        let known = || numbers.iter().flatten().copied();
        let ends = [known().fold(f64::INFINITY, f64::min), known().fold(f64::NEG_INFINITY, f64::max)];
        let [low, high] = ends.map(|end| number::short(Some(end)));
        return (numbers, format!("{low} … {high}"));
    }
    let mut names: Vec<String> = Vec::new();
    let mut place = |value: &Value| {
        let name = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let at = names.iter().position(|known| *known == name);
        at.unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        }) as f64
    };
    let places = values.iter().map(|value| value.map(&mut place)).collect();
    (places, names.join(" / "))
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
            benchmark_return: None,
            max_drawdown: 0.0,
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
        let (_, windows) = html.split_once("<h2>Windows</h2>").unwrap();
        assert_eq!(windows.matches("<tr>").count(), 4);
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
