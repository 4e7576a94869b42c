//! Indicators that are arithmetic over others: their rows, and the nodes that they become.
//!
//! Taken apart here, so that the plan shares their parts with whatever else asks for them.

use tidemill_market::indicator::{Function, Group};

use super::Builder;
use super::function::{
    Arg::{Anchor, Scalar, Series, Window},
    Build, Composed, EMA, HIGHEST, LOWEST, SMA, TRUE_RANGE,
};
use crate::graph::{Func, Node, NodeId, Op1, Op2, Source};
use Group::{Averages, Extremes, Momentum, Spread, Trend};

/// Usage, arguments, group and line of the documentation, and how it becomes nodes.
pub(super) const INDICATORS: &[Composed] = &[
    (
        "vwma(x, n)",
        &[Series, Window],
        Averages,
        "mean of the last `n` values, weighed by volume",
        Build::One(vwma),
    ),
    (
        "vwap(anchor)",
        &[Anchor],
        Averages,
        "mean price since a period began (`'1d'`) or a condition was last true, weighed by volume",
        Build::One(vwap),
    ),
    (
        "supertrend(n, k).line or .up",
        &[Window, Scalar],
        Trend,
        "a stop at `k` average ranges that changes sides with the price, and whether it lies below it",
        Build::Mixed(&["line", "up"], &["up"], supertrend),
    ),
    (
        "ichimoku(conversion, base, span, shift).conversion, .base, .span_a or .span_b",
        &[Window, Window, Window, Window],
        Trend,
        "middles of three ranges; the spans as of `shift` bars ago",
        Build::Many(&["conversion", "base", "span_a", "span_b"], ichimoku),
    ),
    (
        "heikin_ashi().open, .high, .low or .close",
        &[],
        Trend,
        "bars of mean prices",
        Build::Many(&["open", "high", "low", "close"], heikin_ashi),
    ),
    (
        "median(x, n)",
        &[Series, Window],
        Spread,
        "middle of the last `n` values",
        Build::One(|b, a| {
            let half = b.graph.constant(0.5);
            b.function(QUANTILE, &[a[0], a[1], half])
        }),
    ),
    (
        "keltner(x, n, k).upper, .middle or .lower",
        &[Series, Window, Scalar],
        Spread,
        "exponential average, and `k` averages of the true range around it",
        Build::Many(&["upper", "middle", "lower"], keltner),
    ),
    (
        "donchian(n).upper, .middle or .lower",
        &[Window],
        Extremes,
        "highest high, lowest low, and the middle between them",
        Build::Many(&["upper", "middle", "lower"], donchian),
    ),
    (
        "log_return(x, k)",
        &[Series, Window],
        Momentum,
        "natural logarithm of the change over `k` bars",
        Build::One(|b, a| {
            let past = b.graph.shift(a[0], a[1]);
            b.function(LOG_RATIO, &[a[0], past])
        }),
    ),
    (
        "williams_r(n)",
        &[Window],
        Momentum,
        "where the close lies below the highest high, from −100 to 0",
        Build::One(williams_r),
    ),
    (
        "aroon(n).up or .down",
        &[Window],
        Momentum,
        "how recent the highest high and the lowest low are",
        Build::Many(&["up", "down"], |b, a| vec![b.function(AROON_UP, a), b.function(AROON_DOWN, a)]),
    ),
    ("mfi(n)", &[Window], Momentum, "money flow index", Build::One(mfi)),
    (
        "trix(x, n)",
        &[Series, Window],
        Momentum,
        "change of a triple exponential average in per cent",
        Build::One(trix),
    ),
];

const EMA_SMA: Func = Function::named("ema_sma");
const STDDEV: Func = Function::named("stddev");
const RMA: Func = Function::named("rma");
const QUANTILE: Func = Function::named("quantile");
const LOG_RATIO: Func = Function::named("log_ratio");
const AROON_UP: Func = Function::named("aroon_up");
const AROON_DOWN: Func = Function::named("aroon_down");
const SUM_SINCE: Func = Function::named("sum_since");
const SUPERTREND_LINE: Func = Function::named("supertrend_line");
const SUPERTREND_UP: Func = Function::named("supertrend_up");
const HEIKIN_OPEN: Func = Function::named("heikin_open");

fn vwma(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let volume = b.source(Source::Volume);
    let weighed = b.binary_node(Op2::Mul, a[0], volume);
    let (sum, weight) = (b.function(SMA, &[weighed, a[1]]), b.function(SMA, &[volume, a[1]]));
    b.binary_node(Op2::Div, sum, weight)
}

/// `a` is a series that is above 0 where the sums start again.
fn vwap(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let price = b.mean_of(&[Source::High, Source::Low, Source::Close]);
    let volume = b.source(Source::Volume);
    let weighed = b.binary_node(Op2::Mul, price, volume);
    // A bar without a price has no weight either.
    let missing = b.unary_node(Op1::IsNa, &[weighed]);
    let volume = b.graph.add(Node::Select(missing, weighed, volume));
    let (sum, weight) = (b.function(SUM_SINCE, &[a[0], weighed]), b.function(SUM_SINCE, &[a[0], volume]));
    b.binary_node(Op2::Div, sum, weight)
}

fn supertrend(b: &mut Builder<'_>, a: &[NodeId]) -> Vec<NodeId> {
    let middle = b.mean_of(&[Source::High, Source::Low]);
    let range = b.function(TRUE_RANGE, &[]);
    let range = b.function(RMA, &[range, a[0]]);
    let line = b.function(SUPERTREND_LINE, &[middle, range, a[1]]);
    let up = b.function(SUPERTREND_UP, &[middle, range, a[1]]);
    let one = b.graph.constant(1.0);
    vec![line, b.binary_node(Op2::Eq, up, one)]
}

/// Middle between the highest high and the lowest low of so many bars, behind both.
fn range_of(b: &mut Builder<'_>, n: NodeId) -> [NodeId; 3] {
    let [high, low] = [Source::High, Source::Low].map(|source| b.source(source));
    let (top, bottom) = (b.function(HIGHEST, &[high, n]), b.function(LOWEST, &[low, n]));
    [top, bottom, b.middle(top, bottom)]
}

fn ichimoku(b: &mut Builder<'_>, a: &[NodeId]) -> Vec<NodeId> {
    let [[_, _, conversion], [_, _, base], [_, _, span_b]] = [a[0], a[1], a[2]].map(|n| range_of(b, n));
    let span_a = b.middle(conversion, base);
    vec![conversion, base, b.graph.shift(span_a, a[3]), b.graph.shift(span_b, a[3])]
}

fn heikin_ashi(b: &mut Builder<'_>, _: &[NodeId]) -> Vec<NodeId> {
    let sources = [Source::Open, Source::High, Source::Low, Source::Close];
    let mean = b.mean_of(&sources);
    let [open, high, low, close] = sources.map(|source| b.source(source));
    let open = b.function(HEIKIN_OPEN, &[open, close, mean]);
    let (above, below) = (b.binary_node(Op2::Max, open, mean), b.binary_node(Op2::Min, open, mean));
    vec![open, b.binary_node(Op2::Max, high, above), b.binary_node(Op2::Min, low, below), mean]
}

fn keltner(b: &mut Builder<'_>, a: &[NodeId]) -> Vec<NodeId> {
    let middle = b.function(EMA, &a[..2]);
    let range = b.function(TRUE_RANGE, &[]);
    let range = b.function(EMA, &[range, a[1]]);
    let band = b.binary_node(Op2::Mul, a[2], range);
    vec![b.binary_node(Op2::Add, middle, band), middle, b.binary_node(Op2::Sub, middle, band)]
}

fn donchian(b: &mut Builder<'_>, a: &[NodeId]) -> Vec<NodeId> {
    let [upper, lower, middle] = range_of(b, a[0]);
    vec![upper, middle, lower]
}

fn williams_r(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let [top, bottom, _] = range_of(b, a[0]);
    let close = b.source(Source::Close);
    let (range, below) = (b.binary_node(Op2::Sub, top, bottom), b.binary_node(Op2::Sub, top, close));
    let (zero, scale) = (b.graph.constant(0.0), b.graph.constant(-100.0));
    let ratio = b.binary_node(Op2::Div, below, range);
    let value = b.binary_node(Op2::Mul, scale, ratio);
    let flat = b.binary_node(Op2::Eq, range, zero);
    b.graph.add(Node::Select(flat, zero, value))
}

fn mfi(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let price = b.mean_of(&[Source::High, Source::Low, Source::Close]);
    let volume = b.source(Source::Volume);
    let flow = b.binary_node(Op2::Mul, price, volume);
    let (zero, one, hundred) = (b.graph.constant(0.0), b.graph.constant(1.0), b.graph.constant(100.0));
    let before = b.graph.shift(price, one);
    let mut mean_where = |op: Op2| {
        let moved = b.binary_node(op, price, before);
        let flow = b.graph.add(Node::Select(moved, flow, zero));
        b.function(SMA, &[flow, a[0]])
    };
    let (rising, falling) = (mean_where(Op2::Gt), mean_where(Op2::Lt));
    let all = b.binary_node(Op2::Add, rising, falling);
    let share = b.binary_node(Op2::Div, rising, all);
    let index = b.binary_node(Op2::Mul, hundred, share);
    let none = b.binary_node(Op2::Eq, all, zero);
    b.graph.add(Node::Select(none, zero, index))
}

fn trix(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let average = (0..3).fold(a[0], |x, _| b.function(EMA_SMA, &[x, a[1]]));
    let one = b.graph.constant(1.0);
    b.percent_change(average, one)
}

pub(super) fn macd(b: &mut Builder<'_>, a: &[NodeId]) -> Vec<NodeId> {
    let fast = b.function(EMA, &[a[0], a[1]]);
    let slow = b.function(EMA, &[a[0], a[2]]);
    let line = b.binary_node(Op2::Sub, fast, slow);
    let signal = b.function(EMA, &[line, a[3]]);
    let hist = b.binary_node(Op2::Sub, line, signal);
    vec![line, signal, hist]
}

pub(super) fn bollinger(b: &mut Builder<'_>, a: &[NodeId]) -> Vec<NodeId> {
    // Two prefixes, because a device keeps sums and pairs of sums differently; `sma` has the first one anyway.
    let middle = b.function(SMA, &a[..2]);
    let deviation = b.function(STDDEV, &a[..2]);
    let band = b.binary_node(Op2::Mul, a[2], deviation);
    let upper = b.binary_node(Op2::Add, middle, band);
    let lower = b.binary_node(Op2::Sub, middle, band);
    let spread = b.binary_node(Op2::Sub, upper, lower);
    let width = b.binary_node(Op2::Div, spread, middle);
    vec![upper, middle, lower, width]
}

pub(super) fn stochastic(b: &mut Builder<'_>, a: &[NodeId]) -> Vec<NodeId> {
    let [high, low, close] = [Source::High, Source::Low, Source::Close].map(|source| b.source(source));
    let top = b.function(HIGHEST, &[high, a[0]]);
    let bottom = b.function(LOWEST, &[low, a[0]]);
    let above = b.binary_node(Op2::Sub, close, bottom);
    let range = b.binary_node(Op2::Sub, top, bottom);
    let ratio = b.binary_node(Op2::Div, above, range);
    let hundred = b.graph.constant(100.0);
    let raw = b.binary_node(Op2::Mul, hundred, ratio);
    let k = b.function(SMA, &[raw, a[1]]);
    let d = b.function(SMA, &[k, a[2]]);
    vec![k, d]
}

impl Builder<'_> {
    fn middle(&mut self, a: NodeId, b: NodeId) -> NodeId {
        let two = self.graph.constant(2.0);
        let sum = self.binary_node(Op2::Add, a, b);
        self.binary_node(Op2::Div, sum, two)
    }
}
