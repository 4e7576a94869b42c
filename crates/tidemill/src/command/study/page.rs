//! What the page of a study shows: the best few hundred trials, an even sample of all others, the improvements, the shares of the
//! parameters.

use anyhow::Result;
use tidemill_lab::number;
use tidemill_lab::stored::axis::{self, Values};
use tidemill_lab::stored::rows::Rows;
use tidemill_lab::stored::survey::Survey;
use tidemill_lab::test_column::TEST_OBJECTIVE;
use tidemill_lab::verdict::store::winners;
use tidemill_page::kit::axis::{Axis, AxisValues, PlottedTrials};
use tidemill_page::kit::parts::PartsTable;
use tidemill_page::study::StudyPage;

use super::show::{StudyView, improvements, trials_line};
use super::text;
use crate::parts_text;

/// The best trials that are drawn one by one.
const BEST_DRAWN: usize = 300;

/// Most trials that a page holds in full, whatever `--top` is.
const MOST_DRAWN: usize = 2000;

/// About how many numbers the sample of all trials may have.
const SAMPLE_NUMBERS: u64 = 300_000;

/// The trials that a page draws.
pub struct DrawnTrials {
    /// The best, best first.
    best: Vec<u64>,
    /// Some of all.
    sample: Vec<u64>,
}

impl DrawnTrials {
    /// Chooses from a study, of which `top` trials are to be listed.
    pub fn choose(survey: &Survey, top: usize) -> Self {
        let per_trial = (survey.axes.0.len() + survey.n_objectives()) as u64;
        let n_sample = (SAMPLE_NUMBERS / per_trial).clamp(1000, 5000);
        Self { best: survey.best(top.clamp(BEST_DRAWN, MOST_DRAWN)), sample: survey.sample(n_sample) }
    }

    /// What is drawn of them; `rows` must have all.
    pub fn plotted(&self, survey: &Survey, rows: &Rows) -> PlottedTrials {
        let is_best: std::collections::BTreeSet<u64> = self.best.iter().copied().collect();
        let others = self.sample.iter().filter(|trial| !is_best.contains(trial));
        let trials: Vec<u64> = self.best.iter().chain(others).copied().collect();
        let all = rows.of(&trials);
        let varied = (0..survey.axes.0.len()).filter(|at| survey.axes.0[*at].is_varied());
        let values = |param_idx: usize| all.iter().map(|row| rounded(row.encoded[param_idx])).collect();
        let scores = |at: usize| all.iter().map(|row| rounded(row.objectives[at])).collect();
        PlottedTrials {
            trials: all.iter().map(|row| row.trial).collect(),
            n_best: rows.of(&self.best).len(),
            scores: (0..survey.n_objectives()).map(scores).collect(),
            values: varied.map(values).collect(),
        }
    }

    /// The numbers of all drawn trials.
    pub fn trials(&self) -> impl Iterator<Item = u64> {
        self.best.iter().chain(&self.sample).copied()
    }
}

/// The parameters that were varied, as pages draw them.
pub fn drawn_axes(survey: &Survey, importance: &[f64]) -> Vec<Axis> {
    let drawn = |(axis, importance): (&axis::Axis, &f64)| {
        let values = match &axis.values {
            &Values::Number { low, high, whole: is_whole, log: is_log } => {
                AxisValues::Number { low, high, is_whole, is_log }
            }
            Values::Switch { .. } => AxisValues::Names { options: vec!["off".into(), "on".into()] },
            Values::Names { options } => AxisValues::Names { options: options.iter().cloned().collect() },
        };
        Axis { name: axis.name.clone(), importance: *importance, values }
    };
    survey.axes.0.iter().zip(importance).filter(|(axis, _)| axis.is_varied()).map(drawn).collect()
}

/// The page as one self-contained HTML text.
pub fn html(view: &StudyView<'_>, drawn: &DrawnTrials, rows: &Rows) -> Result<String> {
    Ok(tidemill_page::study::html(&study(view, drawn, rows))?)
}

fn study<'a>(view: &'a StudyView<'a>, drawn: &DrawnTrials, rows: &Rows) -> StudyPage<'a> {
    let (config, survey) = (view.config, view.survey);
    let best = rows.of(&drawn.best);
    let shown = text::shown_metrics(survey, &best);
    let label = |place: &usize| text::label(&survey.metric_names[*place]);
    let mut setup = vec![("study", view.dir.clone())];
    setup.extend(config.lines().into_iter().filter(|(name, _)| *name != "fixed"));
    setup.push(("trials", trials_line(view)));
    setup.push(("state", view.state.text()));
    let winner = view.holding.as_ref().and_then(|holding| winners(holding).into_iter().next());
    let parts = winner.as_ref().and_then(|winner| winner.parts.as_ref());
    let plotted = drawn.plotted(survey, rows);
    StudyPage {
        parts: parts.map_or_else(PartsTable::default, parts_text::page_table),
        verdict: winner.as_ref().map(|winner| winner.headline.clone()),
        edges: view.edges.clone(),
        unseen: unseen(view, rows, &plotted.trials),
        title: config.strategy.name.clone().unwrap_or_else(|| view.dir.clone()),
        subtitle: config.data_text().unwrap_or_default(),
        made: format!(
            "Tidemill {} · {}",
            env!("CARGO_PKG_VERSION"),
            jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M UTC")
        ),
        state: view.state.name(),
        n_trials: survey.n_trials,
        n_valid: survey.n_valid,
        asked: config.n_requested(),
        objectives: &view.objective_names,
        improvements: (0..survey.n_objectives()).map(|at| improvements(survey, at)).collect(),
        n_improvements: survey.improvements.iter().map(Vec::len).collect(),
        front: survey.front.as_ref().map(|front| front.members().len()),
        axes: drawn_axes(survey, view.importance),
        plotted,
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

/// The first objective out of sample of trials: where the study stored it, else that of the winners that were judged.
fn unseen(view: &StudyView<'_>, rows: &Rows, trials: &[u64]) -> Vec<Option<f64>> {
    let place = view.survey.metric_names.iter().position(|name| name == TEST_OBJECTIVE);
    if let Some(place) = place {
        return rows.of(trials).iter().map(|row| row.metrics[place].and_then(rounded)).collect();
    }
    let judged = view.holding.as_ref().map_or_else(Vec::new, winners);
    let of = |trial: &u64| {
        let winner = judged.iter().find(|winner| winner.trial == *trial)?;
        winner.parts.as_ref()?.out_of_sample.as_ref()?.objective
    };
    trials.iter().map(of).collect()
}

/// A number in as many digits as a screen can tell apart; `None` where there is none.
fn rounded(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    // Whole numbers are written out as they are.
    if value.fract() == 0.0 { Some(value) } else { format!("{value:.6e}").parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_but_whole_ones_are_kept() {
        assert_eq!(rounded(0.123_456_789), Some(0.123_456_8));
        assert_eq!(rounded(123_456_789.0), Some(123_456_789.0));
        assert_eq!(rounded(f64::NAN), None);
    }
}
