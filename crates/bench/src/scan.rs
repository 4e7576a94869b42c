//! Speed of a scan: from prices in host memory to rows in host memory, on a device beside the CPU.
//!
//! Four parts, each with its results compared: parity (every signal, bit for bit), streams (how much overlapping gains), scaling
//! (from ten symbols to fifty thousand) and stress (a thousand scans in a row, whose memory must not grow).

mod npy;
mod walk;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use serde_json::json;
use tidemill_gpu::{ContextOptions, Device};
use tidemill_scan::{
    DeviceOptions, MAX_STREAMS, Overlap, ScanEvent, ScanOptions, Scanned, Scanner, StageSpan, Symbol,
};

use tidemill::set_threads;
use tidemill_lab::number;
use tidemill_lab::{DeviceChoice, Devices};

#[derive(Args)]
pub struct ScanBenchArgs {
    /// Symbols of the main measurement [default: 10000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    symbols: Option<u32>,
    /// Bars of each symbol [default: 1500].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    bars: Option<u32>,
    /// Numbers of streams to try.
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "1,2,4,8,12,16")]
    streams: Vec<usize>,
    /// Most symbols of a batch [default: chosen by symbols and streams].
    #[arg(long, value_name = "N")]
    batch: Option<usize>,
    /// Repetitions; the median counts [default: 9].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=999))]
    repeat: Option<u32>,
    /// Numbers of symbols of the scaling [default: 10,100,1000,5000,10000,50000].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    scaling: Option<Vec<usize>>,
    /// Scans in a row of the stress part [default: 1000].
    #[arg(long, value_name = "N")]
    stress: Option<usize>,
    /// Write the prices and the signals of the main measurement to FOLDER/closes.npy and FOLDER/signals.npy, for the peers.
    #[arg(long, value_name = "FOLDER")]
    dump: Option<PathBuf>,
    /// Everything small: does it run, is it right?
    #[arg(long)]
    quick: bool,
    /// Worker threads [default: all cores].
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Where it runs: auto, cpu, cuda, cuda:N or emulated.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// What is measured, defaults filled in.
struct Plan {
    n_symbols: usize,
    n_bars: usize,
    repeat: usize,
    scaling: Vec<usize>,
    n_stress: usize,
    stress_symbols: usize,
}

impl Plan {
    fn new(args: &ScanBenchArgs) -> Self {
        let or = |given: Option<u32>, whole: usize, quick: usize| {
            given.map_or(if args.quick { quick } else { whole }, |given| given as usize)
        };
        let scaling: &[usize] =
            if args.quick { &[1, 10, 100] } else { &[10, 100, 1_000, 5_000, 10_000, 50_000] };
        Self {
            n_symbols: or(args.symbols, 10_000, 100),
            n_bars: or(args.bars, 1_500, 120),
            repeat: or(args.repeat, 9, 1),
            scaling: args.scaling.clone().unwrap_or_else(|| scaling.to_vec()),
            n_stress: args.stress.unwrap_or(if args.quick { 8 } else { 1_000 }),
            stress_symbols: if args.quick { 40 } else { 1_000 },
        }
    }

    fn most_symbols(&self) -> usize {
        self.scaling.iter().copied().max().unwrap_or(0).max(self.n_symbols).max(self.stress_symbols)
    }
}

/// Generated prices and their names.
struct Prices {
    names: Vec<String>,
    closes: Vec<Vec<f64>>,
}

impl Prices {
    fn symbols(&self, n: usize) -> Vec<Symbol<'_>> {
        let both = self.names.iter().zip(&self.closes).take(n);
        both.map(|(name, closes)| Symbol { name, closes }).collect()
    }
}

/// One line of a measurement.
#[derive(Serialize)]
struct Line {
    symbols: usize,
    /// None is the CPU.
    streams: Option<usize>,
    batches: usize,
    median_ms: f64,
    best_ms: f64,
    symbols_per_s: f64,
    /// Time with a kernel at work, on the device's clock.
    kernel_ms: Option<f64>,
    /// Time with a transfer under way.
    transfer_ms: Option<f64>,
    /// Share of the transfers beside a kernel.
    hidden_share: Option<f64>,
    /// What ran when in the median scan: stage, stream, begin and end in ms.
    spans: Vec<(String, usize, f64, f64)>,
}

/// What the stress part found.
#[derive(Serialize)]
struct Stress {
    scans: usize,
    streams: usize,
    symbols: usize,
    seconds: f64,
    /// Device memory in use that was not before.
    device_growth_bytes: i64,
    /// Memory of the process in use that was not before; none where the system does not report it.
    resident_growth_bytes: Option<i64>,
    different: usize,
}

/// What of the process may grow over a thousand scans: pages of allocators and threads, no data.
const RESIDENT_SLACK_BYTES: i64 = 32 << 20;

pub fn run(args: ScanBenchArgs) -> Result<ExitCode> {
    set_threads(args.threads)?;
    let plan = Plan::new(&args);
    let devices = Devices::choose(args.device)?;
    let device = devices.devices.first();
    if let Some(&bad) = args.streams.iter().find(|streams| !(1..=MAX_STREAMS).contains(*streams)) {
        bail!("--streams {bad}: expected numbers from 1 to {MAX_STREAMS}");
    }
    let closes = walk::generate(plan.most_symbols(), plan.n_bars);
    let prices = Prices { names: (0..closes.len()).map(|at| format!("SYM{at:06}")).collect(), closes };
    let symbols = prices.symbols(plan.n_symbols);
    // Every signal counts, also one of zero.
    let options = ScanOptions { min_signal: 0.0, ..ScanOptions::default() };

    let mut on_cpu = Scanner::cpu(options.clone())?;
    let (cpu, expected) = measure(&mut on_cpu, &symbols, None, if args.quick { 1 } else { 3 })?;
    if let Some(folder) = &args.dump {
        dump(folder, &symbols, &expected, plan.n_bars)?;
    }
    let mut different = 0;
    let mut streams_lines = Vec::new();
    let mut scaling = Vec::new();
    let mut stress = None;
    if let Some(device) = device {
        different += history_differs(device, &options, &prices, plan.n_symbols.min(64))?;
        for &streams in &args.streams {
            let mut scanner = on_device(device, &options, streams, args.batch)?;
            let (line, found) = measure(&mut scanner, &symbols, Some(streams), plan.repeat)?;
            different += count_different(&found, &expected);
            streams_lines.push(line);
        }
        let best = streams_lines.iter().min_by(|a, b| a.median_ms.total_cmp(&b.median_ms));
        let streams = best.and_then(|line| line.streams).unwrap_or(4);
        let mut scanner = on_device(device, &options, streams, args.batch)?;
        for &n in &plan.scaling {
            let (line, found) = measure(&mut scanner, &prices.symbols(n), Some(streams), plan.repeat)?;
            let n_compared = n.min(plan.n_symbols);
            different += count_different_of(&found, &expected, n_compared);
            scaling.push(line);
        }
        drop(scanner);
        stress = Some(run_stress(device, &options, &prices, &plan)?);
    }
    for &n in &plan.scaling {
        let (line, _) = measure(&mut on_cpu, &prices.symbols(n), None, 1)?;
        scaling.push(line);
    }
    different += stress.as_ref().map_or(0, |stress: &Stress| stress.different);
    let is_steady = stress.as_ref().is_none_or(Stress::is_steady);

    let device_name = device.map(|device| device.info().name.clone());
    let mut out = std::io::stdout().lock();
    if args.json {
        let result = json!({
            "bench": "scan", "device": device_name, "symbols": plan.n_symbols, "bars": plan.n_bars,
            "threads": rayon::current_num_threads(), "cpu": cpu, "streams": streams_lines, "scaling": scaling,
            "stress": stress, "steady": is_steady, "different": different,
        });
        writeln!(out, "{result}")?;
    } else {
        let name = device_name.unwrap_or_else(|| "the CPU alone".into());
        let (n_symbols, n_bars) = (number::count(plan.n_symbols as u64), number::count(plan.n_bars as u64));
        writeln!(
            out,
            "scan: {n_symbols} symbols × {n_bars} bars on {name}; prices on the host to rows on the host"
        )?;
        writeln!(out, "{HEADER}")?;
        for line in streams_lines.iter().chain([&cpu]) {
            line.write(&mut out)?;
        }
        writeln!(out, "scaling")?;
        for line in &scaling {
            line.write(&mut out)?;
        }
        if let Some(stress) = &stress {
            stress.write(&mut out)?;
        }
        if device.is_some() {
            writeln!(out, "compared with the CPU: {different} differ")?;
        }
    }
    out.flush()?;
    Ok(if different == 0 && is_steady { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

const HEADER: &str = "                    symbols  batches    median ms      best ms    symbols/s    kernel ms  transfer ms  beside a kernel";

impl Line {
    fn write(&self, out: &mut impl Write) -> Result<()> {
        let name = match self.streams {
            Some(1) => "  1 stream".to_string(),
            Some(n) => format!("  {n} streams"),
            None => format!("  CPU, {} threads", rayon::current_num_threads()),
        };
        write!(
            out,
            "{name:<18}{:9}{:9}{:13.3}{:13.3}{:13.0}",
            self.symbols, self.batches, self.median_ms, self.best_ms, self.symbols_per_s
        )?;
        if let (Some(kernel), Some(transfer), Some(hidden)) =
            (self.kernel_ms, self.transfer_ms, self.hidden_share)
        {
            write!(out, "{kernel:13.3}{transfer:13.3}{:13.0} %", hidden * 100.0)?;
        }
        writeln!(out)?;
        Ok(())
    }
}

impl Stress {
    fn is_steady(&self) -> bool {
        self.device_growth_bytes <= 0
            && self.resident_growth_bytes.is_none_or(|growth| growth <= RESIDENT_SLACK_BYTES)
    }

    fn write(&self, out: &mut impl Write) -> Result<()> {
        let mib = |bytes: i64| bytes as f64 / f64::from(1 << 20);
        let resident = self.resident_growth_bytes;
        writeln!(
            out,
            "stress: {} scans of {} symbols with {} streams in {:.2} s; memory grew by {:.1} MiB on the device, {} on the host; {} differ",
            number::count(self.scans as u64),
            number::count(self.symbols as u64),
            self.streams,
            self.seconds,
            mib(self.device_growth_bytes),
            resident.map_or("an unknown amount".into(), |bytes| format!("{:.1} MiB", mib(bytes))),
            self.different
        )?;
        Ok(())
    }
}

fn on_device(
    device: &Device,
    options: &ScanOptions,
    streams: usize,
    batch: Option<usize>,
) -> Result<Scanner> {
    let device_options = DeviceOptions { context: ContextOptions::parallel(streams), batch_symbols: batch };
    Ok(Scanner::on_devices(options.clone(), std::slice::from_ref(device), &device_options)?)
}

/// Scans once to warm up, then repeatedly; the median, and what was found last.
fn measure(
    scanner: &mut Scanner,
    symbols: &[Symbol<'_>],
    streams: Option<usize>,
    repeat: usize,
) -> Result<(Line, Scanned)> {
    let mut found = scanner.scan(symbols, |_| ())?;
    let mut runs: Vec<(f64, Vec<StageSpan>, usize)> = Vec::with_capacity(repeat);
    for _ in 0..repeat {
        let (mut spans, mut batches) = (Vec::new(), 0);
        let began = Instant::now();
        found = scanner.scan(symbols, |event| {
            if let ScanEvent::Batch(batch) = event {
                spans.extend(batch.stages);
                batches += 1;
            }
        })?;
        runs.push((began.elapsed().as_secs_f64() * 1e3, spans, batches));
    }
    runs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let best_ms = runs[0].0;
    let (median_ms, spans, batches) = runs.swap_remove(runs.len() / 2);
    let overlap = streams.map(|_| Overlap::of(&spans));
    let on_device = spans.iter().filter(|span| span.device.is_some());
    let line = Line {
        spans: on_device
            .map(|span| (span.stage.name().to_owned(), span.stream, span.begin_ms, span.end_ms))
            .collect(),
        symbols: symbols.len(),
        streams,
        batches,
        median_ms,
        best_ms,
        symbols_per_s: symbols.len() as f64 / median_ms * 1e3,
        kernel_ms: overlap.map(|overlap| overlap.kernel_ms),
        transfer_ms: overlap.map(|overlap| overlap.transfer_ms),
        hidden_share: overlap.map(|overlap| overlap.hidden_share()),
    };
    Ok((line, found))
}

/// Symbols whose signals differ in any bit, or that only one side has.
fn count_different(found: &Scanned, expected: &Scanned) -> usize {
    let n_rows = found.rows.len().max(expected.rows.len());
    n_rows - found.rows.iter().zip(&expected.rows).filter(|(a, b)| is_same(a, b)).count()
}

/// The same of the first symbols only.
fn count_different_of(found: &Scanned, expected: &Scanned, n: usize) -> usize {
    let of = |scanned: &Scanned| Scanned {
        rows: scanned.rows.iter().filter(|row| row.index < n).cloned().collect(),
        ..Scanned::default()
    };
    count_different(&of(found), &of(expected))
}

fn is_same(a: &tidemill_scan::Row, b: &tidemill_scan::Row) -> bool {
    let bits = |row: &tidemill_scan::Row| -> Option<Vec<u64>> {
        row.average.as_ref().map(|average| average.iter().map(|value| canonical(*value)).collect())
    };
    a.index == b.index && canonical(a.signal) == canonical(b.signal) && bits(a) == bits(b)
}

/// All NaNs are one.
fn canonical(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }
}

/// Compares whole averages, of the first symbols at several lengths.
fn history_differs(device: &Device, options: &ScanOptions, prices: &Prices, n: usize) -> Result<usize> {
    let options = ScanOptions { history: true, ..options.clone() };
    let mut symbols = prices.symbols(n);
    for (at, symbol) in symbols.iter_mut().enumerate() {
        // Ragged, some too short.
        symbol.closes = &symbol.closes[..symbol.closes.len() * (at % 7 + 1) / 7];
    }
    let expected = Scanner::cpu(options.clone())?.scan(&symbols, |_| ())?;
    let found = on_device(device, &options, 3, Some(5))?.scan(&symbols, |_| ())?;
    Ok(count_different(&found, &expected) + usize::from(found.skipped != expected.skipped))
}

fn run_stress(device: &Device, options: &ScanOptions, prices: &Prices, plan: &Plan) -> Result<Stress> {
    let symbols = prices.symbols(plan.stress_symbols);
    let mut scanner = on_device(device, options, MAX_STREAMS, None)?;
    let expected = scanner.scan(&symbols, |_| ())?;
    // The first scans make lanes, staging memory and the events of the pool.
    for _ in 0..plan.n_stress.min(10) {
        scanner.scan(&symbols, |_| ())?;
    }
    let (device_before, resident_before) = (device.free_bytes()?, resident_bytes());
    let began = Instant::now();
    let mut different = 0;
    for _ in 0..plan.n_stress {
        different += count_different(&scanner.scan(&symbols, |_| ())?, &expected);
    }
    let seconds = began.elapsed().as_secs_f64();
    let grown = |before: u64, after: u64| after as i64 - before as i64;
    Ok(Stress {
        scans: plan.n_stress,
        streams: MAX_STREAMS,
        symbols: symbols.len(),
        seconds,
        device_growth_bytes: grown(device.free_bytes()?, device_before),
        resident_growth_bytes: resident_before
            .zip(resident_bytes())
            .map(|(before, after)| grown(before, after)),
        different,
    })
}

/// Memory of this process that is in use, where the system tells.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

fn dump(folder: &std::path::Path, symbols: &[Symbol<'_>], found: &Scanned, n_bars: usize) -> Result<()> {
    let closes = symbols.iter().flat_map(|symbol| symbol.closes.iter().copied());
    let context = || format!("--dump {}", folder.display());
    std::fs::create_dir_all(folder).with_context(context)?;
    npy::write(&folder.join("closes.npy"), &[symbols.len(), n_bars], closes).with_context(context)?;
    let mut signals = vec![f64::NAN; symbols.len()];
    found.rows.iter().for_each(|row| signals[row.index] = row.signal);
    npy::write(&folder.join("signals.npy"), &[signals.len()], signals.into_iter()).with_context(context)
}
