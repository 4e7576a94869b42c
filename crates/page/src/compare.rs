//! The page that compares studies: one file without scripts, drawn here as SVG.

mod picture;

use crate::kit::{DISCLAIMER, Page, escape};

/// Everything the page shows.
pub struct ComparePage {
    /// Main heading.
    pub title: String,
    /// The line under the heading.
    pub subtitle: String,
    /// Why figures must not be compared, where they must not.
    pub warnings: Vec<String>,
    /// Names and verdicts of the studies.
    pub verdicts: Vec<(String, String)>,
    /// The best trial of each study by part of the data.
    pub results: CompareTable,
    /// The settings in which they differ, a column for each study.
    pub settings: CompareTable,
    /// Name of the objective.
    pub objective: String,
    /// How the best value grew, by study.
    pub curves: Vec<ConvergenceCurve>,
    /// The same in figures.
    pub convergence: CompareTable,
}

/// A table of texts.
#[derive(Default)]
pub struct CompareTable {
    /// Names of the columns.
    pub header: Vec<String>,
    /// A cell for each column.
    pub rows: Vec<Vec<String>>,
}

/// The best value so far over the trials of a study.
pub struct ConvergenceCurve {
    /// Name of the study.
    pub name: String,
    /// Its trials.
    pub n_trials: u64,
    /// Trials that were better than all before, and their values.
    pub improvements: Vec<(u64, f64)>,
}

/// The page as one HTML text.
pub fn html(page: &ComparePage) -> String {
    let warnings: String =
        page.warnings.iter().map(|text| format!("<p class=\"warning\">{}</p>", escape(text))).collect();
    let verdict = |(name, text): &(String, String)| {
        format!("<div class=\"figure\"><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(text))
    };
    let settings = match page.settings.rows.is_empty() {
        true => "<p class=\"facts\">The studies do not differ in any setting.</p>".to_owned(),
        false => table(&page.settings),
    };
    let body = format!(
        "<body class=\"compare\">\n<main>\n<header><p id=\"eyebrow\">Studies compared</p><h1>{}</h1>\
         <p id=\"subtitle\">{}</p>{warnings}<dl id=\"verdicts\">{}</dl></header>\n\
         <section><h2>Best trials</h2>\n<p class=\"facts\">The judged winner of each study on every part of the data; \
         a search sees only what is in sample.</p>\n{}</section>\n\
         <section class=\"texts\"><h2>What differs</h2>\n{settings}</section>\n\
         <section><h2>Convergence</h2>\n<p class=\"facts\">The best {} in sample over the trials of each study.</p>\n{}\n{}</section>\n\
         </main>\n<footer><p>{DISCLAIMER}</p></footer>\n",
        escape(&page.title),
        escape(&page.subtitle),
        page.verdicts.iter().map(verdict).collect::<String>(),
        table(&page.results),
        escape(&page.objective),
        picture::convergence(&page.curves),
        table(&page.convergence),
    );
    Page { title: &page.title, style: include_str!("compare/compare.css"), body: &body, script: None }.html()
}

fn table(table: &CompareTable) -> String {
    let head: String =
        table.header.iter().map(|name| format!("<th scope=\"col\">{}</th>", escape(name))).collect();
    let row = |row: &Vec<String>| {
        let cells: String = row.iter().map(|text| format!("<td>{}</td>", escape(text))).collect();
        format!("<tr>{cells}</tr>")
    };
    let rows: String = table.rows.iter().map(row).collect();
    format!(
        "<div class=\"scroll\"><table class=\"rows\"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_escaped_and_no_script_runs() {
        let evil = || "<script>alert(1)</script>".to_owned();
        let table = || CompareTable { header: vec![evil()], rows: vec![vec![evil()]] };
        let page = html(&ComparePage {
            title: evil(),
            subtitle: evil(),
            warnings: vec![evil()],
            verdicts: vec![(evil(), evil())],
            results: table(),
            settings: table(),
            objective: evil(),
            curves: vec![ConvergenceCurve { name: evil(), n_trials: 5, improvements: vec![(1, 2.0)] }],
            convergence: table(),
        });
        assert!(!page.contains("<script") && page.contains("&lt;script&gt;"), "{page}");
        assert!(page.contains("default-src 'none'") && !page.contains("script-src"));
    }
}
