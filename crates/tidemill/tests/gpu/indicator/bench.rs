//! Series, windows and masks on the host and on a device, and the comparison of what a kernel makes of them.

use bytemuck::Zeroable;
use tidemill_gpu::{Device, DeviceBuffer, DevicePtr, GpuError, Module};
use tidemill_market::indicator::device::{self, ColumnArgs, Input};
use tidemill_market::indicator::{FUNCTIONS, Function, HostFunction, Moments, Prefix};

use crate::random::Random;

/// Window lengths as scalars, senseless ones among them.
pub(super) const WINDOWS: [f64; 36] = [
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

/// Items of the pool before the new ones.
pub(super) const FIRST: usize = 2;

/// Different series in a pool of inputs.
pub(super) const N_SERIES: usize = 4;

/// Windows that are forgotten soon.
const SHORT_WINDOWS: [f64; 9] = [1.0, 2.0, 3.0, 5.0, 9.0, 14.0, 20.0, 0.0, f64::NAN];

/// The kind of a series that hardly trades: the same price for thousands of bars.
pub const STILL: usize = 4;

/// One series of all symbols: a walk, a walk with holes and infinities, small whole numbers with ties and both zeros,
/// numbers of every magnitude, and prices that stand still.
pub(super) fn series(kind: usize, n_bars: usize, seed: u64) -> Vec<f64> {
    let mut random = Random(seed * 31 + kind as u64 + 1);
    let mut level = 100.0;
    (0..n_bars)
        .map(|bar| {
            level *= 1.0 + 0.02 * (random.unit() - 0.5);
            match kind {
                0 => level,
                1 if random.below(40) == 0 => {
                    [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200][random.below(4)]
                }
                1 => level,
                2 => [-2.0, -1.0, -0.0, 0.0, 1.0, 2.0, 2.0, 2.0][random.below(8)],
                STILL => 0.1 * (1 + bar / 3_001) as f64,
                _ => (random.unit() - 0.5) * 10f64.powi(random.below(60) as i32 - 30),
            }
        })
        .collect()
}

/// The data on the host, and what is the same for all functions on the device.
pub struct Bench {
    pub(super) device: Device,
    module: Module,
    pub(super) lengths: Vec<usize>,
    pub(super) starts: Vec<usize>,
    word_starts: Vec<usize>,
    start: DeviceBuffer<u32>,
    word_start: DeviceBuffer<u32>,
    pub(super) trial: DeviceBuffer<u32>,
    /// The trials of the new items, in this order.
    pub(super) trials: Vec<u32>,
    /// Windows that trials have, and into how many stretches bars may be cut.
    all_windows: &'static [f64],
    pub(super) stretches: u32,
}

/// A pool on the device and its items on the host.
pub(super) struct Pool<T> {
    pub(super) items: Vec<T>,
    pub(super) buffer: DeviceBuffer<f64>,
    pub(super) stride: u64,
    pub(super) item_of: DeviceBuffer<u32>,
    /// The item each trial uses.
    pub(super) uses: Vec<usize>,
}

impl<T> Pool<T> {
    pub(super) fn input(&self) -> Input {
        let item_of = if self.item_of.is_empty() { DevicePtr::NULL } else { self.item_of.ptr() };
        Input { pool: self.buffer.ptr(), stride: self.stride, item_of }
    }

    pub(super) fn of(&self, trial: u32) -> &T {
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
            all_windows: &WINDOWS,
            stretches: 1,
        })
    }

    /// The same with short windows, and bars that may be cut into so many stretches.
    pub fn in_stretches(self, stretches: u32) -> Self {
        Self { all_windows: &SHORT_WINDOWS, stretches, ..self }
    }

    pub(super) fn n_bars(&self) -> usize {
        self.starts[self.lengths.len()]
    }

    /// Which item each trial uses: item 0 for all, or any.
    pub(super) fn uses(
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

    pub(super) fn columns(
        &self,
        shared: bool,
        seed: u64,
        first_kind: usize,
    ) -> Result<Pool<Vec<f64>>, GpuError> {
        let n = self.n_bars();
        let items: Vec<Vec<f64>> =
            (0..N_SERIES).map(|item| series((first_kind + item) % 5, n, seed)).collect();
        let (item_of, uses) = self.uses(shared, N_SERIES, seed)?;
        let stride = n as u64 + 3;
        let mut all = vec![0.0; stride as usize * N_SERIES];
        for (item, column) in items.iter().enumerate() {
            all[item * stride as usize..][..n].copy_from_slice(column);
        }
        Ok(Pool { items, buffer: self.device.alloc_from(&all)?, stride, item_of, uses })
    }

    /// Conditions that hold often, rarely and never; bits past a symbol's last bar are set.
    pub(super) fn masks(&self, shared: bool, seed: u64) -> Result<Pool<Vec<bool>>, GpuError> {
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
    pub(super) fn run_for(
        &self,
        function: &Function,
        inputs: &[Input],
        arguments: &[Vec<f64>],
        trial: &DeviceBuffer<u32>,
        count: usize,
    ) -> Result<KernelOutput, GpuError> {
        assert_eq!(
            (inputs.len(), arguments.len()),
            (function.reads.len(), function.takes.len()),
            "{}",
            function.name
        );
        let (n_bars, n_symbols) = (self.n_bars() as u32, self.lengths.len() as u32);
        let stride = function.output().stride(n_bars, n_symbols);
        let out = self.device.alloc_from(&vec![12.5; stride as usize * (FIRST + count)])?;
        let scratch_stride = function.scratch_len(n_bars as usize, n_symbols as usize, self.stretches);
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
            stretches: self.stretches,
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
        Ok(KernelOutput { out, stride, numbers, scratch: scratch.to_vec()?, scratch_stride })
    }

    /// Prefix sums of every series of a pool, as a pool of their own that trials use alike.
    pub(super) fn prefixes(
        &self,
        moments: Moments,
        columns: &Pool<Vec<f64>>,
    ) -> Result<Pool<Vec<Prefix>>, GpuError> {
        let makes = |function: &&Function| matches!(function.run, HostFunction::Sums(own) if own == moments);
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

    pub(super) fn symbols(&self) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
        self.starts.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// Compares every new item with what `expected(trial, symbol, bars, out)` writes. Items are those of the first trials.
    pub(super) fn compare(
        &self,
        name: &str,
        ran: &KernelOutput,
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
    pub(super) fn windows(&self, step: usize) -> Vec<f64> {
        (0..self.trials.len()).map(|trial| self.all_windows[trial * step % self.all_windows.len()]).collect()
    }
}

/// What a function left on the device.
pub(super) struct KernelOutput {
    pub(super) out: DeviceBuffer<f64>,
    pub(super) stride: u64,
    pub(super) numbers: Vec<f64>,
    pub(super) scratch: Vec<f64>,
    pub(super) scratch_stride: usize,
}
