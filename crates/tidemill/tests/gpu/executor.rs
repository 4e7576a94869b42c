//! The CUDA executor against the CPU executor, bit for bit.
//!
//! Where there is a GPU the kernels run on it, else under emulation on the host. A skip names what is missing;
//! `TIDEMILL_REQUIRE_GPU=1`, `TIDEMILL_REQUIRE_EMULATION=1` and `TIDEMILL_REQUIRE_NVRTC=1` make it a failure.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use rayon::prelude::*;
use tidemill_backtest::cuda::{column_source, device_sources};
use tidemill_backtest::random::tape::{Stream, Tape};
use tidemill_backtest::random::{data, text};
use tidemill_backtest::segment::{Layout, Role};
use tidemill_backtest::tally::Tally;
use tidemill_backtest::{
    DeviceEngine, DeviceOptions, Engine, EngineOptions, Outcome, Overrides, Stage, Strategy,
};
use tidemill_gpu::{ContextOptions, Device, GpuError};
use tidemill_market::Universe;
use tidemill_market::synth::lcg;
use tidemill_search::Points;

use crate::device::{gpu_or_host, is_gpu, unless_unavailable};

/// A random strategy over random data: one batch, then the same in small parts on several lanes whose trades do not fit at once, each twice,
/// so that columns are computed and found again.
pub fn check(numbers: &[u32], device: &Device) -> Result<(), String> {
    let mut tape = Tape::new(numbers);
    let universe = data::universe(&mut tape);
    let segments = data::segments(&mut tape, &universe);
    let most_trials = *tape.pick(&[1, 4, 12, 40, 20, 100]);
    let n_trials = 1 + tape.below(most_trials);
    let context = *tape.pick(&[
        ContextOptions::sequential(),
        ContextOptions::parallel(1),
        ContextOptions::parallel(2),
        ContextOptions::parallel(3),
    ]);
    let mut stream = tape.stream();
    let source = text::strategy(&mut tape, &universe);
    let with_source = |what: String| format!("{what}\n{source}");
    let strategy = Strategy::parse("random.toml", &source, &Overrides::default())
        .map_err(|error| with_source(error.to_string()))?;
    let mut engine = Engine::new(&strategy, &universe, segments, EngineOptions::default())
        .map_err(|error| with_source(error.to_string()))?;
    engine.keep_blocks([0, 1, 4, 16][stream.below(4)]);
    let points = points(&strategy, &engine, n_trials, &mut stream);
    let expected = engine.evaluate(&points);
    // A walk by a block and one by a few lanes, whatever the device would choose.
    let walks = [[None, Some(0)], [Some(64), Some(0)], [Some(0), Some(128)]][stream.below(3)];
    let whole =
        DeviceOptions { context, walk_threads: walks[0], usual_trials: n_trials, ..DeviceOptions::default() };
    let parts = DeviceOptions {
        stretch_bars: Some([8, 50, 400][stream.below(3)]),
        most_trials: 1 + n_trials / 3,
        most_trades: 2,
        most_daily_bytes: 0,
        walk_threads: walks[1],
        most_chained: 0,
        orders_walks: [None, Some(true)][stream.below(2)],
        pools_alone: stream.below(2) == 0,
        usual_trials: [0, 1, 2 * n_trials][stream.below(3)],
        ..whole
    };
    let n_of = |role: Role| engine.segments().iter().filter(|segment| segment.role == role).count();
    let are_pooled = n_of(Role::Train) != 1 && n_of(Role::Test) != 1;
    for options in [whole, parts] {
        let n_left_out = if options.pools_alone && are_pooled { engine.segments().len() } else { 0 };
        let mut on_device = DeviceEngine::new(device, &engine, &strategy, options)
            .map_err(|error| with_source(error.to_string()))?;
        for round in 0..2 {
            let outcomes = on_device.evaluate(&points).map_err(|error| with_source(error.to_string()))?;
            if outcomes.len() != expected.len() {
                return Err(with_source(format!("{} outcomes of {n_trials} trials", outcomes.len())));
            }
            let differs = |(ours, theirs): (&Outcome, &Outcome)| bits(ours) != bits(theirs)[n_left_out..];
            if let Some(trial) = outcomes.iter().zip(&expected).position(differs) {
                let (ours, theirs) = (&outcomes[trial], &expected[trial]);
                return Err(with_source(format!(
                    "{options:?}, round {round}, trial {trial} of {n_trials}:\n{ours:?}\non the CPU:\n{theirs:?}"
                )));
            }
        }
        // Mask by mask and trade by trade: sums could hide two errors that cancel.
        let details = on_device.detail(&points).map_err(|error| with_source(error.to_string()))?;
        let mut row = vec![0.0; points.n_params()];
        for trial in 0..n_trials {
            points.read_row(trial, &mut row);
            let difference = match details.get(trial) {
                Some(detail) => detail.difference(&mut engine, &row),
                None => Some("no details came back".into()),
            };
            if let Some(what) = difference {
                return Err(with_source(format!("{options:?}, trial {trial} of {n_trials}: {what}")));
            }
        }
    }
    Ok(())
}

/// Parameter sets with few values each, so that trials share columns and some are equal.
fn points(strategy: &Strategy, engine: &Engine<'_>, n_trials: usize, stream: &mut Stream) -> Points {
    let levels = 1 + stream.below(6);
    let mut points = Points::new(strategy.params.len());
    for _ in 0..n_trials {
        let mut value = |param: &tidemill_backtest::strategy::ParamSpec| {
            let unit = (stream.below(levels) as f64 + 0.5) / levels as f64;
            param.fixed.unwrap_or_else(|| param.domain.from_unit(unit))
        };
        let row: Vec<f64> = strategy.params.iter().map(&mut value).collect();
        points.push(&row);
    }
    engine.space().deactivate(&mut points);
    points
}

/// The bits of all results of a trial.
pub fn bits(outcome: &Outcome) -> Vec<Vec<u64>> {
    let tallies = outcome.segments().iter().chain([&outcome.train]).chain(outcome.test.as_deref());
    let blocks = outcome.blocks.iter().flatten();
    let blocks = blocks.map(|sum| if sum.is_nan() { f64::NAN.to_bits() } else { sum.to_bits() }).collect();
    tallies.map(|tally: &Tally| tally.bits().to_vec()).chain([blocks]).collect()
}

#[test]
fn random_strategies_give_the_same_bits() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = gpu_or_host() else { return };
    // A strategy is compiled for each case, which takes its time.
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() {
        Config::default().cases
    } else if is_gpu(&device) {
        60
    } else {
        12
    };
    // Side by side, because compilers take most of the time.
    let n_threads = if is_gpu(&device) { 6 } else { 2 };
    let config = Config {
        cases: cases.div_ceil(n_threads),
        failure_persistence: None,
        max_shrink_iters: 0,
        ..Config::default()
    };
    let run = || {
        TestRunner::new(config.clone()).run(&vec(any::<u32>(), 300..700), |numbers| {
            check(&numbers, &device).map_err(TestCaseError::fail)
        })
    };
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..n_threads).map(|_| scope.spawn(run)).collect();
        for run in runs {
            if let Err(error) = run.join().unwrap() {
                let text = error.to_string();
                panic!("{}", &text[..text.len().min(6_000)]);
            }
        }
    });
}

#[test]
fn every_shipped_strategy_compiles_for_a_gpu() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../strategies");
    let universe = tidemill_lab::shipped::universe(300);
    let mut sources = vec![column_source()];
    // Where only the binary is, there is nothing to read.
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let strategy = Strategy::open(&entry.unwrap().path(), &Overrides::default()).unwrap();
        let segments = Layout::default().segments(&universe).unwrap();
        let engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
        sources.extend(device_sources(&engine, &strategy));
    }
    let compiled: Result<Vec<Vec<u8>>, GpuError> =
        sources.par_iter().map(|source| tidemill_gpu::compile(source, "sm_90")).collect();
    let compiled = unless_unavailable(compiled, "TIDEMILL_REQUIRE_NVRTC");
    assert!(compiled.into_iter().flatten().all(|binary| !binary.is_empty()));
}

#[test]
fn stages_tell_how_much_of_the_device_they_fill() {
    let _turn = tidemill_skip::turn::beside_others();
    let Some(device) = gpu_or_host() else { return };
    let source = tidemill_lab::shipped::shipped("ema-cross").unwrap();
    let strategy = Strategy::parse("ema-cross.toml", source, &Overrides::default()).unwrap();
    let universe = Universe { symbols: vec![lcg(600)] };
    let segments = Layout::default().segments(&universe).unwrap();
    let engine = Engine::new(&strategy, &universe, segments, EngineOptions::default()).unwrap();
    let walked = |n_trials: usize| {
        // A few lanes walk a trial, whatever the device would choose, so that more trials are more warps.
        let options = DeviceOptions { walk_threads: Some(0), ..DeviceOptions::default() };
        let mut on_device = DeviceEngine::new(&device, &engine, &strategy, options).unwrap();
        let points = points(&strategy, &engine, n_trials, &mut Tape::new(&[7]).stream());
        on_device.evaluate(&points).unwrap();
        let spans = on_device.take_spans();
        assert!(spans.iter().all(|span| (0.0..=1.0).contains(&span.fill)), "{spans:?}");
        let of = |stage: Stage| spans.iter().find(|span| span.stage == stage).unwrap().fill;
        assert_eq!(of(Stage::Upload), 0.0, "no kernel");
        for stage in [Stage::Distinct, Stage::Columns, Stage::Masks, Stage::Walk, Stage::Book] {
            assert!(of(stage) > 0.0, "{stage:?}: {spans:?}");
        }
        of(Stage::Walk)
    };
    // Of two blocks of 128 threads and of sixteen.
    let (few, more) = (walked(32), walked(256));
    assert!(few < more || more == 1.0, "{few} of 32 trials, {more} of 256");
}
