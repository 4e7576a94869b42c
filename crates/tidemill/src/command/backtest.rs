//! `tidemill backtest`: one parameter set, in full.

mod page;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_backtest::segment::Segment;
use tidemill_backtest::trade::Trade;
use tidemill_backtest::{Benchmark, METRICS, Metrics, POOL_NOTE};
use tidemill_lab::{BacktestReport, Experiment};
use tidemill_market::timestamp;
use tidemill_page::report::ReportPage;

use crate::input::{DataSource, StrategyArgs, set_threads};
use crate::settings::Settings;
use crate::table::{Display, Screen, Table};
use crate::year;
use tidemill_lab::benchmark::{AgainstMarket, benchmark_name};
use tidemill_lab::number;

/// Evaluate one parameter set: the defaults of the strategy, changed by --profile and --set.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill backtest ema-cross --data btc.parquet --set fast=12 --set slow=180
  tidemill backtest my.toml --data data/ --split 0.7 --report report.html --trades trades.csv
  tidemill backtest seller-exhaustion --data lcg.csv --profile reference --set use_stop_loss=true --json")]
pub struct BacktestArgs {
    /// Strategy file, or the name of a shipped strategy (see `tidemill strategies`).
    strategy: String,
    #[command(flatten)]
    options: StrategyArgs,
    #[command(flatten)]
    source: DataSource,
    /// Write the trades as CSV.
    #[arg(long, value_name = "FILE")]
    trades: Option<PathBuf>,
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

pub fn run(args: BacktestArgs, display: &Display) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let strategy = args.options.open(&args.strategy, &settings)?;
    let (data, layout) = args.source.open(&settings)?;
    let evaluation = Experiment::new(strategy, data).layout(layout).backtest()?;
    for note in notes(&evaluation) {
        eprintln!("note: {note}");
    }
    if let Some(path) = &args.trades {
        std::fs::write(path, trades_csv(&evaluation))
            .with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("trades: {}", path.display());
    }
    if let Some(path) = &args.report {
        write_report(&evaluation, path)?;
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

/// Metrics by name; what is not defined is null.
pub fn metrics_json(metrics: &Metrics) -> Value {
    Value::Object(metrics.iter().map(|(name, value)| (name.to_string(), json!(value))).collect())
}

/// How many days a year has, where figures are annualised.
fn year_text(evaluation: &BacktestReport) -> String {
    let symbols = evaluation.experiment.data.universe.symbols.iter().map(|bars| bars.symbol.as_str());
    year::describe(evaluation.year_days, symbols.zip(evaluation.symbol_year_days.iter().copied()))
}

/// Whether single segments say more than the totals, and are few enough to be columns.
fn shows_segments(evaluation: &BacktestReport, most: usize) -> bool {
    let totals = 1 + usize::from(evaluation.test.is_some());
    evaluation.segments.len() > totals && evaluation.segments.len() <= most
}

/// Trades with the segment they belong to.
fn trades(evaluation: &BacktestReport) -> impl Iterator<Item = (&Segment, &Trade, &str)> {
    evaluation.segments.iter().zip(&evaluation.details).flat_map(|(segment, detail)| {
        let labelled = detail.trades.iter().zip(&detail.labels);
        labelled.map(move |(trade, label)| (segment, trade, label.as_str()))
    })
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn to_json(evaluation: &BacktestReport) -> Value {
    let symbols = &evaluation.experiment.data.universe.symbols;
    let trades: Vec<Value> = trades(evaluation)
        .map(|(segment, trade, reason)| {
            let bars = &symbols[segment.symbol];
            json!({
                "symbol": bars.symbol,
                "segment": segment.name,
                "side": side_name(trade.side),
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
        .map(|(segment, metrics)| {
            let bars = &symbols[segment.symbol];
            json!({
                "name": segment.name,
                "symbol": bars.symbol,
                "role": segment.role,
                "from": timestamp::format_ms(bars.ts_ms[segment.range.start]),
                "to": timestamp::format_ms(bars.ts_ms[segment.range.end - 1]),
                "bars": segment.range.len(),
                "year_days": evaluation.symbol_year_days[segment.symbol],
                "metrics": metrics_json(metrics),
            })
        })
        .collect();
    json!({
        "strategy": evaluation.experiment.strategy.name,
        "profile": evaluation.experiment.strategy.profile,
        "data": evaluation.experiment.data.origin,
        "parameters": Map::from_iter(evaluation.params.iter().cloned()),
        "execution": evaluation.experiment.strategy.execution,
        "year_days": evaluation.year_days,
        "objective": {
            "maximize": evaluation.experiment.strategy.objective().text,
            "value": evaluation.score.ok(),
            "invalid": evaluation.invalid(),
        },
        "metrics": metrics_json(&evaluation.train),
        "out_of_sample": evaluation.test.as_ref().map(metrics_json),
        "market": market_json(evaluation),
        "segments": segments,
        "trades": trades,
        "notes": notes(evaluation).collect::<Vec<_>>(),
    })
}

/// The totals against the benchmark; null where equity adds in price units.
fn market_json(evaluation: &BacktestReport) -> Option<Value> {
    let in_sample = evaluation.against.first()?;
    Some(json!({
        "benchmark": benchmark_name(evaluation.experiment.data.benchmark.as_ref()),
        "in_sample": in_sample,
        "out_of_sample": evaluation.against.get(1),
    }))
}

/// Figures of a comparison with the market: key, label, value.
fn market_figures(of: &AgainstMarket) -> [(&'static str, &'static str, Option<f64>); 6] {
    [
        ("excess_return", "Excess Return [%]", finite(of.excess_return)),
        ("beta", "Beta", of.fit.beta),
        ("alpha", "Alpha, a year [%]", of.fit.alpha),
        ("t_alpha", "t of Alpha", of.fit.t_alpha),
        ("net_exposure", "Net Exposure [%]", of.net_exposure),
        ("exposure_matched_return", "Return at that Exposure [%]", of.exposure_matched_return),
    ]
}

fn side_name(side: i8) -> &'static str {
    if side > 0 { "long" } else { "short" }
}

fn trades_csv(evaluation: &BacktestReport) -> String {
    let mut out = String::from(
        "symbol,segment,side,signal_idx,entry_idx,exit_idx,entry_time,exit_time,entry,exit,stop,target,reason,pnl,return,r,bars,ambiguous\n",
    );
    let quote = |text: &str| {
        if text.contains([',', '"', '\n', '\r']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text.to_string()
        }
    };
    let optional = |value: f64| finite(value).map_or_else(String::new, |value| value.to_string());
    for (segment, trade, reason) in trades(evaluation) {
        let bars = &evaluation.experiment.data.universe.symbols[segment.symbol];
        out += &format!(
            "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
            quote(&bars.symbol),
            quote(&segment.name),
            side_name(trade.side),
            trade.signal_idx,
            trade.entry_idx,
            trade.exit_idx,
            timestamp::format_ms(bars.ts_ms[trade.entry_idx]),
            timestamp::format_ms(bars.ts_ms[trade.exit_idx]),
            trade.entry,
            trade.exit,
            optional(trade.stop),
            optional(trade.target),
            quote(reason),
            trade.pnl,
            trade.ret,
            trade.r,
            trade.exit_idx - trade.entry_idx,
            trade.ambiguous,
        );
    }
    out
}

/// Most segments shown as columns.
const MAX_COLUMNS: usize = 6;

fn to_text(evaluation: &BacktestReport, screen: &Screen) -> String {
    let mut header =
        vec![format!("{}  ({})", evaluation.experiment.strategy.name, evaluation.experiment.data.origin)];
    header.push(if evaluation.test.is_some() { "in-sample".into() } else { "all".to_string() });
    if evaluation.test.is_some() {
        header.push("out-of-sample".into());
    }
    let several = shows_segments(evaluation, MAX_COLUMNS);
    if several {
        header.extend(evaluation.segments.iter().map(|segment| segment.name.clone()));
    }
    let mut table = Table::new(header);
    for (metric, _, label) in METRICS {
        let cell = |metrics: &Metrics| number::metric(label, metrics.get(metric));
        let mut row = vec![label.to_string(), cell(&evaluation.train)];
        row.extend(evaluation.test.as_ref().map(cell));
        if several {
            row.extend(evaluation.segment_metrics.iter().map(cell));
        }
        table.row(row);
    }
    let label = format!("Return of {} [%]", benchmark_name(evaluation.experiment.data.benchmark.as_ref()));
    let held = |market: &Benchmark| number::metric(&label, finite(market.total_return));
    let mut row = vec![label.clone(), held(&evaluation.held.parts[0])];
    row.extend(evaluation.test.is_some().then(|| held(&evaluation.held.parts[1])));
    if several {
        row.extend(evaluation.held.segments.iter().map(held));
    }
    table.row(row);
    let compared: Vec<_> = evaluation.against.iter().map(market_figures).collect();
    for (at, (_, label, _)) in compared.first().into_iter().flatten().enumerate() {
        let mut row = vec![(*label).to_string()];
        row.extend(compared.iter().map(|figures| number::metric(label, figures[at].2)));
        if several {
            row.extend(evaluation.segments.iter().map(|_| String::new()));
        }
        table.row(row);
    }
    let mut out = table.render(1, screen);
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
    for (_, trade, reason) in trades(evaluation) {
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

fn write_report(evaluation: &BacktestReport, path: &Path) -> Result<()> {
    let html = tidemill_page::report::html(&page::report(evaluation)).context("cannot build the report")?;
    std::fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))
}
