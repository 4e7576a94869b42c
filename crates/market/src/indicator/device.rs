//! The indicators' kernels: their text, their arguments, and how they are launched.
//!
//! Every `.cu` file in this folder is the twin of the `.rs` file beside it and gives the same bits. A [`Function`] says what
//! has to be launched for one of them; [`ColumnArgs`] is what every one of these kernels takes. A call makes `count` items
//! of a pool, for all symbols.
//!
//! Prefix items hold `n + 1` entries per symbol, those of symbol `s` from `start[s] + s` on; with `N` entries in all they are
//! `N` sums followed by `N` pairs of `u32` (missing values before the entry, changes up to its bar). Sums are read 16 bytes at a
//! time, so an item of a pool has to start at a multiple of 16 bytes: use [`Output::stride`].

use tidemill_gpu::{DevicePtr, GpuError, Kernel, Launch, Source, Stream, kernel_structs};

macro_rules! pieces {
    ($($(#[$meta:meta])* $name:ident = [$($file:literal),* $(,)?];)*) => {
        $($(#[$meta])* pub const $name: &[(&str, &str)] = &[$((concat!("indicator/", $file), include_str!($file))),*];)*
    };
}

pieces! {
    /// The kernels of all functions: file names and texts, to be spliced behind `tidemill.cuh`.
    PIECES = [
        "column.cuh",
        "double_double.cuh",
        "prefix.cu",
        "sma.cu",
        "stddev.cu",
        "zscore.cu",
        "wma.cu",
        "lsma.cu",
        "hma.cu",
        "recursion.cuh",
        "ema.cu",
        "ema_sma.cu",
        "rma.cu",
        "dema.cu",
        "tema.cu",
        "kama.cu",
        "true_range.cu",
        "atr_wilder.cu",
        "rsi.cu",
        "adx.cu",
        "cci.cu",
        "obv.cu",
        "cum.cu",
        "extreme.cu",
        "swing.cu",
        "bars_since.cu",
        "value_when.cu",
        "../atc/plan.cuh",
        "../atc/window.cuh",
        "../atc/exponential.cuh",
        "../atc/adaptive.cuh",
        "../atc/growth.cuh",
        "../atc/equity.cuh",
        "../atc/vote.cuh",
        "atc.cu",
    ];
    /// The functions that have a value at one bar, as device functions for other kernels; no kernels. `points_only.cuh`
    /// is what leaves the kernels out.
    POINT_PIECES = [
        "points_only.cuh",
        "column.cuh",
        "double_double.cuh",
        "prefix.cu",
        "sma.cu",
        "stddev.cu",
        "zscore.cu",
        "wma.cu",
        "lsma.cu",
        "extreme.cu",
        "swing.cu",
    ];
}

kernel_structs! {
    /// The layouts of the structs that column kernels read.
    pub const LAYOUTS;

    /// A series input: a pool of columns and which of them each trial uses.
    #[derive(Debug, Default)]
    pub struct Input {
        /// The first item. Masks are passed as the same addresses, their words as wide as numbers.
        pub pool: DevicePtr<f64>,
        /// Numbers from one item to the next.
        pub stride: u64,
        /// The item of each trial; null: item 0 for all.
        pub item_of: DevicePtr<u32>,
    }

    /// What every column kernel takes; twin of `ColumnArgs` in `column.cuh`.
    #[derive(Debug, Default)]
    pub struct ColumnArgs {
        /// Series inputs, in the order of the function's.
        pub inputs: [Input; 3],
        /// Scalar arguments: for each, one number per trial.
        pub arguments: [DevicePtr<f64>; 3],
        /// For each new item, a trial that uses it.
        pub trial: DevicePtr<u32>,
        /// The pool that gets the new items.
        pub out: DevicePtr<f64>,
        /// Numbers from one of its items to the next.
        pub out_stride: u64,
        /// First bar of each symbol, and one past the last.
        pub start: DevicePtr<u32>,
        /// The same for the 64-bit words of masks.
        pub word_start: DevicePtr<u32>,
        /// Scratch columns of each new item; null if the function needs none.
        pub scratch: DevicePtr<f64>,
        /// Numbers from one item's scratch columns to the next one's.
        pub scratch_stride: u64,
        /// The first new item's place in the pool.
        pub first: u32,
        /// How many new items there are.
        pub count: u32,
        /// How many symbols there are.
        pub n_symbols: u32,
        /// How many bars all symbols have together.
        pub n_bars: u32,
    }
}

/// The kernels of all functions, the same for every strategy.
pub fn source() -> Source {
    Source::splice("indicators.cu", PIECES).comparing("", &[LAYOUTS])
}

/// What an item of a function's pool holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// One number per bar.
    Column,
    /// Prefix sums of values.
    Sum,
    /// Prefix sums of values and of one more product.
    Pair,
}

impl Output {
    /// Numbers an item takes in its pool.
    pub fn stride(self, n_bars: u32, n_symbols: u32) -> u64 {
        let n_entries = u64::from(n_bars) + u64::from(n_symbols);
        match self {
            Self::Column => u64::from(n_bars),
            Self::Sum => (3 * n_entries).next_multiple_of(2),
            Self::Pair => (5 * n_entries).next_multiple_of(2),
        }
    }
}

/// A function over whole series.
#[derive(Debug)]
pub struct Function {
    /// Its name, that of `Func` in small letters.
    pub name: &'static str,
    /// Series inputs.
    pub n_inputs: usize,
    /// Scalar arguments.
    pub n_arguments: usize,
    /// What it makes.
    pub output: Output,
    /// Scratch columns per item, of `n_bars + n_symbols` numbers each. Their start has to be a multiple of 16 bytes.
    pub scratch_columns: usize,
    /// What is launched, in this order, all with the same arguments.
    pub passes: &'static [Pass],
}

/// One launch.
#[derive(Debug)]
pub struct Pass {
    /// The kernel.
    pub kernel: &'static str,
    shape: Shape,
}

/// How the threads of a kernel share the work.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// A block per item and 1,024 bars.
    Bars,
    /// A block per item and 2,048 bars.
    Extremes,
    /// A warp per item and symbol.
    Warps,
    /// A warp per 32 items and symbol.
    Lanes,
    /// A warp per item, symbol and 32 blocks of 256 bars.
    Sums,
    /// A block of six warps per three items and symbol.
    Triples,
}

impl Pass {
    /// Launches its kernel; `longest` is the number of bars of the longest symbol.
    ///
    /// # Safety
    ///
    /// `kernel` is the one of this pass, from [`source`]. The memory of `args` is as large as [`Function`] and [`ColumnArgs`] say, lives
    /// until the work is done, and nothing else uses the new items and the scratch columns meanwhile.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        kernel: &Kernel,
        args: &ColumnArgs,
        longest: u32,
    ) -> Result<(), GpuError> {
        // SAFETY: `source` compares the layout of `ColumnArgs`; the rest is the caller's.
        unsafe { stream.launch(kernel, self.grid(args.count, args.n_symbols, args.n_bars, longest), args) }
    }

    /// The grid for `count` items, at least one.
    fn grid(&self, count: u32, n_symbols: u32, n_bars: u32, longest: u32) -> Launch {
        let tiles = |bars: u32| u64::from(n_bars.div_ceil(bars).max(1)) * u64::from(count);
        let pairs = u64::from(count) * u64::from(n_symbols);
        let (blocks, rows, threads) = match self.shape {
            Shape::Bars => (tiles(1_024), 1, 256),
            Shape::Extremes => (tiles(2_048), 1, 256),
            Shape::Warps => (pairs, 1, 32),
            Shape::Lanes => (u64::from(count.div_ceil(32)) * u64::from(n_symbols), 1, 32),
            Shape::Triples => (u64::from(count.div_ceil(3)) * u64::from(n_symbols), 1, 192),
            Shape::Sums => (pairs, longest.div_ceil(32 * 256).clamp(1, 65_535), 32),
        };
        // More blocks than a grid can have would need more memory than there is; the launch itself is refused then.
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        Launch { grid: [blocks, rows, 1], block: [threads, 1, 1], shared_bytes: 0 }
    }
}

/// The function of this name.
pub fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.iter().find(|function| function.name == name)
}

macro_rules! functions {
    ($($name:literal ($inputs:literal, $arguments:literal) $(scratch $scratch:literal)? -> $output:ident:
       $($kernel:literal $shape:ident),+;)*) => {
        /// All functions.
        pub const FUNCTIONS: &[Function] = &[$(Function {
            name: $name,
            n_inputs: $inputs,
            n_arguments: $arguments,
            output: Output::$output,
            scratch_columns: 0 $(+ $scratch)?,
            passes: &[$(Pass { kernel: $kernel, shape: Shape::$shape }),+],
        }),*];
    };
}

functions! {
    "prefix_sum" (1, 0) -> Sum: "prefix_sum" Sums, "prefix_sum_ends" Warps, "prefix_sum_offsets" Bars;
    "prefix_squares" (1, 0) -> Pair: "prefix_squares" Sums, "prefix_squares_ends" Warps, "prefix_squares_offsets" Bars;
    "prefix_index" (1, 0) -> Pair: "prefix_index" Sums, "prefix_index_ends" Warps, "prefix_index_offsets" Bars;
    "sma" (1, 1) -> Column: "sma" Bars;
    "stddev" (1, 1) -> Column: "stddev" Bars;
    "stddev_sample" (1, 1) -> Column: "stddev_sample" Bars;
    "zscore" (2, 1) -> Column: "zscore" Bars;
    "lsma" (1, 1) -> Column: "lsma" Bars;
    "wma" (1, 1) -> Column: "wma" Bars;
    "ema" (1, 1) -> Column: "ema" Lanes;
    "ema_sma" (1, 1) -> Column: "ema_sma" Lanes;
    "rma" (1, 1) -> Column: "rma" Lanes;
    "hma" (1, 1) scratch 6 -> Column: "hma_sums" Sums, "hma_ends" Warps, "hma_offsets" Bars, "hma_raw" Bars,
        "hma_raw_sums" Sums, "hma_ends" Warps, "hma_offsets" Bars, "hma" Bars;
    "dema" (1, 1) -> Column: "dema" Lanes;
    "tema" (1, 1) -> Column: "tema" Lanes;
    "kama" (1, 3) -> Column: "kama" Lanes;
    "true_range" (3, 0) -> Column: "true_range" Bars;
    "atr_wilder" (3, 1) -> Column: "atr_wilder" Lanes;
    "rsi" (1, 1) -> Column: "rsi" Lanes;
    "adx" (3, 1) -> Column: "adx" Lanes;
    "plus_di" (3, 1) -> Column: "plus_di" Lanes;
    "minus_di" (3, 1) -> Column: "minus_di" Lanes;
    "cci" (3, 1) scratch 4 -> Column: "cci_typical" Bars, "cci_sums" Sums, "cci_ends" Warps, "cci_offsets" Bars, "cci" Bars;
    "obv" (2, 0) -> Column: "obv" Lanes;
    "highest" (1, 1) -> Column: "highest" Extremes;
    "lowest" (1, 1) -> Column: "lowest" Extremes;
    "swing_high" (1, 2) scratch 1 -> Column: "swing_high_confirmed" Extremes, "swing_high" Extremes;
    "swing_low" (1, 2) scratch 1 -> Column: "swing_low_confirmed" Extremes, "swing_low" Extremes;
    "bars_since" (1, 0) -> Column: "bars_since" Warps;
    "value_when" (2, 0) -> Column: "value_when" Warps;
    "cum" (1, 0) -> Column: "cum" Lanes;
    "atc" (1, 3) scratch 7 -> Column: "atc_sums" Lanes, "atc_growth" Bars, "atc" Triples;
}
