//! `tidemill data`: inspect, convert and generate data.
//!
//! stdout is data (the table or the JSON of `inspect`); what a load found goes to stderr for the other two.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use tidemill_market::report::DataReport;
use tidemill_market::synth::{GenerateOptions, MarketKind};
use tidemill_market::timeframe::format_duration;
use tidemill_market::timestamp::format_ms;
use tidemill_market::{Universe, check_output, load, write};

use crate::exit::ExitCode;
use crate::input::ReadingArgs;
use crate::progress::while_loading;
use crate::settings::DataSettings;
use crate::table::{Display, Table};
use tidemill_lab::number::count;

/// Inspect, convert and generate data.
#[derive(Args)]
pub struct DataArgs {
    #[command(subcommand)]
    command: DataCommand,
}

#[derive(Subcommand)]
enum DataCommand {
    /// Show the contents and the problems of files.
    Inspect(InspectArgs),
    /// Clean, select and resample files into one CSV or Parquet file.
    Convert(ConvertArgs),
    /// Write deterministic test data, with a planted edge if wanted.
    Generate(GenerateArgs),
}

/// What to load.
#[derive(Args)]
struct SourceArgs {
    /// CSV, Parquet, Arrow or zip files, or folders of them.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reading: ReadingArgs,
}

#[derive(Args)]
struct InspectArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Print the whole report as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct ConvertArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// File to write; its ending, .parquet or .csv, decides the format.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    /// The integer generator of the reference results; 15-minute bars, one symbol.
    Lcg,
    /// Trends, ranges, bursts of volatility and a planted edge.
    Regime,
    /// A random walk of hourly bars, in which there is nothing to find.
    Walk,
    /// The same with calm and volatile periods.
    Clustered,
}

#[derive(Args)]
struct GenerateArgs {
    /// File to write; its ending, .parquet or .csv, decides the format.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Which generator.
    #[arg(long, value_enum, default_value = "regime")]
    kind: Kind,
    /// Bars per symbol.
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    bars: usize,
    /// Number of symbols (all but lcg) [default: 1].
    #[arg(long, value_name = "N")]
    symbols: Option<usize>,
    /// Length of a bar (regime only) [default: 15m].
    #[arg(long, value_name = "TIMEFRAME")]
    timeframe: Option<String>,
    /// Seed of the generator (all but lcg) [default: 1].
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Strength of the planted edge from 0 (none) to 1 (regime only) [default: 0.5].
    #[arg(long, value_name = "0..1")]
    edge: Option<f64>,
    /// Expected return of a year, not compounded: 0.8 is a bull market (all but lcg) [default: 0].
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    drift: Option<f64>,
}

pub fn run(args: DataArgs, display: &Display) -> Result<ExitCode> {
    match args.command {
        DataCommand::Inspect(args) => inspect(&args, display),
        DataCommand::Convert(args) => convert(&args),
        DataCommand::Generate(args) => generate(&args),
    }
}

impl SourceArgs {
    fn load(&self) -> Result<(Universe, DataReport)> {
        let options = self.reading.options(&DataSettings::default())?;
        let loaded = while_loading(&options.progress, || load(&self.files, &options))?;
        Ok((loaded.universe, loaded.report))
    }
}

fn inspect(args: &InspectArgs, display: &Display) -> Result<ExitCode> {
    let (universe, report) = args.source.load()?;
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut value = serde_json::to_value(&report)?;
        value["fingerprint"] = json!(universe.fingerprint());
        writeln!(out, "{}", serde_json::to_string_pretty(&value)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let header = [
        "symbol",
        "first",
        "last",
        "bar",
        "bars",
        "dropped",
        "repaired",
        "no volume",
        "gaps",
        "missing",
        "longest gap",
    ];
    let mut table = Table::new(header);
    for symbol in &report.symbols {
        let longest =
            if symbol.gaps == 0 { "–".to_string() } else { format_duration(symbol.longest_gap_ms) };
        table.row([
            symbol.symbol.clone(),
            format_ms(symbol.first_ms),
            format_ms(symbol.last_ms),
            format_duration(symbol.timeframe_ms),
            count(symbol.bars as u64),
            count(symbol.dropped as u64),
            count(symbol.repaired as u64),
            count(symbol.zero_volume as u64),
            count(symbol.gaps as u64),
            count(symbol.missing_bars),
            longest,
        ]);
    }
    write!(out, "{}\n{report}", table.render(4, &display.screen))?;
    let extra: Vec<&str> = universe
        .symbols
        .first()
        .map_or(Vec::new(), |bars| bars.extra.iter().map(|(name, _)| name.as_str()).collect());
    if !extra.is_empty() {
        writeln!(out, "  further series: {}", extra.join(", "))?;
    }
    if report.files.len() + report.unreadable.len() > 1 {
        write!(out, "\n{}", files_table(&report).render(4, &display.screen))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What became of each file.
fn files_table(report: &DataReport) -> Table {
    let mut table = Table::new(["file", "format", "rows", "became"]);
    for file in &report.files {
        let became = match &file.symbols[..] {
            [symbol] => symbol.clone(),
            symbols => format!("{} symbols", symbols.len()),
        };
        table.row([file.path.clone(), file.format.into(), count(file.rows as u64), became]);
    }
    for file in &report.unreadable {
        table.row([file.path.clone(), "–".into(), "–".into(), "left out".into()]);
    }
    table
}

fn convert(args: &ConvertArgs) -> Result<ExitCode> {
    check_output(&args.out)?;
    let (universe, report) = args.source.load()?;
    eprint!("{report}");
    write(&universe, &args.out)?;
    report_written(&universe, &args.out);
    Ok(ExitCode::SUCCESS)
}

fn generate(args: &GenerateArgs) -> Result<ExitCode> {
    check_output(&args.out)?;
    let options = GenerateOptions {
        kind: match args.kind {
            Kind::Lcg => MarketKind::Lcg,
            Kind::Regime => MarketKind::Regime,
            Kind::Walk => MarketKind::Walk,
            Kind::Clustered => MarketKind::Clustered,
        },
        bars: args.bars,
        symbols: args.symbols,
        timeframe: args.timeframe.clone(),
        seed: args.seed,
        edge: args.edge,
        drift: args.drift,
    };
    let universe = options.generate()?;
    if let Some(truth) = options.planted() {
        eprintln!(
            "planted edge of strength {}: long when zscore(close, {}) < -{}, hold {} bars",
            truth.strength, truth.window, truth.threshold, truth.hold
        );
    }
    write(&universe, &args.out)?;
    report_written(&universe, &args.out);
    Ok(ExitCode::SUCCESS)
}

fn report_written(universe: &Universe, out: &std::path::Path) {
    let (bars, symbols) = (count(universe.n_bars() as u64), count(universe.symbols.len() as u64));
    eprintln!("wrote {bars} bars of {symbols} symbol(s) to {}", out.display());
}
