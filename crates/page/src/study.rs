//! The page of one study: its trials, the importance of its parameters, and whether the winners hold up.
//!
//! The caller chooses what goes into the file ([`StudyPage`]): the best few hundred trials, an even sample of all others, the improvements, the
//! shares of the parameters. The scripts in `study/` decide how it looks.

use serde::Serialize;

use crate::kit::axis::{Axis, PlottedTrials};
use crate::kit::parts::PartsTable;
use crate::kit::{self, Head, Page, Script};

/// Everything the page shows. Field names are those the scripts read.
#[derive(Serialize)]
pub struct StudyPage<'a> {
    /// Main heading, usually the strategy's name.
    pub title: String,
    /// The line under the heading, usually the data.
    pub subtitle: String,
    /// Version and time of the program that made it.
    pub made: String,
    /// Whether the study runs, has ended or was interrupted.
    pub state: &'a str,
    /// Finished trials.
    pub n_trials: u64,
    /// Those with a score.
    pub n_valid: u64,
    /// Trials that were requested.
    pub asked: Option<u64>,
    /// Names of the objectives.
    pub objectives: &'a [String],
    /// Per objective, trials that were better than all before, and their score.
    pub improvements: Vec<Vec<(u64, f64)>>,
    /// Per objective, how many improvements there were before they were thinned.
    pub n_improvements: Vec<usize>,
    /// Size of the Pareto front, with several objectives.
    pub front: Option<usize>,
    /// The parameters that took more than one value.
    pub axes: Vec<Axis>,
    /// The trials that are drawn.
    #[serde(flatten)]
    pub plotted: PlottedTrials,
    /// Names of the metrics in the table.
    pub metrics: Vec<&'a str>,
    /// Per trial among the best, the metrics as text.
    pub metric_texts: Vec<Vec<String>>,
    /// How many trials the table lists at first.
    pub n_listed: usize,
    /// The verdict on the best trial in a line, where it was judged.
    pub verdict: Option<String>,
    /// Its figures by part of the data; empty where it was not judged.
    pub parts: PartsTable,
    /// That the best trial lies at the end of a range, in a sentence.
    pub edges: Option<String>,
    /// The first objective out of sample of each drawn trial, where it is known.
    pub unseen: Vec<Option<f64>>,
    /// Whether the winners hold up, as the sweep found it.
    pub holding: Option<&'a serde_json::Value>,
    /// What was run: names and values.
    pub setup: Vec<(&'a str, String)>,
    /// Parameters that were not searched, and their values.
    pub fixed: Vec<(String, String)>,
    /// Source text of the strategy file.
    pub source: &'a str,
}

/// The page as one self-contained HTML text.
pub fn html(study: &StudyPage<'_>) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(study)?;
    let script = Script { data: &data, charts: &kit::PARAMETER_CHARTS, parts: &SCRIPTS };
    let body =
        kit::drawn_body(&HEAD, include_str!("study/study.html"), " The best of many trials is partly luck.");
    let style = include_str!("study/study.css");
    Ok(Page { title: &study.title, style, body: &body, script: Some(script) }.html())
}

/// The sections of the page, and the choice of an objective.
const HEAD: Head<'_> = Head {
    sections: &[
        ("holding", "Holding up"),
        ("history", "History"),
        ("tradeoff", "Trade-off"),
        ("unseen", "Out of sample"),
        ("importance", "Importance"),
        ("slices", "Slices"),
        ("heat", "Heat map"),
        ("parallel", "Combinations"),
        ("trials", "Trials"),
        ("setup", "Setup"),
    ],
    choice: ("objective", "Objective"),
};

/// The scripts of the page, in an order in which each uses only earlier ones at load time.
const SCRIPTS: [&str; 7] = [
    include_str!("study/model.js"),
    include_str!("study/scatter.js"),
    include_str!("study/combination.js"),
    include_str!("study/trials.js"),
    include_str!("study/holding.js"),
    include_str!("study/heat.js"),
    include_str!("study/main.js"),
];
