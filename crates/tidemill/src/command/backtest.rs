//! `tidemill backtest`: one parameter set, in full.

mod page;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value, json};
use tidemill_backtest::objective::Objective;
use tidemill_backtest::report::Report;
use tidemill_backtest::segment::{Role, Segment};
use tidemill_backtest::{Benchmark, Detail, Engine, EngineOptions, METRICS, Metrics, POOL_NOTE, Strategy};
use tidemill_market::timestamp;
use tidemill_search::{Points, Score, Space};

use crate::input::{DataSource, Input, StrategyArgs, set_threads};
use crate::market::{AgainstMarket, Part, benchmark_name, has_market};
use crate::number;
use crate::settings::Settings;
use crate::table::Table;
use crate::year;

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

/// One evaluated parameter set with everything that is shown of it.
struct Evaluation<'a> {
    strategy: &'a Strategy,
    input: &'a Input,
    segments: Vec<Segment>,
    details: Vec<Detail>,
    segment_metrics: Vec<Metrics>,
    train: Metrics,
    test: Option<Metrics>,
    score: Score,
    /// Why there is no score.
    invalid: Option<String>,
    params: Vec<(String, Value)>,
    /// Days of a year of the pool that counts, and of each symbol.
    year_days: f64,
    symbol_year_days: Vec<f64>,
    warnings: Vec<String>,
    /// What holding made.
    held: Held,
    /// How the totals stand against it: in-sample, and out-of-sample where there is such a part; empty where equity adds in price units.
    against: Vec<AgainstMarket>,
}

/// What holding the benchmark made on each part that is shown.
struct Held {
    /// Of all symbols together: in-sample, out-of-sample.
    parts: [Benchmark; 2],
    /// By segment.
    segments: Vec<Benchmark>,
    /// By symbol: in-sample, out-of-sample.
    symbols: Vec<[Benchmark; 2]>,
}

/// Runs the command.
pub fn run(args: BacktestArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.options.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let strategy = args.options.open(&args.strategy, &settings)?;
    let input = args.source.open(&settings)?;
    let evaluation = evaluate(&strategy, &input)?;

    for note in evaluation.input.notes.iter().chain(&evaluation.warnings) {
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
        write!(out, "{}", to_text(&evaluation))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// One parameter set as a report, and what it is worth to the objective.
pub(super) fn report(strategy: &Strategy, input: &Input) -> Result<(Report, Score)> {
    let evaluation = evaluate(strategy, input)?;
    Ok((page::report(&evaluation), evaluation.score))
}

fn evaluate<'a>(strategy: &'a Strategy, input: &'a Input) -> Result<Evaluation<'a>> {
    let segments = input.layout.segments(&input.universe)?;
    let mut engine = Engine::new(strategy, &input.universe, segments.clone(), EngineOptions::default())?;
    let space = engine.space();
    let row = space.default_point();
    let mut points = Points::new(space.len());
    points.push(&row);
    let outcome = engine.evaluate(&points).remove(0);
    let details = engine.detail(&row);
    let year_days = engine.year_days(Role::Train);
    let symbol_year_days = (0..input.universe.symbols.len()).map(|at| engine.symbol_year_days(at)).collect();
    let segment_metrics: Vec<Metrics> = segments
        .iter()
        .zip(&outcome.segments)
        .map(|(segment, tally)| engine.segment_metrics(segment, tally))
        .collect();
    let train = engine.pool_metrics(&outcome.train, Role::Train);
    let counting: Vec<Metrics> = segments
        .iter()
        .zip(&segment_metrics)
        .filter(|(segment, _)| segment.role == Role::Train)
        .map(|(_, metrics)| *metrics)
        .collect();
    let score = Objective::new(strategy).score(&train, &counting, &engine.decode(&row));
    let mut warnings: Vec<String> = engine
        .impossible_windows(&row)
        .into_iter()
        .map(|window| match window {
            w if w >= 1.0 => {
                format!("no symbol has enough bars for a window of {w}: what uses it is never available")
            }
            w => format!("a window of {w} makes no sense: what uses it is never available"),
        })
        .collect();
    warnings.extend(strategy.remarks(&input.universe));
    if input.layout.split.is_some() && outcome.test.is_none() {
        warnings.push("the out-of-sample part has no bar".into());
    }
    let objective = Objective::new(strategy);
    let invalid = match score {
        Score::Valid(_) => None,
        Score::Invalid if !objective.accepts(&train, &engine.decode(&row)) => {
            Some(format!("not met: {}", strategy.objective.require_text.as_deref().unwrap_or("`require`")))
        }
        Score::Invalid => Some("it is not defined for these trades".into()),
    };
    let named = input.benchmark.as_ref();
    let roles = [Role::Train, Role::Test];
    let held = Held {
        parts: roles.map(|role| engine.benchmark(role, named)),
        segments: (0..segments.len()).map(|at| engine.segment_benchmark(at, named)).collect(),
        symbols: (0..input.universe.symbols.len())
            .map(|symbol| roles.map(|role| engine.symbol_benchmark(symbol, role, named)))
            .collect(),
    };
    let against = roles
        .into_iter()
        .filter(|role| has_market(strategy) && segments.iter().any(|segment| segment.role == *role))
        .map(|role| Part::new(&engine, &details, role, named, year_days).against)
        .collect();
    Ok(Evaluation {
        strategy,
        input,
        held,
        against,
        segments,
        details,
        segment_metrics,
        train,
        test: outcome.test.as_ref().map(|tally| engine.pool_metrics(tally, Role::Test)),
        score,
        invalid,
        params: param_values(&space, &row),
        year_days,
        symbol_year_days,
        warnings,
    })
}

/// Names and values of a point; inactive parameters are null.
pub fn param_values(space: &Space, row: &[f64]) -> Vec<(String, Value)> {
    space
        .params
        .iter()
        .zip(row)
        .map(|(param, code)| {
            let value = param.domain.decode(*code).and_then(|value| serde_json::to_value(value).ok());
            (param.name.clone(), value.unwrap_or(Value::Null))
        })
        .collect()
}

/// Metrics by name; what is not defined is null.
pub fn metrics_json(metrics: &Metrics) -> Value {
    Value::Object(metrics.iter().map(|(name, value)| (name.to_string(), json!(value))).collect())
}

impl Evaluation<'_> {
    /// How many days a year has, where figures are annualised.
    fn year(&self) -> String {
        let symbols = self.input.universe.symbols.iter().map(|bars| bars.symbol.as_str());
        year::describe(self.year_days, symbols.zip(self.symbol_year_days.iter().copied()))
    }

    /// Whether single segments say more than the totals, and are few enough to be columns.
    fn shows_segments(&self, most: usize) -> bool {
        let totals = 1 + usize::from(self.test.is_some());
        self.segments.len() > totals && self.segments.len() <= most
    }

    /// Trades with the segment they belong to.
    fn trades(&self) -> impl Iterator<Item = (&Segment, &tidemill_backtest::trade::Trade, &str)> {
        self.segments.iter().zip(&self.details).flat_map(|(segment, detail)| {
            detail
                .trades
                .iter()
                .zip(&detail.labels)
                .map(move |(trade, label)| (segment, trade, label.as_str()))
        })
    }
}

fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

fn to_json(evaluation: &Evaluation<'_>) -> Value {
    let symbols = &evaluation.input.universe.symbols;
    let trades: Vec<Value> = evaluation
        .trades()
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
        "strategy": evaluation.strategy.name,
        "profile": evaluation.strategy.profile,
        "data": evaluation.input.origin,
        "parameters": Map::from_iter(evaluation.params.iter().cloned()),
        "execution": evaluation.strategy.execution,
        "year_days": evaluation.year_days,
        "objective": {
            "maximize": evaluation.strategy.objective.text,
            "value": evaluation.score.value(),
            "invalid": evaluation.invalid,
        },
        "metrics": metrics_json(&evaluation.train),
        "out_of_sample": evaluation.test.as_ref().map(metrics_json),
        "market": market_json(evaluation),
        "segments": segments,
        "trades": trades,
        "notes": evaluation.input.notes.iter().chain(&evaluation.warnings).collect::<Vec<_>>(),
    })
}

/// The totals against the benchmark; null where equity adds in price units.
fn market_json(evaluation: &Evaluation<'_>) -> Option<Value> {
    let in_sample = evaluation.against.first()?;
    Some(json!({
        "benchmark": benchmark_name(evaluation.input.benchmark.as_ref()),
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

fn trades_csv(evaluation: &Evaluation<'_>) -> String {
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
    for (segment, trade, reason) in evaluation.trades() {
        let bars = &evaluation.input.universe.symbols[segment.symbol];
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

fn to_text(evaluation: &Evaluation<'_>) -> String {
    let mut header = vec![format!("{}  ({})", evaluation.strategy.name, evaluation.input.origin)];
    header.push(if evaluation.test.is_some() { "in-sample".into() } else { "all".to_string() });
    if evaluation.test.is_some() {
        header.push("out-of-sample".into());
    }
    let several = evaluation.shows_segments(MAX_COLUMNS);
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
    let label = format!("Return of {} [%]", benchmark_name(evaluation.input.benchmark.as_ref()));
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
    let mut out = table.render(1);
    if evaluation.input.universe.symbols.len() > 1 {
        out += &format!("{POOL_NOTE}\n");
    }
    out += &format!(
        "\nobjective {} = {}{}   ({})\n",
        evaluation.strategy.objective.text.split_whitespace().collect::<Vec<_>>().join(" "),
        number::short(evaluation.score.value()),
        evaluation.invalid.as_ref().map_or_else(String::new, |why| format!(" ({why})")),
        evaluation.year()
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
        out += &format!("\n{}", table.render(1));
    }
    out
}

fn write_report(evaluation: &Evaluation<'_>, path: &Path) -> Result<()> {
    let html =
        tidemill_backtest::report::html(&page::report(evaluation)).context("cannot build the report")?;
    std::fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))
}
