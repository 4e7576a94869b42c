//! Scans on devices that are in order, too small, or break: always what the CPU finds, or an error.

use clap::Parser;
use tidemill_gpu::{Device, Fault, HostOptions, Source};
use tidemill_telemetry::{DeviceMode, read_journal};

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: ScanArgs,
}

/// A device with these faults; none, and why, where kernels cannot be compiled for the host.
fn host(faults: &[Fault]) -> Option<Device> {
    let device = Device::host(HostOptions { faults: faults.to_vec(), ..HostOptions::default() });
    if let Err(error) = Device::host(HostOptions::default()).load(&Source::splice("nothing.cu", &[])) {
        tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
        return None;
    }
    Some(device)
}

/// Scans 100 generated symbols; what is printed, and the phase and mode of every record.
fn scan(devices: Devices) -> Result<(String, Vec<(String, DeviceMode)>)> {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.jsonl");
    let line = ["scan", "--json", "--bars", "60", "--streams", "3", "--journal"].map(Into::into);
    let args = Line::try_parse_from(line.into_iter().chain([journal.clone().into_os_string()])).unwrap().args;
    let mut out = Vec::new();
    run_on(args, &Settings::default(), devices, &Display::default(), &mut out)?;
    let records = read_journal(&journal).unwrap().map(Result::unwrap);
    let modes = records.filter_map(|record| Some((record.phase.to_string(), record.device?)));
    Ok((String::from_utf8(out).unwrap(), modes.collect()))
}

#[test]
fn a_device_that_breaks_hands_over_to_the_cpu_or_is_an_error() {
    let (expected, modes) = scan(Devices::of(Vec::new(), false)).unwrap();
    assert_eq!(modes, [("kernel".to_string(), DeviceMode::Cpu)]);
    for fault in [
        Fault::DeviceLost { after_launches: 1 },
        Fault::LaunchFails { kernel: "atc_fused".into(), nth: 1 },
        Fault::KernelFails { kernel: "atc_fused".into(), nth: 2 },
        Fault::NoCompiler,
    ] {
        let faults = std::slice::from_ref(&fault);
        let Some(device) = host(faults) else { return };
        let (found, modes) = scan(Devices::of(vec![device], true)).unwrap();
        assert_eq!(found, expected, "{fault:?}");
        let (phase, mode) = modes.last().unwrap();
        assert!(phase == "kernel" && matches!(mode, DeviceMode::CpuFallback { .. }), "{fault:?}: {modes:?}");
        let error = scan(Devices::of(vec![host(faults).unwrap()], false)).err().unwrap().to_string();
        assert!(error.starts_with("host: "), "{fault:?}: {error}");
    }
}

#[test]
fn a_device_that_is_too_small_goes_on_in_smaller_batches() {
    let (expected, _) = scan(Devices::of(Vec::new(), false)).unwrap();
    let Some(device) = host(&[Fault::OutOfMemory { nth: 3 }]) else { return };
    let (found, modes) = scan(Devices::of(vec![device], false)).unwrap();
    assert_eq!(found, expected);
    assert!(modes.iter().all(|(_, mode)| matches!(mode, DeviceMode::Gpu { .. })), "{modes:?}");
}
