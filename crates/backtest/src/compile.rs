//! Compiles a strategy into a [`Program`]: names resolved, types checked, everything shared that is equal.

mod function;

pub use function::{Arg, Signature, functions};

use std::ops::Range;

use rustc_hash::FxHashMap;
use tidemill_search::{Choice, Domain};

use crate::diagnostic::{Diagnostic, SourceErrors, nearest};
use crate::expr::{Binary, Expr, Kind, Unary};
use crate::graph::{Graph, Node, NodeId, Op1, Op2, Position, Source, Type};
use crate::strategy::{ExitKind, Label, LabelPart, SideRules, Strategy, StrategyError};
use function::Output;

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
    /// Its kind.
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

/// Deepest graph accepted; later passes recurse along it.
const MAX_DEPTH: u32 = 1_200;

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

    /// A truth value, per bar or per trial.
    fn condition(&mut self, expr: &Expr, scope: Scope) -> Option<NodeId> {
        let node = self.expr(expr, scope)?;
        match self.graph.info(node).ty {
            Type::Bool => Some(node),
            _ => self.error_with_hint(
                &expr.span,
                "expected a condition, found a number",
                "compare it, for example `x > 0`",
            ),
        }
    }

    fn scalar_condition(&mut self, expr: &Expr) -> Option<NodeId> {
        let node = self.condition(expr, Scope::Plain)?;
        if self.graph.info(node).series {
            return self.error(&expr.span, "a parameter's condition may use parameters only");
        }
        Some(node)
    }

    fn number(&mut self, expr: &Expr, scope: Scope) -> Option<NodeId> {
        let node = self.expr(expr, scope)?;
        match self.graph.info(node).ty {
            Type::Bool => self.error(&expr.span, "expected a number, found a condition"),
            _ => Some(node),
        }
    }

    fn expr(&mut self, expr: &Expr, scope: Scope) -> Option<NodeId> {
        let node = self.expr_inner(expr, scope)?;
        if self.graph.info(node).depth > MAX_DEPTH {
            return self.error(&expr.span, format!("the formula is more than {MAX_DEPTH} operations deep"));
        }
        Some(node)
    }

    fn expr_inner(&mut self, expr: &Expr, scope: Scope) -> Option<NodeId> {
        match &expr.kind {
            Kind::Number(value, _) => Some(self.graph.constant(*value)),
            Kind::Bool(value) => Some(self.graph.boolean(*value)),
            Kind::Text(text) => self.error_with_hint(
                &expr.span,
                format!("text '{text}' cannot stand here"),
                "text is compared with a choice parameter: mode == 'wide'",
            ),
            Kind::Name(name) => self.name(name, &expr.span, scope),
            Kind::Unary(Unary::Neg, a) => {
                let a = self.number(a, scope)?;
                Some(self.graph.add(Node::Unary(Op1::Neg, a)))
            }
            Kind::Unary(Unary::Not, a) => {
                let a = self.condition(a, scope)?;
                Some(self.graph.add(Node::Unary(Op1::Not, a)))
            }
            Kind::Binary(op, a, b) => self.binary(*op, a, b, scope),
            Kind::Index(a, k) => {
                let (node, by) = (self.expr(a, scope), self.number(k, Scope::Plain));
                let (node, by) = (node?, by?);
                let (info, by_info) = (self.graph.info(node), self.graph.info(by));
                if by_info.series || by_info.ty != Type::Int {
                    return self.error_with_hint(
                        &k.span,
                        "how many bars ago must be an integer of parameters",
                        "wrap it in round(…)",
                    );
                }
                if info.position || !info.series {
                    return self.error(&a.span, "only a series has a past");
                }
                if self.graph.constant_value(by).is_some_and(|bars| bars < 0.0) {
                    return self.error(&k.span, "a negative index would look into the future");
                }
                Some(self.graph.shift(node, by))
            }
            Kind::Call(name, arguments) => match self.call(name, arguments, &expr.span, scope)? {
                Output::One(node) => Some(node),
                Output::Many(outputs) => {
                    let names: Vec<String> = outputs.iter().map(|(field, _)| format!(".{field}")).collect();
                    self.error_with_hint(
                        &expr.span,
                        format!("`{name}` has several outputs"),
                        format!("add one of {}", names.join(", ")),
                    )
                }
            },
            Kind::Field(inner, field) => {
                let Kind::Call(name, arguments) = &inner.kind else {
                    return self.error(
                        &expr.span,
                        format!("`.{field}` must follow a function with several outputs"),
                    );
                };
                match self.call(name, arguments, &inner.span, scope)? {
                    Output::One(_) => {
                        self.error(&expr.span, format!("`{name}` has only one output, without a name"))
                    }
                    Output::Many(outputs) => match outputs.iter().find(|(output, _)| output == field) {
                        Some((_, node)) => Some(*node),
                        None => {
                            let names: Vec<&str> = outputs.iter().map(|(output, _)| *output).collect();
                            self.error(
                                &expr.span,
                                format!("`{name}` has no output `{field}`; it has {}", names.join(", ")),
                            )
                        }
                    },
                }
            }
        }
    }

    fn name(&mut self, name: &str, span: &Range<usize>, scope: Scope) -> Option<NodeId> {
        if let Some(at) = self.params.get(name).copied() {
            return match &self.strategy.params[at].domain {
                Domain::Float { .. } => Some(self.graph.add_param(at, Type::Number)),
                Domain::Int { .. } => Some(self.graph.add_param(at, Type::Int)),
                Domain::Bool => Some(self.graph.add_param(at, Type::Bool)),
                Domain::Choice { options } => {
                    if matches!(options.first(), Some(Choice::Text(_))) {
                        let hint = format!("compare it with one of its options: {name} == '…'");
                        return self.error_with_hint(span, format!("`{name}` is a choice of words"), hint);
                    }
                    let whole = options.iter().all(|o| matches!(o, Choice::Number(v) if v.fract() == 0.0));
                    Some(self.graph.add_param(at, if whole { Type::Int } else { Type::Number }))
                }
            };
        }
        if let Some(at) = self.lets.get(name).copied() {
            return self.let_value(at);
        }
        if let Some((_, source)) = SOURCES.iter().find(|(n, _)| *n == name) {
            return Some(self.graph.add(Node::Source(*source)));
        }
        if let Some((_, position)) = POSITIONS.iter().find(|(n, _)| *n == name) {
            let allowed = match position {
                Position::Entry => scope != Scope::Plain,
                Position::Stop => matches!(scope, Scope::Stop | Scope::Risk),
                Position::Risk => scope == Scope::Risk,
            };
            if !allowed {
                let hint = "`entry` is known in levels, `stop` after the stops, `risk` after risk is known";
                return self.error_with_hint(span, format!("`{name}` is not known here"), hint);
            }
            return Some(self.graph.add(Node::Position(*position)));
        }
        if let Some(at) = self.extra.iter().position(|column| column == name) {
            return Some(self.graph.add(Node::Source(Source::Extra(at as u16))));
        }
        let known = SOURCES
            .iter()
            .map(|(n, _)| *n)
            .chain(self.params.keys().copied())
            .chain(self.lets.keys().copied());
        let hint = match nearest(name, known.chain(self.extra.iter().map(String::as_str))) {
            Some(near) => format!("did you mean `{near}`?"),
            None => match function::signature(name) {
                Some(function) => format!("`{name}` is a function: {}", function.usage),
                None => "it is no parameter, no [let], no price and no column of the data".into(),
            },
        };
        self.error_with_hint(span, format!("unknown name `{name}`"), hint)
    }

    fn binary(&mut self, op: Binary, a: &Expr, b: &Expr, scope: Scope) -> Option<NodeId> {
        if matches!(op, Binary::Eq | Binary::Ne)
            && let Some(result) = self.text_comparison(op, a, b)
        {
            return result;
        }
        let (left, right) = match op {
            Binary::And | Binary::Or => (self.condition(a, scope), self.condition(b, scope)),
            _ => (self.number(a, scope), self.number(b, scope)),
        };
        let (left, right) = (left?, right?);
        Some(self.graph.add(Node::Binary(op.into(), left, right)))
    }

    /// `mode == 'wide'`: compares the code of a choice. `None` if neither side is text.
    fn text_comparison(&mut self, op: Binary, a: &Expr, b: &Expr) -> Option<Option<NodeId>> {
        let (name, text, span) = match (&a.kind, &b.kind) {
            (Kind::Name(name), Kind::Text(text)) => (name, text, &b.span),
            (Kind::Text(text), Kind::Name(name)) => (name, text, &a.span),
            _ => return None,
        };
        let Some(at) = self.params.get(name.as_str()).copied() else {
            return Some(self.error(
                span,
                format!("`{name}` is not a choice parameter, so it cannot be compared with text"),
            ));
        };
        let Domain::Choice { options } = &self.strategy.params[at].domain else {
            return Some(
                self.error(span, format!("`{name}` is not a choice, so it cannot be compared with text")),
            );
        };
        let Some(code) = options.iter().position(|option| matches!(option, Choice::Text(t) if t == text))
        else {
            let names: Vec<String> = options
                .iter()
                .map(|option| match option {
                    Choice::Text(text) => format!("'{text}'"),
                    Choice::Number(value) => value.to_string(),
                })
                .collect();
            return Some(
                self.error(span, format!("`{name}` has no option '{text}'; it has {}", names.join(", "))),
            );
        };
        let param = self.graph.add_param(at, Type::Int);
        let code = self.graph.constant(code as f64);
        let op = if op == Binary::Eq { Op2::Eq } else { Op2::Ne };
        Some(Some(self.graph.add(Node::Binary(op, param, code))))
    }
}
