//! The objective: an expression over metrics and parameters, evaluated on the host.

use serde::Serialize;

use crate::diagnostic::{Diagnostic, nearest};
use crate::expr::{Binary, Expr, Kind, Unary};
use crate::graph::{Op1, Op2};
use crate::metric::{METRICS, Metric, Metrics};
use crate::point;
use crate::strategy::{Objective, Reduce, Strategy};
use crate::synonym;

/// Functions of objective expressions, with their number of arguments; `min` and `max` take two or more.
const FUNCTIONS: [(&str, usize); 12] = [
    ("tanh", 1),
    ("sqrt", 1),
    ("log", 1),
    ("exp", 1),
    ("abs", 1),
    ("pow", 2),
    ("min", 2),
    ("max", 2),
    ("clip", 3),
    ("if", 3),
    ("is_na", 1),
    ("round", 1),
];

/// Reports what is wrong with what is maximised: it must be a number.
pub fn check_maximize(strategy: &Strategy, objective: &Objective, problems: &mut Vec<Diagnostic>) {
    let expr = &objective.expr;
    if check(strategy, expr, problems) == Some(ExprType::Truth) {
        problems
            .push(Diagnostic::new(expr.span.clone(), "the objective must be a number, found a condition"));
    }
}

/// Reports what is wrong with the requirement: it must be a condition.
pub fn check_require(strategy: &Strategy, problems: &mut Vec<Diagnostic>) {
    let Some(expr) = strategy.require.as_ref().map(|require| &require.expr) else { return };
    if check(strategy, expr, problems) == Some(ExprType::Number) {
        let problem = Diagnostic::new(expr.span.clone(), "`require` must be a condition, found a number");
        problems.push(problem.hint("for example \"trades >= 30\""));
    }
}

/// What an expression gives.
#[derive(Clone, Copy, PartialEq)]
enum ExprType {
    Number,
    Truth,
}

/// Checks names, functions and kinds; `None` if something was wrong.
fn check(strategy: &Strategy, expr: &Expr, problems: &mut Vec<Diagnostic>) -> Option<ExprType> {
    let before = problems.len();
    let names = |name: &str| METRICS.iter().any(|(_, n, _)| *n == name) || strategy.param(name).is_some();
    check_expr(expr, &names, problems);
    if problems.len() > before {
        return None;
    }
    let truth = |name: &str| {
        strategy.param(name).is_some_and(|at| strategy.params[at].domain == tidemill_search::Domain::Bool)
    };
    kind(expr, &truth, problems)
}

fn kind(expr: &Expr, truth: &impl Fn(&str) -> bool, problems: &mut Vec<Diagnostic>) -> Option<ExprType> {
    let mut expect = |operand: &Expr, wanted: ExprType| {
        let found = kind(operand, truth, problems)?;
        if found != wanted {
            let message = match wanted {
                ExprType::Number => "expected a number, found a condition",
                ExprType::Truth => "expected a condition, found a number",
            };
            problems.push(Diagnostic::new(operand.span.clone(), message));
            return None;
        }
        Some(())
    };
    match &expr.kind {
        Kind::Number(..) => Some(ExprType::Number),
        Kind::Bool(_) => Some(ExprType::Truth),
        Kind::Name(name) => Some(if truth(name) { ExprType::Truth } else { ExprType::Number }),
        Kind::Unary(Unary::Neg, a) => expect(a, ExprType::Number).map(|()| ExprType::Number),
        Kind::Unary(Unary::Not, a) => expect(a, ExprType::Truth).map(|()| ExprType::Truth),
        Kind::Binary(op, a, b) => {
            let (wanted, gives) = match Op2::from(*op) {
                Op2::And | Op2::Or => (ExprType::Truth, ExprType::Truth),
                op if op.is_comparison() => (ExprType::Number, ExprType::Truth),
                _ => (ExprType::Number, ExprType::Number),
            };
            let both = (expect(a, wanted), expect(b, wanted));
            (both == (Some(()), Some(()))).then_some(gives)
        }
        Kind::Call(name, arguments) if name == "if" => {
            expect(&arguments[0], ExprType::Truth)?;
            let gives = kind(&arguments[1], truth, problems)?;
            let other = kind(&arguments[2], truth, problems)?;
            if gives != other {
                problems
                    .push(Diagnostic::new(expr.span.clone(), "both branches of `if` must be of one kind"));
                return None;
            }
            Some(gives)
        }
        Kind::Call(name, arguments) => {
            for argument in arguments {
                expect(argument, ExprType::Number)?;
            }
            Some(if name == "is_na" { ExprType::Truth } else { ExprType::Number })
        }
        Kind::Text(_) | Kind::Index(..) | Kind::Field(..) => None,
    }
}

fn check_expr(expr: &Expr, known: &impl Fn(&str) -> bool, problems: &mut Vec<Diagnostic>) {
    match &expr.kind {
        Kind::Number(..) | Kind::Bool(_) => {}
        Kind::Text(_) => {
            problems.push(Diagnostic::new(expr.span.clone(), "text has no place in an objective"))
        }
        Kind::Name(name) if known(name) => {}
        Kind::Name(name) => {
            let metrics = METRICS.iter().map(|(_, n, _)| *n);
            let is_unseen = ["holdout", "oos", "out_of_sample"].iter().any(|part| name.starts_with(part));
            let hint = match synonym::metric(name).or_else(|| nearest(name, metrics.clone())) {
                _ if is_unseen => "what the search does not see is only reported, never an objective".into(),
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("metrics are {}", metrics.collect::<Vec<_>>().join(", ")),
            };
            problems.push(
                Diagnostic::new(expr.span.clone(), format!("`{name}` is no metric and no parameter"))
                    .hint(hint),
            );
        }
        Kind::Unary(_, a) => check_expr(a, known, problems),
        Kind::Binary(_, a, b) => {
            check_expr(a, known, problems);
            check_expr(b, known, problems);
        }
        Kind::Call(name, arguments) => {
            match FUNCTIONS.iter().find(|(n, _)| n == name) {
                None => {
                    let names: Vec<&str> = FUNCTIONS.iter().map(|(n, _)| *n).collect();
                    let hint = match nearest(name, names.iter().copied()) {
                        _ if ["minimize", "minimise"].contains(&name.as_str()) => {
                            "the search maximises: write a minus sign, as in -max_drawdown_pnl".into()
                        }
                        Some(near) => format!("did you mean `{near}`?"),
                        None => format!("there are {}", names.join(", ")),
                    };
                    let message = format!("unknown function `{name}` in an objective");
                    problems.push(Diagnostic::new(expr.span.clone(), message).hint(hint));
                }
                Some((_, count)) => {
                    let more = matches!(name.as_str(), "min" | "max") && arguments.len() > 2;
                    if arguments.len() != *count && !more {
                        let noun = if *count == 1 { "argument" } else { "arguments" };
                        let message = format!("`{name}` takes {count} {noun}, found {}", arguments.len());
                        problems.push(Diagnostic::new(expr.span.clone(), message));
                    }
                }
            }
            arguments.iter().for_each(|argument| check_expr(argument, known, problems));
        }
        Kind::Index(..) | Kind::Field(..) => {
            problems.push(Diagnostic::new(expr.span.clone(), "a metric has no past and no outputs"));
        }
    }
}

/// Why a trial has no score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// It does not meet `require`.
    Requirement,
    /// No segment that counts was traded.
    NoTrades,
    /// The objective is not defined for its metrics.
    Undefined,
}

/// How near a trial comes to a condition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// The left side.
    pub found: f64,
    /// The right side.
    pub wanted: f64,
    /// By how much the condition is met; below 0 if it is not.
    pub margin: f64,
}

/// Turns the metrics of trials into scores: the one place where a trial becomes invalid.
#[derive(Clone, Copy)]
pub struct Scoring<'a> {
    strategy: &'a Strategy,
}

impl<'a> Scoring<'a> {
    /// By the objectives of a checked strategy.
    pub fn new(strategy: &'a Strategy) -> Self {
        Self { strategy }
    }

    /// Whether any of its expressions names a parameter; otherwise no parameters need be given.
    pub fn reads_params(&self) -> bool {
        let mut reads_params = false;
        let mut look = |name: &str| reads_params |= !METRICS.iter().any(|(_, metric, _)| *metric == name);
        self.strategy.objectives.iter().for_each(|objective| objective.expr.names(&mut look));
        self.strategy.require.iter().for_each(|require| require.expr.names(&mut look));
        reads_params
    }

    /// Whether an objective reads the return per year, or what is made of it.
    pub fn reads_annual(&self) -> bool {
        let mut reads_annual = false;
        let annual = [Metric::AnnualReturn, Metric::Calmar].map(|metric| METRICS[metric as usize].1);
        let mut look = |name: &str| reads_annual |= annual.contains(&name);
        self.strategy.objectives.iter().for_each(|objective| objective.expr.names(&mut look));
        reads_annual
    }

    /// Value of an objective for one set of metrics, if defined. `params` are decoded values.
    pub fn value(&self, objective: &Objective, metrics: &Metrics, params: &[f64]) -> Option<f64> {
        Some(self.eval(&objective.expr, metrics, params)).filter(|value| value.is_finite())
    }

    /// Whether the requirement is met.
    pub fn accepts(&self, metrics: &Metrics, params: &[f64]) -> bool {
        let require = self.strategy.require.as_ref();
        require.is_none_or(|require| self.eval(&require.expr, metrics, params) == 1.0)
    }

    /// The conditions that `require` joins by `and`, one by one.
    pub fn conditions(&self) -> Vec<&'a Expr> {
        let mut open: Vec<&Expr> = self.strategy.require.iter().map(|require| &require.expr).collect();
        let mut found = Vec::new();
        while let Some(expr) = open.pop() {
            match &expr.kind {
                Kind::Binary(Binary::And, a, b) => open.extend([&**b, &**a]),
                _ => found.push(expr),
            }
        }
        found
    }

    /// Whether one condition is met.
    pub fn is_met(&self, condition: &Expr, metrics: &Metrics, params: &[f64]) -> bool {
        self.eval(condition, metrics, params) == 1.0
    }

    /// Both sides of a condition that asks for a least or a largest value, and by how much it is met (below 0 if it is not).
    pub fn margin(&self, condition: &Expr, metrics: &Metrics, params: &[f64]) -> Option<Margin> {
        let Kind::Binary(op, a, b) = &condition.kind else { return None };
        let (found, wanted) = (self.eval(a, metrics, params), self.eval(b, metrics, params));
        let margin = match op {
            Binary::Gt | Binary::Ge => found - wanted,
            Binary::Lt | Binary::Le => wanted - found,
            _ => return None,
        };
        Some(Margin { found, wanted, margin }).filter(|of| of.margin.is_finite())
    }

    /// What a trial is worth to an objective: `pooled` are the metrics over all counting segments, `segments` those of each.
    pub fn score(
        &self,
        objective: &Objective,
        pooled: &Metrics,
        segments: &[Metrics],
        params: &[f64],
    ) -> Result<f64, Invalid> {
        if !self.accepts(pooled, params) {
            return Err(Invalid::Requirement);
        }
        self.reduced(objective, pooled, segments, params)
    }

    /// An objective over segments, whether or not the requirement is met.
    ///
    /// A segment without trades contributes zero; a traded segment whose value is not defined makes the trial invalid. Where the
    /// pool is all that counts, or there is one segment only, `segments` may be empty.
    pub fn reduced(
        &self,
        objective: &Objective,
        pooled: &Metrics,
        segments: &[Metrics],
        params: &[f64],
    ) -> Result<f64, Invalid> {
        if !is_traded(pooled) {
            return Err(Invalid::NoTrades);
        }
        let reduce = self.strategy.reduce;
        if reduce == Reduce::Pooled || segments.len() <= 1 {
            return self.value(objective, pooled, params).ok_or(Invalid::Undefined);
        }
        let mut values = Vec::with_capacity(segments.len());
        for metrics in segments {
            match self.value(objective, metrics, params) {
                Some(value) if is_traded(metrics) => values.push(value),
                None if is_traded(metrics) => return Err(Invalid::Undefined),
                _ => values.push(0.0),
            }
        }
        let value = match reduce {
            Reduce::Mean | Reduce::Pooled => values.iter().sum::<f64>() / values.len() as f64,
            Reduce::Worst => values.iter().copied().fold(f64::INFINITY, point::minimum),
            Reduce::Median => {
                values.sort_by(f64::total_cmp);
                let middle = values.len() / 2;
                if values.len() % 2 == 1 {
                    values[middle]
                } else {
                    (values[middle - 1] + values[middle]) / 2.0
                }
            }
        };
        // Values may be defined one by one and too large together.
        Some(value).filter(|value| value.is_finite()).ok_or(Invalid::Undefined)
    }

    fn eval(&self, expr: &Expr, metrics: &Metrics, params: &[f64]) -> f64 {
        match &expr.kind {
            Kind::Number(value, _) => *value,
            Kind::Bool(value) => point::truth(*value),
            Kind::Name(name) => match METRICS.iter().find(|(_, n, _)| n == name) {
                Some((metric, ..)) => metrics.get(*metric).unwrap_or(f64::NAN),
                None => self.strategy.param(name).map_or(f64::NAN, |at| params[at]),
            },
            Kind::Unary(op, a) => {
                let op = if *op == Unary::Neg { Op1::Neg } else { Op1::Not };
                point::unary(op, self.eval(a, metrics, params))
            }
            Kind::Binary(op, a, b) => {
                point::binary(Op2::from(*op), self.eval(a, metrics, params), self.eval(b, metrics, params))
            }
            Kind::Call(name, arguments) => {
                let args: Vec<f64> =
                    arguments.iter().map(|argument| self.eval(argument, metrics, params)).collect();
                match name.as_str() {
                    "tanh" => libm::tanh(args[0]),
                    "sqrt" => args[0].sqrt(),
                    "log" => libm::log(args[0]),
                    "exp" => libm::exp(args[0]),
                    "abs" => args[0].abs(),
                    "pow" => libm::pow(args[0], args[1]),
                    "min" => args.iter().copied().reduce(point::minimum).unwrap_or(f64::NAN),
                    "max" => args.iter().copied().reduce(point::maximum).unwrap_or(f64::NAN),
                    "clip" => point::minimum(point::maximum(args[0], args[1]), args[2]),
                    "if" => point::select(args[0], args[1], args[2]),
                    "is_na" => point::truth(args[0].is_nan()),
                    "round" => args[0].round_ties_even(),
                    _ => f64::NAN,
                }
            }
            Kind::Text(_) | Kind::Index(..) | Kind::Field(..) => f64::NAN,
        }
    }
}

fn is_traded(metrics: &Metrics) -> bool {
    metrics.values()[0] > 0.0
}
