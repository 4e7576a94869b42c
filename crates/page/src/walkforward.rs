//! The page of a walk-forward: one file without scripts, drawn here as SVG.

mod picture;

use crate::kit::{DISCLAIMER, Page, escape};

/// Everything the page shows.
pub struct WalkForwardPage {
    /// Name of the strategy.
    pub strategy: String,
    /// The line under the heading, usually the data.
    pub data: String,
    /// The result in a sentence.
    pub verdict: String,
    /// Figures that are shown large: names and texts.
    pub figures: Vec<(String, String)>,
    /// Equity at the end of each day: days since 1970, and values from 1 on.
    pub equity: Vec<(i64, f64)>,
    /// Value of the benchmark on the same days; empty where nothing is compared.
    pub benchmark: Vec<(i64, f64)>,
    /// Returns by month.
    pub months: Vec<Year>,
    /// The windows, in the order of time.
    pub windows: Vec<Window>,
    /// Parameters that changed from window to window.
    pub parameters: Vec<Parameter>,
    /// Parameters that did not change, as text; empty if there are none.
    pub constant: String,
    /// Names of the columns of the table of windows.
    pub header: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// The months of a year.
pub struct Year {
    /// The year.
    pub year: String,
    /// Return of each month that was traded.
    pub months: [Option<f64>; 12],
    /// Return of all of them.
    pub total: f64,
    /// The benchmark's over the same days.
    pub benchmark: Option<f64>,
}

/// One window: a search, and the days that were traded with what it found.
pub struct Window {
    /// First day that was traded, as text.
    pub test_from: String,
    /// Where trading ended, as text.
    pub test_to: String,
    /// First day that was traded, in days since 1970, if there was one.
    pub first_day: Option<i64>,
    /// Sharpe ratio where it was searched and where it was traded, as number and text.
    pub sharpe: [Option<(f64, String)>; 2],
}

/// A parameter through time.
pub struct Parameter {
    /// Name of the parameter.
    pub name: String,
    /// By window, where its value lies; none where nothing was chosen or it was not active.
    pub levels: Vec<Option<f64>>,
    /// The values it took, as text.
    pub range: String,
}

/// The page as one HTML text.
pub fn html(walk: &WalkForwardPage) -> String {
    let figure = |(name, value): &(String, String)| {
        format!("<div class=\"figure\"><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value))
    };
    let constant = match walk.constant.as_str() {
        "" => String::new(),
        text => format!("<p class=\"facts\">The same in all windows: {}.</p>", escape(text)),
    };
    let body = format!(
        "<body class=\"walkforward\">\n<main>\n<header><p id=\"eyebrow\">Walk-forward</p><h1>{}</h1>\
         <p id=\"subtitle\">{}</p><p id=\"verdict\">{}</p><dl id=\"headline\">{}</dl></header>\n\
         <section><h2>Stitched equity</h2>\n<p class=\"facts\">Between two lines the strategy traded with the parameters that the search before them had chosen.{}</p>\n{}</section>\n\
         <section><h2>Drawdown</h2>\n{}</section>\n\
         <section><h2>Monthly returns <small>%</small></h2>\n<div class=\"scroll\">{}</div></section>\n\
         <section><h2>Promised and kept</h2>\n<p class=\"facts\">Sharpe ratio of what each search chose: \
         <span class=\"key searched\">where it was searched</span>, <span class=\"key traded\">where it was traded</span>.</p>\n{}</section>\n\
         <section><h2>Parameters through time</h2>\n<div class=\"small\">{}</div>{constant}</section>\n\
         <section><h2>Windows</h2>\n<div class=\"scroll\">{}</div></section>\n</main>\n\
         <footer><p>{DISCLAIMER}</p></footer>\n",
        escape(&walk.strategy),
        escape(&walk.data),
        escape(&walk.verdict),
        walk.figures.iter().map(figure).collect::<String>(),
        if walk.benchmark.is_empty() {
            ""
        } else {
            " <span class=\"key traded\">Strategy</span>, <span class=\"key held\">benchmark, bought at the first open and held through all windows</span>."
        },
        picture::equity(walk),
        picture::drawdown(walk),
        months(walk),
        picture::kept(walk),
        walk.parameters.iter().map(|param| picture::levels(param, walk)).collect::<String>(),
        table(walk),
    );
    let title = format!("{}, walk-forward", walk.strategy);
    Page { title: &title, style: include_str!("walkforward/walkforward.css"), body: &body, script: None }
        .html()
}

/// Returns by month as a table, by year beside the benchmark.
fn months(walk: &WalkForwardPage) -> String {
    let names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut out = String::from("<table id=\"month-table\"><thead><tr><th></th>");
    names.into_iter().chain(["Year"]).for_each(|name| out += &format!("<th scope=\"col\">{name}</th>"));
    if !walk.benchmark.is_empty() {
        out += "<th scope=\"col\">Bench.</th><th scope=\"col\">Excess</th>";
    }
    out += "</tr></thead><tbody>";
    let strongest =
        walk.months.iter().flat_map(|year| year.months).flatten().fold(0.0, |a: f64, b| a.max(b.abs()));
    let text = |share: f64| format!("{:+.1}", 100.0 * share).replace('-', "−");
    for year in &walk.months {
        out += &format!("<tr><th scope=\"row\">{}</th>", escape(&year.year));
        for month in year.months {
            out += &match month {
                None => "<td class=\"none\">·</td>".to_owned(),
                Some(value) => format!(
                    "<td class=\"heat {}\" style=\"--heat:{:.1}%\">{}</td>",
                    if value < 0.0 { "loss" } else { "gain" },
                    62.0 * (value.abs() / strongest.max(1e-12)).sqrt(),
                    text(value)
                ),
            };
        }
        out += &format!("<td class=\"total\">{}</td>", text(year.total));
        if let Some(held) = year.benchmark {
            out += &format!("<td>{}</td><td>{}</td>", text(held), text(year.total - held));
        }
        out += "</tr>";
    }
    out + "</tbody></table>"
}

fn table(walk: &WalkForwardPage) -> String {
    let head: String =
        walk.header.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
    let mut out = format!("<table class=\"rows\"><thead><tr>{head}</tr></thead><tbody>");
    for row in &walk.rows {
        let cells: String = row.iter().map(|text| format!("<td>{}</td>", escape(text))).collect();
        out += &format!("<tr>{cells}</tr>");
    }
    out + "</tbody></table>"
}
