//! `tidemill study compare`: studies side by side, in the terminal and as a page.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use tidemill_lab::number;
use tidemill_lab::parts::Parts;
use tidemill_lab::stored::StoredStudy;
use tidemill_lab::stored::compare::{ComparedStudy, Comparison};
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
    let is_judged =
        |study: &&ComparedStudy| study.judged.as_ref().is_some_and(|winner| winner.parts.is_some());
    for study in comparison.studies.iter().filter(|study| !is_judged(study) && study.valid > 0) {
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
    let mut verdicts = Table::new(["study", "trials", "valid", "verdict"]);
    for study in &comparison.studies {
        let counts = [study.trials, study.valid].map(number::count);
        let [trials, valid] = counts;
        verdicts.row([study.study.clone(), trials, valid, verdict(study).to_owned()]);
    }
    format!(
        "{}\n{settings}\nBest trials\n\n{}\nBest {} in sample after so many trials\n\n{}",
        verdicts.render(4, screen),
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

/// The best trial of each study, a row for each part of the data.
fn results(comparison: &Comparison) -> CompareTable {
    let judged = comparison.studies.iter().filter_map(|study| study.judged.as_ref()?.parts.as_ref());
    // Figures that some study has, in their order.
    let mut labels: Vec<String> = Vec::new();
    for row in judged.flat_map(Parts::summary).filter(|row| !row.label.starts_with("Return of ")) {
        if !labels.contains(&row.label) {
            labels.push(row.label);
        }
    }
    let mut table = CompareTable::default();
    table.header = ["study", "part", "trial", "objective"].map(Into::into).into();
    table.header.extend(labels.iter().map(|label| match label.as_str() {
        "Excess Return [%]" => "beyond benchmark [%]".to_owned(),
        label => label.to_owned(),
    }));
    for study in &comparison.studies {
        let Some((winner, parts)) = study.judged.as_ref().and_then(|it| Some((it, it.parts.as_ref()?)))
        else {
            let (trial, best) = study.best.unzip();
            let trial = trial.map_or_else(|| "–".into(), number::count);
            let mut cells = vec![study.study.clone(), "in sample".into(), trial, number::short(best)];
            cells.resize(table.header.len(), "–".into());
            table.rows.push(cells);
            continue;
        };
        let figures = parts.summary();
        for (at, part) in parts.shown().into_iter().enumerate() {
            let mut cells =
                vec![String::new(), part.part.label().into(), String::new(), number::short(part.objective)];
            if at == 0 {
                cells[0].clone_from(&study.study);
                cells[2] = number::count(winner.trial);
            }
            cells.extend(labels.iter().map(|label| {
                let row = figures.iter().find(|row| row.label == *label);
                number::metric(label, row.and_then(|row| row.values[at]))
            }));
            table.rows.push(cells);
        }
    }
    table
}

/// The verdict on the winner of a study.
fn verdict(study: &ComparedStudy) -> &str {
    study.judged.as_ref().map_or("not judged", |winner| winner.headline.as_str())
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
    let names: Vec<&str> = studies.iter().map(|study| study.study.as_str()).collect();
    ComparePage {
        title: names.join(", "),
        subtitle: format!("Tidemill {}", env!("CARGO_PKG_VERSION")),
        warnings: comparison.warnings.clone(),
        verdicts: studies.iter().map(|study| (study.study.clone(), verdict(study).to_owned())).collect(),
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
