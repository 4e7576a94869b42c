//! The functions of the language: what they take and how they become nodes.
//!
//! Functions that are arithmetic over others (MACD, Bollinger bands, crossings …) are taken apart here, so that the plan can share their parts.

use std::ops::Range;

use tidemill_market::timeframe;

use super::{Builder, Scope};
use crate::diagnostic::nearest;
use crate::expr::{Expr, Kind};
use crate::graph::{Func, Node, NodeId, Op1, Op2, Source, Type};

/// What a call gives.
pub(super) enum Output {
    One(NodeId),
    Many(Vec<(&'static str, NodeId)>),
}

/// What an argument must be.
#[derive(Clone, Copy, PartialEq)]
enum Arg {
    /// A number series.
    Series,
    /// A number, series or scalar.
    Number,
    /// A condition.
    Condition,
    /// An integer of parameters.
    Window,
    /// A number of parameters.
    Scalar,
    /// Number or condition.
    Any,
    /// A quoted duration.
    Duration,
}

/// Name, arguments and how it is written.
struct Signature {
    name: &'static str,
    args: &'static [Arg],
    usage: &'static str,
}

use Arg::{Any, Condition, Duration, Number, Scalar, Series, Window};

const fn sig(name: &'static str, args: &'static [Arg], usage: &'static str) -> Signature {
    Signature { name, args, usage }
}

const SIGNATURES: &[Signature] = &[
    sig("sma", &[Series, Window], "sma(x, n)"),
    sig("ema", &[Series, Window], "ema(x, n)"),
    sig("ema_sma", &[Series, Window], "ema_sma(x, n)"),
    sig("rma", &[Series, Window], "rma(x, n)"),
    sig("wma", &[Series, Window], "wma(x, n)"),
    sig("hma", &[Series, Window], "hma(x, n)"),
    sig("dema", &[Series, Window], "dema(x, n)"),
    sig("tema", &[Series, Window], "tema(x, n)"),
    sig("lsma", &[Series, Window], "lsma(x, n)"),
    sig("kama", &[Series, Window, Window, Window], "kama(x, n, fast, slow)"),
    sig("tr", &[], "tr()"),
    sig("atr", &[Window], "atr(n)"),
    sig("atr_wilder", &[Window], "atr_wilder(n)"),
    sig("stddev", &[Series, Window], "stddev(x, n)"),
    sig("stddev_sample", &[Series, Window], "stddev_sample(x, n)"),
    sig("zscore", &[Series, Window], "zscore(x, n)"),
    sig("rsi", &[Series, Window], "rsi(x, n)"),
    sig("macd", &[Series, Window, Window, Window], "macd(x, fast, slow, signal).line, .signal or .hist"),
    sig("bollinger", &[Series, Window, Scalar], "bollinger(x, n, k).upper, .middle, .lower or .width"),
    sig("adx", &[Window], "adx(n)"),
    sig("di", &[Window], "di(n).plus or .minus"),
    sig("stochastic", &[Window, Window, Window], "stochastic(n, smooth_k, smooth_d).k or .d"),
    sig("cci", &[Window], "cci(n)"),
    sig("roc", &[Series, Window], "roc(x, n)"),
    sig("momentum", &[Series, Window], "momentum(x, n)"),
    sig("obv", &[], "obv()"),
    sig("highest", &[Series, Window], "highest(x, n)"),
    sig("lowest", &[Series, Window], "lowest(x, n)"),
    sig("swing_high", &[Series, Window, Window], "swing_high(x, lookback, lookahead)"),
    sig("swing_low", &[Series, Window, Window], "swing_low(x, lookback, lookahead)"),
    sig("crosses_above", &[Number, Number], "crosses_above(a, b)"),
    sig("crosses_below", &[Number, Number], "crosses_below(a, b)"),
    sig("bars_since", &[Condition], "bars_since(condition)"),
    sig("value_when", &[Condition, Series], "value_when(condition, x)"),
    sig("cum", &[Series], "cum(x)"),
    sig("atc", &[Series, Window, Scalar, Scalar], "atc(x, n, lambda, decay)"),
    sig("if", &[Condition, Any, Any], "if(condition, a, b)"),
    sig("min", &[Number, Number], "min(a, b, …)"),
    sig("max", &[Number, Number], "max(a, b, …)"),
    sig("clip", &[Number, Number, Number], "clip(x, low, high)"),
    sig("abs", &[Number], "abs(x)"),
    sig("sqrt", &[Number], "sqrt(x)"),
    sig("floor", &[Number], "floor(x)"),
    sig("ceil", &[Number], "ceil(x)"),
    sig("round", &[Number], "round(x)"),
    sig("is_na", &[Number], "is_na(x)"),
    sig("bars", &[Duration], "bars('1d')"),
];

/// Names of all functions.
pub(super) const NAMES: [&str; SIGNATURES.len()] = {
    let mut names = [""; SIGNATURES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = SIGNATURES[at].name;
        at += 1;
    }
    names
};

/// How a function is written.
pub(super) fn usage(name: &str) -> &'static str {
    SIGNATURES.iter().find(|signature| signature.name == name).map_or("", |signature| signature.usage)
}

impl Builder<'_> {
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &[Expr],
        span: &Range<usize>,
        scope: Scope,
    ) -> Option<Output> {
        let Some(signature) = SIGNATURES.iter().find(|signature| signature.name == name) else {
            let hint = match nearest(name, NAMES) {
                Some(near) => format!("did you mean `{}`?", usage(near)),
                None => format!("there are {}", NAMES.join(", ")),
            };
            return self.error_with_hint(span, format!("unknown function `{name}`"), hint);
        };
        let variadic = matches!(name, "min" | "max");
        let fits = arguments.len() == signature.args.len() || (variadic && arguments.len() > 2);
        if !fits {
            let message =
                format!("`{name}` takes {} arguments, found {}", signature.args.len(), arguments.len());
            return self.error_with_hint(span, message, format!("write {}", signature.usage));
        }
        if signature.args == [Duration] {
            return self.duration(&arguments[0]).map(Output::One);
        }
        let nodes: Vec<Option<NodeId>> = arguments
            .iter()
            .enumerate()
            .map(|(at, argument)| {
                self.argument(signature, signature.args[at.min(signature.args.len() - 1)], argument, scope)
            })
            .collect();
        let nodes: Vec<NodeId> = nodes.into_iter().collect::<Option<_>>()?;
        if name == "if"
            && (self.graph.info(nodes[1]).ty == Type::Bool) != (self.graph.info(nodes[2]).ty == Type::Bool)
        {
            return self.error(span, "both branches of `if` must be numbers, or both conditions");
        }
        Some(self.build(name, &nodes))
    }

    fn argument(&mut self, signature: &Signature, kind: Arg, expr: &Expr, scope: Scope) -> Option<NodeId> {
        // Whole series have no trade: `entry` and its kin cannot go into an indicator.
        let pointwise = matches!(
            signature.name,
            "if" | "min" | "max" | "clip" | "abs" | "sqrt" | "floor" | "ceil" | "round" | "is_na"
        );
        let scope = if pointwise { scope } else { Scope::Plain };
        let node = match kind {
            Condition => self.condition(expr, scope)?,
            Any => self.expr(expr, scope)?,
            _ => self.number(expr, scope)?,
        };
        let info = self.graph.info(node);
        let usage = signature.usage;
        match kind {
            Series if !info.series => self.error_with_hint(
                &expr.span,
                format!("`{}` needs a series here, found a number", signature.name),
                format!("write {usage}"),
            ),
            Window | Scalar if info.series => self.error_with_hint(
                &expr.span,
                format!("`{}` needs a number of parameters here, found a series", signature.name),
                format!("write {usage}"),
            ),
            Window if info.ty != Type::Int => self.error_with_hint(
                &expr.span,
                format!("`{}` needs an integer here", signature.name),
                "wrap it in round(…)",
            ),
            Window if self.graph.constant_value(node).is_some_and(|value| value < 1.0) => {
                self.error(&expr.span, format!("`{}` needs at least 1 here", signature.name))
            }
            _ => Some(node),
        }
    }

    fn duration(&mut self, expr: &Expr) -> Option<NodeId> {
        let parsed = match &expr.kind {
            Kind::Text(text) => timeframe::parse_duration(text).ok(),
            _ => None,
        };
        match parsed {
            Some(ms) => Some(self.graph.add(Node::Bars(ms))),
            None => self.error_with_hint(
                &expr.span,
                "expected a duration",
                "for example bars('15m'), bars('4h'), bars('1d')",
            ),
        }
    }

    fn source(&mut self, source: Source) -> NodeId {
        self.graph.add(Node::Source(source))
    }

    fn binary_node(&mut self, op: Op2, a: NodeId, b: NodeId) -> NodeId {
        self.graph.add(Node::Binary(op, a, b))
    }

    fn series(&mut self, func: Func, inputs: &[NodeId], arguments: &[NodeId]) -> NodeId {
        self.graph.add(Node::Call(func, inputs.into(), arguments.into()))
    }

    /// A windowed function over prefix sums of `x`.
    fn windowed(&mut self, func: Func, prefix: Func, x: NodeId, window: NodeId) -> NodeId {
        let prefix = self.series(prefix, &[x], &[]);
        self.series(func, &[prefix], &[window])
    }

    fn ohlc(&mut self) -> [NodeId; 3] {
        [self.source(Source::High), self.source(Source::Low), self.source(Source::Close)]
    }

    fn build(&mut self, name: &str, a: &[NodeId]) -> Output {
        let node = match name {
            "sma" => self.windowed(Func::Sma, Func::PrefixSum, a[0], a[1]),
            "stddev" => self.windowed(Func::Stddev, Func::PrefixSquares, a[0], a[1]),
            "stddev_sample" => self.windowed(Func::StddevSample, Func::PrefixSquares, a[0], a[1]),
            "zscore" => {
                let prefix = self.series(Func::PrefixSquares, &[a[0]], &[]);
                self.series(Func::Zscore, &[a[0], prefix], &[a[1]])
            }
            "wma" => self.windowed(Func::Wma, Func::PrefixIndex, a[0], a[1]),
            "lsma" => self.windowed(Func::Lsma, Func::PrefixIndex, a[0], a[1]),
            "ema" => self.series(Func::Ema, &a[..1], &a[1..]),
            "ema_sma" => self.series(Func::EmaSma, &a[..1], &a[1..]),
            "rma" => self.series(Func::Rma, &a[..1], &a[1..]),
            "hma" => self.series(Func::Hma, &a[..1], &a[1..]),
            "dema" => self.series(Func::Dema, &a[..1], &a[1..]),
            "tema" => self.series(Func::Tema, &a[..1], &a[1..]),
            "kama" => self.series(Func::Kama, &a[..1], &a[1..]),
            "rsi" => self.series(Func::Rsi, &a[..1], &a[1..]),
            "highest" => self.series(Func::Highest, &a[..1], &a[1..]),
            "lowest" => self.series(Func::Lowest, &a[..1], &a[1..]),
            "swing_high" => self.series(Func::SwingHigh, &a[..1], &a[1..]),
            "swing_low" => self.series(Func::SwingLow, &a[..1], &a[1..]),
            "bars_since" => self.series(Func::BarsSince, a, &[]),
            "value_when" => self.series(Func::ValueWhen, a, &[]),
            "cum" => self.series(Func::Cum, a, &[]),
            "atc" => self.series(Func::Atc, &a[..1], &a[1..]),
            "tr" => self.true_range(),
            "atr" => {
                let range = self.true_range();
                self.windowed(Func::Sma, Func::PrefixSum, range, a[0])
            }
            "atr_wilder" => self.on_bars(Func::AtrWilder, a),
            "adx" => self.on_bars(Func::Adx, a),
            "cci" => self.on_bars(Func::Cci, a),
            "obv" => {
                let inputs = [self.source(Source::Close), self.source(Source::Volume)];
                self.series(Func::Obv, &inputs, &[])
            }
            "roc" => {
                let past = self.graph.shift(a[0], a[1]);
                let ratio = self.binary_node(Op2::Div, a[0], past);
                let (one, hundred) = (self.graph.constant(1.0), self.graph.constant(100.0));
                let change = self.binary_node(Op2::Sub, ratio, one);
                self.binary_node(Op2::Mul, change, hundred)
            }
            "momentum" => {
                let past = self.graph.shift(a[0], a[1]);
                self.binary_node(Op2::Sub, a[0], past)
            }
            "crosses_above" => self.crosses(Op2::Gt, Op2::Le, a),
            "crosses_below" => self.crosses(Op2::Lt, Op2::Ge, a),
            "if" => self.graph.add(Node::Select(a[0], a[1], a[2])),
            "min" | "max" => {
                let op = if name == "min" { Op2::Min } else { Op2::Max };
                a[1..].iter().fold(a[0], |node, next| self.graph.add(Node::Binary(op, node, *next)))
            }
            "clip" => {
                let raised = self.binary_node(Op2::Max, a[0], a[1]);
                self.binary_node(Op2::Min, raised, a[2])
            }
            "abs" => self.graph.add(Node::Unary(Op1::Abs, a[0])),
            "sqrt" => self.graph.add(Node::Unary(Op1::Sqrt, a[0])),
            "floor" => self.graph.add(Node::Unary(Op1::Floor, a[0])),
            "ceil" => self.graph.add(Node::Unary(Op1::Ceil, a[0])),
            "round" => self.graph.add(Node::Unary(Op1::Round, a[0])),
            "is_na" => self.graph.add(Node::Unary(Op1::IsNa, a[0])),
            "macd" | "bollinger" | "di" | "stochastic" => return Output::Many(self.build_many(name, a)),
            other => unreachable!("`{other}` has a signature but no meaning"),
        };
        Output::One(node)
    }

    fn build_many(&mut self, name: &str, a: &[NodeId]) -> Vec<(&'static str, NodeId)> {
        match name {
            "macd" => {
                let fast = self.series(Func::Ema, &a[..1], &[a[1]]);
                let slow = self.series(Func::Ema, &a[..1], &[a[2]]);
                let line = self.binary_node(Op2::Sub, fast, slow);
                let signal = self.series(Func::Ema, &[line], &[a[3]]);
                let hist = self.binary_node(Op2::Sub, line, signal);
                vec![("line", line), ("signal", signal), ("hist", hist)]
            }
            "bollinger" => {
                // Two prefixes, because a device keeps sums and pairs of sums differently; `sma` has the first one anyway.
                let middle = self.windowed(Func::Sma, Func::PrefixSum, a[0], a[1]);
                let deviation = self.windowed(Func::Stddev, Func::PrefixSquares, a[0], a[1]);
                let band = self.binary_node(Op2::Mul, a[2], deviation);
                let upper = self.binary_node(Op2::Add, middle, band);
                let lower = self.binary_node(Op2::Sub, middle, band);
                let spread = self.binary_node(Op2::Sub, upper, lower);
                let width = self.binary_node(Op2::Div, spread, middle);
                vec![("upper", upper), ("middle", middle), ("lower", lower), ("width", width)]
            }
            "di" => vec![("plus", self.on_bars(Func::PlusDi, a)), ("minus", self.on_bars(Func::MinusDi, a))],
            _ => {
                let [high, low, close] = self.ohlc();
                let top = self.series(Func::Highest, &[high], &a[..1]);
                let bottom = self.series(Func::Lowest, &[low], &a[..1]);
                let above = self.binary_node(Op2::Sub, close, bottom);
                let range = self.binary_node(Op2::Sub, top, bottom);
                let ratio = self.binary_node(Op2::Div, above, range);
                let hundred = self.graph.constant(100.0);
                let raw = self.binary_node(Op2::Mul, hundred, ratio);
                let k = self.windowed(Func::Sma, Func::PrefixSum, raw, a[1]);
                let d = self.windowed(Func::Sma, Func::PrefixSum, k, a[2]);
                vec![("k", k), ("d", d)]
            }
        }
    }

    fn true_range(&mut self) -> NodeId {
        let inputs = self.ohlc();
        self.series(Func::TrueRange, &inputs, &[])
    }

    fn on_bars(&mut self, func: Func, arguments: &[NodeId]) -> NodeId {
        let inputs = self.ohlc();
        self.series(func, &inputs, arguments)
    }

    /// `now(a, b)` on this bar and `before(a, b)` on the bar before.
    fn crosses(&mut self, now: Op2, before: Op2, a: &[NodeId]) -> NodeId {
        let one = self.graph.constant(1.0);
        let (a1, b1) = (self.graph.shift(a[0], one), self.graph.shift(a[1], one));
        let here = self.binary_node(now, a[0], a[1]);
        let there = self.binary_node(before, a1, b1);
        self.binary_node(Op2::And, here, there)
    }
}
