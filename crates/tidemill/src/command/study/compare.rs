//! `tidemill study compare`: studies side by side, in the terminal and as a page.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use tidemill_lab::number;
use tidemill_lab::stored::StoredStudy;
use tidemill_lab::stored::compare::{ComparedStudy, Comparison, ComparisonTable};
use tidemill_page::compare::{ComparePage, CompareTable, ConvergenceCurve};

use crate::exit::ExitCode;
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
    let settings = comparison.settings_table();
    let settings = match settings.rows.is_empty() {
        true => "The studies do not differ in any setting.\n".to_owned(),
        false => format!("What differs\n\n{}", rendered(settings, usize::MAX, screen)),
    };
    let mut verdicts = Table::new(["study", "trials", "valid", "verdict"]);
    for study in &comparison.studies {
        let [trials, valid] = [study.trials, study.valid].map(number::count);
        verdicts.row([study.study.clone(), trials, valid, study.verdict().to_owned()]);
    }
    format!(
        "{}\n{settings}\nBest trials\n\n{}\nBest {} in sample after so many trials\n\n{}",
        verdicts.render(4, screen),
        rendered(comparison.results_table(), 2, screen),
        comparison.studies[0].objective,
        rendered(comparison.convergence_table(), 1, screen)
    )
}

/// A table with its first `n_texts` columns at the left.
fn rendered(of: ComparisonTable, n_texts: usize, screen: &Screen) -> String {
    let n_texts = n_texts.min(of.header.len());
    let mut table = Table::new(of.header);
    of.rows.into_iter().for_each(|row| table.row(row));
    table.render(n_texts, screen)
}

fn page(comparison: &Comparison) -> ComparePage {
    let drawn = |of: ComparisonTable| CompareTable { header: of.header, rows: of.rows };
    let studies = &comparison.studies;
    let names: Vec<&str> = studies.iter().map(|study| study.study.as_str()).collect();
    ComparePage {
        title: names.join(", "),
        subtitle: format!("Tidemill {}", env!("CARGO_PKG_VERSION")),
        warnings: comparison.warnings.clone(),
        verdicts: studies.iter().map(|study| (study.study.clone(), study.verdict().to_owned())).collect(),
        results: drawn(comparison.results_table()),
        settings: drawn(comparison.settings_table()),
        objective: studies[0].objective.clone(),
        curves: studies
            .iter()
            .map(|study| ConvergenceCurve {
                name: study.study.clone(),
                n_trials: study.trials,
                improvements: study.improvements.clone(),
            })
            .collect(),
        convergence: drawn(comparison.convergence_table()),
    }
}
