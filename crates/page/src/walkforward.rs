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
         <section><h2>Stitched equity</h2>\n<p class=\"facts\">Between two lines the strategy traded with the parameters that the search before them had chosen.</p>\n{}</section>\n\
         <section><h2>Promised and kept</h2>\n<p class=\"facts\">Sharpe ratio of what each search chose: \
         <span class=\"key searched\">where it was searched</span>, <span class=\"key traded\">where it was traded</span>.</p>\n{}</section>\n\
         <section><h2>Parameters through time</h2>\n<div class=\"small\">{}</div>{constant}</section>\n\
         <section><h2>Windows</h2>\n<div class=\"scroll\">{}</div></section>\n</main>\n\
         <footer><p>{DISCLAIMER}</p></footer>\n",
        escape(&walk.strategy),
        escape(&walk.data),
        escape(&walk.verdict),
        walk.figures.iter().map(figure).collect::<String>(),
        picture::equity(walk),
        picture::kept(walk),
        walk.parameters.iter().map(|param| picture::levels(param, walk)).collect::<String>(),
        table(walk),
    );
    let title = format!("{}, walk-forward", walk.strategy);
    Page { title: &title, style: include_str!("walkforward/walkforward.css"), body: &body, script: None }
        .html()
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
