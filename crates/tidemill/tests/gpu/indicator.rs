//! Every indicator kernel against its Rust twin, bit for bit: under emulation, and on a GPU where there is one.

use bytemuck::Zeroable;
use tidemill_gpu::{
    Device, DeviceBuffer, DevicePtr, GpuError, HostOptions, Launch, Module, Source, kernel_structs,
};
use tidemill_market::indicator::device::{self, ColumnArgs, Input, Output, point_pieces};
use tidemill_market::indicator::{self, Call, FUNCTIONS, Function, Moments, Prefix, Read, Run, Series, Take};

use crate::device::unless_unavailable;
use crate::random::Random;

/// Bars of each symbol: around warps, tiles, blocks of sums and blocks of extremes.
const LENGTHS: [usize; 12] = [1, 2, 31, 32, 33, 64, 300, 700, 256, 512, 4_500, 8_700];

/// Window lengths as scalars, senseless ones among them.
const WINDOWS: [f64; 36] = [
    1.0,
    2.0,
    3.0,
    4.0,
    5.0,
    7.9,
    14.0,
    20.0,
    31.0,
    32.0,
    33.0,
    50.0,
    64.0,
    100.0,
    127.0,
    128.0,
    200.0,
    255.0,
    256.0,
    257.0,
    299.0,
    300.0,
    301.0,
    512.0,
    700.0,
    1_000.0,
    2_047.0,
    2_048.0,
    2_049.0,
    3_000.0,
    4_500.0,
    8_699.0,
    0.0,
    -3.0,
    f64::NAN,
    5e9,
];

/// Trials: more than two warps of items, and not a multiple of 32.
const N_TRIALS: usize = 75;

/// Items of the pool before the new ones.
const FIRST: usize = 2;

/// Different series in a pool of inputs.
const N_SERIES: usize = 4;

/// One series of all symbols: a walk, a walk with holes and infinities, small whole numbers with ties and both zeros,
/// and numbers of every magnitude.
fn series(kind: usize, n_bars: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed * 31 + kind as u64 + 1);
    let mut level = 100.0;
    (0..n_bars)
        .map(|_| {
            level *= 1.0 + 0.02 * (random.unit() - 0.5);
            match kind {
                0 => level,
                1 if random.below(40) == 0 => {
                    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200][random.below(4)]
                }
                1 => level,
                2 => [-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 2.0, 2.0][random.below(8)],
                _ => (random.unit() - 0.5) * 10f64.powi(random.below(60) as i32 - 30),
            }
        })
        .collect()
}

/// The data on the host, and what is the same for all functions on the device.
pub struct Bench {
    device: Device,
    module: Module,
    lengths: Vec<usize>,
    starts: Vec<usize>,
    word_starts: Vec<usize>,
    start: DeviceBuffer<u32>,
    word_start: DeviceBuffer<u32>,
    trial: DeviceBuffer<u32>,
    /// The trials of the new items, in this order.
    trials: Vec<u32>,
}

/// A pool on the device and its items on the host.
struct Pool<T> {
    items: Vec<T>,
    buffer: DeviceBuffer<f64>,
    stride: u64,
    item_of: DeviceBuffer<u32>,
    /// The item each trial uses.
    uses: Vec<usize>,
}

impl<T> Pool<T> {
    fn input(&self) -> Input {
        let item_of = if self.item_of.is_empty() { DevicePtr::NULL } else { self.item_of.ptr() };
        Input { pool: self.buffer.ptr(), stride: self.stride, item_of }
    }

    fn of(&self, trial: u32) -> &T {
        &self.items[self.uses[trial as usize]]
    }
}

impl Bench {
    /// Symbols with so many bars each, and so many trials, whose number has no factor 29.
    pub fn new(device: Device, lengths: &[usize], n_trials: usize) -> Result<Self, GpuError> {
        let module = device.load(&device::source())?;
        let (mut starts, mut word_starts) = (vec![0], vec![0]);
        for (symbol, n) in lengths.iter().enumerate() {
            starts.push(starts[symbol] + n);
            word_starts.push(word_starts[symbol] + n.div_ceil(64));
        }
        let narrow = |values: &[usize]| values.iter().map(|v| *v as u32).collect::<Vec<u32>>();
        let trials: Vec<u32> = (0..n_trials as u32).map(|j| (j * 29 + 11) % n_trials as u32).collect();
        Ok(Self {
            start: device.alloc_from(&narrow(&starts))?,
            word_start: device.alloc_from(&narrow(&word_starts))?,
            trial: device.alloc_from(&trials)?,
            device,
            module,
            lengths: lengths.to_vec(),
            starts,
            word_starts,
            trials,
        })
    }

    fn n_bars(&self) -> usize {
        self.starts[self.lengths.len()]
    }

    /// Which item each trial uses: item 0 for all, or any.
    fn uses(
        &self,
        shared: bool,
        n_items: usize,
        seed: u64,
    ) -> Result<(DeviceBuffer<u32>, Vec<usize>), GpuError> {
        if shared {
            return Ok((self.device.alloc_from(&[])?, vec![0; self.trials.len()]));
        }
        let mut random = Random(seed);
        let uses: Vec<usize> = (0..self.trials.len()).map(|_| random.below(n_items)).collect();
        Ok((self.device.alloc_from(&uses.iter().map(|v| *v as u32).collect::<Vec<u32>>())?, uses))
    }

    fn columns(&self, shared: bool, seed: u64, first_kind: usize) -> Result<Pool<Vec<f64>>, GpuError> {
        let n = self.n_bars();
        let items: Vec<Vec<f64>> =
            (0..N_SERIES).map(|item| series((first_kind + item) % 4, n, seed)).collect();
        let (item_of, uses) = self.uses(shared, N_SERIES, seed)?;
        let stride = n as u64 + 3;
        let mut all = vec![0.0; stride as usize * N_SERIES];
        for (item, column) in items.iter().enumerate() {
            all[item * stride as usize..][..n].copy_from_slice(column);
        }
        Ok(Pool { items, buffer: self.device.alloc_from(&all)?, stride, item_of, uses })
    }

    /// Conditions that hold often, rarely and never; bits past a symbol's last bar are set.
    fn masks(&self, shared: bool, seed: u64) -> Result<Pool<Vec<bool>>, GpuError> {
        let (n, n_words) = (self.n_bars(), self.word_starts[self.lengths.len()]);
        let mut random = Random(seed);
        let items: Vec<Vec<bool>> = [3, 150, 3_000, usize::MAX]
            .iter()
            .map(|one_in| (0..n).map(|_| random.below(*one_in) == 1).collect())
            .collect();
        let mut words = vec![0_u64; n_words * items.len()];
        for (item, bits) in items.iter().enumerate() {
            for symbol in 0..self.lengths.len() {
                let words = &mut words[item * n_words + self.word_starts[symbol]..]
                    [..self.lengths[symbol].div_ceil(64)];
                for bar in 0..words.len() * 64 {
                    let bit = bar >= self.lengths[symbol] || bits[self.starts[symbol] + bar];
                    words[bar / 64] |= u64::from(bit) << (bar % 64);
                }
            }
        }
        let numbers: Vec<f64> = words.into_iter().map(f64::from_bits).collect();
        let (item_of, uses) = self.uses(shared, items.len(), seed)?;
        Ok(Pool { items, buffer: self.device.alloc_from(&numbers)?, stride: n_words as u64, item_of, uses })
    }

    /// Runs a function for some trials; the new items of its pool.
    fn run_for(
        &self,
        function: &Function,
        inputs: &[Input],
        arguments: &[Vec<f64>],
        trial: &DeviceBuffer<u32>,
        count: usize,
    ) -> Result<Ran, GpuError> {
        assert_eq!(
            (inputs.len(), arguments.len()),
            (function.reads.len(), function.takes.len()),
            "{}",
            function.name
        );
        let (n_bars, n_symbols) = (self.n_bars() as u32, self.lengths.len() as u32);
        let stride = function.output().stride(n_bars, n_symbols);
        let out = self.device.alloc_from(&vec![12.5; stride as usize * (FIRST + count)])?;
        let scratch_stride = (function.scratch_columns * (n_bars + n_symbols) as usize).next_multiple_of(2);
        let scratch = self.device.alloc::<f64>(scratch_stride * count)?;
        let arguments: Vec<DeviceBuffer<f64>> =
            arguments.iter().map(|values| self.device.alloc_from(values)).collect::<Result<_, _>>()?;
        let mut args = ColumnArgs {
            trial: trial.ptr(),
            out: out.ptr(),
            out_stride: stride,
            start: self.start.ptr(),
            word_start: self.word_start.ptr(),
            scratch: scratch.ptr(),
            scratch_stride: scratch_stride as u64,
            first: FIRST as u32,
            count: count as u32,
            n_symbols,
            n_bars,
            ..ColumnArgs::zeroed()
        };
        args.inputs[..inputs.len()].copy_from_slice(inputs);
        for (to, from) in args.arguments.iter_mut().zip(&arguments) {
            *to = from.ptr();
        }
        let longest = self.lengths.iter().copied().max().unwrap_or(0) as u32;
        let stream = self.device.stream()?;
        for (kernel, shape) in function.passes {
            let kernel = self.module.kernel(kernel)?;
            // SAFETY: all memory was made above, in the sizes that the function asks for, and lives until the stream is done.
            unsafe { shape.launch(&stream, &kernel, &args, longest)? };
        }
        stream.synchronize()?;
        let numbers = out.to_vec()?;
        assert!(
            numbers[..FIRST * stride as usize].iter().all(|v| *v == 12.5),
            "{} wrote elsewhere",
            function.name
        );
        Ok(Ran { out, stride, numbers })
    }

    /// Prefix sums of every series of a pool, as a pool of their own that trials use alike.
    fn prefixes(&self, moments: Moments, columns: &Pool<Vec<f64>>) -> Result<Pool<Vec<Prefix>>, GpuError> {
        let makes = |function: &&Function| matches!(function.run, Run::Sums(own) if own == moments);
        let function = FUNCTIONS.iter().find(makes).expect("a function makes these sums");
        let each: Vec<u32> = (0..N_SERIES as u32).collect();
        let each = self.device.alloc_from(&each)?;
        let input = Input { item_of: each.ptr(), ..columns.input() };
        let ran = self.run_for(function, &[input], &[], &each, N_SERIES)?;
        let items = columns
            .items
            .iter()
            .map(|column| self.symbols().map(|bars| Prefix::new(&column[bars], moments)).collect());
        let uses: Vec<u32> = columns.uses.iter().map(|item| (item + FIRST) as u32).collect();
        Ok(Pool {
            items: items.collect(),
            buffer: ran.out,
            stride: ran.stride,
            item_of: self.device.alloc_from(&uses)?,
            uses: columns.uses.clone(),
        })
    }

    fn symbols(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// Compares every new item with what `expected(trial, symbol, bars, out)` writes. Items are those of the first trials.
    fn compare(
        &self,
        name: &str,
        ran: &Ran,
        expected: impl Fn(u32, usize, std::ops::Range<usize>, &mut [f64]),
    ) {
        let mut values = vec![0.0; self.n_bars()];
        let n_items = ran.numbers.len() / ran.stride as usize - FIRST;
        for (j, &trial) in self.trials.iter().take(n_items).enumerate() {
            let item = &ran.numbers[(FIRST + j) * ran.stride as usize..][..self.n_bars()];
            for (symbol, bars) in self.symbols().enumerate() {
                let values = &mut values[bars.clone()];
                expected(trial, symbol, bars.clone(), values);
                for (bar, (kernel, twin)) in item[bars].iter().zip(values.iter()).enumerate() {
                    assert!(
                        kernel.to_bits() == twin.to_bits() || (kernel.is_nan() && twin.is_nan()),
                        "{name}: trial {trial}, symbol {symbol}, bar {bar}: the kernel has {kernel:?}, its twin {twin:?}",
                    );
                }
            }
        }
    }

    /// A window for each trial.
    fn windows(&self, step: usize) -> Vec<f64> {
        (0..self.trials.len()).map(|trial| WINDOWS[trial * step % WINDOWS.len()]).collect()
    }
}

/// What a function left on the device.
struct Ran {
    out: DeviceBuffer<f64>,
    stride: u64,
    numbers: Vec<f64>,
}

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
    let name = function.name;
    let arguments = arguments(bench, function);
    for &(shared, kind) in kinds {
        let columns = [
            bench.columns(shared, 1, kind)?,
            bench.columns(shared, 2, kind)?,
            bench.columns(kind < 2, 3, kind)?,
        ];
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
            Run::Sums(_) => {
                for (j, &trial) in bench.trials.iter().enumerate() {
                    let item = &ran.numbers[(FIRST + j) * ran.stride as usize..][..ran.stride as usize];
                    for (symbol, bars) in bench.symbols().enumerate() {
                        compare_entries(bench, name, item, symbol, &columns[0].of(trial)[bars]);
                    }
                }
            }
            Run::Column(run) => bench.compare(name, &ran, |trial, symbol, bars, out| {
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
    }
    Ok(())
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

kernel_structs! {
    const LAYOUTS;

    /// What the test's own kernel takes: one symbol's part of a column and of its sums.
    struct PointArgs {
        x: DevicePtr<f64>,
        sums: [DevicePtr<f64>; 3],
        counts: [DevicePtr<f64>; 3],
        out: DevicePtr<f64>,
        n: u32,
        w: u32,
        ahead: u32,
        unused: u32,
    }
}

const POINT_KERNEL: &str = "
struct PointArgs {
  const double* x;
  const double* sums[3];
  const Counts* counts[3];
  double* out;
  u32 n, w, ahead, unused;
};

KERNEL(points, PointArgs) {
  u32 bar = blockIdx.x * blockDim.x + threadIdx.x;
  if (bar > args.n) return;
  double* out = args.out + (u64)bar * 10;
  u32 n = args.n, w = args.w;
  const PairSums* squares = (const PairSums*)args.sums[1];
  const PairSums* index = (const PairSums*)args.sums[2];
  out[0] = sma_at((const DoubleDouble*)args.sums[0], args.counts[0], n, bar, w);
  out[1] = stddev_at(squares, args.counts[1], n, bar, w);
  out[2] = stddev_sample_at(squares, args.counts[1], n, bar, w);
  out[3] = zscore_at(args.x, squares, args.counts[1], n, bar, w);
  out[4] = lsma_at(index, args.counts[2], n, bar, w);
  out[5] = wma_at(index, args.counts[2], n, bar, w);
  out[6] = highest_at(args.x, n, bar, w);
  out[7] = lowest_at(args.x, n, bar, w);
  out[8] = swing_high_at(args.x, n, bar, w, args.ahead);
  out[9] = swing_low_at(args.x, n, bar, w, args.ahead);
}
";

#[test]
fn values_at_one_bar_equal_their_twins() {
    let bench = Bench::new(Device::host(HostOptions::default()), &LENGTHS, N_TRIALS);
    let Some(bench) = unless_unavailable(bench, "TIDEMILL_REQUIRE_EMULATION") else { return };
    let pieces: Vec<(&str, &str)> = point_pieces().into_iter().chain([("points.cu", POINT_KERNEL)]).collect();
    let source = Source::splice("points.cu", &pieces).comparing("", &[LAYOUTS]);
    let points = bench.device.load(&source).unwrap().kernel("points").unwrap();
    for kind in 0..4 {
        let columns = bench.columns(true, 5, kind).unwrap();
        let moments = [Moments::Sum, Moments::SumSquares, Moments::SumIndex];
        let prefixes = moments.map(|moments| bench.prefixes(moments, &columns).unwrap());
        let n_entries = bench.n_bars() + LENGTHS.len();
        for (symbol, bars) in bench.symbols().enumerate().filter(|(_, bars)| bars.len() <= 700) {
            let (n, x) = (bars.len(), &columns.items[0][bars.clone()]);
            let out = bench.device.alloc::<f64>((n + 1) * 10).unwrap();
            for (w, ahead) in [(0, 0), (1, 0), (2, 1), (5, 1), (14, 3), (33, 8), (300, 20), (301, 0)] {
                let item = |k: usize| prefixes[k].buffer.ptr().add(FIRST * prefixes[k].stride as usize);
                let (wide, entry) = ([2, 4, 4], bars.start + symbol);
                let args = PointArgs {
                    x: columns.buffer.ptr().add(bars.start),
                    sums: [0, 1, 2].map(|k| item(k).add(wide[k] * entry)),
                    counts: [0, 1, 2].map(|k| item(k).add(wide[k] * n_entries + entry)),
                    out: out.ptr(),
                    n: n as u32,
                    w: w as u32,
                    ahead: ahead as u32,
                    unused: 0,
                };
                let stream = bench.device.stream().unwrap();
                let shape = Launch::blocks((n as u32 + 1).div_ceil(64), 64);
                // SAFETY: the kernel reads the series, prefix sums and counts of one symbol and writes ten numbers for each of `n + 1` bars.
                unsafe { stream.launch(&points, shape, &args).unwrap() };
                stream.synchronize().unwrap();
                let [sum, squares, index] = [0, 1, 2].map(|k| &prefixes[k].items[0][symbol]);
                let mut zscore = vec![f64::NAN; n + 1];
                indicator::zscore(x, squares, w, &mut zscore[..n]);
                for (bar, kernel) in out.to_vec().unwrap().chunks(10).enumerate() {
                    let twins = [
                        sum.mean_at(bar, w),
                        squares.std_pop_at(bar, w),
                        squares.std_sample_at(bar, w),
                        zscore[bar],
                        index.lsma_at(bar, w),
                        index.wma_at(bar, w),
                        indicator::highest_at(x, w, bar),
                        indicator::lowest_at(x, w, bar),
                        indicator::swing_high_at(x, w, ahead, bar),
                        indicator::swing_low_at(x, w, ahead, bar),
                    ];
                    for (k, (kernel, twin)) in kernel.iter().zip(twins).enumerate() {
                        assert!(
                            kernel.to_bits() == twin.to_bits() || (kernel.is_nan() && twin.is_nan()),
                            "value {k} of window {w} at bar {bar} of symbol {symbol}: {kernel:?}, not {twin:?}"
                        );
                    }
                }
            }
        }
    }
}
