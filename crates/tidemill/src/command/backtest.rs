//! `tidemill backtest`: one parameter set, in full.

mod page;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_backtest::POOL_NOTE;
use tidemill_lab::{BacktestReport, Experiment, trades};
use tidemill_market::timestamp;
use tidemill_page::report::{PageLimits, ReportPage};

use crate::exit::ExitCode;
use crate::input::{DataSource, StrategyArgs, set_threads};
use crate::settings::Settings;
use crate::table::{Display, Screen, Table};
use crate::year;
use tidemill_lab::number;

/// Evaluate one parameter set: the defaults of the strategy, changed by --profile and --set, or a trial of a study.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill backtest ema-cross --data btc.parquet --set fast=12 --set slow=180
  tidemill backtest my.toml --data data/ --split 0.7 --report report.html --trades trades.csv
  tidemill backtest seller-exhaustion --data lcg.csv --profile reference --set use_stop_loss=true --json
  tidemill backtest --trial runs/ema:4711 --report report.html")]
pub struct BacktestArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    #[arg(required_unless_present = "trial")]
    strategy: Option<String>,
    /// Evaluate this trial of a study, with the strategy, data, parts, execution and parameters of the study. --data names the data if it has
    /// moved; it must hold the same bars.
    #[arg(long, value_name = "DIR:N", value_parser = parse_trial, conflicts_with_all = [
        "strategy", "set", "profile", "objective", "symbols", "resample", "timezone", "stamp", "from", "to", "split", "folds", "holdout", "embargo",
    ])]
    trial: Option<TrialName>,
    #[command(flatten)]
    options: StrategyArgs,
    #[command(flatten)]
    source: DataSource,
    /// Write the trades as CSV.
    #[arg(long, value_name = "FILE")]
    trades: Option<PathBuf>,
    /// Write equity, daily returns, exposure and benchmark of each day as Parquet or CSV, for QuantStats, pyfolio and the like.
    #[arg(long, value_name = "FILE")]
    equity: Option<PathBuf>,
    /// Write a self-contained HTML report.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON: metrics, segments, trades.
    #[arg(long)]
    json: bool,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
}

/// A trial of a study.
#[derive(Clone)]
pub(super) struct TrialName {
    pub(super) dir: PathBuf,
    pub(super) trial: u64,
}

pub(super) fn parse_trial(text: &str) -> Result<TrialName, String> {
    let named = text.rsplit_once(':').and_then(|(dir, trial)| Some((dir, trial.parse().ok()?)));
    match named {
        Some((dir, trial)) if !dir.is_empty() => Ok(TrialName { dir: dir.into(), trial }),
        _ => Err("write the study folder and the number of the trial, for example runs/ema:4711".into()),
    }
}

pub fn run(args: BacktestArgs, display: &Display) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    args.equity.as_deref().map(tidemill_market::check_output).transpose()?;
    let evaluation = match &args.trial {
        Some(TrialName { dir, trial }) => {
            let study = super::study::stored(dir)?;
            let benchmark = args.source.benchmark.as_deref();
            study.backtest(*trial, super::study::data(&study, &args.source.data, benchmark)?)?
        }
        None => {
            let strategy = args.options.open(args.strategy.as_deref().unwrap_or_default(), &settings)?;
            let (data, layout) = args.source.open(&settings)?;
            Experiment::new(strategy, data).layout(layout).backtest()?
        }
    };
    for note in notes(&evaluation) {
        eprintln!("note: {note}");
    }
    if let Some(path) = &args.equity {
        tidemill_lab::equity::write(&evaluation, path)?;
        eprintln!("equity: {}", path.display());
    }
    if let Some(path) = &args.trades {
        std::fs::write(path, trades::csv(&evaluation))
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("trades: {}", path.display());
    }
    if let Some(path) = &args.report {
        std::fs::write(path, report_html(&evaluation, PageLimits::FILE)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("report: {}", path.display());
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", to_json(&evaluation))?;
    } else {
        write!(out, "{}", to_text(&evaluation, &display.screen))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The report as plain data for a page.
pub(super) fn page_report(evaluation: &BacktestReport) -> ReportPage {
    page::report(evaluation)
}

/// Notes for the user about the data and the result.
fn notes(evaluation: &BacktestReport) -> impl Iterator<Item = &String> {
    evaluation.experiment.data.notes.iter().chain(&evaluation.warnings)
}

/// How many days a year has, where figures are annualised.
fn year_text(evaluation: &BacktestReport) -> String {
    let symbols = evaluation.experiment.data.universe.symbols.iter().map(|bars| bars.symbol.as_str());
    year::describe(evaluation.year_days, symbols.zip(evaluation.symbol_year_days.iter().copied()))
}

/// Whether single segments say more than the parts, and are few enough to be columns.
fn shows_segments(evaluation: &BacktestReport, most: usize) -> bool {
    let n_segments = evaluation.segments.len();
    let n_unseen = [&evaluation.parts.out_of_sample, &evaluation.parts.holdout].into_iter().flatten().count();
    n_segments > 1 + n_unseen && n_segments <= most
}

/// The figure of a row on a single segment; what is compared with the market is so on parts only.
fn segment_value(evaluation: &BacktestReport, at: usize, key: &str) -> Option<f64> {
    let metrics = &evaluation.segment_metrics[at];
    match key {
        "benchmark_return" => finite(evaluation.segment_held[at].total_return),
        _ => metrics.iter().find(|(name, _)| *name == key)?.1,
    }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

/// Everything as JSON.
pub fn to_json(evaluation: &BacktestReport) -> Value {
    let symbols = &evaluation.experiment.data.universe.symbols;
    let trades: Vec<Value> = evaluation
        .trades()
        .map(|(segment, trade, reason)| {
            let bars = &symbols[segment.symbol];
            json!({
                "symbol": bars.symbol,
                "segment": segment.name,
                "side": trades::side_name(trade.side),
                "signal_idx": trade.signal_idx,
                "entry_idx": trade.entry_idx,
                "exit_idx": trade.exit_idx,
                "entry_time": timestamp::format_ms(bars.ts_ms[trade.entry_idx]),
                "exit_time": timestamp::format_ms(bars.ts_ms[trade.exit_idx]),
                "entry": trade.entry,
                "exit": trade.exit,
                "stop": finite(trade.stop),
                "target": finite(trade.target),
                "reason": reason,
                "pnl": trade.pnl,
                "ret": trade.ret,
                "r": trade.r,
                "bars": trade.exit_idx - trade.entry_idx,
                "ambiguous": trade.ambiguous,
            })
        })
        .collect();
    let segments: Vec<Value> = evaluation
        .segments
        .iter()
        .zip(&evaluation.segment_metrics)
        .zip(&evaluation.segment_parts)
        .map(|((segment, metrics), part)| {
            let bars = &symbols[segment.symbol];
            json!({
                "name": segment.name,
                "symbol": bars.symbol,
                "role": segment.role,
                "part": part,
                "from": timestamp::format_ms(bars.ts_ms[segment.range.start]),
                "to": timestamp::format_ms(bars.ts_ms[segment.range.end - 1]),
                "bars": segment.range.len(),
                "year_days": evaluation.symbol_year_days[segment.symbol],
                "metrics": metrics,
            })
        })
        .collect();
    json!({
        "strategy": evaluation.experiment.strategy.name,
        "profile": evaluation.experiment.strategy.overrides.profile,
        "data": evaluation.experiment.origin(),
        "parameters": Map::from_iter(evaluation.params.iter().cloned()),
        "execution": evaluation.experiment.strategy.execution,
        "year_days": evaluation.year_days,
        "objective": {
            "maximize": evaluation.experiment.strategy.objective().text,
            "value": evaluation.score.ok(),
            "invalid": evaluation.invalid(),
        },
        "verdict": evaluation.verdict,
        "parts": evaluation.parts,
        "metrics": evaluation.parts.in_sample.metrics,
        "out_of_sample": evaluation.parts.out_of_sample.as_ref().map(|part| part.metrics),
        "market": market_json(evaluation),
        "segments": segments,
        "trades": trades,
        "notes": notes(evaluation).collect::<Vec<_>>(),
    })
}

/// The parts against the benchmark; null where equity adds in price units.
fn market_json(evaluation: &BacktestReport) -> Option<Value> {
    let parts = &evaluation.parts;
    Some(json!({
        "benchmark": parts.benchmark,
        "in_sample": parts.in_sample.market?,
        "out_of_sample": parts.out_of_sample.as_ref().and_then(|part| part.market),
    }))
}

/// Most segments shown as columns.
const MAX_COLUMNS: usize = 6;

fn to_text(evaluation: &BacktestReport, screen: &Screen) -> String {
    let parts = &evaluation.parts;
    let mut header =
        vec![format!("{}  ({})", evaluation.experiment.strategy.name, evaluation.experiment.origin())];
    header.extend(parts.shown().iter().map(|part| part.part.label().to_owned()));
    let segments = if shows_segments(evaluation, MAX_COLUMNS) { &evaluation.segments[..] } else { &[] };
    header.extend(segments.iter().map(|segment| segment.name.clone()));
    let mut table = Table::new(header);
    for (label, end) in [("From", 0), ("To", 1)] {
        let mut row = vec![label.to_owned()];
        row.extend(parts.shown().iter().map(|part| [&part.from, &part.to][end].clone()));
        row.extend(segments.iter().map(|segment| {
            let at = [segment.range.start, segment.range.end - 1][end];
            let time = evaluation.experiment.data.universe.symbols[segment.symbol].ts_ms[at];
            timestamp::format_ms(time).chars().take(10).collect()
        }));
        table.row(row);
    }
    for figure in parts.table() {
        let mut row = vec![figure.label.clone()];
        row.extend(figure.texts());
        row.extend((0..segments.len()).map(|at| {
            let value = segment_value(evaluation, at, figure.key);
            value.map_or_else(String::new, |value| number::metric(&figure.label, Some(value)))
        }));
        table.row(row);
    }
    let mut out = evaluation.verdict.as_ref().map_or_else(String::new, |line| format!("{line}\n\n"));
    out += &table.render(1, screen);
    if evaluation.experiment.data.universe.symbols.len() > 1 {
        out += &format!("{POOL_NOTE}\n");
    }
    out += &format!(
        "\nobjective {} = {}{}   ({})\n",
        evaluation.experiment.strategy.objective().text.split_whitespace().collect::<Vec<_>>().join(" "),
        number::short(evaluation.score.ok()),
        evaluation.invalid().as_ref().map_or_else(String::new, |why| format!(" ({why})")),
        year_text(evaluation)
    );
    let mut reasons: std::collections::BTreeMap<&str, (usize, f64)> = std::collections::BTreeMap::new();
    for (_, trade, reason) in evaluation.trades() {
        let entry = reasons.entry(reason).or_default();
        entry.0 += 1;
        entry.1 += trade.ret;
    }
    if reasons.is_empty() {
        out += "\nThe strategy made no trade: its entry condition was never true on this data with these parameters.\n";
    } else {
        let mut table = Table::new(["exit", "trades", "mean return [%]"]);
        for (reason, (trades, ret)) in reasons {
            table.row([
                reason.to_string(),
                trades.to_string(),
                format!("{:.3}", 100.0 * ret / trades as f64),
            ]);
        }
        out += &format!("\n{}", table.render(1, screen));
    }
    out
}

/// The report as one self-contained HTML text.
pub fn report_html(evaluation: &BacktestReport, limits: PageLimits) -> Result<String> {
    let page = page::report_with_lines(evaluation)?;
    tidemill_page::report::html_within(&page, limits).context("cannot build the report")
}
