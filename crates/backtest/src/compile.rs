//! Compiles a strategy into a [`Program`]: names resolved, types checked, everything shared that is equal.

mod closes;
mod elsewhere;
mod expr;
pub(crate) mod function;
mod session;

pub use function::{Arg, Signature, functions};
pub use session::check_sessions;

use std::ops::Range;

use rustc_hash::FxHashMap;
use tidemill_market::Universe;

use crate::diagnostic::{Diagnostic, SourceErrors};
use crate::expr::Expr;
use crate::graph::{Graph, Grid, Node, NodeId, Position, Source};
use crate::strategy::{ExitKind, Label, LabelPart, SideRules, Strategy, StrategyError};

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

/// What expressions can name of the data.
#[derive(Clone, Debug, Default)]
pub struct DataNames {
    /// Further columns that every symbol has.
    pub extra: Vec<String>,
    /// Name and timeframe of each symbol.
    pub symbols: Vec<(String, i64)>,
}

impl DataNames {
    /// Of this data.
    pub fn of(universe: &Universe) -> Self {
        let symbol = |bars: &tidemill_market::Bars| (bars.symbol.clone(), bars.timeframe_ms);
        Self { extra: shared_columns(universe), symbols: universe.symbols.iter().map(symbol).collect() }
    }
}

/// Further columns that every symbol has.
fn shared_columns(universe: &Universe) -> Vec<String> {
    let Some((first, rest)) = universe.symbols.split_first() else { return Vec::new() };
    first
        .extra
        .iter()
        .map(|(name, _)| name.clone())
        .filter(|name| rest.iter().all(|bars| bars.extra.iter().any(|(n, _)| n == name)))
        .collect()
}

/// Compiles a strategy for data with these names.
pub fn compile(strategy: &Strategy, data: &DataNames) -> Result<Program, StrategyError> {
    let mut builder = Builder::new(strategy, data);
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

/// What `self` means in the expression being compiled.
#[derive(Clone, Copy, PartialEq)]
enum Itself {
    /// Nothing: there is no recursion around it.
    Outside,
    /// The last value of the recursion.
    Known,
    /// Nothing, although there is a recursion further out.
    Hidden,
}

struct Builder<'a> {
    strategy: &'a Strategy,
    data: &'a DataNames,
    graph: Graph,
    /// The bars that the expression being compiled is about.
    grid: Grid,
    itself: Itself,
    /// Names of `[let]` on other grids.
    lets_elsewhere: FxHashMap<(usize, Grid), Option<NodeId>>,
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

/// The name of the last value of a recursion.
const ITSELF: &str = "self";

fn is_built_in(name: &str) -> bool {
    name == ITSELF || SOURCES.iter().any(|(n, _)| *n == name) || POSITIONS.iter().any(|(n, _)| *n == name)
}

impl<'a> Builder<'a> {
    fn new(strategy: &'a Strategy, data: &'a DataNames) -> Self {
        Self {
            strategy,
            data,
            graph: Graph::default(),
            grid: Grid::default(),
            itself: Itself::Outside,
            lets_elsewhere: FxHashMap::default(),
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
        if self.grid != Grid::default() {
            return self.let_elsewhere(at);
        }
        match self.let_states[at] {
            LetState::Done(node) => node,
            LetState::Open => {
                let (name, expr) = &self.strategy.lets[at];
                self.error(&expr.span, format!("`{name}` depends on itself"))
            }
            LetState::New => {
                let strategy = self.strategy;
                self.let_states[at] = LetState::Open;
                let around = std::mem::replace(&mut self.itself, Itself::Outside);
                let node = self.expr(&strategy.lets[at].1, Scope::Plain);
                self.itself = around;
                self.let_states[at] = LetState::Done(node);
                node
            }
        }
    }

    fn side(&mut self, rules: &SideRules) -> Option<Side> {
        let enter = self.condition(&rules.enter, Scope::Plain);
        let has_stop = rules.exits.iter().any(|exit| exit.kind == ExitKind::Stop);
        let risk = rules.risk.as_ref().map(|expr| self.number(expr, Scope::Stop));
        let mut exits = Vec::new();
        let mut complete = true;
        for exit in &rules.exits {
            let when = exit.when.as_ref().map(|when| self.condition(when, Scope::Plain));
            let value = match exit.kind {
                ExitKind::Signal => self.condition(&exit.value, Scope::Plain),
                ExitKind::Stop => self.number(&exit.value, Scope::Entry),
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
        roots
            .extend(exits.iter().zip(&rules.exits).map(|(exit, rule)| (exit.value, rule.value.span.clone())));
        if !has_stop {
            for (root, span) in roots {
                if self.uses(root, Position::Stop) {
                    self.error::<()>(&span, "`stop` is used, but this side has no stop");
                }
            }
        }
        if !complete || matches!(risk, Some(None)) {
            return None;
        }
        Some(Side { enter: enter?, exits, risk: risk.flatten() })
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
