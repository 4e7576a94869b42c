//! The indicators' kernels: their text, their arguments, and how they are launched.
//!
//! Every `.cu` file in this folder is the twin of the `.rs` file beside it and gives the same bits. The passes of a
//! [`Function`] say what has to be launched; [`ColumnArgs`] is what every one of these kernels takes. A call makes `count`
//! items of a pool, for all symbols.
//!
//! Prefix items hold `n + 1` entries per symbol, those of symbol `s` from `start[s] + s` on; with `N` entries in all they are
//! `N` sums followed by `N` pairs of `u32` (missing values before the entry, changes up to its bar). Sums are read 16 bytes at a
//! time, so an item of a pool has to start at a multiple of 16 bytes: use [`Output::stride`].

use tidemill_gpu::{DevicePtr, GpuError, Kernel, Launch, Source, Stream, kernel_structs};

use super::{FUNCTIONS, Function};

macro_rules! file {
    ($name:literal) => {
        (concat!("indicator/", $name), include_str!($name))
    };
}

/// Every kernel here begins with these.
const SHARED: [(&str, &str); 3] = [file!("column.cuh"), file!("double_double.cuh"), file!("prefix.cu")];

/// What several twins need besides.
const HEADERS: [(&str, &str); 8] = [
    file!("recursion.cuh"),
    file!("../atc/plan.cuh"),
    file!("../atc/window.cuh"),
    file!("../atc/exponential.cuh"),
    file!("../atc/adaptive.cuh"),
    file!("../atc/growth.cuh"),
    file!("../atc/equity.cuh"),
    file!("../atc/vote.cuh"),
];

/// The kernels of all functions: file names and texts, to be spliced behind `tidemill.cuh`.
pub fn pieces() -> Vec<(&'static str, &'static str)> {
    with_twins([&SHARED[..], &HEADERS].concat(), |_| true)
}

/// The functions that have a value at one bar, as device functions for other kernels; no kernels. `points_only.cuh` is what leaves
/// the kernels out.
pub fn point_pieces() -> Vec<(&'static str, &'static str)> {
    let before = [&[file!("points_only.cuh")][..], &SHARED].concat();
    with_twins(before, |function| function.at.is_some() || function.sums_read().is_some())
}

/// Adds the twins of some functions, each file once.
fn with_twins(
    mut pieces: Vec<(&'static str, &'static str)>,
    of: impl Fn(&Function) -> bool,
) -> Vec<(&'static str, &'static str)> {
    for function in FUNCTIONS.iter().filter(|function| of(function)) {
        if !pieces.contains(&function.twin) {
            pieces.push(function.twin);
        }
    }
    pieces
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
        /// Into how many stretches averages that forget may cut the bars of a symbol; no bit depends on it.
        pub stretches: u32,
        /// Nothing.
        pub unused: u32,
    }
}

/// The kernels of all functions, the same for every strategy.
pub fn source() -> Source {
    Source::splice("indicators.cu", &pieces()).comparing("", &[LAYOUTS])
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

/// How the threads of a kernel share the work.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// A block per item and 1,024 bars.
    Bars,
    /// A block per item and 2,048 bars.
    Extremes,
    /// A warp per item and symbol.
    Warps,
    /// A warp per 32 items and symbol.
    Lanes,
    /// A warp per 32 items, symbol and stretch of its bars.
    Stretches,
    /// A warp per 32 items and symbol, where there are several stretches.
    Mend,
    /// A warp per item, symbol and 32 blocks of 256 bars.
    Sums,
    /// A block of six warps per three items and symbol.
    Triples,
}

impl Shape {
    /// Launches a pass of a function; `longest` is the number of bars of the longest symbol.
    ///
    /// # Safety
    ///
    /// `kernel` is the one of this pass, from [`source`]. The memory of `args` is as large as [`Function`] and [`ColumnArgs`] say, lives
    /// until the work is done, and nothing else uses the new items and the scratch columns meanwhile.
    pub unsafe fn launch(
        self,
        stream: &Stream,
        kernel: &Kernel,
        args: &ColumnArgs,
        longest: u32,
    ) -> Result<(), GpuError> {
        if matches!(self, Self::Mend) && args.stretches <= 1 {
            return Ok(());
        }
        // SAFETY: `source` compares the layout of `ColumnArgs`; the rest is the caller's.
        unsafe { stream.launch(kernel, self.grid(args, longest), args) }
    }

    /// The grid for at least one item.
    fn grid(self, args: &ColumnArgs, longest: u32) -> Launch {
        let ColumnArgs { count, n_symbols, n_bars, stretches, .. } = *args;
        let tiles = |bars: u32| u64::from(n_bars.div_ceil(bars).max(1)) * u64::from(count);
        let pairs = u64::from(count) * u64::from(n_symbols);
        let (blocks, rows, threads) = match self {
            Self::Bars => (tiles(1_024), 1, 256),
            Self::Extremes => (tiles(2_048), 1, 256),
            Self::Warps => (pairs, 1, 32),
            Self::Lanes | Self::Mend => (groups(count, n_symbols), 1, 32),
            Self::Stretches => (groups(count, n_symbols), stretches.max(1), 32),
            Self::Triples => (u64::from(count.div_ceil(3)) * u64::from(n_symbols), 1, 192),
            Self::Sums => (pairs, longest.div_ceil(32 * 256).clamp(1, 65_535), 32),
        };
        // More blocks than a grid can have would need more memory than there is; the launch itself is refused then.
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        Launch { grid: [blocks, rows, 1], block: [threads, 1, 1], shared_bytes: 0 }
    }
}

/// Warps that are worth having on a device at a time: a multiprocessor has room for many more, but each of these walks along time.
const WARPS: u64 = 1_024;

/// The fewest bars of a stretch that are worth a warp of its own.
const LEAST_STRETCH: u32 = 4_096;

/// Groups of 32 items.
fn groups(count: u32, n_symbols: u32) -> u64 {
    u64::from(count.div_ceil(32)) * u64::from(n_symbols)
}

/// Into how many stretches averages that forget are worth cutting: as many as fill the device, where symbols are long.
pub fn stretches(count: u32, n_symbols: u32, longest: u32) -> u32 {
    let most = u64::from(longest / LEAST_STRETCH).max(1);
    (WARPS / groups(count, n_symbols).max(1)).clamp(1, most) as u32
}
