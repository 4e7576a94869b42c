//! The kernels: the whole classification in one launch, and its parts on their own.
//!
//! Symbols lie one after another in device memory and may differ in length. A block takes 32 of them at a time, a warp of it
//! some lengths of a family, a lane one symbol, so that the warps of a block run different code and the lanes of a warp the
//! same. The kernels write only the requested outputs; the running sums that windows need live in a ring of the latest bars.
//!
//! Everything here has the bits of the functions of the same name on the host.

use tidemill_gpu::{Device, DevicePtr, GpuError, Kernel, Launch, Source, Stream, kernel_structs};

use super::family::{Family, N_FAMILIES};
use super::plan::{self, Plan};

/// The kernels: file names and texts, to be spliced behind `tidemill.cuh`.
pub const PIECES: &[(&str, &str)] = &[
    ("indicator/double_double.cuh", include_str!("../indicator/double_double.cuh")),
    ("atc/plan.cuh", include_str!("plan.cuh")),
    ("atc/window.cuh", include_str!("window.cuh")),
    ("atc/exponential.cuh", include_str!("exponential.cuh")),
    ("atc/adaptive.cuh", include_str!("adaptive.cuh")),
    ("atc/equity.cuh", include_str!("equity.cuh")),
    ("atc/vote.cuh", include_str!("vote.cuh")),
    ("atc/fused.cu", include_str!("fused.cu")),
    ("atc/parts.cu", include_str!("parts.cu")),
];

/// Symbols that a block has at a time, one per lane.
pub const GROUP: u32 = 32;

/// Parts of a family, each a warp of a block. Twin of `PARTS`.
const PARTS: u32 = 3;

/// Threads of a block: a warp for each part, and one that prepares. Twin of `FUSED_THREADS`.
const THREADS: u32 = 32 * (PARTS * N_FAMILIES as u32 + 1);

/// Blocks that a multiprocessor has at a time. Twin of `FUSED_BLOCKS`.
const BLOCKS_PER_MULTIPROCESSOR: u32 = 1;

/// Bars that are taken together. Twin of `TILE`.
const TILE: u32 = 4;

/// Numbers of a row of a block's ring. Twin of `ROW`.
const ROW: usize = 7 * GROUP as usize;

/// Threads of a block in kernels with a thread per symbol or bar.
const PLAIN_THREADS: u32 = 128;

/// The kernels, loaded on a device.
#[derive(Debug, Clone)]
pub struct AtcKernels {
    fused: Kernel,
    averages: [Kernel; N_FAMILIES],
    equity: Kernel,
    weighted_signal: Kernel,
    classify: Kernel,
    n_blocks: u32,
}

/// Ragged symbols in device memory.
#[derive(Debug, Clone, Copy)]
pub struct Symbols {
    /// Where each symbol's first bar is, counted in bars.
    pub offsets: DevicePtr<u64>,
    /// How many bars each symbol has.
    pub lengths: DevicePtr<u32>,
    /// How many symbols there are. They are taken 32 at a time, so neighbours should have about the same length.
    pub n_symbols: u32,
}

/// What one classification reads and writes. All memory is the caller's, and has to live until the work is done.
#[derive(Debug, Clone, Copy)]
pub struct AtcLaunch<'a> {
    /// The options.
    pub plan: &'a Plan,
    /// Where the symbols are in `prices`, `source` and `averages`.
    pub symbols: Symbols,
    /// Prices of all symbols.
    pub prices: DevicePtr<f64>,
    /// The series of which averages are taken, in the layout of the prices; `None` for the prices themselves.
    pub source: Option<DevicePtr<f64>>,
    /// [`Growth::factors`](super::Growth::factors) for the longest symbol.
    pub growth: DevicePtr<f64>,
    /// Room for [`AtcKernels::scratch_len`] numbers, for this launch alone while it runs. It has to begin at a multiple of 16 bytes.
    pub scratch: DevicePtr<f64>,
    /// The last average of each symbol; NaN for a symbol that
    /// [`AtcOptions::check_bars`](super::AtcOptions::check_bars) refuses.
    pub last: DevicePtr<f64>,
    /// The class of the last average of each symbol, as [`Class::number`](super::Class::number).
    pub classes: DevicePtr<i32>,
    /// The averages of all bars, in the layout of the prices, if they are wanted.
    pub averages: Option<DevicePtr<f64>>,
}

/// What the moving averages of one family read and write.
#[derive(Debug, Clone, Copy)]
pub struct AveragesLaunch<'a> {
    /// The options.
    pub plan: &'a Plan,
    /// Where the symbols are in `source`, and in each of the nine series of `out`.
    pub symbols: Symbols,
    /// The series of which averages are taken.
    pub source: DevicePtr<f64>,
    /// As for [`AtcLaunch`].
    pub scratch: DevicePtr<f64>,
    /// Nine series, in the order of [`AtcOptions::lengths`](super::AtcOptions::lengths).
    pub out: DevicePtr<f64>,
    /// Numbers from one series to the next.
    pub stride: u64,
}

/// What the equity of a signal reads and writes.
#[derive(Debug, Clone, Copy)]
pub struct EquityLaunch<'a> {
    /// The options.
    pub plan: &'a Plan,
    /// Where the symbols are in `prices`, `signal` and `out`.
    pub symbols: Symbols,
    /// Prices of all symbols.
    pub prices: DevicePtr<f64>,
    /// The signal.
    pub signal: DevicePtr<f64>,
    /// As for [`AtcLaunch`].
    pub growth: DevicePtr<f64>,
    /// The first equity.
    pub start: f64,
    /// The equity curve.
    pub out: DevicePtr<f64>,
}

/// What a layer-1 signal is made of.
#[derive(Debug, Clone, Copy)]
pub struct WeightedLaunch {
    /// Nine series of signals.
    pub signals: DevicePtr<f64>,
    /// Nine series of equities.
    pub equities: DevicePtr<f64>,
    /// Numbers from one series to the next.
    pub stride: u64,
    /// How many bars there are.
    pub n_bars: u64,
    /// Whether the signal is rounded to two decimals.
    pub round: bool,
    /// The layer-1 signal.
    pub out: DevicePtr<f64>,
}

kernel_structs! {
    const LAYOUTS;

    /// Twin of `FusedArgs` in `fused.cu`.
    struct FusedArgs {
        plan: Plan,
        prices: DevicePtr<f64>,
        source: DevicePtr<f64>,
        offsets: DevicePtr<u64>,
        lengths: DevicePtr<u32>,
        growth: DevicePtr<f64>,
        scratch: DevicePtr<f64>,
        last: DevicePtr<f64>,
        classes: DevicePtr<i32>,
        averages: DevicePtr<f64>,
        n_symbols: u32,
        capacity: u32,
    }

    /// Twin of `PartArgs` in `parts.cu`.
    struct PartArgs {
        plan: Plan,
        source: DevicePtr<f64>,
        offsets: DevicePtr<u64>,
        lengths: DevicePtr<u32>,
        scratch: DevicePtr<f64>,
        out: DevicePtr<f64>,
        stride: u64,
        n_symbols: u32,
        capacity: u32,
    }

    /// Twin of `EquityArgs` in `parts.cu`.
    struct EquityArgs {
        plan: Plan,
        prices: DevicePtr<f64>,
        signals: DevicePtr<f64>,
        offsets: DevicePtr<u64>,
        lengths: DevicePtr<u32>,
        growth: DevicePtr<f64>,
        out: DevicePtr<f64>,
        start: f64,
        n_symbols: u32,
        unused: u32,
    }

    /// Twin of `WeightedArgs` in `parts.cu`.
    struct WeightedArgs {
        signals: DevicePtr<f64>,
        equities: DevicePtr<f64>,
        out: DevicePtr<f64>,
        stride: u64,
        n_bars: u64,
        round: u32,
        unused: u32,
    }

    /// Twin of `ClassifyArgs` in `parts.cu`.
    struct ClassifyArgs {
        plan: Plan,
        averages: DevicePtr<f64>,
        out: DevicePtr<i32>,
        n_bars: u64,
    }
}

impl AtcKernels {
    /// Compiles the kernels for a device, or finds them compiled.
    pub fn new(device: &Device) -> Result<Self, GpuError> {
        let module = device.load(&source())?;
        let [ema, hma, wma, dema, lsma, kama] = Family::ALL.map(|family| module.kernel(kernel_name(family)));
        Ok(Self {
            fused: module.kernel("atc_fused")?,
            averages: [ema?, hma?, wma?, dema?, lsma?, kama?],
            equity: module.kernel("atc_equity")?,
            weighted_signal: module.kernel("atc_weighted_signal")?,
            classify: module.kernel("atc_classify")?,
            n_blocks: device.info().multiprocessors.max(1) * BLOCKS_PER_MULTIPROCESSOR,
        })
    }

    fn n_blocks(&self, n_symbols: u32) -> u32 {
        n_symbols.div_ceil(GROUP).clamp(1, self.n_blocks)
    }

    /// Numbers of scratch memory that a launch for so many symbols needs.
    pub fn scratch_len(&self, plan: &Plan, n_symbols: u32) -> usize {
        let rows = capacity(plan) as usize + TILE as usize;
        self.n_blocks(n_symbols) as usize * rows * ROW
    }

    /// Classifies all symbols; what [`average`](super::average) and [`classify`](super::classify) do on the host.
    ///
    /// # Safety
    ///
    /// The memory of `launch` is as large as its fields say, lives until the work is done, and nothing else writes it meanwhile.
    pub unsafe fn launch(&self, stream: &Stream, launch: &AtcLaunch<'_>) -> Result<(), GpuError> {
        let n_symbols = launch.symbols.n_symbols;
        if n_symbols == 0 {
            return Ok(());
        }
        let args = FusedArgs {
            plan: *launch.plan,
            prices: launch.prices,
            source: launch.source.unwrap_or_default(),
            offsets: launch.symbols.offsets,
            lengths: launch.symbols.lengths,
            growth: launch.growth,
            scratch: launch.scratch,
            last: launch.last,
            classes: launch.classes,
            averages: launch.averages.unwrap_or_default(),
            n_symbols,
            capacity: capacity(launch.plan),
        };
        // SAFETY: `source` compares the layout of `FusedArgs`, and the grid is the one that `scratch_len` counts. The memory is the caller's.
        unsafe { stream.launch(&self.fused, Launch::blocks(self.n_blocks(n_symbols), THREADS), &args) }
    }

    /// The nine moving averages of a family; what [`moving_averages`](super::moving_averages) does on the host.
    ///
    /// # Safety
    ///
    /// The memory of `launch` is as large as its fields say, lives until the work is done, and nothing else writes it meanwhile.
    pub unsafe fn moving_averages(
        &self,
        stream: &Stream,
        family: Family,
        launch: &AveragesLaunch<'_>,
    ) -> Result<(), GpuError> {
        let n_symbols = launch.symbols.n_symbols;
        if n_symbols == 0 {
            return Ok(());
        }
        let args = PartArgs {
            plan: *launch.plan,
            source: launch.source,
            offsets: launch.symbols.offsets,
            lengths: launch.symbols.lengths,
            scratch: launch.scratch,
            out: launch.out,
            stride: launch.stride,
            n_symbols,
            capacity: capacity(launch.plan),
        };
        let shape = Launch::blocks(self.n_blocks(n_symbols), GROUP);
        // SAFETY: as in `launch`, with `PartArgs`.
        unsafe { stream.launch(&self.averages[family as usize], shape, &args) }
    }

    /// The equity curves of a signal; what [`equity`](super::equity()) does on the host.
    ///
    /// # Safety
    ///
    /// The memory of `launch` is as large as its fields say, lives until the work is done, and nothing else writes it meanwhile.
    pub unsafe fn equity(&self, stream: &Stream, launch: &EquityLaunch<'_>) -> Result<(), GpuError> {
        let n_symbols = launch.symbols.n_symbols;
        if n_symbols == 0 {
            return Ok(());
        }
        let args = EquityArgs {
            plan: *launch.plan,
            prices: launch.prices,
            signals: launch.signal,
            offsets: launch.symbols.offsets,
            lengths: launch.symbols.lengths,
            growth: launch.growth,
            out: launch.out,
            start: launch.start,
            n_symbols,
            unused: 0,
        };
        // SAFETY: as in `launch`, with `EquityArgs`; threads beyond the last symbol return.
        unsafe { stream.launch(&self.equity, plain(u64::from(n_symbols)), &args) }
    }

    /// A layer-1 signal; what [`weighted_signal`](super::weighted_signal) does on the host.
    ///
    /// # Safety
    ///
    /// The memory of `launch` is as large as its fields say, lives until the work is done, and nothing else writes it meanwhile.
    pub unsafe fn weighted_signal(&self, stream: &Stream, launch: &WeightedLaunch) -> Result<(), GpuError> {
        if launch.n_bars == 0 {
            return Ok(());
        }
        let args = WeightedArgs {
            signals: launch.signals,
            equities: launch.equities,
            out: launch.out,
            stride: launch.stride,
            n_bars: launch.n_bars,
            round: u32::from(launch.round),
            unused: 0,
        };
        // SAFETY: as in `launch`, with `WeightedArgs`; threads beyond the last bar return.
        unsafe { stream.launch(&self.weighted_signal, plain(launch.n_bars), &args) }
    }

    /// The class of every average, as [`Class::number`](super::Class::number); what [`classify`](super::classify) does on the host.
    ///
    /// # Safety
    ///
    /// The two series have `n_bars` numbers, live until the work is done, and nothing else writes them meanwhile.
    pub unsafe fn classify(
        &self,
        stream: &Stream,
        plan: &Plan,
        averages: DevicePtr<f64>,
        n_bars: u64,
        out: DevicePtr<i32>,
    ) -> Result<(), GpuError> {
        if n_bars == 0 {
            return Ok(());
        }
        let args = ClassifyArgs { plan: *plan, averages, out, n_bars };
        // SAFETY: as in `launch`, with `ClassifyArgs`; threads beyond the last bar return.
        unsafe { stream.launch(&self.classify, plain(n_bars), &args) }
    }
}

/// The text of the kernels.
pub fn source() -> Source {
    Source::splice("atc.cu", PIECES).comparing("atc", &[plan::LAYOUTS, LAYOUTS])
}

fn kernel_name(family: Family) -> &'static str {
    match family {
        Family::Ema => "atc_ema",
        Family::Hma => "atc_hma",
        Family::Wma => "atc_wma",
        Family::Dema => "atc_dema",
        Family::Lsma => "atc_lsma",
        Family::Kama => "atc_kama",
    }
}

/// Rows of a block's ring, without those that repeat the first ones: what averages look back, and the tiles at work.
fn capacity(plan: &Plan) -> u32 {
    (plan.lookback + TILE * (PARTS + 1)).next_multiple_of(TILE)
}

/// A launch with a thread for each of `n`. More than a grid can have is refused by the launch itself.
fn plain(n: u64) -> Launch {
    Launch::blocks(u32::try_from(n.div_ceil(u64::from(PLAIN_THREADS))).unwrap_or(u32::MAX), PLAIN_THREADS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_host_are_those_of_the_kernels() {
        let text: String = PIECES.iter().map(|(_, text)| *text).collect();
        let defined = |name: &str, value: String| {
            assert!(text.contains(&format!("#define {name} {value}\n")), "{name} is not {value}");
        };
        defined("TILE", TILE.to_string());
        defined("PARTS", PARTS.to_string());
        defined("ROW", format!("({} * 32)", ROW / GROUP as usize));
        defined("FUSED_BLOCKS", BLOCKS_PER_MULTIPROCESSOR.to_string());
    }
}
