//! Every indicator kernel against its Rust twin, bit for bit: under emulation, and on a GPU where there is one.

mod bench;
mod point;

pub use bench::{Bench, STILL};

use tidemill_gpu::{Device, GpuError, HostOptions};
use tidemill_market::indicator::device::{self, Input, Output};
use tidemill_market::indicator::{Call, FUNCTIONS, Function, HostFunction, Read, Series, Take};

use self::bench::{FIRST, KernelOutput, Pool};
use crate::device::unless_unavailable;

/// Bars of each symbol: around warps, tiles, blocks of sums and blocks of extremes.
const LENGTHS: [usize; 12] = [1, 2, 31, 32, 33, 64, 300, 700, 256, 512, 4_500, 8_700];

/// Trials: more than two warps of items, and not a multiple of 32.
const N_TRIALS: usize = 75;

/// `hi + lo` of two sums added up as `double_double.rs` does it.
fn add(a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
    let two_sum = |a: f64, b: f64| {
        let hi = a + b;
        let b_part = hi - a;
        (hi, (a - (hi - b_part)) + (b - b_part))
    };
    let (hi, lo) = two_sum(a[0], b[0]);
    let (hi, lo) = (hi, lo + (a[1] + b[1]));
    let sum = hi + lo;
    [sum, lo - (sum - hi)]
}

/// Compares the entries of a prefix item with sums made here, as the layout and the order of operations are written down.
fn compare_entries(bench: &Bench, name: &str, item: &[f64], symbol: usize, x: &[f64]) {
    let (n_entries, first) = (bench.n_bars() + bench.lengths.len(), bench.starts[symbol] + symbol);
    let wide = if name == "prefix_sum" { 2 } else { 4 };
    // The product's error, exact: the test's series neither over- nor underflow.
    let product = |a: f64, b: f64| [a * b, a.mul_add(b, -(a * b))];
    let (mut offset, mut inner) = ([[0.0; 2]; 2], [[0.0; 2]; 2]);
    let (mut missing, mut changes) = (0_u32, 0_u32);
    for entry in 0..=x.len() {
        if entry > 0 {
            let v = x[entry - 1];
            let known = if v.abs() <= 1e120 { v } else { 0.0 };
            missing += u32::from(known.to_bits() != v.to_bits());
            inner[0] = add(inner[0], [known, 0.0]);
            let factor = if name == "prefix_squares" { known } else { (entry - 1) as f64 };
            inner[1] = add(inner[1], product(factor, known));
        }
        let sums = [add(offset[0], inner[0]), add(offset[1], inner[1])];
        let place = format!("{name}: entry {entry} of symbol {symbol}");
        assert_eq!(item[wide * (first + entry)..][..wide], sums.as_flattened()[..wide], "{place}");
        let counts = item[wide * n_entries + first + entry].to_bits();
        assert_eq!(counts as u32, missing, "{place}, missing values");
        if let Some(v) = x.get(entry) {
            changes += u32::from(*v != x[entry.saturating_sub(1)]);
            assert_eq!((counts >> 32) as u32, changes, "{place}, changes");
        }
        if entry % 256 == 0 {
            (offset, inner) = (sums, [[0.0; 2]; 2]);
        }
    }
}

/// Inputs: whether all trials share them, and the kind of the first.
pub type Kind = (bool, usize);

const KINDS: [Kind; 4] = [(true, 0), (true, 1), (true, 2), (false, 0)];

/// Where an input of a function comes from.
enum Feed<'a> {
    Column(&'a Pool<Vec<f64>>),
    Condition,
    Sums,
}

/// The numbers that a function takes: for each a list with one per trial.
fn arguments(bench: &Bench, function: &Function) -> Vec<Vec<f64>> {
    let of_trials = |value: &dyn Fn(usize) -> f64| (0..bench.trials.len()).map(value).collect::<Vec<f64>>();
    match function.name {
        "atc" => vec![
            bench.windows(1),
            of_trials(&|trial| [0.02, 0.0, 5.0, -1.0, f64::NAN][trial % 5]),
            of_trials(&|trial| [101.0, 0.03, 2.0, 0.0][usize::from(trial % 7 != 0) * (1 + trial % 3)]),
        ],
        "quantile" => {
            vec![bench.windows(1), of_trials(&|trial| [0.5, 0.0, 1.0, 0.25, 0.9, 1.5, f64::NAN][trial % 7])]
        }
        "supertrend_line" | "supertrend_up" => {
            vec![of_trials(&|trial| [0.02, 0.0, 0.5, 3.0, -1.0, f64::NAN][trial % 6])]
        }
        "psar" => vec![
            of_trials(&|trial| [0.02, 0.0, 0.1, -0.1][trial % 4]),
            of_trials(&|trial| [0.02, 0.1, 0.05][trial % 3]),
            of_trials(&|trial| [0.2, 0.05, f64::NAN, 0.5, 0.3][trial % 5]),
        ],
        // Short looks ahead most of the time, and some as long as the look back.
        "swing_high" | "swing_low" => {
            let ahead = [0.0, 1.0, 2.0, 5.0, 12.0, 40.0, 130.0, 1_100.0, 2_500.0, f64::NAN];
            vec![bench.windows(5), of_trials(&|trial| ahead[trial % 10])]
        }
        name => {
            let windows = |(take, step): (&Take, usize)| match take {
                Take::Window => bench.windows(step),
                Take::Scalar => panic!("{name} takes a number that has no values here"),
            };
            function.takes.iter().zip([1, 5, 7]).map(windows).collect()
        }
    }
}

/// Runs one function on inputs of some kinds and compares it with its twin.
pub fn check(bench: &Bench, function: &Function, kinds: &[Kind]) -> Result<(), GpuError> {
    kinds.iter().try_for_each(|kind| check_kind(bench, function, *kind).map(|_| ()))
}

/// The same for one kind; what it left on the device.
fn check_kind(bench: &Bench, function: &Function, (shared, kind): Kind) -> Result<KernelOutput, GpuError> {
    let name = function.name;
    let arguments = arguments(bench, function);
    let columns =
        [bench.columns(shared, 1, kind)?, bench.columns(shared, 2, kind)?, bench.columns(kind < 2, 3, kind)?];
    let masks = bench.masks(shared, 9)?;
    let sums = function.sums_read().map(|moments| bench.prefixes(moments, &columns[0])).transpose()?;
    let sums = || sums.as_ref().expect("the sums it reads");
    let mut unused = columns.iter();
    let sources: Vec<Feed> = function
        .reads
        .iter()
        .map(|read| match read {
            Read::Condition => Feed::Condition,
            Read::Sums(_) => Feed::Sums,
            Read::Series | Read::High | Read::Low | Read::Close | Read::Volume => {
                Feed::Column(unused.next().expect("a column"))
            }
        })
        .collect();
    let inputs: Vec<Input> = sources
        .iter()
        .map(|source| match source {
            Feed::Column(columns) => columns.input(),
            Feed::Condition => masks.input(),
            Feed::Sums => sums().input(),
        })
        .collect();
    // Fewer of `atc`, because each is 54 averages: two blocks of three and one of one.
    let count = if name == "atc" { 7 } else { bench.trials.len() };
    let ran = bench.run_for(function, &inputs, &arguments, &bench.trial, count)?;
    match function.run {
        HostFunction::Sums(_) => {
            for (j, &trial) in bench.trials.iter().enumerate() {
                let item = &ran.numbers[(FIRST + j) * ran.stride as usize..][..ran.stride as usize];
                for (symbol, bars) in bench.symbols().enumerate() {
                    compare_entries(bench, name, item, symbol, &columns[0].of(trial)[bars]);
                }
            }
        }
        HostFunction::Column(run) => bench.compare(name, &ran, |trial, symbol, bars, out| {
            let series: Vec<Series<'_>> = sources
                .iter()
                .map(|source| match source {
                    Feed::Column(columns) => Series::Column(&columns.of(trial)[bars.clone()]),
                    Feed::Condition => Series::Condition(&masks.of(trial)[bars.clone()]),
                    Feed::Sums => Series::Sums(&sums().of(trial)[symbol]),
                })
                .collect();
            let arguments: Vec<f64> = arguments.iter().map(|values| values[trial as usize]).collect();
            run(&Call { series: &series, arguments: &arguments }, out);
        }),
    }
    Ok(ran)
}

#[test]
fn kernels_under_emulation_equal_their_twins() {
    let bench = Bench::new(Device::host(HostOptions::default()), &LENGTHS, N_TRIALS);
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_EMULATION") else { return };
    for function in FUNCTIONS {
        check(&bench, function, &KINDS).unwrap();
    }
}

#[test]
fn kernels_on_a_gpu_equal_their_twins() {
    let _turn = tidemill_skip::turn::beside_others();
    let bench = Device::cuda(0).and_then(|device| Bench::new(device, &LENGTHS, N_TRIALS));
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_GPU") else { return };
    for function in FUNCTIONS {
        check(&bench, function, &KINDS).unwrap();
    }
}

/// Bars that averages cut into stretches; symbols too short for it among them.
const STRETCHED: [usize; 4] = [20_001, 3, 700, 12_000];

/// Averages that forget, in stretches side by side: the bits of one walk. On a walk the stretches guess what comes before them; where prices
/// stand still an average stops short of them, some guesses are wrong and are mended. Supertrend forgets when the price changes sides, which wide
/// bands let it do seldom.
fn check_stretches(bench: &Bench) -> Result<(), GpuError> {
    for function in FUNCTIONS.iter().filter(|function| function.state > 0) {
        for (shared, kind) in [(true, 0), (true, 1), (true, 2), (true, STILL), (false, 0)] {
            let ran = check_kind(bench, function, (shared, kind))?;
            let (n_guesses, n_wrong) = guesses(bench, function, &ran);
            assert!(n_guesses > 0, "{} has cut nothing", function.name);
            let is_still = shared && kind == STILL;
            if function.name.starts_with("supertrend") {
                assert!(n_wrong < n_guesses, "all {n_guesses} guesses of {} were wrong", function.name);
            } else if shared && kind == 0 {
                assert_eq!(n_wrong, 0, "{} of {n_guesses} guesses were wrong", function.name);
            }
            if is_still && function.name == "ema" {
                assert!(n_wrong > 0, "no guess of {n_guesses} was wrong, so nothing was mended");
            }
        }
    }
    Ok(())
}

/// How many stretches of the first symbol there are after the first one, of all items, and how many of them began with a wrong state.
fn guesses(bench: &Bench, function: &Function, ran: &KernelOutput) -> (usize, usize) {
    let (state, stretches) = (function.state, bench.stretches as usize);
    let (mut n_guesses, mut n_wrong) = (0, 0);
    for item in ran.scratch.chunks(ran.scratch_stride) {
        let of = |stretch: usize, which: usize| &item[(2 * stretch + which) * state..][..state];
        for stretch in 1..stretches {
            let (before, guess) = (of(stretch - 1, 1), of(stretch, 0));
            // Memory that nobody wrote is zero; a state has seen something.
            if guess.iter().any(|v| *v != 0.0) {
                n_guesses += 1;
                n_wrong += usize::from(before.iter().zip(guess).any(|(a, b)| a.to_bits() != b.to_bits()));
            }
        }
    }
    (n_guesses, n_wrong)
}

#[test]
fn stretches_under_emulation_make_one_walk() {
    let bench = Bench::new(Device::host(HostOptions::default()), &STRETCHED, N_TRIALS);
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_EMULATION") else { return };
    check_stretches(&bench.in_stretches(7)).unwrap();
}

#[test]
fn stretches_on_a_gpu_make_one_walk() {
    let _turn = tidemill_skip::turn::beside_others();
    let bench = Device::cuda(0).and_then(|device| Bench::new(device, &STRETCHED, N_TRIALS));
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_GPU") else { return };
    check_stretches(&bench.in_stretches(7)).unwrap();
}

#[test]
fn kernels_compile_for_a_gpu() {
    let code = tidemill_gpu::compile(&device::source(), "sm_90");
    let Some(code) = unless_unavailable(code, "TIDEMILL_REQUIRE_NVRTC") else {
        return;
    };
    assert!(!code.is_empty());
}

#[test]
fn items_of_prefix_pools_are_aligned() {
    for n_bars in [1, 2, 3] {
        assert_eq!(Output::Sum.stride(n_bars, 1) % 2, 0);
        assert_eq!(Output::Pair.stride(n_bars, 2) % 2, 0);
        assert!(Output::Sum.stride(n_bars, 1) >= 3 * u64::from(n_bars + 1));
    }
}
