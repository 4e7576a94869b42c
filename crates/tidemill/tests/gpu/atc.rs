//! Every kernel of Adaptive Trend Classification against its Rust twin, bit for bit: under emulation, and on a GPU where there is one.

use rayon::prelude::*;
use tidemill_gpu::{Device, DeviceBuffer, GpuError, HostOptions, Stream};
use tidemill_market::atc::device::{
    AtcKernels, AtcLaunch, AveragesLaunch, EquityLaunch, Symbols, WeightedLaunch, source,
};
use tidemill_market::atc::{
    AtcOptions, Family, Growth, HmaMode, KamaMode, LsmaMode, N_LENGTHS, Plan, Preset, Robustness, SignalMode,
    Undefined, ZeroPrice, average, average_of_source, classify, equity, moving_averages, weighted_signal,
};

use crate::device::unless_unavailable;
use crate::random::Random;

/// Bars of the symbols: none, one, around the least number that can be classified, around tiles; more than a group of 32.
const LENGTHS: [usize; 41] = [
    0, 1, 2, 15, 16, 17, 33, 34, 35, 48, 63, 64, 65, 100, 127, 128, 150, 31, 32, 40, 41, 42, 43, 44, 45, 46,
    47, 0, 70, 71, 72, 73, 300, 33, 34, 90, 1, 200, 55, 56, 57,
];

/// Prices of a symbol: a walk; one in ticks with flat stretches; one with holes, zeros and infinities; numbers beyond all bounds.
fn prices(n: usize, kind: usize, random: &mut Random) -> Vec<f64> {
    let mut level: f64 = 100.0;
    let start = if kind == 2 && random.below(2) == 0 { random.below(40) } else { 0 };
    (0..n)
        .map(|bar| {
            level *= 1.0 + 0.04 * (random.unit() - 0.5);
            match kind {
                0 => level,
                1 if random.below(3) > 0 => {
                    level = (level * 2.0).round() / 2.0;
                    0.1 * level.round()
                }
                1 => 0.1 * level.round(),
                2 if bar < start => f64::NAN,
                2 if random.below(25) == 0 => {
                    random.pick(&[f64::NAN, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -3.0])
                }
                2 => level,
                _ => (random.unit() - 0.4) * 10f64.powi(random.below(500) as i32 - 250),
            }
        })
        .collect()
}

/// Options of every kind; the first ones are the presets.
fn options(case: usize, random: &mut Random) -> AtcOptions {
    match case {
        0 => return AtcOptions::preset(Preset::V2),
        1 => return AtcOptions::preset(Preset::Head),
        2 => {
            return AtcOptions {
                hma_mode: HmaMode::Hull,
                strategy_mode: true,
                ..AtcOptions::preset(Preset::Pine)
            };
        }
        _ => {}
    }
    let mut length = || random.pick(&[1, 2, 3, 5, 9, 14, 20, 28, 28, 28, 33, 50]);
    let lengths = [length(), length(), length(), length(), length(), length()];
    let mut weight = || random.pick(&[1.0, 1.0, 0.1, 3.5]);
    let weights = [weight(), weight(), weight(), weight(), weight(), weight()];
    AtcOptions {
        ema_len: lengths[0],
        hma_len: lengths[1],
        wma_len: lengths[2],
        dema_len: lengths[3],
        lsma_len: lengths[4],
        kama_len: lengths[5],
        ema_w: weights[0],
        hma_w: weights[1],
        wma_w: weights[2],
        dema_w: weights[3],
        lsma_w: weights[4],
        kama_w: weights[5],
        robustness: random.pick(&[Robustness::Narrow, Robustness::Medium, Robustness::Wide]),
        lambda: random.pick(&[0.02, 0.0, -0.5, 10.0, 4.0]),
        decay: random.pick(&[0.03, 0.0, 1.0, 0.2]),
        lambda_scale: random.pick(&[1.0, 1_000.0]),
        decay_scale: random.pick(&[1.0, 100.0]),
        cutout: random.pick(&[0, 0, 1, 7, 40]),
        long_cut: random.pick(&[0.1, 0.49]),
        short_cut: random.pick(&[-0.1, -0.49]),
        long_threshold: random.pick(&[0.1, 0.6]),
        short_threshold: random.pick(&[-0.1, -0.6]),
        strategy_mode: random.below(3) == 0,
        equity_floor: random.pick(&[0.25, 0.25, 1e-3, 2.0]),
        signal_mode: random.pick(&[SignalMode::Persistent, SignalMode::Impulse]),
        kama_mode: random.pick(&[KamaMode::Pine, KamaMode::Head]),
        lsma_mode: random.pick(&[LsmaMode::Endpoint, LsmaMode::PandasTa0314]),
        hma_mode: random.pick(&[HmaMode::Sma, HmaMode::Hull]),
        l1_round2: random.below(2) == 0,
        l1_cutout: random.below(2) == 0,
        forward_fill: random.below(2) == 0,
        zero_price: random.pick(&[ZeroPrice::Flat, ZeroPrice::Ieee]),
        undefined: random.pick(&[Undefined::Zero, Undefined::Skip]),
    }
}

/// Symbols in device memory, with a gap between them, and the kernels.
pub struct Bench {
    device: Device,
    stream: Stream,
    kernels: AtcKernels,
    lengths: Vec<usize>,
    starts: Vec<usize>,
    offset_buffer: DeviceBuffer<u64>,
    length_buffer: DeviceBuffer<u32>,
    n_bars: usize,
}

const SENTINEL: f64 = 12.5;

impl Bench {
    /// Symbols with so many bars each.
    pub fn new(device: Device, lengths: &[usize]) -> Result<Self, GpuError> {
        let mut starts = Vec::new();
        let mut n_bars = 0;
        for length in lengths {
            starts.push(n_bars + 1);
            n_bars += length + 1;
        }
        Ok(Self {
            kernels: AtcKernels::new(&device)?,
            stream: device.stream()?,
            lengths: lengths.to_vec(),
            offset_buffer: device.alloc_from(&starts.iter().map(|v| *v as u64).collect::<Vec<_>>())?,
            length_buffer: device.alloc_from(&lengths.iter().map(|v| *v as u32).collect::<Vec<_>>())?,
            device,
            starts,
            n_bars,
        })
    }

    fn symbols(&self) -> Symbols {
        Symbols {
            offsets: self.offset_buffer.ptr(),
            lengths: self.length_buffer.ptr(),
            n_symbols: self.lengths.len() as u32,
        }
    }

    /// A series of all symbols, and a copy on the device. What lies between symbols must not be read.
    fn series(&self, mut of: impl FnMut(usize, usize) -> Vec<f64>) -> (Vec<f64>, DeviceBuffer<f64>) {
        let mut all = vec![SENTINEL; self.n_bars];
        for (symbol, (&start, &n)) in self.starts.iter().zip(&self.lengths).enumerate() {
            all[start..start + n].copy_from_slice(&of(symbol, n));
        }
        let buffer = self.device.alloc_from(&all).unwrap();
        (all, buffer)
    }

    fn of<'a>(&self, all: &'a [f64], symbol: usize) -> &'a [f64] {
        &all[self.starts[symbol]..][..self.lengths[symbol]]
    }

    fn longest(&self) -> usize {
        self.lengths.iter().copied().max().unwrap_or(0)
    }

    fn scratch(&self, plan: &Plan) -> DeviceBuffer<f64> {
        let len = self.kernels.scratch_len(plan, self.lengths.len() as u32);
        // Nothing may be read before it is written: these would be seen.
        self.device.alloc_from(&vec![1e77; len]).unwrap()
    }
}

#[track_caller]
fn equal(kernel: f64, twin: f64, what: impl Fn() -> String) {
    let same = kernel.to_bits() == twin.to_bits() || (kernel.is_nan() && twin.is_nan());
    assert!(same, "{}: {kernel:?} on the device, {twin:?} on the host", what());
}

/// Which kinds of prices and sources symbols have. One symbol that is out of the ordinary takes its whole group off the short
/// ways of the kernel, so some cases have none.
#[derive(Clone, Copy, PartialEq)]
pub enum Mix {
    /// All kinds side by side.
    Wild,
    /// Walks alone.
    Tame,
    /// Sources that are walks, with prices of all kinds.
    TameSource,
}

/// The whole classification in one launch, against its twin.
pub fn check_fused(bench: &Bench, case: usize, mix: Mix) {
    let mut random = Random(case as u64 + 1);
    let options = options(case, &mut random);
    let plan = Plan::new(&options).unwrap();
    let growth = Growth::new(&options, bench.longest());
    let growth_buffer = bench.device.alloc_from(growth.factors()).unwrap();
    let n_kinds = |is_tame: bool| if is_tame { 2 } else { 4 };
    let (n_price, n_other) = (n_kinds(mix == Mix::Tame), n_kinds(mix != Mix::Wild));
    let (price, price_buffer) = bench.series(|symbol, n| prices(n, (symbol + case) % n_price, &mut random));
    let (other, other_buffer) =
        bench.series(|symbol, n| prices(n, (symbol * 3 + case) % n_other, &mut random));
    let scratch = bench.scratch(&plan);
    let n_symbols = bench.lengths.len();
    for (has_source, all) in [(false, true), (false, false), (true, true)] {
        let last = bench.device.alloc_from(&vec![SENTINEL; n_symbols]).unwrap();
        let classes = bench.device.alloc_from(&vec![77_i32; n_symbols]).unwrap();
        let averages = bench.device.alloc_from(&vec![SENTINEL; bench.n_bars]).unwrap();
        let launch = AtcLaunch {
            plan: &plan,
            symbols: bench.symbols(),
            prices: price_buffer.ptr(),
            source: has_source.then_some(other_buffer.ptr()),
            growth: growth_buffer.ptr(),
            scratch: scratch.ptr(),
            last: last.ptr(),
            classes: classes.ptr(),
            averages: all.then_some(averages.ptr()),
        };
        // SAFETY: the buffers were made for these bars above, and outlive the work.
        unsafe { bench.kernels.launch(&bench.stream, &launch).unwrap() };
        bench.stream.synchronize().unwrap();
        let (last, classes, averages) =
            (last.to_vec().unwrap(), classes.to_vec().unwrap(), averages.to_vec().unwrap());
        let mut untouched = bench.n_bars;
        let series: Vec<[&[f64]; 2]> =
            (0..n_symbols).map(|symbol| [bench.of(&price, symbol), bench.of(&other, symbol)]).collect();
        let twin_of = |[p, source]: &[&[f64]; 2]| {
            let mut twin = vec![f64::NAN; p.len()];
            let result = if has_source {
                average_of_source(source, p, &options, &growth, &mut twin)
            } else {
                average(p, &options, &growth, &mut twin)
            };
            assert_eq!(result.is_err(), options.check_bars(p.len()).is_err());
            twin
        };
        let twins: Vec<Vec<f64>> = series.par_iter().map(twin_of).collect();
        for (symbol, twin) in twins.iter().enumerate() {
            let n = bench.lengths[symbol];
            let what =
                |bar: usize| format!("case {case}, symbol {symbol} of {n} bars, bar {bar}\n{options:?}");
            let twin_last = twin.last().copied().unwrap_or(f64::NAN);
            equal(last[symbol], twin_last, || what(n));
            assert_eq!(classes[symbol], classify(twin_last, &options).number(), "{}", what(n));
            if all {
                for (bar, kernel) in bench.of(&averages, symbol).iter().enumerate() {
                    equal(*kernel, twin[bar], || what(bar));
                }
                untouched -= n;
            }
        }
        let n_sentinels = averages.iter().filter(|v| **v == SENTINEL).count();
        assert_eq!(n_sentinels, untouched, "nothing is written beside the symbols");
    }
}

/// Its parts on their own.
pub fn check_parts(bench: &Bench, case: usize) {
    let mut random = Random(case as u64 + 77);
    let options = options(case, &mut random);
    let plan = Plan::new(&options).unwrap();
    let growth = Growth::new(&options, bench.longest());
    let growth_buffer = bench.device.alloc_from(growth.factors()).unwrap();
    let (price, price_buffer) = bench.series(|symbol, n| prices(n, (symbol + case) % 4, &mut random));
    let scratch = bench.scratch(&plan);
    let n_symbols = bench.lengths.len();
    let stride = bench.n_bars + 3;
    for family in Family::ALL {
        let out = bench.device.alloc_from(&vec![SENTINEL; stride * N_LENGTHS]).unwrap();
        let launch = AveragesLaunch {
            plan: &plan,
            symbols: bench.symbols(),
            source: price_buffer.ptr(),
            scratch: scratch.ptr(),
            out: out.ptr(),
            stride: stride as u64,
        };
        // SAFETY: the buffers were made for these bars above, and outlive the work.
        unsafe { bench.kernels.moving_averages(&bench.stream, family, &launch).unwrap() };
        bench.stream.synchronize().unwrap();
        let out = out.to_vec().unwrap();
        let series: Vec<&[f64]> = (0..n_symbols).map(|symbol| bench.of(&price, symbol)).collect();
        let twins: Vec<_> =
            series.par_iter().map(|p| moving_averages(family, p, &options).unwrap()).collect();
        for (symbol, twins) in twins.iter().enumerate() {
            for (k, twin) in twins.iter().enumerate() {
                for (bar, kernel) in bench.of(&out[k * stride..], symbol).iter().enumerate() {
                    let length = options.lengths(family)[k];
                    equal(*kernel, twin[bar], || {
                        format!(
                            "case {case}, {} {length} of symbol {symbol}, bar {bar}\n{options:?}",
                            family.name()
                        )
                    });
                }
            }
        }
    }
    let (signal, signal_buffer) =
        bench.series(|_, n| (0..n).map(|_| random.pick(&[0.0, 0.3, -1.0, f64::NAN])).collect());
    let out = bench.device.alloc_from(&vec![SENTINEL; bench.n_bars]).unwrap();
    let launch = EquityLaunch {
        plan: &plan,
        symbols: bench.symbols(),
        prices: price_buffer.ptr(),
        signal: signal_buffer.ptr(),
        growth: growth_buffer.ptr(),
        start: 1.5,
        out: out.ptr(),
    };
    // SAFETY: the buffers were made for these bars above, and outlive the work.
    unsafe { bench.kernels.equity(&bench.stream, &launch).unwrap() };
    bench.stream.synchronize().unwrap();
    let out = out.to_vec().unwrap();
    for symbol in 0..n_symbols {
        let mut twin = vec![0.0; bench.lengths[symbol]];
        equity(bench.of(&price, symbol), bench.of(&signal, symbol), 1.5, &options, &growth, &mut twin)
            .unwrap();
        for (bar, kernel) in bench.of(&out, symbol).iter().enumerate() {
            equal(*kernel, twin[bar], || format!("case {case}, equity of symbol {symbol}, bar {bar}"));
        }
    }
    check_weighted_and_classes(bench, case, &options, &plan, &mut random);
}

fn check_weighted_and_classes(
    bench: &Bench,
    case: usize,
    options: &AtcOptions,
    plan: &Plan,
    random: &mut Random,
) {
    let n = 700;
    let mut nine = |values: &[f64]| -> Vec<Vec<f64>> {
        (0..N_LENGTHS)
            .map(|_| (0..n).map(|_| random.pick(values) * (1.0 + random.unit())).collect())
            .collect()
    };
    let signals = nine(&[-1.0, 0.0, 1.0]);
    let equities = nine(&[1.0, 0.25, 1e12, 3.0, 1.0, 1.0, 1.0, f64::INFINITY, f64::NAN]);
    let signal_buffer = bench.device.alloc_from(&signals.concat()).unwrap();
    let equity_buffer = bench.device.alloc_from(&equities.concat()).unwrap();
    for round in [false, true] {
        let out = bench.device.alloc::<f64>(n).unwrap();
        let launch = WeightedLaunch {
            signals: signal_buffer.ptr(),
            equities: equity_buffer.ptr(),
            stride: n as u64,
            n_bars: n as u64,
            round,
            out: out.ptr(),
        };
        // SAFETY: the buffers were made for these bars above, and outlive the work.
        unsafe { bench.kernels.weighted_signal(&bench.stream, &launch).unwrap() };
        let classes = bench.device.alloc::<i32>(n).unwrap();
        // SAFETY: the buffers were made for these bars above, and outlive the work.
        unsafe { bench.kernels.classify(&bench.stream, plan, out.ptr(), n as u64, classes.ptr()).unwrap() };
        bench.stream.synchronize().unwrap();
        let mut twin = vec![0.0; n];
        let signals: [&[f64]; N_LENGTHS] = std::array::from_fn(|k| &signals[k][..]);
        let equities: [&[f64]; N_LENGTHS] = std::array::from_fn(|k| &equities[k][..]);
        weighted_signal(&signals, &equities, round, &mut twin).unwrap();
        for (bar, (kernel, class)) in out.to_vec().unwrap().iter().zip(classes.to_vec().unwrap()).enumerate()
        {
            equal(*kernel, twin[bar], || format!("case {case}, weighted signal, bar {bar}"));
            assert_eq!(class, classify(twin[bar], options).number(), "case {case}, class, bar {bar}");
        }
    }
}

#[test]
fn atc_under_emulation_equals_its_twin() {
    let bench = Bench::new(Device::host(HostOptions::default()), &LENGTHS);
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_EMULATION") else { return };
    for case in 0..12 {
        check_fused(&bench, case, [Mix::Wild, Mix::Tame, Mix::TameSource][case % 3]);
        check_fused(&bench, case, [Mix::Tame, Mix::TameSource, Mix::Wild][case % 3]);
        check_parts(&bench, case);
    }
}

#[test]
fn atc_on_a_gpu_equals_its_twin() {
    let mut random = Random(5);
    let lengths: Vec<usize> = LENGTHS.into_iter().chain((0..3_000).map(|_| random.below(800))).collect();
    let _turn = tidemill_skip::turn::beside_others();
    let bench = Device::cuda(0).and_then(|device| Bench::new(device, &lengths));
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_GPU") else { return };
    for case in 0..20 {
        for mix in [Mix::Wild, Mix::Tame, Mix::TameSource] {
            check_fused(&bench, case, mix);
        }
        check_parts(&bench, case);
    }
}

#[test]
fn atc_compiles_for_a_gpu() {
    let code = unless_unavailable(tidemill_gpu::compile(&source(), "sm_90"), "TIDEMILL_REQUIRE_NVRTC");
    assert!(code.is_none_or(|code| !code.is_empty()));
}
