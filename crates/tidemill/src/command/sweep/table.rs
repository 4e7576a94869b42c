//! The table of the best trials of a sweep: its columns, how much each matters, its cells.

use tidemill_backtest::segment::Role;
use tidemill_backtest::{METRICS, Metric};
use tidemill_lab::score::ScoredTrial;
use tidemill_lab::{Experiment, SweepReport, number};
use tidemill_search::Value;

use crate::table::{Table, TextColumn};
use crate::verdict_text::drop_text;

/// Metrics shown besides the objective, each with how much it matters on a narrow screen.
const SHOWN: [(Metric, u8); 6] = [
    (Metric::Sharpe, 7),
    (Metric::TotalReturn, 8),
    (Metric::MaxDrawdown, 8),
    (Metric::Trades, 7),
    (Metric::WinRate, 3),
    (Metric::ProfitFactor, 3),
];

/// Most parameters shown unless they are chosen.
pub const MOST_PARAMS: usize = 16;

/// Parameters that matter more than the others: a strategy names its most important ones first.
const FIRST_PARAMS: usize = 4;

type Cell<'a> = Box<dyn Fn(&ScoredTrial) -> String + 'a>;

/// The table without rows, for the names of its columns.
pub fn empty(experiment: &Experiment) -> Table {
    Table::new(columns(experiment, None).into_iter().map(|(column, _)| column))
}

/// The best trials.
pub fn filled(experiment: &Experiment, report: &SweepReport) -> Table {
    let (columns, cells): (Vec<_>, Vec<_>) = columns(experiment, Some(report)).into_iter().unzip();
    let mut table = Table::new(columns);
    for scored in &report.best {
        table.row(cells.iter().map(|cell| cell(scored)));
    }
    table
}

/// All columns. Their names follow from the experiment alone, so that a name can be refused before the sweep runs.
fn columns<'a>(experiment: &'a Experiment, report: Option<&'a SweepReport>) -> Vec<(TextColumn, Cell<'a>)> {
    let strategy = &experiment.strategy;
    let mut all: Vec<(TextColumn, Cell<'a>)> = Vec::new();
    let mut add = |column: TextColumn, cell: Cell<'a>| all.push((column, cell));
    add(TextColumn::new("#").named("trial").keep(10), Box::new(|scored| scored.trial.number.to_string()));
    // A plain metric as objective is shown under its name; of one segment it is not shown a second time.
    let texts = strategy.objective_texts();
    let plain = |text: &str| METRICS.iter().find(|(_, name, _)| *name == text).map(|(metric, ..)| *metric);
    let titles: Vec<String> = match texts[..] {
        [text] if plain(text).is_none() => vec!["objective".into()],
        _ => texts.iter().map(|text| (*text).to_string()).collect(),
    };
    for (at, title) in titles.iter().enumerate() {
        let cell = move |scored: &ScoredTrial| number::short(scored.scores[at].ok());
        add(TextColumn::new(title.as_str()).keep(10), Box::new(cell));
    }
    let is_several = report.is_some_and(|report| {
        report.segments.iter().filter(|segment| segment.role == Role::Train).count() > 1
    });
    let is_ambiguous = report.is_some_and(|report| report.best.iter().any(has_ambiguous));
    let shown = SHOWN.into_iter().chain([(Metric::Ambiguous, if is_ambiguous { 2 } else { 0 })]);
    let hidden = METRICS.iter().map(|(metric, ..)| (*metric, 0));
    let mut is_added = [false; METRICS.len()];
    for (metric, keep) in shown.chain(hidden) {
        if std::mem::replace(&mut is_added[metric as usize], true) {
            continue;
        }
        let Some((_, name, label)) = METRICS.iter().find(|(of, ..)| *of == metric) else { continue };
        let (name, label) = (*name, *label);
        let column = match texts.iter().any(|text| plain(text) == Some(metric)) {
            true => {
                TextColumn::new(label).named(format!("{name}_pooled")).keep(if is_several { keep } else { 0 })
            }
            false => TextColumn::new(label).named(name).keep(keep),
        };
        add(column, Box::new(move |scored| number::metric(label, scored.train.get(metric))));
    }
    if experiment.layout.split.is_some() || experiment.layout.cut_ms.is_some() {
        let score = |scored: &ScoredTrial, at: usize| {
            scored.test.as_ref().and_then(|(scores, _)| scores.get(at)?.ok())
        };
        for (at, title) in titles.iter().enumerate() {
            let column = TextColumn::new(format!("OOS {title}")).keep(9);
            add(column, Box::new(move |scored| number::short(score(scored, at))));
        }
        let metric = |scored: &ScoredTrial, metric: Metric| scored.test.as_ref()?.1.get(metric);
        let drop = move |scored: &ScoredTrial| drop_text(scored.objective(), score(scored, 0));
        add(TextColumn::new("drop [%]").named("oos_drop").keep(5), Box::new(drop));
        let held = move |scored: &ScoredTrial| number::metric("[%]", metric(scored, Metric::TotalReturn));
        add(TextColumn::new("OOS Return [%]").keep(5), Box::new(held));
        let trades = move |scored: &ScoredTrial| number::short(metric(scored, Metric::Trades));
        add(TextColumn::new("OOS Trades").keep(4), Box::new(trades));
    }
    if experiment.layout.holdout_from_ms.is_some() {
        let value = move |scored: &ScoredTrial| {
            let winners = &report?.verdict.as_ref()?.winners;
            winners.iter().find(|winner| winner.trial == scored.trial.number)?.objective.holdout
        };
        let column = TextColumn::new(format!("holdout {}", titles[0])).keep(9);
        add(column, Box::new(move |scored| number::short(value(scored))));
        let drop = move |scored: &ScoredTrial| drop_text(scored.objective(), value(scored));
        add(TextColumn::new("drop [%]").named("holdout_drop").keep(4), Box::new(drop));
    }
    let mut n_free = 0;
    for (at, param) in strategy.params.iter().enumerate() {
        n_free += usize::from(param.fixed.is_none());
        let keep = match n_free {
            _ if param.fixed.is_some() => 0,
            n if n <= FIRST_PARAMS => 6,
            n if n <= MOST_PARAMS => 4,
            _ => 0,
        };
        let cell = move |scored: &ScoredTrial| match param.domain.decode(scored.trial.row[at]) {
            None => "·".into(),
            Some(Value::Float(value)) => number::short(Some(value)),
            Some(value) => value.to_string(),
        };
        add(TextColumn::new(param.name.as_str()).named(param.name.as_str()).keep(keep), Box::new(cell));
    }
    all
}

fn has_ambiguous(scored: &ScoredTrial) -> bool {
    scored.train.get(Metric::Ambiguous).is_some_and(|count| count > 0.0)
}
