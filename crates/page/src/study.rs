//! The page of one study: its trials, what they say about the parameters, and whether the winners hold up.
//!
//! The caller chooses what goes into the file ([`StudyPage`]): the best few hundred trials, an even sample of all others, the improvements, the
//! shares of the parameters. The scripts in `study/` decide how it looks.

use serde::Serialize;

use crate::kit::{self, Page, Script};

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
    /// Trials that were wanted.
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
    /// Whether the winners hold up, as the sweep found it.
    pub holding: Option<&'a serde_json::Value>,
    /// What was run: names and values.
    pub setup: Vec<(&'a str, String)>,
    /// Parameters that were not searched, and their values.
    pub fixed: Vec<(String, String)>,
    /// Source text of the strategy file.
    pub source: &'a str,
}

/// Trials as numbers to draw.
#[derive(Serialize)]
pub struct PlottedTrials {
    /// The best trials, best first, then the sample.
    pub trials: Vec<u64>,
    /// How many of those are the best ones.
    pub n_best: usize,
    /// Per objective, one value per trial.
    pub scores: Vec<Vec<Option<f64>>>,
    /// Per parameter that was varied, one value per trial.
    pub values: Vec<Vec<Option<f64>>>,
}

/// A parameter and the values it took.
#[derive(Serialize)]
pub struct Axis {
    /// Name of the parameter.
    pub name: String,
    /// What kind of values, and from where to where.
    #[serde(flatten)]
    pub values: AxisValues,
    /// Its share in what tells good trials from others.
    pub share: f64,
}

/// Values of one kind.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum AxisValues {
    /// Numbers.
    Number {
        /// The lowest.
        low: f64,
        /// The highest.
        high: f64,
        /// Whether all are whole numbers.
        whole: bool,
        /// Whether equal ratios are equally far apart.
        log: bool,
    },
    /// Off and on.
    Switch {
        /// Whether it was off, and on.
        seen: [bool; 2],
    },
    /// Names; the values are their places.
    Names {
        /// The names.
        options: Vec<String>,
    },
}

/// The page as one self-contained HTML text.
pub fn html(study: &StudyPage<'_>) -> Result<String, serde_json::Error> {
    let data = serde_json::to_string(study)?;
    let script = Script { data: &data, charts: &kit::PARALLEL_COORDINATES, parts: &SCRIPTS };
    let (style, body) = (include_str!("study/study.css"), include_str!("study/study.html"));
    Ok(Page { title: &study.title, style, body, script: Some(script) }.html())
}

/// The scripts of the page, in an order in which each uses only earlier ones at load time.
const SCRIPTS: [&str; 6] = [
    include_str!("study/model.js"),
    include_str!("study/scatter.js"),
    include_str!("study/combination.js"),
    include_str!("study/trials.js"),
    include_str!("study/holding.js"),
    include_str!("study/main.js"),
];
