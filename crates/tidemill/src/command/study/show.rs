//! `tidemill study show`: the settings of a study, its best trials, convergence and importance.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::{page, text};
use crate::exit::ExitCode;
use crate::parts_text;
use crate::table::{ColumnArgs, Display, Screen};
use tidemill_lab::number;
use tidemill_lab::stored::rows::{Row, Rows, fetch_with_importance};
use tidemill_lab::stored::state::State;
use tidemill_lab::stored::survey::{Survey, thinned};
use tidemill_lab::verdict::store::winners;
use tidemill_lab::{InvalidCounts, StudyConfig, edge};

/// Most improvements in the JSON document and in the page.
const MAX_IMPROVEMENTS: usize = 1000;

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study show runs/ema
  tidemill study show runs/ema --top 30 --html ema.html
  tidemill study show runs/ema --json | jq .importance

Importance is the share of each parameter in what separates the best tenth of the trials from the others.")]
pub struct ShowArgs {
    /// The study folder.
    dir: PathBuf,
    /// Trials shown.
    #[arg(long, value_name = "K", default_value_t = 10)]
    top: usize,
    /// Also write a page with history, slices and parallel coordinates, which opens without a network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// All that is shown of one study.
pub struct StudyView<'a> {
    /// The study folder as it was named.
    pub dir: String,
    /// What was run.
    pub config: &'a StudyConfig,
    /// How far it is.
    pub state: State,
    /// A summary of all trials.
    pub survey: &'a Survey,
    /// Names of the objectives.
    pub objective_names: Vec<String>,
    /// The best trials, best first.
    pub top: Vec<&'a Row>,
    /// Per parameter, its share in what makes a trial good.
    pub importance: &'a [f64],
    /// Whether the winners hold up, as the sweep found it when it was complete.
    pub holding: Option<Value>,
    /// That the best trial lies at the end of a range, in a sentence.
    pub edges: Option<String>,
    /// Why no trial is valid, where none is and the study can tell.
    pub invalid: Option<InvalidCounts>,
}

pub fn run(args: &ShowArgs, display: &Display) -> Result<ExitCode> {
    look(&args.dir, args.top, args.html.is_some(), |view, drawn, rows| {
        let mut out = std::io::stdout().lock();
        if args.json {
            writeln!(out, "{}", serde_json::to_string_pretty(&document(view))?)?;
        } else {
            write!(out, "{}", in_words(view, &args.columns, &display.screen)?)?;
        }
        out.flush()?;
        if let (Some(path), Some(drawn)) = (&args.html, drawn) {
            let html = page::html(view, drawn, rows)?;
            super::write_whole(path, |file| Ok(file.write_all(html.as_bytes())?))?;
            eprintln!("page: {}", path.display());
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The study in the folder as a JSON document.
pub fn document_of(dir: &Path, top: usize) -> Result<Value> {
    look(dir, top, false, |view, _, _| Ok(document(view)))
}

/// The study in the folder as a page.
pub fn html_of(dir: &Path, top: usize) -> Result<String> {
    look(dir, top, true, |view, drawn, rows| {
        let drawn = drawn.context("no trials were drawn")?;
        page::html(view, drawn, rows)
    })
}

/// Looks at a study and hands on what is shown of it, with the trials of a page if one is drawn.
fn look<T>(
    dir: &Path,
    top: usize,
    is_drawn: bool,
    show: impl FnOnce(&StudyView<'_>, Option<&page::DrawnTrials>, &Rows) -> Result<T>,
) -> Result<T> {
    let folder = super::open(dir)?;
    let config = StudyConfig::read(folder.header());
    let survey = Survey::new(&folder, &config)?;
    if is_drawn && survey.n_trials == 0 {
        bail!("{} has no finished trial yet, so there is nothing to draw", dir.display());
    }
    let best = survey.best(top);
    let drawn = is_drawn.then(|| page::DrawnTrials::choose(&survey, top));
    let mut wanted: BTreeSet<u64> = best.iter().copied().collect();
    wanted.extend(drawn.iter().flat_map(page::DrawnTrials::trials));
    let (rows, importance) = fetch_with_importance(&folder, &survey, &wanted)?;
    let edges = match (best.first(), &survey.front, config.strategy(std::iter::empty())) {
        (Some(best), None, Ok(Some(strategy))) => {
            let best = rows.of(&[*best]);
            best.first().and_then(|row| edge::sentence(&edge::stored_range_ends(&strategy, &survey, row)))
        }
        _ => None,
    };
    let view = StudyView {
        edges,
        dir: dir.display().to_string(),
        state: State::of(dir, survey.n_trials, config.n_requested()),
        objective_names: config.objective_names(survey.n_objectives()),
        top: rows.of(&best),
        importance: &importance,
        holding: tidemill_lab::verdict::store::read(dir, survey.n_trials)?,
        invalid: super::invalid(&folder, &config, &survey)?,
        config: &config,
        survey: &survey,
    };
    show(&view, drawn.as_ref(), &rows)
}

/// The improvements of one objective, thinned to what is worth passing on.
pub fn improvements(survey: &Survey, objective_idx: usize) -> Vec<(u64, f64)> {
    let all = survey.improvements.get(objective_idx).map_or(&[][..], Vec::as_slice);
    thinned(all.len(), MAX_IMPROVEMENTS).map(|at| all[at]).collect()
}

/// How many trials there are, of how many, and how many are valid.
pub fn trials_line(view: &StudyView<'_>) -> String {
    let survey = view.survey;
    let asked = match view.config.n_requested() {
        Some(asked) if asked != survey.n_trials => format!(" of {}", number::count(asked)),
        _ => String::new(),
    };
    format!("{}{asked}, {} valid", number::count(survey.n_trials), number::count(survey.n_valid))
}

fn in_words(view: &StudyView<'_>, columns: &ColumnArgs, screen: &Screen) -> Result<String> {
    let survey = view.survey;
    let mut lines = vec![("study", view.dir.clone())];
    lines.extend(view.config.lines());
    lines.push(("trials", trials_line(view)));
    lines.push(("state", view.state.text()));
    let mut out: String =
        lines.iter().map(|(name, text)| format!("{name:<9}  {}\n", wrapped(text, screen))).collect();
    if survey.n_trials == 0 {
        return Ok(out + "\nNo trial is finished yet.\n");
    }
    if survey.n_valid == 0 {
        return Ok(out + "\n" + &super::why_invalid(view.invalid.as_ref()));
    }
    if let Some(winner) = view.holding.as_ref().and_then(|holding| winners(holding).into_iter().next()) {
        out += &format!("\n{}\n", winner.headline);
        let title = format!("trial {}", winner.trial);
        out += &winner
            .parts
            .map_or_else(String::new, |parts| format!("\n{}", parts_text::text(&title, &parts, screen)));
    }
    if let Some(sentence) = &view.edges {
        let room = screen.width.map_or(usize::MAX, |width| width.max(20));
        out += &format!("\n{}\n", tidemill_dash::terminal::wrapped(sentence, room).join("\n"));
    }
    if !view.top.is_empty() {
        let title = match &survey.front {
            Some(front) if front.members().len() > view.top.len() => {
                format!("Pareto front ({} of {} trials)", view.top.len(), front.members().len())
            }
            Some(_) => "Pareto front".to_string(),
            None if view.top.len() == 1 => "Best trial".to_string(),
            None => format!("Best {} trials", view.top.len()),
        };
        let trials = text::trials(survey, &view.objective_names, &view.top, columns, screen)?;
        out += &format!("\n{title}\n\n{trials}");
    }
    if let Some(holding) = &view.holding {
        out += &text::holding(holding, screen);
    }
    for (objective_idx, name) in view.objective_names.iter().enumerate() {
        let curve = text::convergence(&survey.improvements[objective_idx], survey.n_trials, screen);
        out += &format!("\nConvergence of {name}\n\n{curve}");
    }
    Ok(out + &format!("\nImportance of parameters\n\n{}", text::importance(survey, view.importance, screen)))
}

/// A list of settings in lines of bearable length, the second and further ones beneath the first.
fn wrapped(text: &str, screen: &Screen) -> String {
    // The names before it take eleven columns.
    let room = screen.width.map_or(100, |width| width.saturating_sub(11).clamp(20, 100));
    let mut lines = vec![String::new()];
    for item in text.split_inclusive(", ") {
        match lines.last_mut() {
            Some(line) if line.chars().count() + item.chars().count() <= room => line.push_str(item),
            _ => lines.push(item.to_owned()),
        }
    }
    lines.retain(|line| !line.is_empty());
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n           ")
}

fn document(view: &StudyView<'_>) -> Value {
    let (config, survey) = (view.config, view.survey);
    let convergence: Vec<Value> = view
        .objective_names
        .iter()
        .enumerate()
        .map(|(objective_idx, name)| {
            let steps: Vec<Value> = improvements(survey, objective_idx)
                .iter()
                .map(|(trial, best)| json!({ "trial": trial, "best": best }))
                .collect();
            json!({ "objective": name, "improvements": steps })
        })
        .collect();
    let importance: Vec<Value> = text::ranked(survey, view.importance)
        .iter()
        .map(|(name, share)| json!({ "parameter": name, "share": share }))
        .collect();
    let fixed: serde_json::Map<String, Value> =
        config.fixed_texts().into_iter().map(|(name, value)| (name, json!(value))).collect();
    json!({
        "study": view.dir,
        "state": view.state.name(),
        "process": view.state.process(),
        "strategy": config.strategy.name,
        "profile": config.strategy.profile,
        "data": config.data_text(),
        "objectives": view.objective_names,
        "sampler": config.sweep.sampler,
        "seed": config.seed,
        "batch": config.sweep.batch.map(|batch| batch.to_string()),
        "lag": config.sweep.lag.map(|lag| lag.to_string()),
        "enqueued": config.enqueued_text(),
        "fixed": fixed,
        "version": config.program,
        "semantics": config.semantics,
        "trials": survey.n_trials,
        "asked": config.n_requested(),
        "valid": survey.n_valid,
        "front": survey.front.as_ref().map(|front| front.members().len()),
        "best": view.top.iter().map(|row| row.json(survey)).collect::<Vec<Value>>(),
        "convergence": convergence,
        "importance": importance,
        "holding_up": view.holding,
        "invalid": view.invalid,
    })
}
