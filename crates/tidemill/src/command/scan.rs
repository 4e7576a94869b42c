//! `tidemill scan`: the trend of many symbols, ranked.

mod market;
mod output;
mod store;
mod watch;

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use clap::Args;
use tidemill_backtest::diagnostic::nearest;
use tidemill_gpu::{ContextOptions, StreamMode, TraceSpan};
use tidemill_market::atc::{AtcError, AtcOptions, OPTION_NAMES, Preset};
use tidemill_scan::{
    BatchDone, DeviceOptions, MAX_STREAMS, RecordContext, ScanError, ScanEvent, ScanOptions, Scanned,
    Scanner, Stage,
};
use tidemill_telemetry::{Timestamp, format_smolstr};

use super::sweep::{device_choice, stop_flag};
use crate::exit::ExitCode;
use crate::input::{ReadingArgs, parse_setting, set_threads};
use crate::progress::ProgressLine;
use crate::settings::{GpuSettings, Settings};
use crate::table::{ColumnArgs, Display, Screen};
use crate::trace::Trace;
use market::Market;
use output::ScanReport;
use store::Store;
use tidemill_lab::number;
use tidemill_lab::{DeviceChoice, Devices};
use watch::FileWatcher;

/// Classify the trend of many symbols at once and rank them.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill scan
  tidemill scan data/ --bars 1500 --top 10
  tidemill scan btc.csv eth.csv --preset pine --set robustness=Wide --set lambda=0.03
  tidemill scan data/ --json --history > averages.json
  tidemill scan data/ --out results.parquet
  tidemill scan data/ --watch

A signal is the average of the last bar, from -1 (everything says down) to 1 (everything says up). docs/scan.md says how it comes about.
Results depend on where the window begins: compare scans of the same --bars.")]
pub struct ScanArgs {
    /// CSV, Parquet, Arrow or zip files, or folders of them [default: a generated universe].
    #[arg(value_name = "DATA")]
    data: Vec<PathBuf>,
    /// Which version of the computation: v2, head or pine.
    #[arg(long, value_name = "NAME", default_value = "v2")]
    preset: Preset,
    /// Change an option of the computation, for example length=34, robustness=Wide or lambda=0.03. Repeatable.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,
    /// Leave out signals weaker than this.
    #[arg(long, value_name = "SIZE", default_value_t = 0.01, allow_negative_numbers = true)]
    min_signal: f64,
    /// Symbols shown of each list [default: 20 in the table, all in JSON].
    #[arg(long, value_name = "K")]
    top: Option<usize>,
    /// Use the last N bars of each symbol, and skip symbols with fewer [default: all bars].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    bars: Option<usize>,
    #[command(flatten)]
    reading: ReadingArgs,
    /// Where symbols are computed: auto, cpu, cuda (all GPUs) or cuda:N. No result depends on it [default: auto].
    #[arg(long, value_name = "DEVICE")]
    device: Option<DeviceChoice>,
    /// Streams of a GPU, 1 to 16, and batches on it at a time. No result depends on it [default: 4].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    streams: Option<usize>,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<usize>,
    /// Also output the average of every bar, in JSON and in --out.
    #[arg(long)]
    history: bool,
    /// Write all rows to this .parquet file, or to a folder together with the journal.
    #[arg(long, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Append the events of the scan to this journal, one JSON object per line.
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Scan again whenever a file changes, until Ctrl-C.
    #[arg(long)]
    watch: bool,
    /// Write a trace for Perfetto that shows when each stage ran on the device.
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// Settings file [default: tidemill.toml in this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    columns: ColumnArgs,
    /// Print JSON: one object, with --watch one on each line.
    #[arg(long)]
    json: bool,
}

/// Symbols shown of each list in the table.
const TOP: usize = 20;

/// Runs the command.
pub fn run(args: ScanArgs, display: &Display) -> Result<ExitCode> {
    let settings = Settings::load(args.config.as_deref())?;
    set_threads(args.threads.or(settings.run.threads))?;
    let devices =
        Devices::choose(device_choice(args.device, &settings)?)?.with_wait_limit(settings.gpu.wait_limit());
    run_on(args, &settings, devices, display, &mut std::io::stdout().lock())
}

/// Runs the command on these devices.
fn run_on(
    args: ScanArgs,
    settings: &Settings,
    devices: Devices,
    display: &Display,
    out: &mut dyn Write,
) -> Result<ExitCode> {
    let options = scan_options(&args)?;
    args.columns.choose(&mut output::table())?;
    let device_options = device_options(args.streams, &settings.gpu)?;
    let source = market::Source::new(&args, settings)?;
    if args.watch && source.files.is_empty() {
        bail!("--watch needs DATA; generated data does not change");
    }
    // Opened before the work, so that a path that cannot be written fails at once.
    let store = Store::open(args.out.as_deref(), args.journal.as_deref(), args.history)?;
    let timeline = args.timeline.as_deref().map(Trace::create).transpose()?;
    let scanner = make_scanner(&options, &devices, &device_options)?;
    let began = Timestamp::now();
    let screen = display.screen;
    let mut session = Session { args, options, devices, scanner, store, timeline, began, screen, n_scans: 0 };

    // Before the data is read, so that no change is missed.
    let mut watch = FileWatcher::new(&source.files);
    let stop = session.args.watch.then(stop_flag);
    session.scan(source.open()?, out)?;
    if let Some(stop) = stop {
        while watch.wait(&stop) {
            // A file that is being replaced may be missing or torn for a moment; that must not end the watch.
            match source.open() {
                Ok(market) => session.scan(market, out)?,
                Err(error) => eprintln!("error: {error:#}\n  still watching; the last result is unchanged"),
            }
        }
    }
    session.store.close()?;
    Ok(ExitCode::SUCCESS)
}

/// The options of the computation, resolved.
fn scan_options(args: &ScanArgs) -> Result<ScanOptions> {
    let mut atc = AtcOptions::preset(args.preset);
    for (name, value) in &args.set {
        atc.set(name, value).map_err(|error| match (&error, nearest(name, OPTION_NAMES)) {
            (AtcError::Name { .. }, Some(near)) => {
                anyhow!("--set {name}={value}: there is no option `{name}`; did you mean `{near}`?")
            }
            _ => anyhow!("--set {name}={value}: {error}"),
        })?;
    }
    let options = ScanOptions { atc, min_signal: args.min_signal, bars: args.bars, history: args.history };
    match options.validate() {
        Err(ScanError::Option { name, value, expected }) => {
            bail!("--{} {value}: expected {expected}", name.replace('_', "-"))
        }
        result => result?,
    }
    Ok(options)
}

/// How devices work: the flag, else the settings.
pub(super) fn device_options(streams: Option<usize>, settings: &GpuSettings) -> Result<DeviceOptions> {
    let default = DeviceOptions::default();
    let mut context = settings.context(default.context);
    if let Some(streams) = streams {
        if !(1..=MAX_STREAMS).contains(&streams) {
            bail!("--streams {streams}: expected a number from 1 to {MAX_STREAMS}");
        }
        context = ContextOptions { streams, mode: StreamMode::Parallel, ..context };
    }
    Ok(DeviceOptions { context, ..default })
}

/// A scanner on the devices; on the CPU if they cannot be used and the user did not insist on them.
fn make_scanner(options: &ScanOptions, devices: &Devices, device_options: &DeviceOptions) -> Result<Scanner> {
    if !devices.may_fall_back {
        return Ok(Scanner::on_devices(options.clone(), &devices.devices, device_options)?);
    }
    let scanner = Scanner::or_cpu(options.clone(), &devices.devices, device_options)?;
    if let Some(reason) = scanner.fallback() {
        warn_of(&ScanEvent::FellBack { reason: reason.to_owned() });
    }
    Ok(scanner)
}

/// Prints how devices were used and what slowed a scan down.
fn warn_of(event: &ScanEvent) {
    let word = if matches!(event, ScanEvent::FellBack { .. }) { "warning" } else { "note" };
    if let Some(sentence) = event.sentence() {
        eprintln!("{word}: {sentence}");
    }
}

/// What stays from one scan to the next.
struct Session {
    args: ScanArgs,
    options: ScanOptions,
    devices: Devices,
    scanner: Scanner,
    store: Store,
    timeline: Option<Trace>,
    n_scans: u64,
    screen: Screen,
    /// Distinguishes its runs from those of other sessions in one journal.
    began: Timestamp,
}

impl Session {
    /// Scans once, prints and stores.
    fn scan(&mut self, market: Market, out: &mut dyn Write) -> Result<()> {
        self.n_scans += 1;
        market.notes.iter().for_each(|note| eprintln!("note: {note}"));
        if self.n_scans == 1 {
            eprintln!(
                "scanning {}: preset {}, on {}",
                market.origin,
                self.args.preset,
                if self.fallback().is_some() { "the CPU".into() } else { self.devices.shown() }
            );
            if let Some(note) = &self.devices.note {
                eprintln!("note: {note}");
            }
        }
        let run = format_smolstr!("scan-{}-{}", self.began.as_ms(), self.n_scans);
        let mut context = RecordContext { run, fallback: self.fallback() };
        self.store.record(
            &ScanEvent::Started {
                n_symbols: market.series.len(),
                origin: market.origin.clone(),
                preset: self.args.preset,
                options: self.options.atc.clone(),
            },
            &context,
        );
        let began = Instant::now();
        let mut spans = Vec::new();
        let scanned = self.compute(&market, &mut context, &mut spans).inspect_err(|error| {
            self.store.record(&ScanEvent::Failed { reason: format!("{error:#}") }, &context);
        })?;
        let seconds = began.elapsed().as_secs_f64();

        let report = ScanReport::new(&self.args, &self.options, &market, &scanned);
        self.store.write(&report)?;
        self.store
            .record(&ScanEvent::Ended { counts: report.counts(), duration_ms: seconds * 1e3 }, &context);
        if let Some(timeline) = &mut self.timeline {
            timeline.write(&self.devices, "stream", &spans);
        }
        if self.args.json {
            report.write_json(out, !self.args.watch)?;
        } else {
            write!(out, "{}", report.text(&self.scanner, &self.screen)?)?;
        }
        out.flush()?;
        report.remarks().iter().for_each(|line| eprintln!("{line}"));
        eprintln!("{}", report.summary(seconds));
        Ok(())
    }

    /// Why the CPU is used although a GPU was wanted.
    fn fallback(&self) -> Option<String> {
        self.scanner.fallback().map(str::to_owned).or_else(|| self.devices.unusable.clone())
    }

    /// Scans, records the events and draws the progress line.
    fn compute(
        &mut self,
        market: &Market,
        context: &mut RecordContext,
        spans: &mut Vec<TraceSpan>,
    ) -> Result<Scanned> {
        let symbols = market.symbols();
        let progress = ProgressLine::new(symbols.len() as u64, "symbols");
        let store = &self.store;
        let scanned = self.scanner.scan(&symbols, |event| {
            match &event {
                ScanEvent::Batch(batch) => {
                    progress.set_position(batch.done as u64);
                    spans.extend(trace_spans(batch));
                }
                ScanEvent::FellBack { reason } => context.fallback = Some(reason.clone()),
                _ => {}
            }
            if event.sentence().is_some() {
                progress.suspend(|| warn_of(&event));
            }
            store.record(&event, context);
        })?;
        progress.finish_and_clear();
        Ok(scanned)
    }
}

/// The stages of a batch on a device.
fn trace_spans(batch: &BatchDone) -> impl Iterator<Item = TraceSpan> {
    batch.stages.iter().filter_map(|span| {
        let name = format!("{} {}", span.stage.name(), batch.number);
        let name =
            if span.stage == Stage::Kernel { format!("{name} ({} symbols)", batch.symbols) } else { name };
        let (begin_ms, end_ms) = (span.begin_ms, span.end_ms);
        Some(TraceSpan { device: span.device?, track: span.stream as u64, name, begin_ms, end_ms })
    })
}

/// `3 symbols`.
fn symbols_text(n: usize) -> String {
    number::counted(n as u64, "symbol")
}

#[cfg(test)]
mod tests;
