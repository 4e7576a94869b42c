//! The functions of the language: what they take and how they become nodes. One file because the tables of functions and what makes nodes
//! of their rows are read together.
//!
//! Functions over whole series are rows of the table of indicators ([`tidemill_market::indicator::FUNCTIONS`]) and follow from it.
//! Those that are arithmetic over others (MACD, Bollinger bands, crossings …) are rows of [`COMPOSED`] and are taken apart here, so that the
//! plan can share their parts.

use std::ops::Range;
use std::sync::LazyLock;

use tidemill_market::indicator::{FUNCTIONS, Function, Group, HostFunction, Moments, Read, Take};
use tidemill_market::session::SessionSeries;
use tidemill_market::timeframe;

use super::composed::{INDICATORS, bollinger, macd, stochastic};
use super::{Builder, Scope, elsewhere, session};
use crate::diagnostic::nearest;
use crate::expr::{Expr, Kind};
use crate::graph::{Func, Grid, Node, NodeId, Op1, Op2, Source, Type};
use crate::synonym;

/// What a call gives.
pub(super) enum Output {
    One(NodeId),
    Many(Vec<(&'static str, NodeId)>),
}

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
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
    /// A quoted text: the zone or the hours of a session.
    Text,
    /// Where a sum starts again: a quoted duration, or a condition.
    Anchor,
    /// A quoted duration, or a parameter that chooses among some.
    Frame,
    /// The quoted name of a symbol.
    Symbol,
}

use Arg::{Anchor, Any, Condition, Duration, Frame, Number, Scalar, Series, Symbol, Text, Window};
use Group::{Elsewhere, Events, Momentum, Pointwise, Spread, Time};

/// A function of the language.
#[derive(Clone)]
pub struct Signature {
    /// Name in the language.
    pub name: &'static str,
    /// What it takes.
    pub args: Vec<Arg>,
    /// How it is written.
    pub usage: &'static str,
    /// Where the documentation lists it.
    pub group: Group,
    /// What the documentation says of it.
    pub summary: &'static str,
    build: Build,
}

/// How a call becomes nodes.
#[derive(Clone, Copy)]
pub(super) enum Build {
    /// A call of a function over whole series.
    Call(Func),
    /// A formula over others.
    One(fn(&mut Builder<'_>, &[NodeId]) -> NodeId),
    /// Several of them, each with a name.
    Many(&'static [&'static str], fn(&mut Builder<'_>, &[NodeId]) -> Vec<NodeId>),
    /// The same where some of them are conditions, which are named once more.
    Mixed(&'static [&'static str], &'static [&'static str], fn(&mut Builder<'_>, &[NodeId]) -> Vec<NodeId>),
    /// An operation over two arguments or more.
    Fold(Op2),
    /// A duration as a number of bars.
    Duration,
    /// A series of a trading session.
    Session(SessionSeries),
    /// By a function of its own, which also compiles the arguments; so many of these may be left out.
    Own(OwnBuild, usize),
}

/// Compiles a call that stands at this place.
pub(super) type OwnBuild = fn(&mut Builder<'_>, &'static Signature, &[Expr], &Range<usize>) -> Option<NodeId>;

impl Signature {
    /// The names of its results; empty if there is only one.
    pub fn fields(&self) -> &'static [&'static str] {
        match self.build {
            Build::Many(fields, _) | Build::Mixed(fields, ..) => fields,
            _ => &[],
        }
    }

    /// Those of them that are numbers.
    pub fn number_fields(&self) -> Vec<&'static str> {
        let is_condition =
            |field: &&str| matches!(self.build, Build::Mixed(_, conditions, _) if conditions.contains(field));
        self.fields().iter().copied().filter(|field| !is_condition(field)).collect()
    }

    /// A call with these arguments, as a strategy writes it.
    pub fn write(&self, argument: impl FnMut(Arg) -> String) -> String {
        format!("{}({})", self.name, self.args.iter().copied().map(argument).collect::<Vec<_>>().join(", "))
    }

    fn of(function: Func) -> Self {
        let mut args: Vec<Arg> = Vec::new();
        for read in function.reads {
            match read {
                Read::Series => args.push(Series),
                Read::Sums(_) if !args.contains(&Series) => args.push(Series),
                Read::Condition => args.push(Condition),
                Read::Sums(_) | Read::High | Read::Low | Read::Close | Read::Volume => {}
            }
        }
        args.extend(function.takes.iter().map(|take| match take {
            Take::Window => Window,
            Take::Scalar => Scalar,
        }));
        let name = function.usage.split('(').next().unwrap_or_default();
        let (group, summary) = function.listed;
        Self { name, args, usage: function.usage, group, summary, build: Build::Call(function) }
    }
}

/// All functions of the language.
pub fn functions() -> &'static [Signature] {
    static ALL: LazyLock<Vec<Signature>> = LazyLock::new(|| {
        let over_series = FUNCTIONS.iter().filter(|function| !function.usage.is_empty()).map(Signature::of);
        let all = COMPOSED.iter().chain(INDICATORS).chain(OWN);
        let composed = all.map(|(usage, args, group, summary, build)| Signature {
            name: usage.split('(').next().unwrap_or_default(),
            args: args.to_vec(),
            usage,
            group: *group,
            summary,
            build: *build,
        });
        over_series.chain(composed).collect()
    });
    &ALL
}

/// The function of this name.
pub(crate) fn signature(name: &str) -> Option<&'static Signature> {
    functions().iter().find(|signature| signature.name == name)
}

/// Usage, arguments, group and line of the documentation, and how it becomes nodes.
pub(super) type Composed = (&'static str, &'static [Arg], Group, &'static str, Build);

const COMPOSED: &[Composed] = &[
    ("atr(n)", &[Window], Spread, "mean of the true range", Build::One(atr)),
    (
        "bollinger(x, n, k).upper, .middle, .lower or .width",
        &[Series, Window, Scalar],
        Spread,
        "mean, and `k` standard deviations around it",
        Build::Many(&["upper", "middle", "lower", "width"], bollinger),
    ),
    (
        "macd(x, fast, slow, signal).line, .signal or .hist",
        &[Series, Window, Window, Window],
        Momentum,
        "moving average convergence divergence",
        Build::Many(&["line", "signal", "hist"], macd),
    ),
    (
        "di(n).plus or .minus",
        &[Window],
        Momentum,
        "directional indicators",
        Build::Many(&["plus", "minus"], |b, a| vec![b.function(PLUS_DI, a), b.function(MINUS_DI, a)]),
    ),
    (
        "stochastic(n, smooth_k, smooth_d).k or .d",
        &[Window, Window, Window],
        Momentum,
        "where the close lies between lowest low and highest high",
        Build::Many(&["k", "d"], stochastic),
    ),
    (
        "roc(x, n)",
        &[Series, Window],
        Momentum,
        "change over `n` bars in per cent",
        Build::One(|b, a| b.percent_change(a[0], a[1])),
    ),
    ("momentum(x, n)", &[Series, Window], Momentum, "change over `n` bars", Build::One(momentum)),
    (
        "crosses_above(a, b)",
        &[Number, Number],
        Events,
        "`a` is above `b` and was not on the bar before",
        Build::One(|b, a| b.crosses(Op2::Gt, Op2::Le, a)),
    ),
    (
        "crosses_below(a, b)",
        &[Number, Number],
        Events,
        "`a` is below `b` and was not on the bar before",
        Build::One(|b, a| b.crosses(Op2::Lt, Op2::Ge, a)),
    ),
    (
        "if(condition, a, b)",
        &[Condition, Any, Any],
        Pointwise,
        "`a` where the condition is true, `b` where it is false",
        Build::One(|b, a| b.graph.add(Node::Select(a[0], a[1], a[2]))),
    ),
    ("min(a, b, …)", &[Number, Number], Pointwise, "the smallest", Build::Fold(Op2::Min)),
    ("max(a, b, …)", &[Number, Number], Pointwise, "the largest", Build::Fold(Op2::Max)),
    ("clip(x, low, high)", &[Number, Number, Number], Pointwise, "`x` within limits", Build::One(clip)),
    ("abs(x)", &[Number], Pointwise, "absolute value", Build::One(|b, a| b.unary_node(Op1::Abs, a))),
    ("sqrt(x)", &[Number], Pointwise, "square root", Build::One(|b, a| b.unary_node(Op1::Sqrt, a))),
    ("floor(x)", &[Number], Pointwise, "rounded down", Build::One(|b, a| b.unary_node(Op1::Floor, a))),
    ("ceil(x)", &[Number], Pointwise, "rounded up", Build::One(|b, a| b.unary_node(Op1::Ceil, a))),
    (
        "round(x)",
        &[Number],
        Pointwise,
        "rounded, ties to even",
        Build::One(|b, a| b.unary_node(Op1::Round, a)),
    ),
    (
        "is_na(x)",
        &[Number],
        Pointwise,
        "whether `x` is not available",
        Build::One(|b, a| b.unary_node(Op1::IsNa, a)),
    ),
    (
        "bars('1d')",
        &[Duration],
        Time,
        "a duration in bars of the data (`s m h d w`), at least 1",
        Build::Duration,
    ),
    (
        "session(zone, hours)",
        &[Text, Text],
        Time,
        "whether the bar opens within a session",
        Build::Session(SessionSeries::Inside),
    ),
    (
        "session_bar(zone, hours)",
        &[Text, Text],
        Time,
        "bars of the session so far, 0 on its first one",
        Build::Session(SessionSeries::Bar),
    ),
    (
        "session_left(zone, hours)",
        &[Text, Text],
        Time,
        "whole bars left until the session ends",
        Build::Session(SessionSeries::Left),
    ),
];

/// Series of other bars and of one's own past, by functions of their own.
const OWN: &[Composed] = &[
    (
        "recur(start, next)",
        &[Number, Number],
        Elsewhere,
        "`start` until it has a value, then always `next`, in which `self` is the last value",
        Build::Own(elsewhere::recur, 0),
    ),
    (
        "tf('4h', x)",
        &[Frame, Any],
        Elsewhere,
        "`x` on longer bars: that of the last one that is finished",
        Build::Own(elsewhere::tf, 0),
    ),
    (
        "of('BTCUSDT', x, '2h')",
        &[Symbol, Any, Duration],
        Elsewhere,
        "`x` of another symbol, on its own bars, if it is no older than the third argument, which may be left out",
        Build::Own(elsewhere::of, 1),
    ),
    (
        "rank(x)",
        &[Series],
        Elsewhere,
        "place of `x` among all symbols, from 0 (lowest) to 1 (highest)",
        Build::Own(elsewhere::rank, 0),
    ),
    (
        "mean_over(x)",
        &[Series],
        Elsewhere,
        "mean of `x` over all symbols",
        Build::Own(elsewhere::mean_over, 0),
    ),
    ("sum_over(x)", &[Series], Elsewhere, "sum of `x` over all symbols", Build::Own(elsewhere::sum_over, 0)),
    ("max_over(x)", &[Series], Elsewhere, "largest `x` of all symbols", Build::Own(elsewhere::max_over, 0)),
    ("min_over(x)", &[Series], Elsewhere, "smallest `x` of all symbols", Build::Own(elsewhere::min_over, 0)),
    (
        "count_over(x)",
        &[Series],
        Elsewhere,
        "how many symbols have a value of `x`",
        Build::Own(elsewhere::count_over, 0),
    ),
    (
        "share_over(condition)",
        &[Condition],
        Elsewhere,
        "share of the symbols for which the condition is true, among those for which it is true or false",
        Build::Own(elsewhere::share_over, 0),
    ),
];

pub(super) const SMA: Func = Function::named("sma");
pub(super) const EMA: Func = Function::named("ema");
pub(super) const TRUE_RANGE: Func = Function::named("true_range");
pub(super) const HIGHEST: Func = Function::named("highest");
pub(super) const LOWEST: Func = Function::named("lowest");
const PLUS_DI: Func = Function::named("plus_di");
const MINUS_DI: Func = Function::named("minus_di");

impl Builder<'_> {
    pub(super) fn call(
        &mut self,
        name: &str,
        arguments: &[Expr],
        span: &Range<usize>,
        scope: Scope,
    ) -> Option<Output> {
        let Some(signature) = signature(name) else {
            let names = || functions().iter().map(|signature| signature.name);
            let meant = synonym::function(name).or_else(|| nearest(name, names()));
            let hint = match (synonym::form(name), meant.and_then(self::signature)) {
                (Some(hint), _) => hint.to_owned(),
                (None, Some(near)) => format!("did you mean `{}`?", near.usage),
                (None, None) => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
            };
            return self.error_with_hint(span, format!("unknown function `{name}`"), hint);
        };
        let variadic = matches!(signature.build, Build::Fold(_));
        let n_optional = if let Build::Own(_, n_optional) = signature.build { n_optional } else { 0 };
        let least = signature.args.len() - n_optional;
        let fits =
            (least..=signature.args.len()).contains(&arguments.len()) || (variadic && arguments.len() > 2);
        if !fits {
            let takes = match n_optional {
                0 => least.to_string(),
                _ => format!("{least} to {}", signature.args.len()),
            };
            let noun = if takes == "1" { "argument" } else { "arguments" };
            let message = format!("`{name}` takes {takes} {noun}, found {}", arguments.len());
            return self.error_with_hint(span, message, format!("write {}", signature.usage));
        }
        if let Build::Duration = signature.build {
            return self.duration(&arguments[0]).map(Output::One);
        }
        if let Build::Session(which) = signature.build {
            return self.session(&arguments[0], &arguments[1], which).map(Output::One);
        }
        if let Build::Own(build, _) = signature.build {
            return build(self, signature, arguments, span).map(Output::One);
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
        Some(match signature.build {
            Build::Call(function) => Output::One(self.function(function, &nodes)),
            Build::One(build) => Output::One(build(self, &nodes)),
            Build::Many(fields, build) | Build::Mixed(fields, _, build) => {
                Output::Many(fields.iter().copied().zip(build(self, &nodes)).collect())
            }
            Build::Fold(op) => {
                let fold = |node, next: &NodeId| self.graph.add(Node::Binary(op, node, *next));
                Output::One(nodes[1..].iter().fold(nodes[0], fold))
            }
            Build::Duration | Build::Session(_) | Build::Own(..) => unreachable!("taken above"),
        })
    }

    pub(super) fn argument(
        &mut self,
        signature: &Signature,
        kind: Arg,
        expr: &Expr,
        scope: Scope,
    ) -> Option<NodeId> {
        // Whole series have no trade: `entry` and its kin cannot go into an indicator.
        let scope = if signature.group == Pointwise { scope } else { Scope::Plain };
        let node = match kind {
            Anchor => self.anchor(expr)?,
            Condition => self.condition(expr, scope)?,
            Any => self.expr(expr, scope)?,
            _ => self.number(expr, scope)?,
        };
        let info = self.graph.info(node);
        let usage = signature.usage;
        if info.itself && signature.group != Pointwise && !matches!(signature.build, Build::Own(..)) {
            return self.error_with_hint(
                &expr.span,
                format!("`{}` reads several bars, and `self` is only the last value", signature.name),
                "put the recursion under [let] and use that there",
            );
        }
        match kind {
            Series | Anchor if !info.series => self.error_with_hint(
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
            // The same on every bar, of those that are counted here.
            Condition if !info.series && signature.group == Events && self.grid != Grid::default() => {
                let (bar, zero) = (self.source(Source::BarIndex), self.graph.constant(0.0));
                let always = self.binary_node(Op2::Ge, bar, zero);
                Some(self.binary_node(Op2::And, node, always))
            }
            _ => Some(node),
        }
    }

    /// A series that is above 0 on the first bar of each period of a quoted length, or where a condition is true.
    fn anchor(&mut self, expr: &Expr) -> Option<NodeId> {
        if let Kind::Text(text) = &expr.kind {
            return match timeframe::parse_duration(text) {
                Ok(ms) => Some(self.source(Source::PeriodStart(ms))),
                Err(_) => self.error_with_hint(
                    &expr.span,
                    "expected a duration or a condition",
                    "for example vwap('1d'), vwap('1w'), vwap(session_bar('America/New_York', '09:30-16:00') == 0)",
                ),
            };
        }
        let condition = self.condition(expr, Scope::Plain)?;
        let (one, zero) = (self.graph.constant(1.0), self.graph.constant(0.0));
        Some(self.graph.add(Node::Select(condition, one, zero)))
    }

    fn duration(&mut self, expr: &Expr) -> Option<NodeId> {
        let parsed = match &expr.kind {
            Kind::Text(text) => timeframe::parse_duration(text).ok(),
            _ => None,
        };
        match parsed {
            Some(ms) => Some(self.bars(ms)),
            None => self.error_with_hint(
                &expr.span,
                "expected a duration",
                "for example bars('15m'), bars('4h'), bars('1d')",
            ),
        }
    }

    fn session(&mut self, zone: &Expr, hours: &Expr, which: SessionSeries) -> Option<NodeId> {
        match session::of_call(zone, hours) {
            Ok(session) => {
                let node = self.source(Source::Session(session, which));
                if which != SessionSeries::Inside {
                    return Some(node);
                }
                let one = self.graph.constant(1.0);
                Some(self.binary_node(Op2::Eq, node, one))
            }
            Err(problem) => {
                self.diagnostics.push(problem);
                None
            }
        }
    }

    pub(super) fn source(&mut self, source: Source) -> NodeId {
        self.graph.add(Node::Source(source, self.grid))
    }

    pub(super) fn unary_node(&mut self, op: Op1, a: &[NodeId]) -> NodeId {
        self.graph.add(Node::Unary(op, a[0]))
    }

    pub(super) fn binary_node(&mut self, op: Op2, a: NodeId, b: NodeId) -> NodeId {
        self.graph.add(Node::Binary(op, a, b))
    }

    /// A function over whole series of what its caller names: series and conditions first, then scalars.
    pub(super) fn function(&mut self, function: Func, a: &[NodeId]) -> NodeId {
        let (named, arguments) = a.split_at(a.len() - function.takes.len());
        let mut next = named.iter().copied();
        let mut inputs = Vec::with_capacity(function.reads.len());
        for read in function.reads {
            inputs.push(match read {
                Read::Series | Read::Condition => next.next().unwrap_or(named[0]),
                Read::Sums(moments) => {
                    let prefix = Node::Call(prefix_of(*moments), named[..1].into(), [].into());
                    self.graph.add(prefix)
                }
                Read::High => self.source(Source::High),
                Read::Low => self.source(Source::Low),
                Read::Close => self.source(Source::Close),
                Read::Volume => self.source(Source::Volume),
            });
        }
        self.graph.add(Node::Call(function, inputs.into(), arguments.into()))
    }

    /// Change over `n` bars in per cent.
    pub(super) fn percent_change(&mut self, x: NodeId, n: NodeId) -> NodeId {
        let past = self.graph.shift(x, n);
        let ratio = self.binary_node(Op2::Div, x, past);
        let (one, hundred) = (self.graph.constant(1.0), self.graph.constant(100.0));
        let change = self.binary_node(Op2::Sub, ratio, one);
        self.binary_node(Op2::Mul, change, hundred)
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

/// The function that makes these sums.
fn prefix_of(moments: Moments) -> Func {
    let makes = |function: &&Function| matches!(function.run, HostFunction::Sums(own) if own == moments);
    FUNCTIONS
        .iter()
        .find(makes)
        .unwrap_or_else(|| unreachable!("every kind of sums that is read has a function"))
}

fn atr(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let range = b.function(TRUE_RANGE, &[]);
    b.function(SMA, &[range, a[0]])
}

fn momentum(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let past = b.graph.shift(a[0], a[1]);
    b.binary_node(Op2::Sub, a[0], past)
}

fn clip(b: &mut Builder<'_>, a: &[NodeId]) -> NodeId {
    let raised = b.binary_node(Op2::Max, a[0], a[1]);
    b.binary_node(Op2::Min, raised, a[2])
}
