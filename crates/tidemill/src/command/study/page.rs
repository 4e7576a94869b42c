//! The HTML page of one study: a single file that opens offline and fetches nothing.
//!
//! Rust decides what goes into the file: the best few hundred trials, an even sample of all others, the improvements, the shares
//! of the parameters. The scripts in `page/` decide how it looks. Style sheet, number formats and canvas are those of the report
//! of a back-test, so that both pages look and behave alike.
//!
//! Text of strangers travels as JSON without a character that could end the script element, and reaches the document only as text
//! nodes; a content-security policy inside the page forbids every network access besides.

use anyhow::Result;
use serde::Serialize;

use super::show::{View, improvements, trials_line};
use super::text;
use tidemill_lab::number;
use tidemill_lab::stored::axis::Axis;
use tidemill_lab::stored::rows::Rows;
use tidemill_lab::stored::survey::Survey;

/// The best trials that are drawn one by one.
const BEST_DRAWN: usize = 300;

/// Most trials that a page holds in full, however many are asked for.
const MOST_DRAWN: usize = 2000;

/// About how many numbers the sample of all trials may have.
const SAMPLE_NUMBERS: u64 = 300_000;

/// The trials that a page draws.
pub struct Drawn {
    /// The best, best first.
    best: Vec<u64>,
    /// Some of all.
    sample: Vec<u64>,
}

impl Drawn {
    /// Chooses from a study, of which `top` trials are to be listed.
    pub fn choose(survey: &Survey, top: usize) -> Self {
        let per_trial = (survey.axes.0.len() + survey.n_objectives()) as u64;
        let n_sample = (SAMPLE_NUMBERS / per_trial).clamp(1000, 5000);
        Self { best: survey.best(top.clamp(BEST_DRAWN, MOST_DRAWN)), sample: survey.sample(n_sample) }
    }

    /// What is drawn of them; `rows` must have all.
    pub fn plotted(&self, survey: &Survey, rows: &Rows) -> Plotted {
        let is_best: std::collections::BTreeSet<u64> = self.best.iter().copied().collect();
        let others = self.sample.iter().filter(|trial| !is_best.contains(trial));
        let trials: Vec<u64> = self.best.iter().chain(others).copied().collect();
        let all = rows.of(&trials);
        let varied = (0..survey.axes.0.len()).filter(|at| survey.axes.0[*at].is_varied());
        let values = |param_idx: usize| all.iter().map(|row| rounded(row.encoded[param_idx])).collect();
        let scores = |at: usize| all.iter().map(|row| rounded(row.objectives[at])).collect();
        Plotted {
            trials: all.iter().map(|row| row.trial).collect(),
            n_best: rows.of(&self.best).len(),
            scores: (0..survey.n_objectives()).map(scores).collect(),
            values: varied.map(values).collect(),
        }
    }

    /// All of them.
    pub fn trials(&self) -> impl Iterator<Item = u64> {
        self.best.iter().chain(&self.sample).copied()
    }
}

/// Trials as numbers to draw.
#[derive(Serialize)]
pub struct Plotted {
    /// The best trials, best first, then the sample.
    pub trials: Vec<u64>,
    /// How many of those are the best ones.
    pub n_best: usize,
    /// Per objective, one value per trial.
    pub scores: Vec<Vec<Option<f64>>>,
    /// Per parameter that was varied, one value per trial.
    pub values: Vec<Vec<Option<f64>>>,
}

#[derive(Serialize)]
struct Payload<'a> {
    title: String,
    subtitle: String,
    made: String,
    state: &'static str,
    n_trials: u64,
    n_valid: u64,
    asked: Option<u64>,
    objectives: &'a [String],
    improvements: Vec<Vec<(u64, f64)>>,
    n_improvements: Vec<usize>,
    /// Size of the Pareto front, with several objectives.
    front: Option<usize>,
    /// The parameters that took more than one value.
    axes: Vec<SharedAxis<'a>>,
    #[serde(flatten)]
    plotted: Plotted,
    /// Names of the metrics in the table.
    metrics: Vec<&'a str>,
    /// Per trial among the best, the metrics as text.
    metric_texts: Vec<Vec<String>>,
    n_listed: usize,
    /// Whether the winners hold up, as the sweep found it.
    holding: Option<&'a serde_json::Value>,
    setup: Vec<(&'static str, String)>,
    fixed: Vec<(String, String)>,
    source: &'a str,
}

#[derive(Serialize)]
struct SharedAxis<'a> {
    #[serde(flatten)]
    axis: &'a Axis,
    share: f64,
}

/// The page as one self-contained HTML text.
pub fn html(view: &View<'_>, drawn: &Drawn, rows: &Rows) -> Result<String> {
    let data = escape_json(&serde_json::to_string(&payload(view, drawn, rows))?);
    let title = escape_text(&title(view));
    let mut page = String::with_capacity(data.len() + 60_000);
    // One pass over the template, so that a placeholder inside inserted text is never expanded.
    for (at, piece) in include_str!("page/page.html").split("%%").enumerate() {
        match (at % 2, piece) {
            (0, text) => page.push_str(text),
            (_, "title") => page.push_str(&title),
            (_, "style") => STYLES.iter().for_each(|style| page.push_str(style)),
            (_, "data") => page.push_str(&data),
            (_, _) => SCRIPTS.iter().for_each(|script| page.push_str(script)),
        }
    }
    Ok(page)
}

/// The style sheet of reports, and what a study adds to it.
const STYLES: [&str; 2] =
    [include_str!("../../../../backtest/src/report/page/page.css"), include_str!("page/study.css")];

/// The scripts of the page, in an order in which each uses only earlier ones at load time; three of them are those of reports.
const SCRIPTS: [&str; 9] = [
    include_str!("../../../../backtest/src/report/page/format.js"),
    include_str!("../../../../backtest/src/report/page/canvas.js"),
    include_str!("page/model.js"),
    include_str!("page/scatter.js"),
    include_str!("page/parallel.js"),
    include_str!("page/trials.js"),
    include_str!("page/holding.js"),
    include_str!("../../../../backtest/src/report/page/theme.js"),
    include_str!("page/main.js"),
];

fn title(view: &View<'_>) -> String {
    view.config.strategy.name.clone().unwrap_or_else(|| view.dir.clone())
}

fn payload<'a>(view: &'a View<'a>, drawn: &Drawn, rows: &Rows) -> Payload<'a> {
    let (config, survey) = (view.config, view.survey);
    let best = rows.of(&drawn.best);
    let shown = text::shown_metrics(survey, &best);
    let label = |place: &usize| text::label(&survey.metric_names[*place]);
    let mut setup = vec![("study", view.dir.clone())];
    setup.extend(config.lines().into_iter().filter(|(name, _)| *name != "fixed"));
    setup.push(("trials", trials_line(view)));
    setup.push(("state", view.state.text()));
    let varied = || survey.axes.0.iter().enumerate().filter(|(_, axis)| axis.is_varied());
    Payload {
        title: title(view),
        subtitle: config.data_text().unwrap_or_default(),
        made: format!(
            "Tidemill {} · {}",
            env!("CARGO_PKG_VERSION"),
            jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC")
        ),
        state: view.state.name(),
        n_trials: survey.n_trials,
        n_valid: survey.n_valid,
        asked: config.sweep.trials,
        objectives: &view.objective_names,
        improvements: (0..survey.n_objectives()).map(|at| improvements(survey, at)).collect(),
        n_improvements: survey.improvements.iter().map(Vec::len).collect(),
        front: survey.front.as_ref().map(|front| front.members().len()),
        axes: varied().map(|(at, axis)| SharedAxis { axis, share: view.importance[at] }).collect(),
        plotted: drawn.plotted(survey, rows),
        metrics: shown.iter().map(label).collect(),
        metric_texts: best
            .iter()
            .map(|row| shown.iter().map(|place| number::metric(label(place), row.metrics[*place])).collect())
            .collect(),
        n_listed: view.top.len(),
        holding: view.holding.as_ref(),
        setup,
        fixed: config.fixed_texts(),
        source: config.strategy.source.as_deref().unwrap_or_default(),
    }
}

/// A number in as many digits as a screen can tell apart; `None` where there is none.
fn rounded(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    // Whole numbers are written out as they are.
    if value.fract() == 0.0 { Some(value) } else { format!("{value:.6e}").parse().ok() }
}

/// JSON that may stand inside a `<script>` element: no character of it can end the element or start a comment.
fn escape_json(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// Text that may stand between HTML tags.
fn escape_text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_data_can_leave_the_script_element() {
        let text = escape_json(r#"["</script><!-- & -->"]"#);
        assert!(!text.contains(['<', '>', '&']));
        assert_eq!(serde_json::from_str::<[String; 1]>(&text).unwrap(), ["</script><!-- & -->"]);
    }

    #[test]
    fn numbers_are_rounded_but_whole_ones_are_kept() {
        assert_eq!(rounded(0.123_456_789), Some(0.123_456_8));
        assert_eq!(rounded(123_456_789.0), Some(123_456_789.0));
        assert_eq!(rounded(f64::NAN), None);
    }
}
