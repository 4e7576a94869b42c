//! Sweeps on devices that are in order, too small, or break: always the trials of the CPU, or an error and a study that can be resumed.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidemill_gpu::{Device, Fault, HostOptions, Source};
use tidemill_lab::{
    Dataset, Devices, Experiment, LabError, Runtime, SearchOptions, SweepEvent, SweepReport, open_strategy,
};
use tidemill_market::Universe;
use tidemill_market::synth::lcg;
use tidemill_search::{ExportFormat, export};
use tidemill_telemetry::{DeviceMode, read_journal};

/// A folder, and sweeps in it.
struct Place {
    dir: tempfile::TempDir,
    data: Arc<Dataset>,
}

impl Place {
    /// None, and why, where kernels cannot be compiled for the host.
    fn new() -> Option<Self> {
        if let Err(error) = host(&[]).load(&Source::splice("nothing.cu", &[])) {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let data = Arc::new(Dataset::of(Universe { symbols: vec![lcg(1_200)] }));
        Some(Self { dir, data })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// 160 trials in ten batches, of a sampler that learns from them.
    fn sweep(&self, devices: Devices, out: &str) -> Result<SweepReport, LabError> {
        let strategy = open_strategy("zscore-dip", &Default::default()).unwrap();
        let runtime = Runtime { devices: Arc::new(devices), ..Runtime::default() };
        let experiment = Experiment::new(strategy, self.data.clone()).runtime(runtime);
        let options = SearchOptions { trials: 160, batch: Some(16), ..SearchOptions::default() };
        experiment.sweep().options(options).folder(self.path(out)).run()
    }

    /// All trials as text.
    fn trials(&self, out: &str) -> String {
        exported(&self.path(out))
    }

    /// Where the batches ran, in their order.
    fn modes(&self, out: &str) -> Vec<DeviceMode> {
        let journal = read_journal(&self.path(out).join("journal.jsonl")).unwrap();
        let events = journal.map(Result::unwrap).filter(|event| event.phase == "kernel");
        events.map(|event| event.device.unwrap()).collect()
    }
}

fn exported(dir: &Path) -> String {
    let mut bytes = Vec::new();
    export(dir, ExportFormat::Csv, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// An error with all its causes.
fn in_full(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |error| (*error).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn host(faults: &[Fault]) -> Device {
    Device::host(HostOptions { faults: faults.to_vec(), ..HostOptions::default() })
}

fn cpu() -> Devices {
    Devices::of(Vec::new(), false)
}

fn kernel_fails(kernel: &str, nth: u64) -> Fault {
    Fault::KernelFails { kernel: kernel.into(), nth }
}

#[test]
fn several_devices_give_the_trials_of_one_and_of_the_cpu() {
    let Some(place) = Place::new() else { return };
    place.sweep(cpu(), "cpu").unwrap();
    assert_eq!(place.trials("cpu").lines().count(), 161);
    assert!(place.modes("cpu").iter().all(|mode| *mode == DeviceMode::Cpu));
    for n_devices in [1, 2, 3] {
        let out = format!("devices-{n_devices}");
        let devices = (0..n_devices).map(|_| host(&[])).collect();
        place.sweep(Devices::of(devices, false), &out).unwrap();
        assert_eq!(place.trials(&out), place.trials("cpu"), "{n_devices} devices");
        assert!(place.modes(&out).iter().all(|mode| matches!(mode, DeviceMode::Gpu { .. })));
    }
}

#[test]
fn a_failing_kernel_is_named_and_the_study_goes_on_elsewhere() {
    let Some(place) = Place::new() else { return };
    place.sweep(cpu(), "cpu").unwrap();
    let faults = [
        ("kernel", kernel_fails("begin_walks", 4), "begin_walks"),
        ("launch", Fault::LaunchFails { kernel: "book".into(), nth: 5 }, "book"),
        ("lost", Fault::DeviceLost { after_launches: 30 }, "kernel"),
    ];
    for (out, fault, named) in faults {
        let error = place.sweep(Devices::of(vec![host(&[fault])], false), out).unwrap_err();
        let text = in_full(&error);
        assert!(text.contains(named) && text.contains("kernel"), "{out}: {text}");
        let journal = std::fs::read_to_string(place.path(out).join("journal.jsonl")).unwrap();
        assert!(journal.contains("\"failed\"") && journal.contains(named), "{out}: {journal}");
        // A third on another device, the rest on the CPU.
        let n_before = place.trials(out).lines().count();
        assert!(n_before < 161, "{out}: {n_before}");
        let _ =
            place.sweep(Devices::of(vec![host(&[kernel_fails("begin_walks", 3)])], false), out).unwrap_err();
        assert!(place.trials(out).lines().count() >= n_before, "{out}");
        place.sweep(cpu(), out).unwrap();
        assert_eq!(place.trials(out), place.trials("cpu"), "{out}");
    }
}

#[test]
fn where_the_choice_is_free_the_cpu_takes_over_and_it_is_recorded() {
    let Some(place) = Place::new() else { return };
    place.sweep(cpu(), "cpu").unwrap();
    let one = |fault: Fault| vec![host(&[fault])];
    let cases = [
        ("kernel", one(kernel_fails("begin_walks", 4)), "begin_walks", true),
        ("launch", one(Fault::LaunchFails { kernel: "book".into(), nth: 3 }), "book", true),
        ("lost", one(Fault::DeviceLost { after_launches: 60 }), "lost", true),
        ("second of two", vec![host(&[]), host(&[kernel_fails("book", 2)])], "book", true),
        ("no compiler", one(Fault::NoCompiler), "compiler", false),
        ("data does not fit", one(Fault::OutOfMemory { nth: 1 }), "out of device memory", false),
    ];
    for (out, devices, named, begins_well) in cases {
        place.sweep(Devices::of(devices, true), out).unwrap();
        assert_eq!(place.trials(out), place.trials("cpu"), "{out}");
        let modes = place.modes(out);
        assert_eq!(matches!(modes[0], DeviceMode::Gpu { .. }), begins_well, "{out}: {modes:?}");
        let Some(DeviceMode::CpuFallback { reason }) = modes.last() else { panic!("{out}: {modes:?}") };
        assert!(reason.contains(named), "{out}: {reason}");
        // Once left, a device is not gone back to.
        let first = modes.iter().position(|mode| matches!(mode, DeviceMode::CpuFallback { .. })).unwrap();
        assert!(modes[first..].iter().all(|mode| mode == &modes[first]), "{out}: {modes:?}");
    }
}

#[test]
fn a_device_that_runs_out_of_memory_does_less_at_a_time() {
    let Some(place) = Place::new() else { return };
    place.sweep(cpu(), "cpu").unwrap();
    let faults = [20, 23, 31, 44].map(|nth| Fault::OutOfMemory { nth });
    place.sweep(Devices::of(vec![host(&faults)], false), "device").unwrap();
    assert_eq!(place.trials("device"), place.trials("cpu"));
    assert!(place.modes("device").iter().all(|mode| matches!(mode, DeviceMode::Gpu { .. })));
}

/// A device one of whose kernels never ends, and which is waited for a little longer than its work takes on a machine that is not busy. On a
/// busy one it may be given up before the kernel is reached, which comes to the same.
fn hanging() -> Device {
    let device = host(&[Fault::KernelHangs { kernel: "begin_walks".into(), nth: 4 }]);
    device.set_wait_limit(Duration::from_secs(2));
    device
}

#[test]
fn a_device_that_hangs_is_left_for_the_cpu_if_it_may_and_is_an_error_if_not() {
    let Some(place) = Place::new() else { return };
    // In a thread of its own: what waits for the kernel without a limit would never come back.
    let (done, is_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        place.sweep(cpu(), "cpu").unwrap();
        place.sweep(Devices::of(vec![hanging()], true), "auto").unwrap();
        let error = place.sweep(Devices::of(vec![hanging()], false), "cuda").unwrap_err();
        // The test may have given up.
        let _ = done.send((place, in_full(&error)));
    });
    let (place, error) = is_done.recv_timeout(Duration::from_secs(600)).expect("something waits for ever");
    assert_eq!(place.trials("auto"), place.trials("cpu"));
    let modes = place.modes("auto");
    let Some(DeviceMode::CpuFallback { reason }) = modes.last() else { panic!("{modes:?}") };
    assert!(reason.contains("the device hangs") && reason.contains("2 s"), "{reason}");

    assert!(error.contains("the device hangs"), "{error}");
    let journal = std::fs::read_to_string(place.path("cuda").join("journal.jsonl")).unwrap();
    assert!(journal.contains("\"failed\"") && journal.contains("the device hangs"), "{journal}");
    assert!(place.trials("cuda").lines().count() < 161);
    place.sweep(cpu(), "cuda").unwrap();
    assert_eq!(place.trials("cuda"), place.trials("cpu"));
}

#[test]
fn a_sweep_that_fails_reports_when_its_stages_ran() {
    let Some(place) = Place::new() else { return };
    let strategy = open_strategy("zscore-dip", &Default::default()).unwrap();
    let devices = Arc::new(Devices::of(vec![host(&[kernel_fails("begin_walks", 4)])], false));
    let runtime = Runtime { devices, keeps_spans: true, ..Runtime::default() };
    let n_spans = Arc::new(Mutex::new(None));
    let heard = n_spans.clone();
    let sweep = Experiment::new(strategy, place.data.clone()).runtime(runtime).sweep();
    let options = SearchOptions { trials: 160, batch: Some(16), ..SearchOptions::default() };
    let sweep = sweep.options(options).observe(move |event| {
        if let SweepEvent::Spans { devices, sampler } = event {
            assert!(!sampler.is_empty());
            *heard.lock().unwrap() = Some(devices.len());
        }
    });
    assert!(sweep.run().is_err());
    assert!(n_spans.lock().unwrap().unwrap() > 0, "three batches ran before the fourth failed");
}
