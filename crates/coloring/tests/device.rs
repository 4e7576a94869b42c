//! Whole runs on a device: under emulation, and on a GPU where there is one.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tidemill_coloring::device::DeviceGraph;
use tidemill_coloring::generate::Family;
use tidemill_coloring::phase::PhaseKind;
use tidemill_coloring::{
    ColoringError, Controller, Graph, Instance, Knobs, Observer, Options, PassEvent, verify,
};
use tidemill_gpu::{Device, Fault, GpuError, HostOptions};
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
