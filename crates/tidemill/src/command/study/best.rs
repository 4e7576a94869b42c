//! `tidemill study best`: the best trial in full, or the best few.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::text;
use crate::exit::ExitCode;
use crate::parts_text;
use crate::table::{ColumnArgs, Display, Screen, Table};
use tidemill_lab::StudyConfig;
use tidemill_lab::number;
use tidemill_lab::stored::reopen::backtest_command;
use tidemill_lab::stored::rows::{Row, fetch};
use tidemill_lab::stored::survey::Survey;
use tidemill_lab::verdict;

/// Trials of the front that are shown unless a number is given.
const FRONT_SHOWN: usize = 10;

#[derive(Args)]
#[command(after_help = "Examples:
  tidemill study best runs/ema
  tidemill study best runs/ema --top 20
  tidemill study best runs/ema --json | jq '.best[0].parameters'

With several objectives it prints the trials that no other trial beats in every objective.")]
pub struct BestArgs {
    /// The study folder.
    dir: PathBuf,
    /// Number of trials [default: 1, or 10 with several objectives].
    #[arg(long, value_name = "K")]
    top: Option<usize>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &BestArgs, display: &Display) -> Result<ExitCode> {
    let folder = super::open(&args.dir)?;
    let config = StudyConfig::read(folder.header());
    let survey = Survey::new(&folder, &config)?;
    if survey.n_trials == 0 {
        bail!("{} has no finished trial yet", args.dir.display());
    }
    let invalid = super::invalid(&folder, &config, &survey)?;
    let keep = args.top.unwrap_or(if survey.front.is_some() { FRONT_SHOWN } else { 1 });
    let best = survey.best(keep);
    let rows = fetch(&folder, &survey, &best.iter().copied().collect())?;
    let rows = rows.of(&best);
    let names = config.objective_names(survey.n_objectives());
    let holding = verdict::store::read(&args.dir, survey.n_trials)?;
    let winners = holding.as_ref().map_or_else(Vec::new, verdict::store::winners);
    let judged = |row: &Row| winners.iter().find(|winner| winner.trial == row.trial);
    let mut out = std::io::stdout().lock();
    if args.json {
        let document = json!({
            "study": args.dir,
            "objectives": names,
            "trials": survey.n_trials,
            "front": survey.front.as_ref().map(|front| front.members().len()),
            "best": rows.iter().map(|row| {
                let mut document = row.json(&survey);
                document["command"] = json!(backtest_command(&config, &args.dir, row.trial));
                if let Some(winner) = judged(row) {
                    document["verdict"] = json!(winner.headline);
                    document["parts"] = json!(winner.parts);
                }
                document
            }).collect::<Vec<serde_json::Value>>(),
            "invalid": invalid,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&document)?)?;
    } else if survey.n_valid == 0 {
        write!(out, "{}", super::why_invalid(invalid.as_ref()))?;
    } else if let ([row], None) = (&rows[..], &survey.front) {
        if let Some(winner) = judged(row) {
            writeln!(out, "{}\n", winner.headline)?;
            if let Some(parts) = &winner.parts {
                let title = format!("trial {}", winner.trial);
                writeln!(out, "{}", parts_text::text(&title, parts, &display.screen))?;
            }
        }
        write!(out, "{}", in_full(&survey, &names, row, &display.screen))?;
        out.flush()?;
        if let Some(command) = backtest_command(&config, &args.dir, row.trial) {
            eprintln!("\nits trades, its report:\n  {command}");
        }
    } else {
        write!(out, "{}", text::trials(&survey, &names, &rows, &args.columns, &display.screen)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything about one trial, a line each.
fn in_full(survey: &Survey, objective_names: &[String], row: &Row, screen: &Screen) -> String {
    let mut table = Table::new(["trial".to_string(), number::count(row.trial)]);
    for (name, value) in objective_names.iter().zip(&row.objectives) {
        table.row([name.clone(), text::score(*value)]);
    }
    let mut params = Table::new(["parameter", "value"]);
    for (axis, value) in survey.axes.0.iter().zip(&row.params) {
        let value = value.as_ref().map_or_else(|| "not active".into(), ToString::to_string);
        params.row([axis.name.clone(), value]);
    }
    let mut out = format!("{}\n{}", table.render(1, screen), params.render(1, screen));
    if !row.metrics.is_empty() {
        let mut metrics = Table::new(["metric", "in sample"]);
        for (name, value) in survey.metric_names.iter().zip(&row.metrics) {
            let label = text::label(name);
            metrics.row([label.to_string(), number::metric(label, *value)]);
        }
        out += &format!("\n{}", metrics.render(1, screen));
    }
    out
}
