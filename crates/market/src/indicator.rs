//! Indicators as plain functions over slices, one file each.
//!
//! Every function reads its inputs from slices and writes one value per bar into `out`, a slice of the same
//! length (if lengths differ, the shortest decides and the rest of `out` is NaN). Bar `i` of the result
//! depends on bars `0 … i` only. No function panics, whatever the window or the data; a window of 0 is NaN
//! throughout, and so is one longer than the series, except where the first value does not wait for it: [`ema`],
//! [`dema`] and [`tema`] start with the first bar, whatever their span, and `fast` and `slow` of [`kama`] are
//! smoothing lengths too, only its window has to fit.
//!
//! **Not available.** A non-finite input (NaN or infinite) is not available, and NaN is how the result says
//! so. *Windowed* functions are NaN while a window is incomplete or holds such a value. *Recursive* ones skip
//! it: NaN at its bar, the state stays as it was, as if the bar did not exist. Where several columns enter, a
//! bar with any of them non-finite counts as missing.
//!
//! **Numbers.** `+ − × ÷ √` and comparisons in one fixed order, no fused operations, so that a twin on
//! another device can give the same bits. Windowed sums come from a [`Prefix`] in double-double; recursive
//! averages run along time in plain `f64`.
//!
//! [`FUNCTIONS`] is the table of all that an engine calls; `prefix` holds [`Prefix`], what rolling sums are made of, also one bar at a
//! time. Private to them: `column` (lengths and masks), `transpose` (from lanes to columns) and `double_double` (the
//! arithmetic of [`Prefix`]). The `.cu` and
//! `.cuh` files beside them are their twins for a GPU; [`device`] says how they are called.
//!
//! ```
//! use tidemill_market::indicator::{Moments, Prefix, ema, sma};
//!
//! let close = [1.0, 2.0, 4.0, 8.0];
//! let mut fast = [0.0; 4];
//! ema(&close, 3, &mut fast);
//! assert_eq!(fast, [1.0, 1.5, 2.75, 5.375]);
//!
//! // One prefix serves every window length.
//! let sums = Prefix::new(&close, Moments::Sum);
//! let mut mean = [0.0; 4];
//! sma(&sums, 2, &mut mean);
//! assert_eq!(mean[1..], [1.5, 3.0, 6.0]);
//! assert_eq!(sums.mean_at(3, 4), 3.75);
//! ```

mod adx;
mod aroon;
mod atc;
mod atr;
mod atr_wilder;
mod bars_since;
mod cci;
mod column;
mod correlation;
mod cum;
mod dema;
pub mod device;
pub(crate) mod double_double;
mod ema;
mod ema_compare;
mod ema_sma;
mod extreme;
mod function;
mod heikin_open;
mod hma;
mod kama;
mod log_ratio;
mod lsma;
mod obv;
mod prefix;
mod psar;
mod quantile;
mod rma;
mod rsi;
mod slope;
mod sma;
mod stddev;
mod sum_since;
mod supertrend;
mod swing;
mod tema;
mod transpose;
mod true_range;
mod value_when;
mod wma;
mod zscore;

pub use adx::{Directional, adx, directional, minus_di, plus_di};
pub use aroon::{aroon_down, aroon_up};
pub use atc::atc;
pub use atr::atr;
pub use atr_wilder::atr_wilder;
pub use bars_since::bars_since;
pub use cci::cci;
pub use correlation::correlation;
pub use cum::cum;
pub use dema::dema;
pub use ema::{EMA_LANES, EmaStream, ema, ema_many};
pub use ema_compare::{EmaCompare, Relation};
pub use ema_sma::ema_sma;
pub use extreme::{highest, highest_at, lowest, lowest_at};
pub use function::{
    Call, Function, Gaps, Group, HostFunction, Limit, Part, Read, Series, Take, Test, window,
};
pub use heikin_open::heikin_open;
pub use hma::hma;
pub use kama::kama;
pub use log_ratio::log_ratio;
pub use lsma::{lsma, lsma_from};
pub use obv::obv;
pub use prefix::{Moments, Prefix};
pub use psar::psar;
pub use quantile::quantile;
pub use rma::rma;
pub use rsi::rsi;
pub use slope::{slope, slope_from};
pub use sma::{sma, sma_from};
pub use stddev::{stddev, stddev_from, stddev_sample, stddev_sample_from};
pub use sum_since::sum_since;
pub use supertrend::{supertrend_line, supertrend_up};
pub use swing::{swing_high, swing_high_at, swing_low, swing_low_at};
pub use tema::tema;
pub use true_range::true_range;
pub use value_when::value_when;
pub use wma::{wma, wma_from};
pub use zscore::{Tested, ZscoreTest, zscore, zscore_at, zscore_from};

use Gaps::{Own, Recursive, Windowed};
use Group::{Averages, Events, Extremes, Momentum, Spread, Trend};
use Read::{Close, Condition, High, Low, Series as X, Sums as SumsOf, Volume};
use Take::{Scalar, Window};
use device::Shape::{Bars, Extremes as Tiles, Lanes, Mend, Stretches, Sums, Triples, Warps};

/// File name and text of a twin.
macro_rules! file {
    ($name:literal) => {
        (concat!("indicator/", $name), include_str!(concat!("indicator/", $name)))
    };
}

const HLC: &[Read] = &[High, Low, Close];
const SQUARES: Read = SumsOf(Moments::SumSquares);
const INDEX: Read = SumsOf(Moments::SumIndex);

/// All functions over whole series. A twin may use those of the rows above it.
pub static FUNCTIONS: &[Function] = &[
    Function::sums("prefix_sum", Moments::Sum).twin(
        file!("prefix.cu"),
        0,
        &[("prefix_sum", Sums), ("prefix_sum_ends", Warps), ("prefix_sum_offsets", Bars)],
    ),
    Function::sums("prefix_squares", Moments::SumSquares).twin(
        file!("prefix.cu"),
        0,
        &[("prefix_squares", Sums), ("prefix_squares_ends", Warps), ("prefix_squares_offsets", Bars)],
    ),
    Function::sums("prefix_index", Moments::SumIndex).twin(
        file!("prefix.cu"),
        0,
        &[("prefix_index", Sums), ("prefix_index_ends", Warps), ("prefix_index_offsets", Bars)],
    ),
    Function::column("sma", Windowed, &[SumsOf(Moments::Sum)], &[Window], |c, out| {
        sma(c.sums(0), c.window(0), out)
    })
    .listed(Averages, "sma(x, n)", "mean of the last `n` values")
    .part(
        |c, first, out| sma_from(c.sums(0), c.window(0), first, out),
        |c, bar| c.sums(0).mean_at(bar, c.window(0)),
    )
    .twin(file!("sma.cu"), 0, &[("sma", Bars)]),
    Function::column("ema", Recursive, &[X], &[Window], |c, out| ema(c.column(0), c.window(0), out))
        .listed(Averages, "ema(x, n)", "exponential average that starts with the first value")
        .at_once()
        .forgets(2)
        .twin(file!("ema.cu"), 0, &[("ema", Stretches), ("ema_mend", Mend)]),
    Function::column("ema_sma", Recursive, &[X], &[Window], |c, out| ema_sma(c.column(0), c.window(0), out))
        .listed(Averages, "ema_sma(x, n)", "exponential average that starts with a mean")
        .forgets(2)
        .twin(file!("ema_sma.cu"), 0, &[("ema_sma", Stretches), ("ema_sma_mend", Mend)]),
    Function::column("rma", Recursive, &[X], &[Window], |c, out| rma(c.column(0), c.window(0), out))
        .listed(Averages, "rma(x, n)", "Wilder's average")
        .forgets(2)
        .twin(file!("rma.cu"), 0, &[("rma", Stretches), ("rma_mend", Mend)]),
    Function::column("wma", Windowed, &[INDEX], &[Window], |c, out| wma(c.sums(0), c.window(0), out))
        .listed(Averages, "wma(x, n)", "linearly weighted mean")
        .part(
            |c, first, out| wma_from(c.sums(0), c.window(0), first, out),
            |c, bar| c.sums(0).wma_at(bar, c.window(0)),
        )
        .twin(file!("wma.cu"), 0, &[("wma", Bars)]),
    Function::column("hma", Windowed, &[X], &[Window], |c, out| hma(c.column(0), c.window(0), out))
        .listed(Averages, "hma(x, n)", "Hull average")
        .twin(
            file!("hma.cu"),
            6,
            &[
                ("hma_sums", Sums),
                ("hma_ends", Warps),
                ("hma_offsets", Bars),
                ("hma_raw", Bars),
                ("hma_raw_sums", Sums),
                ("hma_ends", Warps),
                ("hma_offsets", Bars),
                ("hma", Bars),
            ],
        ),
    Function::column("dema", Recursive, &[X], &[Window], |c, out| dema(c.column(0), c.window(0), out))
        .listed(Averages, "dema(x, n)", "double exponential average")
        .at_once()
        .forgets(3)
        .twin(file!("dema.cu"), 0, &[("dema", Stretches), ("dema_mend", Mend)]),
    Function::column("tema", Recursive, &[X], &[Window], |c, out| tema(c.column(0), c.window(0), out))
        .listed(Averages, "tema(x, n)", "triple exponential average")
        .at_once()
        .forgets(4)
        .twin(file!("tema.cu"), 0, &[("tema", Stretches), ("tema_mend", Mend)]),
    Function::column("lsma", Windowed, &[INDEX], &[Window], |c, out| lsma(c.sums(0), c.window(0), out))
        .listed(Averages, "lsma(x, n)", "end point of the least-squares line")
        .part(
            |c, first, out| lsma_from(c.sums(0), c.window(0), first, out),
            |c, bar| c.sums(0).lsma_at(bar, c.window(0)),
        )
        .twin(file!("lsma.cu"), 0, &[("lsma", Bars)]),
    Function::column("kama", Recursive, &[X], &[Window, Window, Window], |c, out| {
        kama(c.column(0), c.window(0), c.window(1), c.window(2), out)
    })
    .listed(Averages, "kama(x, n, fast, slow)", "Kaufman's adaptive average")
    .twin(file!("kama.cu"), 0, &[("kama", Lanes)]),
    Function::column("true_range", Recursive, HLC, &[], |c, out| {
        true_range(c.column(0), c.column(1), c.column(2), out)
    })
    .listed(Spread, "tr()", "true range")
    .twin(file!("true_range.cu"), 0, &[("true_range", Bars)]),
    Function::column("atr_wilder", Recursive, HLC, &[Window], |c, out| {
        atr_wilder(c.column(0), c.column(1), c.column(2), c.window(0), out)
    })
    .listed(Spread, "atr_wilder(n)", "Wilder's average of the true range")
    .forgets(4)
    .twin(file!("atr_wilder.cu"), 0, &[("atr_wilder", Stretches), ("atr_wilder_mend", Mend)]),
    Function::column("stddev", Windowed, &[SQUARES], &[Window], |c, out| stddev(c.sums(0), c.window(0), out))
        .listed(Spread, "stddev(x, n)", "population standard deviation")
        .part(
            |c, first, out| stddev_from(c.sums(0), c.window(0), first, out),
            |c, bar| c.sums(0).std_pop_at(bar, c.window(0)),
        )
        .twin(file!("stddev.cu"), 0, &[("stddev", Bars)]),
    Function::column("stddev_sample", Windowed, &[SQUARES], &[Window], |c, out| {
        stddev_sample(c.sums(0), c.window(0), out)
    })
    .listed(Spread, "stddev_sample(x, n)", "sample standard deviation")
    .part(
        |c, first, out| stddev_sample_from(c.sums(0), c.window(0), first, out),
        |c, bar| c.sums(0).std_sample_at(bar, c.window(0)),
    )
    .twin(file!("stddev.cu"), 0, &[("stddev_sample", Bars)]),
    Function::column("zscore", Windowed, &[X, SQUARES], &[Window], |c, out| {
        zscore(c.column(0), c.sums(1), c.window(0), out)
    })
    .listed(Spread, "zscore(x, n)", "standard deviations from the mean")
    .part(
        |c, first, out| zscore_from(c.column(0), c.sums(1), c.window(0), first, out),
        |c, bar| zscore_at(c.column(0), c.sums(1), c.window(0), bar),
    )
    .test(|c, limit| ZscoreTest::new(c.column(0), c.sums(1), c.window(0), limit))
    .without_unit()
    .twin(file!("zscore.cu"), 0, &[("zscore", Bars)]),
    Function::column("quantile", Windowed, &[X], &[Window, Scalar], |c, out| {
        quantile(c.column(0), c.window(0), c.arguments[1], out)
    })
    .listed(Spread, "quantile(x, n, q)", "value below which the share `q` of the last `n` values lies")
    .twin(file!("quantile.cu"), 0, &[("quantile", Bars)]),
    Function::column("correlation", Windowed, &[X, X], &[Window], |c, out| {
        correlation(c.column(0), c.column(1), c.window(0), out)
    })
    .listed(Spread, "correlation(x, y, n)", "correlation of the last `n` values of both, from −1 to 1")
    .without_unit()
    .twin(file!("correlation.cu"), 0, &[("correlation", Bars)]),
    Function::column("slope", Windowed, &[INDEX], &[Window], |c, out| slope(c.sums(0), c.window(0), out))
        .listed(Trend, "slope(x, n)", "rise per bar of the least-squares line")
        .part(
            |c, first, out| slope_from(c.sums(0), c.window(0), first, out),
            |c, bar| c.sums(0).slope_at(bar, c.window(0)),
        )
        .twin(file!("slope.cu"), 0, &[("slope", Bars)]),
    Function::column("rsi", Recursive, &[X], &[Window], |c, out| rsi(c.column(0), c.window(0), out))
        .listed(Momentum, "rsi(x, n)", "relative strength index")
        .without_unit()
        .forgets(6)
        .twin(file!("rsi.cu"), 0, &[("rsi", Stretches), ("rsi_mend", Mend)]),
    Function::column("adx", Recursive, HLC, &[Window], |c, out| {
        adx(c.column(0), c.column(1), c.column(2), c.window(0), out)
    })
    .listed(Momentum, "adx(n)", "average directional index")
    .without_unit()
    .forgets(9)
    .twin(file!("adx.cu"), 0, &[("adx", Stretches), ("adx_mend", Mend)]),
    Function::column("plus_di", Recursive, HLC, &[Window], |c, out| {
        plus_di(c.column(0), c.column(1), c.column(2), c.window(0), out)
    })
    .without_unit()
    .forgets(9)
    .twin(file!("adx.cu"), 0, &[("plus_di", Stretches), ("plus_di_mend", Mend)]),
    Function::column("minus_di", Recursive, HLC, &[Window], |c, out| {
        minus_di(c.column(0), c.column(1), c.column(2), c.window(0), out)
    })
    .without_unit()
    .forgets(9)
    .twin(file!("adx.cu"), 0, &[("minus_di", Stretches), ("minus_di_mend", Mend)]),
    Function::column("cci", Windowed, HLC, &[Window], |c, out| {
        cci(c.column(0), c.column(1), c.column(2), c.window(0), out)
    })
    .listed(Momentum, "cci(n)", "commodity channel index")
    .without_unit()
    .twin(
        file!("cci.cu"),
        4,
        &[
            ("cci_typical", Bars),
            ("cci_sums", Sums),
            ("cci_ends", Warps),
            ("cci_offsets", Bars),
            ("cci", Bars),
        ],
    ),
    Function::column("obv", Recursive, &[Close, Volume], &[], |c, out| obv(c.column(0), c.column(1), out))
        .listed(Momentum, "obv()", "on-balance volume")
        .twin(file!("obv.cu"), 0, &[("obv", Lanes)]),
    Function::column("log_ratio", Windowed, &[X, X], &[], |c, out| log_ratio(c.column(0), c.column(1), out))
        .without_unit()
        .twin(file!("log_ratio.cu"), 0, &[("log_ratio", Bars)]),
    Function::column("aroon_up", Windowed, &[High], &[Window], |c, out| {
        aroon_up(c.column(0), c.window(0), out)
    })
    .without_unit()
    .twin(file!("aroon.cu"), 0, &[("aroon_up", Bars)]),
    Function::column("aroon_down", Windowed, &[Low], &[Window], |c, out| {
        aroon_down(c.column(0), c.window(0), out)
    })
    .without_unit()
    .twin(file!("aroon.cu"), 0, &[("aroon_down", Bars)]),
    Function::column("psar", Recursive, &[High, Low], &[Scalar, Scalar, Scalar], |c, out| {
        psar(c.column(0), c.column(1), c.arguments[0], c.arguments[1], c.arguments[2], out)
    })
    .listed(Trend, "psar(start, step, max)", "parabolic stop and reverse")
    .twin(file!("psar.cu"), 0, &[("psar", Lanes)]),
    Function::column("supertrend_line", Recursive, &[X, X, Close], &[Scalar], |c, out| {
        supertrend_line(c.column(0), c.column(1), c.column(2), c.arguments[0], out)
    })
    .forgets(5)
    .twin(file!("supertrend.cu"), 0, &[("supertrend_line", Stretches), ("supertrend_line_mend", Mend)]),
    Function::column("supertrend_up", Recursive, &[X, X, Close], &[Scalar], |c, out| {
        supertrend_up(c.column(0), c.column(1), c.column(2), c.arguments[0], out)
    })
    .without_unit()
    .forgets(5)
    .twin(file!("supertrend.cu"), 0, &[("supertrend_up", Stretches), ("supertrend_up_mend", Mend)]),
    Function::column("heikin_open", Recursive, &[X, X, X], &[], |c, out| {
        heikin_open(c.column(0), c.column(1), c.column(2), out)
    })
    .twin(file!("heikin_open.cu"), 0, &[("heikin_open", Lanes)]),
    Function::column("highest", Windowed, &[X], &[Window], |c, out| highest(c.column(0), c.window(0), out))
        .listed(Extremes, "highest(x, n)", "largest of the last `n` values")
        .at(|c, bar| highest_at(c.column(0), c.window(0), bar))
        .twin(file!("extreme.cu"), 0, &[("highest", Tiles)]),
    Function::column("lowest", Windowed, &[X], &[Window], |c, out| lowest(c.column(0), c.window(0), out))
        .listed(Extremes, "lowest(x, n)", "smallest of the last `n` values")
        .at(|c, bar| lowest_at(c.column(0), c.window(0), bar))
        .twin(file!("extreme.cu"), 0, &[("lowest", Tiles)]),
    Function::column("swing_high", Windowed, &[X], &[Window, Window], |c, out| {
        swing_high(c.column(0), c.window(0), c.window(1), out)
    })
    .listed(Extremes, "swing_high(x, lookback, lookahead)", "largest value that the bars around it confirm")
    .at(|c, bar| swing_high_at(c.column(0), c.window(0), c.window(1), bar))
    .twin(file!("swing.cu"), 1, &[("swing_high_confirmed", Tiles), ("swing_high", Tiles)]),
    Function::column("swing_low", Windowed, &[X], &[Window, Window], |c, out| {
        swing_low(c.column(0), c.window(0), c.window(1), out)
    })
    .listed(Extremes, "swing_low(x, lookback, lookahead)", "smallest value that the bars around it confirm")
    .at(|c, bar| swing_low_at(c.column(0), c.window(0), c.window(1), bar))
    .twin(file!("swing.cu"), 1, &[("swing_low_confirmed", Tiles), ("swing_low", Tiles)]),
    Function::column("bars_since", Own, &[Condition], &[], |c, out| bars_since(c.condition(0), out))
        .listed(Events, "bars_since(condition)", "bars since the condition was last true")
        .without_unit()
        .twin(file!("bars_since.cu"), 0, &[("bars_since", Warps)]),
    Function::column("value_when", Own, &[Condition, X], &[], |c, out| {
        value_when(c.condition(0), c.column(1), out)
    })
    .listed(Events, "value_when(condition, x)", "the series where the condition was last true")
    .twin(file!("value_when.cu"), 0, &[("value_when", Warps)]),
    Function::column("cum", Recursive, &[X], &[], |c, out| cum(c.column(0), out))
        .listed(Events, "cum(x)", "sum of all values so far")
        .twin(file!("cum.cu"), 0, &[("cum", Lanes)]),
    Function::column("sum_since", Own, &[X, X], &[], |c, out| sum_since(c.column(0), c.column(1), out)).twin(
        file!("sum_since.cu"),
        0,
        &[("sum_since", Lanes)],
    ),
    Function::column("atc", Own, &[X], &[Window, Scalar, Scalar], |c, out| {
        atc(c.column(0), c.window(0), c.arguments[1], c.arguments[2], out)
    })
    .listed(Trend, "atc(x, n, lambda, decay)", "Adaptive Trend Classification, from −1 to 1")
    .without_unit()
    .twin(file!("atc.cu"), 7, &[("atc_sums", Lanes), ("atc_growth", Bars), ("atc", Triples)]),
];
