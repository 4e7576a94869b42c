//! The CUDA executor on devices that are too small or break, under emulation: the bits of the CPU, or an error that says which kernel.

use std::time::Duration;

use tidemill_backtest::segment::Layout;
use tidemill_backtest::tally::Tally;
use tidemill_backtest::{
    DeviceEngine, DeviceOptions, Engine, EngineOptions, Outcome, Overrides, Stage, Strategy,
};
use tidemill_gpu::{ContextOptions, Device, Fault, GpuError, HostOptions, Source};
use tidemill_market::Universe;
use tidemill_market::synth::{RegimeOptions, regime};
use tidemill_search::{Points, SamplerKind, SamplerSettings};

const STRATEGY: &str = r#"
name = "fault"
[params]
fast = { int = [2, 30], default = 5 }
slow = { int = [20, 120], default = 50 }
k = { float = [0.5, 3.0], default = 1.0 }
[long]
enter = "crosses_above(ema(close, fast), sma(close, slow)) and rsi(close, fast) > 40"
stop = "entry - k * atr(14)"
target = "entry + 2 * k * atr(14)"
max_hold = "slow"
[short]
enter = "crosses_below(ema(close, fast), sma(close, slow))"
stop = "entry + k * stddev(close, slow)"
exit = "close > highest(high[1], fast)"
"#;

/// Everything a comparison needs.
struct Rig {
    strategy: Strategy,
    universe: Universe,
}

impl Rig {
    /// None, and why, where kernels cannot be compiled for the host.
    fn new() -> Option<Self> {
        if let Err(error) = host(HostOptions::default()).load(&Source::splice("nothing.cu", &[])) {
            tidemill_skip::skipped_unless_required("TIDEMILL_REQUIRE_EMULATION", &error);
            return None;
        }
        let strategy = Strategy::parse("fault.toml", STRATEGY, &Overrides::default()).unwrap();
        let universe = regime(&RegimeOptions { n_bars: 600, n_symbols: 2, ..RegimeOptions::default() });
        Some(Self { strategy, universe })
    }

    fn engine(&self) -> Engine<'_> {
        let layout = Layout { split: Some(0.7), folds: Some(2), ..Layout::default() };
        let segments = layout.segments(&self.universe).unwrap();
        Engine::new(&self.strategy, &self.universe, segments, EngineOptions::default()).unwrap()
    }

    fn on(&self, device: &Device, engine: &Engine<'_>) -> Result<DeviceEngine, GpuError> {
        let options = DeviceOptions { most_trials: 20, ..DeviceOptions::default() };
        DeviceEngine::new(device, engine, &self.strategy, options)
    }
}

fn host(options: HostOptions) -> Device {
    Device::host(options)
}

fn faulty(faults: &[Fault]) -> Device {
    host(HostOptions { faults: faults.to_vec(), ..HostOptions::default() })
}

fn points(engine: &Engine<'_>, n: usize) -> Points {
    SamplerKind::Random.build(&engine.space(), &SamplerSettings::new(3)).unwrap().ask(n)
}

/// All bits of all outcomes.
fn bits(outcomes: &[Outcome]) -> Vec<[u64; size_of::<Tally>() / 8]> {
    let of = |outcome: &Outcome| {
        let pools = [Some(outcome.train), outcome.test.as_deref().copied()];
        outcome.segments().iter().copied().chain(pools.into_iter().flatten()).collect::<Vec<_>>()
    };
    outcomes.iter().flat_map(of).map(|tally| tally.bits()).collect()
}

#[test]
fn whichever_allocation_fails_the_results_are_the_same() {
    let Some(rig) = Rig::new() else { return };
    let mut engine = rig.engine();
    let points = points(&engine, 50);
    let expected = bits(&engine.evaluate(&points));
    let (mut n_refused, mut n_cut) = (0, 0);
    for nth in (1..=20).chain((21..=90).step_by(3)) {
        let device = faulty(&[Fault::OutOfMemory { nth }]);
        // What never changes has to fit.
        let mut on_device = match rig.on(&device, &engine) {
            Ok(on_device) => on_device,
            Err(error) => {
                assert!(error.is_out_of_memory(), "allocation {nth}: {error}");
                n_refused += 1;
                continue;
            }
        };
        let outcomes =
            on_device.evaluate(&points).unwrap_or_else(|error| panic!("allocation {nth}: {error}"));
        assert!(bits(&outcomes) == expected, "allocation {nth}");
        let parts = on_device.take_spans().iter().filter(|span| span.stage == Stage::Upload).count();
        n_cut += u32::from(parts > 3);
        // And it goes on as though nothing had been.
        assert!(bits(&on_device.evaluate(&points).unwrap()) == expected, "allocation {nth}, again");
    }
    assert!(n_refused > 5 && n_cut > 5, "{n_refused} refused, {n_cut} cut");
}

#[test]
fn a_small_device_does_less_at_a_time_with_the_same_results() {
    let Some(rig) = Rig::new() else { return };
    let mut engine = rig.engine();
    let points = points(&engine, 200);
    let expected = bits(&engine.evaluate(&points));
    let mut n_parts = Vec::new();
    for memory_bytes in [64 << 20, 4 << 20, 2 << 20, 1 << 20] {
        let device = host(HostOptions { memory_bytes, ..HostOptions::default() });
        let options = DeviceOptions { context: ContextOptions::parallel(1), ..DeviceOptions::default() };
        let mut on_device = DeviceEngine::new(&device, &engine, &rig.strategy, options).unwrap();
        match on_device.evaluate(&points) {
            Ok(outcomes) => assert!(bits(&outcomes) == expected, "{memory_bytes} bytes"),
            // So small that not even one trial fits: an error, nothing else.
            Err(error) => {
                assert!(error.is_out_of_memory() && memory_bytes <= 1 << 20, "{memory_bytes}: {error}")
            }
        }
        n_parts.push(on_device.take_spans().iter().filter(|span| span.stage == Stage::Upload).count());
    }
    assert!(n_parts[0] < n_parts[2], "{n_parts:?}");
}

#[test]
fn a_kernel_that_fails_is_named_and_the_device_is_lost() {
    let Some(rig) = Rig::new() else { return };
    let engine = rig.engine();
    let points = points(&engine, 50);
    for kernel in ["scalars", "distinct_chains", "walk", "book", "pool"] {
        let device = faulty(&[Fault::KernelFails { kernel: kernel.into(), nth: 2 }]);
        let mut on_device = rig.on(&device, &engine).unwrap();
        let error = on_device.evaluate(&points).unwrap_err();
        assert!(error.is_lost(), "{kernel}: {error}");
        assert!(error.to_string().contains(kernel), "{kernel}: {error}");
        assert!(on_device.evaluate(&points).unwrap_err().is_lost(), "it stays lost");
    }
}

#[test]
fn a_launch_that_is_refused_is_named() {
    let Some(rig) = Rig::new() else { return };
    let engine = rig.engine();
    let points = points(&engine, 50);
    for kernel in ["scalars", "walk", "begin_walks"] {
        let device = faulty(&[Fault::LaunchFails { kernel: kernel.into(), nth: 1 }]);
        let error = rig.on(&device, &engine).unwrap().evaluate(&points).unwrap_err();
        assert!(matches!(&error, GpuError::Launch { kernel: of, .. } if of == kernel), "{kernel}: {error}");
    }
}

#[test]
fn a_device_lost_at_any_moment_gives_an_error_and_never_a_wrong_result() {
    let Some(rig) = Rig::new() else { return };
    let mut engine = rig.engine();
    let points = points(&engine, 50);
    let expected = bits(&engine.evaluate(&points));
    let mut n_lost = 0;
    for after_launches in (0..160).step_by(7) {
        let device = faulty(&[Fault::DeviceLost { after_launches }]);
        match rig.on(&device, &engine).and_then(|mut on_device| on_device.evaluate(&points)) {
            Ok(outcomes) => assert!(bits(&outcomes) == expected, "after {after_launches}"),
            Err(error) => {
                assert!(error.is_lost(), "after {after_launches}: {error}");
                n_lost += 1;
            }
        }
    }
    assert!(n_lost > 5, "{n_lost}");
}

#[test]
fn a_kernel_that_never_ends_is_a_lost_device_and_the_executor_leaves_it() {
    let Some(rig) = Rig::new() else { return };
    for kernel in ["scalars", "distinct_chains", "walk", "book", "pool"] {
        // In a thread of its own: what waits for the kernel without a limit would never come back.
        let (done, is_done) = std::sync::mpsc::channel();
        let rig = Rig { strategy: rig.strategy.clone(), universe: rig.universe.clone() };
        std::thread::spawn(move || {
            let engine = rig.engine();
            let points = points(&engine, 50);
            let device = faulty(&[Fault::KernelHangs { kernel: kernel.into(), nth: 2 }]);
            let mut on_device = rig.on(&device, &engine).unwrap();
            // On a busy machine healthy work may take longer than this; the answer is the same.
            device.set_wait_limit(Duration::from_millis(500));
            let error = on_device.evaluate(&points).unwrap_err();
            device.set_wait_limit(Duration::MAX);
            let again = on_device.evaluate(&points).unwrap_err();
            // Its buffers, streams and events are still in use as far as anybody knows.
            drop((on_device, device));
            // The test may have given up.
            let _ = done.send((error, again));
        });
        let (error, again) = is_done
            .recv_timeout(Duration::from_secs(300))
            .unwrap_or_else(|_| panic!("{kernel}: something waits for ever"));
        assert!(matches!(&error, GpuError::Hung { kernels, .. } if !kernels.is_empty()), "{kernel}: {error}");
        assert_eq!(error, again, "{kernel}: it stays lost");
    }
}

#[test]
fn where_buffers_cannot_grow_columns_move_and_results_are_the_same() {
    let Some(rig) = Rig::new() else { return };
    let mut engine = rig.engine();
    let points = points(&engine, 50);
    let expected = bits(&engine.evaluate(&points));
    let device = faulty(&[Fault::NoGrowth]);
    assert!(!device.growable::<f64>(10).unwrap().can_grow(1));
    let mut on_device = rig.on(&device, &engine).unwrap();
    // Three parts: the columns of the first ones are there when those of the next need room.
    assert!(bits(&on_device.evaluate(&points).unwrap()) == expected);
    assert!(bits(&on_device.evaluate(&points).unwrap()) == expected, "again");
}
