//! Compiles a strategy into a [`Program`]: names resolved, types checked, everything shared that is equal.

mod closes;
mod composed;
mod expr;
pub(crate) mod function;
mod session;

pub use function::{Arg, Signature, functions};
pub use session::check_sessions;

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::diagnostic::{Diagnostic, SourceErrors};
use crate::expr::Expr;
use crate::graph::{Graph, Node, NodeId, Position, Source};
use crate::strategy::{ExitKind, Label, LabelPart, SideRules, Sizing, Strategy, StrategyError};

/// A strategy as a graph and the roots in it.
#[derive(Clone, Debug)]
pub struct Program {
    /// All nodes.
    pub graph: Graph,
    /// Long and short.
    pub sides: [Option<Side>; 2],
    /// Condition of each parameter, a scalar.
    pub conditions: Vec<Option<NodeId>>,
}

/// Roots of one side.
#[derive(Clone, Debug)]
pub struct Side {
    /// Entry condition.
    pub enter: NodeId,
    /// Ways out, in order of priority.
    pub exits: Vec<ExitRoots>,
    /// What one R is, if written.
    pub risk: Option<NodeId>,
    /// The share of equity that a trade commits, if written.
    pub size: Option<NodeId>,
}

/// Roots of one exit.
#[derive(Clone, Debug)]
pub struct ExitRoots {
    /// What `value` means.
    pub kind: ExitKind,
    /// Level, distance, multiple, condition or bars.
    pub value: NodeId,
    /// Condition on the signal bar.
    pub when: Option<NodeId>,
    /// Reason of a trade that it closes.
    pub label: Vec<LabelRoot>,
    /// Reason if the bar opened beyond the level.
    pub gap_label: Vec<LabelRoot>,
}

/// A piece of a label.
#[derive(Clone, Debug)]
pub enum LabelRoot {
    /// Plain text.
    Text(String),
    /// A scalar with so many decimals.
    Value(NodeId, usize),
}

/// Compiles a strategy for data with these further columns.
pub fn compile(strategy: &Strategy, extra_columns: &[String]) -> Result<Program, StrategyError> {
    let mut builder = Builder::new(strategy, extra_columns);
    for (at, (name, expr)) in strategy.lets.iter().enumerate() {
        builder.check_let_name(name, expr, at);
    }
    for at in builder.let_order() {
        builder.let_value(at);
    }
    for param in &strategy.params {
        builder.check_param_name(&param.name, &param.span);
    }
    let conditions: Vec<Option<NodeId>> = strategy
        .params
        .iter()
        .map(|param| param.when.as_ref().and_then(|when| builder.scalar_condition(when)))
        .collect();
    let long = strategy.long.as_ref().and_then(|rules| builder.side(rules));
    let short = strategy.short.as_ref().and_then(|rules| builder.side(rules));
    let mut problems = builder.diagnostics;
    for objective in &strategy.objectives {
        if !objective.overridden {
            crate::objective::check_maximize(strategy, objective, &mut problems);
            continue;
        }
        let mut given = Vec::new();
        crate::objective::check_maximize(strategy, objective, &mut given);
        if !given.is_empty() {
            return Err(StrategyError::Source(SourceErrors::new("--objective", &objective.text, given)));
        }
    }
    crate::objective::check_require(strategy, &mut problems);
    if problems.is_empty() {
        Ok(Program { graph: builder.graph, sides: [long, short], conditions })
    } else {
        Err(StrategyError::Source(SourceErrors::new(&strategy.file, &strategy.source, problems)))
    }
}

/// Names that the position gives; which are allowed depends on the place.
#[derive(Clone, Copy, PartialEq)]
enum Scope {
    /// Series and parameters only.
    Plain,
    /// Also `entry`.
    Entry,
    /// Also `entry` and `stop`.
    Stop,
    /// Also `entry`, `stop` and `risk`.
    Risk,
}

#[derive(Clone, Copy)]
enum LetState {
    New,
    Open,
    Done(Option<NodeId>),
}

struct Builder<'a> {
    strategy: &'a Strategy,
    extra: &'a [String],
    graph: Graph,
    params: FxHashMap<&'a str, usize>,
    lets: FxHashMap<&'a str, usize>,
    let_states: Vec<LetState>,
    diagnostics: Vec<Diagnostic>,
}

const SOURCES: [(&str, Source); 8] = [
    ("open", Source::Open),
    ("high", Source::High),
    ("low", Source::Low),
    ("close", Source::Close),
    ("volume", Source::Volume),
    ("bar_index", Source::BarIndex),
    ("hour", Source::Hour),
    ("weekday", Source::Weekday),
];

/// Names of later versions, behind all others: a parameter, a [let] or a column of the data may have them, so that older files mean
/// what they meant.
const HIDEABLE: [(&str, Hideable); 7] = [
    ("hl2", Hideable::Mean(&[Source::High, Source::Low])),
    ("hlc3", Hideable::Mean(&[Source::High, Source::Low, Source::Close])),
    ("ohlc4", Hideable::Mean(&[Source::Open, Source::High, Source::Low, Source::Close])),
    ("minute", Hideable::Source(Source::Minute)),
    ("day", Hideable::Source(Source::Day)),
    ("month", Hideable::Source(Source::Month)),
    ("year", Hideable::Source(Source::Year)),
];

/// What a name means that may be hidden.
#[derive(Clone, Copy)]
enum Hideable {
    /// A series of the data.
    Source(Source),
    /// The sum of some, added in this order, divided by their number.
    Mean(&'static [Source]),
}

const POSITIONS: [(&str, Position); 3] =
    [("entry", Position::Entry), ("stop", Position::Stop), ("risk", Position::Risk)];

fn is_built_in(name: &str) -> bool {
    SOURCES.iter().any(|(n, _)| *n == name) || POSITIONS.iter().any(|(n, _)| *n == name)
}

impl<'a> Builder<'a> {
    fn new(strategy: &'a Strategy, extra: &'a [String]) -> Self {
        Self {
            strategy,
            extra,
            graph: Graph::default(),
            params: strategy.params.iter().enumerate().map(|(at, param)| (param.name.as_str(), at)).collect(),
            lets: strategy.lets.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect(),
            let_states: vec![LetState::New; strategy.lets.len()],
            diagnostics: Vec::new(),
        }
    }

    fn error<T>(&mut self, span: &Range<usize>, message: impl Into<String>) -> Option<T> {
        self.diagnostics.push(Diagnostic::new(span.clone(), message));
        None
    }

    fn error_with_hint<T>(
        &mut self,
        span: &Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Option<T> {
        self.diagnostics.push(Diagnostic::new(span.clone(), message).hint(hint));
        None
    }

    /// A parameter may not hide a price; a further column of the data may be hidden.
    fn check_param_name(&mut self, name: &str, span: &Range<usize>) {
        if is_built_in(name) {
            self.error::<()>(span, format!("`{name}` is a built-in name and cannot be a parameter"));
        }
    }

    fn check_let_name(&mut self, name: &str, expr: &Expr, at: usize) {
        let builtin = is_built_in(name);
        if builtin || self.params.contains_key(name) {
            let what = if builtin { "a built-in name" } else { "a parameter" };
            self.error::<()>(&expr.span, format!("`{name}` under [let] is already {what}"));
            self.let_states[at] = LetState::Done(None);
        }
    }

    /// The lets, each behind those that it names, so that compiling one never goes through another that is not done.
    fn let_order(&mut self) -> Vec<usize> {
        let named = |at: usize| {
            let mut named = Vec::new();
            self.strategy.lets[at].1.names(&mut |name| named.extend(self.lets.get(name).copied()));
            named
        };
        let mut order = Vec::new();
        let mut circular = Vec::new();
        let mut states = vec![None; self.let_states.len()];
        for root in 0..states.len() {
            let mut open: Vec<(usize, Vec<usize>)> = Vec::new();
            let mut next = Some(root);
            loop {
                if let Some(at) = next.take() {
                    match states[at] {
                        None => {
                            states[at] = Some(false);
                            open.push((at, named(at)));
                        }
                        Some(false) => circular.push(at),
                        Some(true) => {}
                    }
                }
                let Some((at, rest)) = open.last_mut() else { break };
                next = rest.pop();
                if next.is_none() {
                    states[*at] = Some(true);
                    order.push(*at);
                    open.pop();
                }
            }
        }
        for at in circular {
            if !matches!(self.let_states[at], LetState::Done(_)) {
                let (name, expr) = &self.strategy.lets[at];
                self.error::<()>(&expr.span, format!("`{name}` depends on itself"));
                self.let_states[at] = LetState::Done(None);
            }
        }
        order
    }

    fn let_value(&mut self, at: usize) -> Option<NodeId> {
        match self.let_states[at] {
            LetState::Done(node) => node,
            LetState::Open => {
                let (name, expr) = &self.strategy.lets[at];
                self.error(&expr.span, format!("`{name}` depends on itself"))
            }
            LetState::New => {
                let strategy = self.strategy;
                self.let_states[at] = LetState::Open;
                let node = self.expr(&strategy.lets[at].1, Scope::Plain);
                self.let_states[at] = LetState::Done(node);
                node
            }
        }
    }

    fn side(&mut self, rules: &SideRules) -> Option<Side> {
        let enter = self.condition(&rules.enter, Scope::Plain);
        let is_stop = |kind: ExitKind| matches!(kind, ExitKind::Stop | ExitKind::StopSeries);
        let has_stop = rules.exits.iter().any(|exit| is_stop(exit.kind));
        let risk = rules.risk.as_ref().map(|expr| self.number(expr, Scope::Stop));
        let size = rules.size.as_ref().map(|expr| self.size(expr));
        let mut exits = Vec::new();
        let mut complete = true;
        for exit in &rules.exits {
            let when = exit.when.as_ref().map(|when| self.condition(when, Scope::Plain));
            let value = match exit.kind {
                ExitKind::Signal => self.condition(&exit.value, Scope::Plain),
                ExitKind::Stop => self.number(&exit.value, Scope::Entry),
                ExitKind::StopSeries => self.stop_series(&exit.value),
                ExitKind::Target | ExitKind::Trail | ExitKind::Breakeven | ExitKind::Time => {
                    self.number(&exit.value, Scope::Risk)
                }
            };
            let label = self.label(&exit.label, exit.value.span.clone());
            let gap_label = self.label(&exit.gap_label, exit.value.span.clone());
            match (value, when, label, gap_label) {
                (Some(value), None, Some(label), Some(gap_label)) => {
                    exits.push(ExitRoots { kind: exit.kind, value, when: None, label, gap_label });
                }
                (Some(value), Some(Some(when)), Some(label), Some(gap_label)) => {
                    exits.push(ExitRoots { kind: exit.kind, value, when: Some(when), label, gap_label });
                }
                _ => complete = false,
            }
        }
        let mut roots: Vec<(NodeId, Range<usize>)> = Vec::new();
        if let Some(Some(risk)) = risk {
            roots.push((risk, rules.risk.as_ref().map_or(0..0, |expr| expr.span.clone())));
        }
        if let Some(Some(size)) = size {
            roots.push((size, rules.size.as_ref().map_or(0..0, |expr| expr.span.clone())));
        }
        roots
            .extend(exits.iter().zip(&rules.exits).map(|(exit, rule)| (exit.value, rule.value.span.clone())));
        if !has_stop {
            for (root, span) in roots {
                if self.uses(root, Position::Stop) {
                    self.error::<()>(&span, "`stop` is used, but this side has no stop");
                }
            }
        }
        if !complete || matches!(risk, Some(None)) || matches!(size, Some(None)) {
            return None;
        }
        Some(Side { enter: enter?, exits, risk: risk.flatten(), size: size.flatten() })
    }

    fn size(&mut self, expr: &Expr) -> Option<NodeId> {
        if self.strategy.execution.sizing == Sizing::Unit {
            let hint = "leave `size` away, or choose another `sizing`";
            return self.error_with_hint(
                &expr.span,
                "`size` is a share of equity, and sizing = \"unit\" has none",
                hint,
            );
        }
        self.number(expr, Scope::Risk)
    }

    fn stop_series(&mut self, expr: &Expr) -> Option<NodeId> {
        let node = self.number(expr, Scope::Plain)?;
        if self.graph.info(node).series {
            return Some(node);
        }
        self.error_with_hint(&expr.span, "a stop follows a series, found a number", "write level = \"…\"")
    }

    fn uses(&self, root: NodeId, position: Position) -> bool {
        matches!(self.graph.node(root), Node::Position(p) if *p == position)
            || (self.graph.info(root).position
                && self.graph.children(root).into_iter().any(|child| self.uses(child, position)))
    }

    fn label(&mut self, label: &Label, at: Range<usize>) -> Option<Vec<LabelRoot>> {
        let mut out = Vec::new();
        for part in &label.parts {
            match part {
                LabelPart::Text(text) if text.is_empty() => {}
                LabelPart::Text(text) => out.push(LabelRoot::Text(text.clone())),
                LabelPart::Value(expr, decimals) => {
                    let node = self.number(expr, Scope::Plain)?;
                    if self.graph.info(node).series {
                        return self.error(&at, "a label shows parameters, not series");
                    }
                    out.push(LabelRoot::Value(node, *decimals));
                }
            }
        }
        Some(out)
    }
}
