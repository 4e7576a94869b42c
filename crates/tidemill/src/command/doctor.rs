//! `tidemill doctor`: checks what a GPU needs on this machine and prints how to get what is missing.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use rayon::prelude::*;
use serde_json::{Value, json};
use tidemill_backtest::cuda::{column_source, device_sources};
use tidemill_backtest::segment::Layout;
use tidemill_backtest::{DeviceEngine, Engine, EngineOptions, Overrides, Strategy};
use tidemill_coloring::device::{source, tabu_source};
use tidemill_gpu::{
    Device, DeviceInfo, GpuError, HostOptions, LEAST_ARCHITECTURE, NvrtcInfo, Source, capability, emulate,
    kernel_folder, probe,
};
use tidemill_market::atc;
use tidemill_search::{SamplerKind, SamplerSettings};

use crate::exit::ExitCode;
use crate::settings::{GpuSettings, Settings};
use tidemill_lab::DeviceChoice;
use tidemill_lab::number;
use tidemill_lab::parity::compare;
use tidemill_lab::shipped::{self, SHIPPED};

/// Check whether this machine can use a GPU, and run a small sweep on it.
#[derive(Args)]
#[command(after_help = "Examples:
  tidemill doctor
  tidemill doctor --device cuda:1
  tidemill doctor --device emulated       the same checks with the kernels on the CPU
  tidemill doctor --quick                 compile the kernels of one strategy, not all of them

Exit codes: 0 the device can be used, 1 it cannot; the CPU works either way.")]
pub struct DoctorArgs {
    /// Devices to check: auto or cuda (all GPUs), cuda:N, or emulated.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,
    /// Settings file [default: tidemill.toml in this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Compile the kernels of one strategy alone: seconds, where all of them take minutes.
    #[arg(long)]
    quick: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckState {
    /// No problem.
    Ok,
    /// Something is missing.
    Missing,
    /// It exists and does not work.
    Failed,
    /// It could not be tried, because of a problem above.
    Skipped,
    /// It does not work, but nothing else needs it.
    Warning,
}

impl CheckState {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Warning => "warning",
        }
    }
}

/// One line of the report.
struct DoctorCheck {
    what: String,
    state: CheckState,
    found: String,
    cure: Option<String>,
}

/// All lines.
#[derive(Default)]
struct DoctorReport {
    checks: Vec<DoctorCheck>,
    /// Whether the kernels of one strategy will do.
    is_quick: bool,
}

impl DoctorReport {
    fn add(&mut self, what: impl Into<String>, state: CheckState, found: impl Into<String>) {
        self.checks.push(DoctorCheck { what: what.into(), state, found: found.into(), cure: None });
    }

    fn add_error(&mut self, what: impl Into<String>, error: &GpuError) {
        let (state, found, cure) = match error {
            GpuError::Unavailable { what, cure } => (CheckState::Missing, what.clone(), Some(cure.clone())),
            GpuError::OutOfMemory { .. } => {
                (CheckState::Failed, error.to_string(), Some("end other programs that use the device".into()))
            }
            GpuError::Compile { .. } => (
                CheckState::Failed,
                error.to_string(),
                Some("this is a defect of Tidemill or of the compiler; report it with this text".into()),
            ),
            GpuError::Fault { .. } => (
                CheckState::Failed,
                error.to_string(),
                Some("see what `nvidia-smi` and `dmesg` say about the device; try again".into()),
            ),
            GpuError::Hung { .. } => (
                CheckState::Failed,
                error.to_string(),
                Some(
                    "see what `nvidia-smi` and `dmesg` say about the device; where it is only slow, set a longer wait_limit_s \
                     under [gpu] in tidemill.toml"
                        .into(),
                ),
            ),
            other => (CheckState::Failed, other.to_string(), None),
        };
        self.checks.push(DoctorCheck { what: what.into(), state, found, cure });
    }

    /// Whether no check failed.
    fn is_usable(&self) -> bool {
        self.checks.iter().all(|check| matches!(check.state, CheckState::Ok | CheckState::Warning))
    }
}

pub fn run(args: DoctorArgs) -> Result<ExitCode> {
    let settings = Settings::load(args.config.as_deref())?;
    let mut report = DoctorReport { is_quick: args.quick, ..DoctorReport::default() };
    match args.device {
        DeviceChoice::Emulated(n) => look_at_emulation(&mut report, &settings.gpu, n),
        DeviceChoice::Cuda(ordinal) => look_at_gpus(&mut report, &settings.gpu, ordinal),
        DeviceChoice::Auto => look_at_gpus(&mut report, &settings.gpu, None),
        DeviceChoice::Cpu => report.add("CPU", CheckState::Ok, "needs nothing"),
    }
    let verdict = verdict(&report, args.device);
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", json(&report, &verdict))?;
    } else {
        write!(out, "{}", text(&report))?;
        writeln!(out, "\n{verdict}")?;
    }
    out.flush()?;
    Ok(if report.is_usable() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn look_at_gpus(report: &mut DoctorReport, settings: &GpuSettings, only: Option<usize>) {
    let probe = probe();
    match &probe.driver {
        Ok(version) => report.add("driver", CheckState::Ok, format!("for CUDA {version}")),
        Err(error) => report.add_error("driver", error),
    }
    match &probe.nvrtc {
        Ok(info) => report.add("NVRTC", CheckState::Ok, format!("{}, {}", info.version, info.file.display())),
        Err(error) => report.add_error("NVRTC", error),
    }
    report.add("capability", CheckState::Ok, least_capability(probe.nvrtc.as_ref().ok()));
    let found: Vec<DeviceInfo> = match probe.devices {
        Ok(found) => found,
        Err(error) => {
            match probe.driver {
                Ok(_) => report.add_error("devices", &error),
                Err(_) => report.add("devices", CheckState::Skipped, "the driver lists them"),
            }
            Vec::new()
        }
    };
    let mut devices = Vec::new();
    for info in found.iter().filter(|info| only.is_none_or(|only| info.ordinal == only)) {
        let what = format!("device {}", info.ordinal);
        if let Some(obstacle) = info.obstacle(probe.nvrtc.as_ref().ok()) {
            report.add_error(what, &obstacle);
            continue;
        }
        match Device::cuda(info.ordinal) {
            Ok(device) => {
                if let Some(limit) = settings.wait_limit() {
                    device.set_wait_limit(limit);
                }
                report.add(what, CheckState::Ok, shown(device.info()));
                devices.push(device);
            }
            // Reported above.
            Err(_) if probe.nvrtc.is_err() => report.add(what, CheckState::Ok, shown(info)),
            Err(error) => report.add_error(what, &error),
        }
    }
    if let Some(only) = only
        && !found.is_empty()
        && !found.iter().any(|info| info.ordinal == only)
    {
        let cure = format!("choose one of 0 to {}", found.len() - 1);
        let check = DoctorCheck {
            what: format!("device {only}"),
            state: CheckState::Missing,
            found: "there is no such device".into(),
            cure: Some(cure),
        };
        report.checks.push(check);
    }
    if probe.nvrtc.is_ok() {
        match devices.first() {
            Some(device) => {
                let architecture = device.info().architecture.clone();
                compile_all(report, &architecture, |source| device.load(source).map(drop));
            }
            None => compile_all(report, ANY_ARCHITECTURE, |source| {
                tidemill_gpu::compile(source, ANY_ARCHITECTURE).map(drop)
            }),
        }
    } else {
        report.add("kernels", CheckState::Skipped, "NVRTC compiles them");
    }
    round_trips(report, settings, &devices);
    cache(report, kernel_folder());
}

/// What kernels are compiled for where no device says it.
const ANY_ARCHITECTURE: &str = "sm_90";

fn look_at_emulation(report: &mut DoctorReport, settings: &GpuSettings, n_devices: usize) {
    let devices: Vec<Device> = (0..n_devices).map(|_| Device::host(HostOptions::default())).collect();
    let compiler = std::env::var("CXX").ok().filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".into());
    let device = &devices[0];
    match device.load(&Source::splice("nothing.cu", &[])) {
        Ok(_) => report.add("C++ compiler", CheckState::Ok, compiler),
        Err(error) => report.add_error("C++ compiler", &error),
    }
    for (at, device) in devices.iter().enumerate() {
        report.add(format!("device {at}"), CheckState::Ok, shown(device.info()));
    }
    if report.is_usable() {
        compile_all(report, "the CPU", |source| device.load(source).map(drop));
    } else {
        report.add("kernels", CheckState::Skipped, "the C++ compiler compiles them");
    }
    round_trips(report, settings, &devices);
    cache(report, emulate::cache_folder());
}

/// Which cards can be used, and which of them with this compiler.
fn least_capability(nvrtc: Option<&NvrtcInfo>) -> String {
    let mut text = format!("a GPU needs at least compute capability {}", capability(LEAST_ARCHITECTURE));
    let least_of_nvrtc = nvrtc.and_then(|info| info.architectures.first().map(|first| (info, *first)));
    if let Some((info, first)) = least_of_nvrtc
        && first > LEAST_ARCHITECTURE
    {
        text += &format!(", with NVRTC {} {}", info.version, capability(first));
    }
    text
}

fn shown(info: &DeviceInfo) -> String {
    let gib = info.memory_bytes as f64 / f64::from(1 << 30);
    let capability = info.capability().map_or_else(String::new, |n| format!(", compute capability {n}"));
    let DeviceInfo { name, architecture, multiprocessors, .. } = info;
    format!("{name}, {gib:.1} GiB, {architecture}{capability}, {multiprocessors} multiprocessors")
}

/// Compiles the kernels of all indicators, of the scanner, of colouring and of every shipped strategy, side by side; in a quick look those of
/// the strategy of the round trip alone.
fn compile_all(
    report: &mut DoctorReport,
    target: &str,
    compile: impl Fn(&Source) -> Result<(), GpuError> + Sync,
) {
    let of_strategy =
        |name: &'static str| (name, with_shipped(name, |strategy, engine| device_sources(engine, strategy)));
    let sources = if report.is_quick {
        vec![of_strategy(ROUND_TRIP_STRATEGY)]
    } else {
        let mut sources = vec![
            ("indicators", Ok(vec![column_source()])),
            ("the scanner", Ok(vec![atc::device::source()])),
            ("colouring", Ok([1, 2, 4, 8].map(tabu_source).into_iter().chain([source()]).collect())),
        ];
        sources.extend(SHIPPED.iter().map(|(name, _)| of_strategy(name)));
        sources
    };
    let began = Instant::now();
    let compiled: Vec<_> = sources
        .into_par_iter()
        .map(|(what, sources)| {
            let compiled = sources.map(|sources| sources.par_iter().try_for_each(&compile));
            (what, compiled, began.elapsed().as_secs_f64())
        })
        .collect();
    for (what, result, seconds) in compiled {
        let what = format!("kernels of {what}");
        match result {
            Ok(Ok(())) => report.add(what, CheckState::Ok, format!("for {target}, in {seconds:.1} s")),
            Ok(Err(error)) => report.add_error(what, &error),
            Err(error) => report.add(what, CheckState::Failed, error.to_string()),
        }
    }
}

/// Bars of the round trip.
const ROUND_TRIP_BARS: usize = 2_000;
/// Trials of the round trip.
const ROUND_TRIP_TRIALS: usize = 64;
const ROUND_TRIP_STRATEGY: &str = "zscore-dip";

/// Opens a shipped strategy over generated data.
fn with_shipped<R>(name: &str, act: impl FnOnce(&Strategy, &mut Engine<'_>) -> R) -> Result<R> {
    let source = shipped::shipped(name).unwrap_or_default();
    let strategy = Strategy::parse(&format!("{name}.toml"), source, &Overrides::default())?;
    let universe = shipped::universe(ROUND_TRIP_BARS);
    let segments = Layout::default().segments(&universe)?;
    let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default())?;
    Ok(act(&strategy, &mut engine))
}

/// A small sweep on each device, compared with the CPU.
fn round_trips(report: &mut DoctorReport, settings: &GpuSettings, devices: &[Device]) {
    let usable = report.is_usable();
    if devices.is_empty() {
        report.add("round trip", CheckState::Skipped, "there is no device to try it on");
    }
    for (at, device) in devices.iter().enumerate() {
        let what = format!("round trip {at}");
        if !usable {
            report.add(what, CheckState::Skipped, "because of the problem above");
            continue;
        }
        match round_trip(settings, device) {
            Ok(Ok((found, true))) => report.add(what, CheckState::Ok, found),
            Ok(Ok((found, false))) => {
                let cure = Some("do not use this device; run `tidemill parity` and report its output".into());
                report.checks.push(DoctorCheck { what, state: CheckState::Failed, found, cure });
            }
            Ok(Err(error)) => report.add_error(what, &error),
            Err(error) => report.add(what, CheckState::Failed, error.to_string()),
        }
    }
}

/// What a round trip found, and whether all bits are the same.
fn round_trip(settings: &GpuSettings, device: &Device) -> Result<Result<(String, bool), GpuError>> {
    with_shipped(ROUND_TRIP_STRATEGY, |strategy, engine| {
        let mut sampler = SamplerKind::Random.build(&engine.space(), &SamplerSettings::new(1))?;
        let points = Arc::new(sampler.ask(ROUND_TRIP_TRIALS));
        let began = Instant::now();
        let compared = DeviceEngine::new(device, engine, strategy, settings.device_options())
            .and_then(|mut on_device| compare(engine, &mut on_device, &points));
        Ok(compared.map(|compared| {
            let what = format!(
                "{ROUND_TRIP_STRATEGY}, {} trials, {} trades",
                compared.trials,
                number::count(compared.trades)
            );
            match compared.different {
                0 => (
                    format!("{what}: the same bits as the CPU, {:.1} s", began.elapsed().as_secs_f64()),
                    true,
                ),
                n => (format!("{what}: {n} trials differ from the CPU"), false),
            }
        }))
    })?
}

/// Looks at the folder for compiled kernels.
fn cache(report: &mut DoctorReport, folder: Option<PathBuf>) {
    let what = "kernel cache";
    let cure = "kernels are compiled at every start; set TIDEMILL_CACHE to a folder";
    let warn = |found: String| DoctorCheck {
        what: what.into(),
        state: CheckState::Warning,
        found,
        cure: Some(cure.into()),
    };
    let Some(folder) = folder else {
        report.checks.push(warn("there is no folder for it".into()));
        return;
    };
    match size_of_folder(&folder) {
        Ok((n_files, bytes)) => {
            let mib = bytes as f64 / f64::from(1 << 20);
            report.add(what, CheckState::Ok, format!("{}, {n_files} files, {mib:.1} MiB", folder.display()));
        }
        Err(error) => report.checks.push(warn(format!("{} cannot be written: {error}", folder.display()))),
    }
}

/// Files and bytes in a folder, which is made and written to.
fn size_of_folder(folder: &Path) -> std::io::Result<(u64, u64)> {
    fs::create_dir_all(folder)?;
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    fs::write(&probe, b"")?;
    fs::remove_file(&probe)?;
    let (mut n_files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let metadata = entry?.metadata()?;
        if metadata.is_file() {
            n_files += 1;
            bytes += metadata.len();
        }
    }
    Ok((n_files, bytes))
}

fn verdict(report: &DoctorReport, device: DeviceChoice) -> String {
    let name = if matches!(device, DeviceChoice::Emulated(_)) { "emulated device" } else { "GPU" };
    if device == DeviceChoice::Cpu {
        return "The CPU can be used; `--device cuda` checks the GPUs.".into();
    }
    if report.is_usable() {
        return match device {
            DeviceChoice::Emulated(_) => "Emulation works; it is for tests, and slow.".into(),
            _ => "The GPU can be used. `tidemill parity` compares it with the CPU in depth.".into(),
        };
    }
    format!("No {name} can be used yet. The CPU needs none of this and gives the same results.")
}

/// Aligned lines; cures and further lines of a finding stand below it.
fn text(report: &DoctorReport) -> String {
    let width = report.checks.iter().map(|check| check.what.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for check in &report.checks {
        let mut found = check.found.lines();
        let head = format!("{:width$}  {:7}  {}", check.what, check.state.name(), found.next().unwrap_or(""));
        out += head.trim_end();
        out.push('\n');
        let indent = " ".repeat(width + 11);
        for line in found {
            out += &format!("{indent}{line}\n");
        }
        if let Some(cure) = &check.cure {
            out += &format!("{indent}cure: {cure}\n");
        }
    }
    out
}

fn json(report: &DoctorReport, verdict: &str) -> Value {
    let checks: Vec<Value> = report
        .checks
        .iter()
        .map(|check| {
            json!({
                "what": check.what, "state": check.state.name(), "found": check.found, "cure": check.cure,
            })
        })
        .collect();
    json!({ "usable": report.is_usable(), "verdict": verdict, "checks": checks })
}

#[cfg(test)]
mod tests;
