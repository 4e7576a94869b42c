//! The options as numbers, the same for the host and for a device.

use tidemill_gpu::kernel_structs;

use super::choice::{HmaMode, KamaMode, LsmaMode, SignalMode, Undefined, ZeroPrice};
use super::error::AtcError;
use super::family::{Family, N_FAMILIES, N_LENGTHS, Nine};
use super::options::AtcOptions;

kernel_structs! {
    pub(super) const LAYOUTS;

    /// The weights of exponential averages: of the newest value, and of the average before it.
    #[derive(Debug)]
    pub(super) struct Smoothing {
        pub a: Nine,
        pub b: Nine,
    }

    /// Averages of windows as combinations of running sums: `(now·P + then·P' + sums·(Q − Q')) / divisor`; see `window.rs`.
    #[derive(Debug)]
    pub(super) struct Weights {
        pub now: Nine,
        pub then: Nine,
        pub sums: Nine,
        pub divisor: Nine,
        pub reciprocal: Nine,
    }

    /// Valid options, as numbers that are ready to compute with; twin of `Plan` in `plan.cuh`.
    #[derive(Debug)]
    pub struct Plan {
        pub(super) ema: Smoothing,
        pub(super) dema: Smoothing,
        pub(super) hma: Weights,
        /// Hull's average: the inner one of half the length.
        pub(super) half: Weights,
        pub(super) wma: Weights,
        pub(super) lsma: Weights,
        pub(super) kama_slowest: f64,
        pub(super) kama_range: f64,
        /// What a bar leaves of an equity.
        pub(super) keep: f64,
        pub(super) floor: f64,
        /// First equity of layer 1, and of each family in layer 2.
        pub(super) start: f64,
        pub(super) starts: [f64; N_FAMILIES],
        pub(super) long_cut: f64,
        pub(super) short_cut: f64,
        pub(super) long_threshold: f64,
        pub(super) short_threshold: f64,
        /// What `factor` in `growth.rs` takes.
        pub(super) rate: f64,
        pub(super) lengths: [[u32; N_LENGTHS]; N_FAMILIES],
        /// Hull's average: lengths of the inner one and of the outer one.
        pub(super) half_lengths: [u32; N_LENGTHS],
        pub(super) root_lengths: [u32; N_LENGTHS],
        pub(super) cutout: u32,
        /// The cutout of layer 1.
        pub(super) l1_cutout: u32,
        pub(super) min_bars: u32,
        pub(super) flags: u32,
        /// Bars that a device has to keep.
        pub(super) lookback: u32,
        pub(super) unused: u32,
    }
}

pub(super) const IMPULSE: u32 = 1;
pub(super) const KAMA_HEAD: u32 = 2;
pub(super) const HULL: u32 = 4;
pub(super) const ROUND: u32 = 8;
pub(super) const FORWARD_FILL: u32 = 16;
pub(super) const IEEE_ZERO: u32 = 32;
pub(super) const SKIP: u32 = 64;
pub(super) const STRATEGY: u32 = 128;

impl Plan {
    /// The numbers of options, or what is wrong with them.
    pub fn new(options: &AtcOptions) -> Result<Self, AtcError> {
        options.validate()?;
        let lengths = Family::ALL.map(|family| options.lengths(family));
        let [ema, hma, wma, dema, lsma, _] = &lengths;
        let half_lengths = hma.map(|length| length / 2);
        let root_lengths = hma.map(u32::isqrt);
        let hull = options.hma_mode == HmaMode::Hull;
        let (fastest, slowest) = match options.kama_mode {
            KamaMode::Head => (2.0 / 3.0, 2.0 / 31.0),
            KamaMode::Pine => (0.666, 0.064),
        };
        let floor = options.equity_floor;
        let floored = |start: f64| if start < floor { floor } else { start };
        let flags = [
            (IMPULSE, options.signal_mode == SignalMode::Impulse),
            (KAMA_HEAD, options.kama_mode == KamaMode::Head),
            (HULL, hull),
            (ROUND, options.l1_round2),
            (FORWARD_FILL, options.forward_fill),
            (IEEE_ZERO, options.zero_price == ZeroPrice::Ieee),
            (SKIP, options.undefined == Undefined::Skip),
            (STRATEGY, options.strategy_mode),
        ];
        let longest = lengths.iter().flatten().copied().max().unwrap_or(1);
        let hull_lookback =
            if hull { hma.iter().zip(root_lengths).map(|(w, m)| w + m).max().unwrap_or(0) } else { 0 };
        Ok(Self {
            ema: Smoothing::new(ema),
            dema: Smoothing::new(dema),
            hma: if hull { Weights::linear(hma) } else { Weights::equal(hma) },
            half: Weights::linear(&half_lengths),
            wma: Weights::linear(wma),
            lsma: match options.lsma_mode {
                LsmaMode::Endpoint => Weights::line_end(lsma),
                LsmaMode::PandasTa0314 => Weights::line_one_early(lsma),
            },
            kama_slowest: slowest,
            kama_range: fastest - slowest,
            keep: 1.0 - options.decay_rate(),
            floor,
            start: floored(1.0),
            starts: options.weights().map(floored),
            long_cut: options.long_cut,
            short_cut: options.short_cut,
            long_threshold: options.long_threshold,
            short_threshold: options.short_threshold,
            rate: options.growth_rate(),
            half_lengths,
            root_lengths,
            cutout: options.cutout,
            l1_cutout: if options.l1_cutout { options.cutout } else { 0 },
            min_bars: longest,
            flags: flags.iter().filter(|(_, set)| *set).map(|(flag, _)| flag).sum(),
            lookback: longest.max(hull_lookback) + 1,
            unused: 0,
            lengths,
        })
    }

    /// Whether an option is set.
    #[inline(always)]
    pub(super) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

impl Smoothing {
    fn new(lengths: &[u32; N_LENGTHS]) -> Self {
        let a = lengths.map(|length| 2.0 / (f64::from(length) + 1.0));
        Self { a, b: a.map(|a| 1.0 - a) }
    }
}

/// Whole numbers far below 2^53, so that every product here is exact.
impl Weights {
    fn new(lengths: &[u32; N_LENGTHS], of: impl Fn(f64) -> [f64; 4]) -> Self {
        let rows = lengths.map(|length| of(f64::from(length)));
        let column = |k: usize| rows.map(|row| row[k]);
        let divisor = column(3);
        Self {
            now: column(0),
            then: column(1),
            sums: column(2),
            divisor,
            reciprocal: divisor.map(|divisor| 1.0 / divisor),
        }
    }

    /// The simple mean.
    fn equal(lengths: &[u32; N_LENGTHS]) -> Self {
        Self::new(lengths, |w| [1.0, -1.0, 0.0, w])
    }

    /// Weights 1, 2, …, w.
    fn linear(lengths: &[u32; N_LENGTHS]) -> Self {
        Self::new(lengths, |w| [w, 0.0, -1.0, w * (w + 1.0) / 2.0])
    }

    /// The least-squares line at the newest bar. Through one point there is no line: divided by "not available".
    fn line_end(lengths: &[u32; N_LENGTHS]) -> Self {
        Self::new(lengths, |w| {
            let divisor = if w < 2.0 { f64::NAN } else { w * (w + 1.0) / 2.0 };
            [2.0 * w - 1.0, w + 1.0, -3.0, divisor]
        })
    }

    /// The least-squares line at the bar before the newest.
    fn line_one_early(lengths: &[u32; N_LENGTHS]) -> Self {
        Self::new(lengths, |w| {
            let divisor = if w < 2.0 { f64::NAN } else { w * (w * w - 1.0) / 2.0 };
            [2.0 * (w - 1.0) * (w - 2.0), (w + 1.0) * (w - 4.0), -3.0 * (w - 3.0), divisor]
        })
    }
}
