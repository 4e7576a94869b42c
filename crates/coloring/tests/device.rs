//! Whole runs on a device: under emulation, and on a GPU where there is one.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tidemill_coloring::device::DeviceGraph;
use tidemill_coloring::generate::Family;
use tidemill_coloring::phase::{PhaseKind, PhaseResult};
use tidemill_coloring::{
    ColoringError, Controller, Graph, Instance, Knobs, Observer, Options, PassEvent, verify,
};
use tidemill_gpu::{ContextOptions, Device, Fault, GpuError, HostOptions};
use tidemill_telemetry::DeviceMode;

/// The emulation, unless this machine has no C++ compiler.
fn host() -> Option<Device> {
    let host = Device::host(HostOptions::default());
    match DeviceGraph::new(&host, &Graph::new(1, [])) {
        Ok(_) => Some(host),
        Err(error @ GpuError::Unavailable { .. }) => {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Where each phase ran.
#[derive(Default)]
struct Places(Vec<(PhaseKind, DeviceMode)>);

impl Observer for Places {
    fn observe(&mut self, event: PassEvent<'_>) -> Result<(), ColoringError> {
        if let PassEvent::PhaseWorked { report, .. } = event {
            self.0.push((report.kind, report.device.clone()));
        }
        Ok(())
    }
}

#[test]
fn populations_and_replicas_run_on_streams_of_their_own() {
    let Some(device) = host() else { return };
    let instance = Family::Random { n: 40, p: 0.5 }.generate(6).unwrap();
    for kind in [PhaseKind::Memetic, PhaseKind::Tempering, PhaseKind::Annealing, PhaseKind::Tabu] {
        let options = Options {
            phases: vec![PhaseKind::Greedy, kind, PhaseKind::Edge],
            max_passes: Some(1),
            time: Some(Duration::from_secs(3600)),
            knobs: Knobs { population: 0.25, ..Knobs::default() },
            ..Options::default()
        };
        let mut places = Places::default();
        let controller = Controller::new(&instance, options).unwrap().on(device.clone(), false);
        let outcome = controller.run(&mut places, &AtomicBool::new(false)).unwrap();
        assert_eq!(verify(&instance, &outcome.colors).unwrap().k, outcome.k);
        let place =
            |of: PhaseKind| places.0.iter().find(|(kind, _)| *kind == of).map(|(_, place)| place.clone());
        assert!(matches!(place(kind), Some(DeviceMode::Gpu { .. })), "{}: {:?}", kind.name(), place(kind));
        assert_eq!(place(PhaseKind::Edge), Some(DeviceMode::Cpu));
    }
}

#[test]
fn phases_take_the_streams_that_there_are() {
    let Some(device) = host() else { return };
    let instance = Family::Random { n: 40, p: 0.5 }.generate(6).unwrap();
    for (context, n_streams) in [
        (ContextOptions::parallel(8), 2),
        (ContextOptions::parallel(1), 1),
        (ContextOptions { streams: 8, ..ContextOptions::sequential() }, 1),
    ] {
        let options = Options {
            phases: vec![PhaseKind::Greedy, PhaseKind::Memetic, PhaseKind::Tempering],
            max_passes: Some(1),
            time: Some(Duration::from_secs(3600)),
            knobs: Knobs { population: 0.25, ..Knobs::default() },
            ..Options::default()
        };
        let mut places = Places::default();
        let controller =
            Controller::new(&instance, options).unwrap().on(device.clone(), false).using(context);
        controller.run(&mut places, &AtomicBool::new(false)).unwrap();
        let stream = |(_, place): &(PhaseKind, DeviceMode)| match place {
            DeviceMode::Gpu { stream } => Some(*stream),
            _ => None,
        };
        let used: std::collections::BTreeSet<u32> = places.0.iter().filter_map(stream).collect();
        assert_eq!(used.len(), n_streams, "{context:?}: {:?}", places.0);
    }
}

#[test]
fn all_devices_are_used_each_with_a_population_of_its_own_and_switches_keep_phases_on_the_cpu() {
    if host().is_none() {
        return;
    }
    let instance = Family::Random { n: 40, p: 0.5 }.generate(6).unwrap();
    let run = |n_devices: usize, on_cpu: Vec<PhaseKind>| {
        let options = Options {
            phases: vec![PhaseKind::Greedy, PhaseKind::Memetic],
            max_passes: Some(2),
            time: Some(Duration::from_secs(3600)),
            knobs: Knobs { population: 0.25, ..Knobs::default() },
            on_cpu,
            ..Options::default()
        };
        let mut controller = Controller::new(&instance, options).unwrap();
        for _ in 0..n_devices {
            controller = controller.on(Device::host(HostOptions::default()), false);
        }
        let mut devices = Devices::default();
        let outcome = controller.run(&mut devices, &AtomicBool::new(false)).unwrap();
        assert_eq!(verify(&instance, &outcome.colors).unwrap().k, outcome.k);
        (outcome.colors, outcome.iterations, devices.0)
    };
    let (colors, iterations, devices) = run(2, Vec::new());
    assert!(devices.contains(&Some(0)) && devices.contains(&Some(1)), "{devices:?}");
    let again = run(2, Vec::new());
    assert_eq!((again.0, again.1), (colors, iterations), "a seed is an answer");
    let (_, _, kept) = run(2, vec![PhaseKind::Memetic]);
    assert!(kept.iter().all(Option::is_none) && !kept.is_empty(), "{kept:?}");
}

/// On which device each report of a population was made.
#[derive(Default)]
struct Devices(Vec<Option<u64>>);

impl Observer for Devices {
    fn observe(&mut self, event: PassEvent<'_>) -> Result<(), ColoringError> {
        if let PassEvent::PhaseWorked { report, .. } = event
            && report.kind == PhaseKind::Memetic
        {
            let number = report.values.iter().find(|(name, _)| *name == "device");
            assert_eq!(number.is_some(), matches!(report.device, DeviceMode::Gpu { .. }));
            self.0.push(number.map(|(_, number)| *number as u64));
        }
        Ok(())
    }
}

/// The priorities that signals measured, and where.
#[derive(Default)]
struct Priorities(Vec<(PhaseKind, Vec<u64>, DeviceMode)>);

impl Observer for Priorities {
    fn observe(&mut self, event: PassEvent<'_>) -> Result<(), ColoringError> {
        if let PassEvent::PhaseWorked { report, .. } = event
            && let PhaseResult::Priority(priority) = &report.result
        {
            let bits = priority.iter().map(|value| value.to_bits()).collect();
            self.0.push((report.kind, bits, report.device.clone()));
        }
        Ok(())
    }
}

#[test]
fn signals_have_the_same_bits_on_a_device_and_share_two_streams_there() {
    let Some(device) = host() else { return };
    // Two rings that need six colours, so that a search for five goes on to its end, and a tail that is easy.
    let ring = |first: u32| (0..5).map(move |at| (first + at, first + (at + 1) % 5));
    let across = (0..5).flat_map(|at| (5..10).map(move |other| (at, other)));
    let tail = (10..60).flat_map(|at| [(at, at - 1), (at, at - 7)]);
    let instance = Instance::new("rings", 60, ring(0).chain(ring(5)).chain(across).chain(tail));
    let signals = [PhaseKind::Reservoir, PhaseKind::Transfer, PhaseKind::Inference];
    let run = |device: Option<&Device>, on_cpu: Vec<PhaseKind>| {
        let mut phases = vec![PhaseKind::Dsatur];
        phases.extend(signals);
        let options = Options { phases, on_cpu, ..Options::default() };
        let mut controller = Controller::new(&instance, options).unwrap();
        if let Some(device) = device {
            controller = controller.on(device.clone(), false);
        }
        let mut priorities = Priorities::default();
        let outcome = controller.run(&mut priorities, &AtomicBool::new(false)).unwrap();
        (outcome.colors, priorities.0)
    };
    let (colors, expected) = run(None, Vec::new());
    let (on_device, found) = run(Some(&device), Vec::new());
    assert_eq!(on_device, colors);
    let bits = |all: &[(PhaseKind, Vec<u64>, DeviceMode)]| {
        all.iter().map(|(kind, bits, _)| (*kind, bits.clone())).collect::<Vec<_>>()
    };
    assert_eq!(bits(&found), bits(&expected));
    assert!(
        expected.iter().all(|(_, bits, _)| bits.iter().any(|it| *it != bits[0])),
        "they tell vertices apart"
    );
    let stream = |of: PhaseKind| match found.iter().find(|(kind, ..)| *kind == of) {
        Some((_, _, DeviceMode::Gpu { stream })) => *stream,
        other => panic!("{other:?}"),
    };
    let [first, second, third] = signals.map(stream);
    assert!(first != second && second == third, "{first} {second} {third}");
    let (_, kept) = run(Some(&device), vec![PhaseKind::Transfer]);
    assert_eq!((&kept[1].2, &kept[1].1), (&DeviceMode::Cpu, &expected[1].1));
}

#[test]
fn a_device_that_fails_is_left_for_the_cpu_if_it_may_and_is_an_error_if_not() {
    if host().is_none() {
        return;
    }
    let instance = Family::Random { n: 40, p: 0.5 }.generate(6).unwrap();
    let broken = || {
        let fault = Fault::KernelFails { kernel: "coloring_cross".into(), nth: 1 };
        Device::host(HostOptions { faults: vec![fault], ..HostOptions::default() })
    };
    let options = Options {
        phases: vec![PhaseKind::Greedy, PhaseKind::Memetic],
        max_passes: Some(1),
        time: Some(Duration::from_secs(3600)),
        knobs: Knobs { population: 0.25, ..Knobs::default() },
        ..Options::default()
    };
    let mut places = Places::default();
    let controller = Controller::new(&instance, options.clone()).unwrap().on(broken(), true);
    let outcome = controller.run(&mut places, &AtomicBool::new(false)).unwrap();
    assert_eq!(verify(&instance, &outcome.colors).unwrap().k, outcome.k);
    let fell_back = |(kind, place): &(PhaseKind, DeviceMode)| {
        *kind == PhaseKind::Memetic && matches!(place, DeviceMode::CpuFallback { .. })
    };
    assert!(places.0.iter().any(fell_back), "{:?}", places.0);

    let controller = Controller::new(&instance, options).unwrap().on(broken(), false);
    let error = controller.run(&mut Places::default(), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, ColoringError::Device(_)), "{error}");
}

#[test]
fn a_pass_that_a_device_has_left_is_as_long_as_one_of_the_cpu() {
    if host().is_none() {
        return;
    }
    // Two rings of five, each vertex of one beside all of the other: six colours, and a clique of four.
    let ring = |first: u32| (0..5).map(move |at| (first + at, first + (at + 1) % 5));
    let across = (0..5).flat_map(|at| (5..10).map(move |other| (at, other)));
    let instance = Instance::new("rings", 10, ring(0).chain(ring(5)).chain(across));
    let options = Options {
        phases: vec![PhaseKind::Dsatur, PhaseKind::Memetic],
        max_passes: Some(1),
        time: Some(Duration::from_secs(3600)),
        ..Options::default()
    };
    let fault = Fault::KernelFails { kernel: "coloring_cross".into(), nth: 1 };
    let broken = Device::host(HostOptions { faults: vec![fault], ..HostOptions::default() });
    let controller = Controller::new(&instance, options).unwrap().on(broken, true);
    let outcome = controller.run(&mut Places::default(), &AtomicBool::new(false)).unwrap();
    assert_eq!((outcome.k, outcome.passes), (6, 1));
    assert!((100_000..1_000_000).contains(&outcome.iterations), "{}", outcome.iterations);
}
