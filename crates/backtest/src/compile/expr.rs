//! Turns expressions into nodes: resolves names for their place and checks types.

use std::ops::Range;

use tidemill_search::{Choice, Domain};

use super::function::{self, Output};
use super::{Builder, HIDEABLE, Hideable, ITSELF, Itself, POSITIONS, SOURCES, Scope};
use crate::diagnostic::nearest;
use crate::expr::{Binary, Expr, Kind, Unary};
use crate::graph::{Node, NodeId, Op1, Op2, Position, Source, Type};

/// Deepest graph accepted; later passes recurse along it.
const MAX_DEPTH: u32 = 1_200;

impl Builder<'_> {
    /// A truth value, per bar or per trial.
    pub(super) fn condition(&mut self, expr: &Expr, scope: Scope) -> Option<NodeId> {
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

    pub(super) fn scalar_condition(&mut self, expr: &Expr) -> Option<NodeId> {
        let node = self.condition(expr, Scope::Plain)?;
        if self.graph.info(node).series {
            return self.error(&expr.span, "a parameter's condition may use parameters only");
        }
        Some(node)
    }

    pub(super) fn number(&mut self, expr: &Expr, scope: Scope) -> Option<NodeId> {
        let node = self.expr(expr, scope)?;
        match self.graph.info(node).ty {
            Type::Bool => {
                let hint = "if(condition, 1, 0) is a number";
                self.error_with_hint(&expr.span, "expected a number, found a condition", hint)
            }
            _ => Some(node),
        }
    }

    pub(super) fn expr(&mut self, expr: &Expr, scope: Scope) -> Option<NodeId> {
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
                format!("text '{text}' is not allowed here"),
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
                    return self.error(&a.span, "only a series can be read in the past");
                }
                if info.itself {
                    return self.error_with_hint(
                        &a.span,
                        "`self` has no past: it is the last value, and nothing before it is kept",
                        "put the recursion under [let] and read that: line[2]",
                    );
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
                    let message = format!("`.{field}` must follow a function with several outputs");
                    let is_symbol = |name: &str| self.data.symbols.iter().any(|(symbol, _)| symbol == name);
                    return match &inner.kind {
                        Kind::Name(name) if is_symbol(name) => {
                            let hint = format!("a series of another symbol is of('{name}', {field})");
                            self.error_with_hint(&expr.span, message, hint)
                        }
                        _ => self.error(&expr.span, message),
                    };
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
            return Some(self.source(*source));
        }
        if name == ITSELF {
            return self.itself(span);
        }
        if let Some((_, position)) = POSITIONS.iter().find(|(n, _)| *n == name) {
            let allowed = match position {
                Position::Entry => scope != Scope::Plain,
                Position::Stop => matches!(scope, Scope::Stop | Scope::Risk),
                Position::Risk => scope == Scope::Risk,
                Position::Itself => false,
            };
            if !allowed {
                let hint = "`entry` is known in levels, `stop` after the stops, `risk` after risk is known";
                return self.error_with_hint(span, format!("`{name}` is not known here"), hint);
            }
            return Some(self.graph.add(Node::Position(*position)));
        }
        if let Some(at) = self.data.extra.iter().position(|column| column == name) {
            return Some(self.source(Source::Extra(at as u16)));
        }
        if let Some((_, meaning)) = HIDEABLE.iter().find(|(n, _)| *n == name) {
            return Some(match meaning {
                Hideable::Source(source) => self.source(*source),
                Hideable::Mean(sources) => self.mean_of(sources),
            });
        }
        let known = SOURCES
            .iter()
            .map(|(n, _)| *n)
            .chain(HIDEABLE.iter().map(|(n, _)| *n))
            .chain(self.params.keys().copied())
            .chain(self.lets.keys().copied());
        let hint = match nearest(name, known.chain(self.data.extra.iter().map(String::as_str))) {
            Some(near) => format!("did you mean `{near}`?"),
            None => match function::signature(name) {
                Some(function) => format!("`{name}` is a function: {}", function.usage),
                None if self.itself == Itself::Known && ["prev", "previous", "last"].contains(&name) => {
                    format!("the last value of a recursion is `{ITSELF}`")
                }
                None => "it is no parameter, no [let], no price and no column of the data".into(),
            },
        };
        self.error_with_hint(span, format!("unknown name `{name}`"), hint)
    }

    pub(super) fn mean_of(&mut self, sources: &[Source]) -> NodeId {
        let parts: Vec<NodeId> = sources.iter().map(|source| self.source(*source)).collect();
        let add = |sum, next: &NodeId| self.graph.add(Node::Binary(Op2::Add, sum, *next));
        let sum = parts[1..].iter().fold(parts[0], add);
        let count = self.graph.constant(parts.len() as f64);
        self.graph.add(Node::Binary(Op2::Div, sum, count))
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
