//! `tidemill study compare`: studies side by side, in the terminal and as a page.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tidemill_lab::number;
use tidemill_lab::stored::StoredStudy;
use tidemill_lab::stored::compare::{ComparedStudy, Comparison, PARTS};
use tidemill_page::compare::{ComparePage, CompareTable, ConvergenceCurve};

use crate::table::{Display, Screen, Table};

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study compare runs/tpe runs/auto
  tidemill study compare runs/* --html compare.html
  tidemill study compare runs/a runs/b --json | jq .settings")]
pub struct CompareArgs {
    /// The study folders, at least two.
    #[arg(required = true, num_args = 2.., value_name = "DIR")]
    dirs: Vec<PathBuf>,
    /// Also write a page, which opens without a network.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &CompareArgs, display: &Display) -> Result<ExitCode> {
    let studies: Vec<StoredStudy> = args.dirs.iter().map(|dir| super::stored(dir)).collect::<Result<_>>()?;
    let comparison = Comparison::new(&studies)?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&comparison)?)?;
    } else {
        write!(out, "{}", in_words(&comparison, &display.screen))?;
    }
    out.flush()?;
    comparison.warnings.iter().for_each(|warning| eprintln!("note: {warning}"));
    for study in comparison.studies.iter().filter(|study| study.judged.is_none() && study.valid > 0) {
        eprintln!("note: `tidemill study judge {}` judges its winners", study.study);
    }
    if let Some(path) = &args.html {
        let html = tidemill_page::compare::html(&page(&comparison));
        super::write_whole(path, |file| Ok(file.write_all(html.as_bytes())?))?;
        eprintln!("page: {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(comparison: &Comparison, screen: &Screen) -> String {
    let settings = settings(comparison);
    let settings = match settings.rows.is_empty() {
        true => "The studies do not differ in any setting.\n".to_owned(),
        false => format!("What differs\n\n{}", rendered(settings, usize::MAX, screen)),
    };
    format!(
        "{settings}\nBest trials\n\n{}\nBest {} in sample after so many trials\n\n{}",
        rendered(results(comparison), 2, screen),
        comparison.studies[0].objective,
        rendered(convergence(comparison), 1, screen)
    )
}

/// A table with its first `n_texts` columns at the left.
fn rendered(of: CompareTable, n_texts: usize, screen: &Screen) -> String {
    let n_texts = n_texts.min(of.header.len());
    let mut table = Table::new(of.header);
    of.rows.into_iter().for_each(|row| table.row(row));
    table.render(n_texts, screen)
}

fn settings(comparison: &Comparison) -> CompareTable {
    let names = comparison.studies.iter().map(|study| study.study.clone());
    let cell = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".into());
    let rows = comparison.settings.iter().map(|setting| {
        std::iter::once(setting.name.clone()).chain(setting.values.iter().map(cell)).collect()
    });
    CompareTable { header: std::iter::once("setting".into()).chain(names).collect(), rows: rows.collect() }
}

/// Parts of the data on which any study has a figure.
fn shown_parts(comparison: &Comparison) -> Vec<usize> {
    let has = |part: &usize| {
        let judged = comparison.studies.iter().filter_map(|study| study.judged.as_ref());
        judged.into_iter().any(|winner| winner.objective[*part].or(winner.sharpe[*part]).is_some())
    };
    (0..PARTS.len()).filter(|part| *part == 0 || has(part)).collect()
}

fn results(comparison: &Comparison) -> CompareTable {
    let parts = shown_parts(comparison);
    let mut header: Vec<String> = ["study", "verdict", "trials", "valid", "trial"].map(Into::into).into();
    let is_sharpe = comparison.studies.iter().all(|study| study.objective == "sharpe");
    let objective = comparison.studies[0].objective.as_str();
    // Where the objective is the Sharpe ratio, it is not shown twice.
    let names = [Some(objective), (!is_sharpe).then_some("Sharpe"), Some("excess [%]")];
    for name in names.into_iter().flatten() {
        header.extend(parts.iter().map(|part| format!("{name} {}", PARTS[*part].1)));
    }
    let row = |study: &ComparedStudy| {
        let winner = study.judged.clone().unwrap_or_default();
        let is_judged = study.judged.is_some();
        let (trial, best) = study.best.unzip();
        let verdict = if is_judged { winner.grade.as_str() } else { "not judged" };
        let trial = if is_judged { Some(winner.trial) } else { trial };
        let mut cells = vec![
            study.study.clone(),
            verdict.to_owned(),
            number::count(study.trials),
            number::count(study.valid),
            trial.map_or_else(|| "–".into(), number::count),
        ];
        let in_sample = |part: &usize| best.filter(|_| *part == 0 && !is_judged);
        cells.extend(parts.iter().map(|part| number::short(winner.objective[*part].or(in_sample(part)))));
        if !is_sharpe {
            cells.extend(parts.iter().map(|part| number::short(winner.sharpe[*part])));
        }
        cells.extend(parts.iter().map(|part| number::metric("[%]", winner.excess_return[*part])));
        cells
    };
    CompareTable { header, rows: comparison.studies.iter().map(row).collect() }
}

fn convergence(comparison: &Comparison) -> CompareTable {
    let milestones = comparison.milestones();
    let header = std::iter::once("study".into()).chain(milestones.iter().map(|n| number::count(*n)));
    let row = |study: &ComparedStudy| {
        let values = milestones.iter().map(|n| number::short(study.best_after(*n)));
        std::iter::once(study.study.clone()).chain(values).collect()
    };
    CompareTable { header: header.collect(), rows: comparison.studies.iter().map(row).collect() }
}

fn page(comparison: &Comparison) -> ComparePage {
    let studies = &comparison.studies;
    let verdict = |study: &ComparedStudy| {
        study.judged.as_ref().map_or_else(|| "not judged".into(), |winner| winner.sentence.clone())
    };
    let names: Vec<&str> = studies.iter().map(|study| study.study.as_str()).collect();
    ComparePage {
        title: names.join(", "),
        subtitle: format!("Tidemill {}", env!("CARGO_PKG_VERSION")),
        warnings: comparison.warnings.clone(),
        verdicts: studies.iter().map(|study| (study.study.clone(), verdict(study))).collect(),
        results: results(comparison),
        settings: settings(comparison),
        objective: studies[0].objective.clone(),
        curves: studies
            .iter()
            .map(|study| ConvergenceCurve {
                name: study.study.clone(),
                n_trials: study.trials,
                improvements: study.improvements.clone(),
            })
            .collect(),
        convergence: convergence(comparison),
    }
}
