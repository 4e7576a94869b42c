//! `[params]`: what the search varies.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use tidemill_search::{Choice, Domain, Param, Space, SpaceError};

use super::reader::{Reader, is_name, number};
use crate::diagnostic::Diagnostic;
use crate::document::{Table, Value};
use crate::expr::Expr;

/// One parameter as written.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamSpec {
    /// Name as expressions use it.
    pub name: String,
    /// The values the search may choose.
    pub domain: Domain,
    /// Encoded default.
    pub default: f64,
    /// Encoded value if it is a constant, or was set by a profile or by the user.
    pub fixed: Option<f64>,
    /// Condition under which it is active.
    pub when: Option<Expr>,
    /// Where its name stands in the file.
    pub span: Range<usize>,
}

impl ParamSpec {
    /// Encodes a value of the user's. It may lie outside the search range, but must be of the right kind.
    pub(super) fn encode(&self, value: &Value) -> Result<f64, String> {
        match (&self.domain, value) {
            (Domain::Float { .. }, value) => number(value).ok_or_else(|| match value {
                Value::Float(_) => format!("`{}` must be finite", self.name),
                value => format!("`{}` is a number, found {}", self.name, value.kind()),
            }),
            (Domain::Int { .. }, Value::Int(value)) => Ok(*value as f64),
            (Domain::Int { .. }, Value::Float(value)) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Ok(*value)
            }
            (Domain::Int { .. }, value) => {
                Err(format!("`{}` is an integer, found {}", self.name, value.kind()))
            }
            (Domain::Bool, Value::Bool(value)) => Ok(f64::from(u8::from(*value))),
            (Domain::Bool, value) => Err(format!("`{}` is true or false, found {}", self.name, value.kind())),
            (Domain::Choice { options }, value) => {
                let found = options.iter().position(|option| match (option, value) {
                    (Choice::Text(option), Value::Text(text, _)) => option == text,
                    (Choice::Number(option), value) => number(value) == Some(*option),
                    _ => false,
                });
                found.map(|at| at as f64).ok_or_else(|| {
                    let names: Vec<String> = options.iter().map(choice_text).collect();
                    format!("`{}` must be one of {}", self.name, names.join(", "))
                })
            }
        }
    }

    /// The number that expressions see for an encoded value: the option itself for a numeric choice, else the code.
    pub fn decode(&self, encoded: f64) -> f64 {
        match &self.domain {
            Domain::Choice { options } => match options.get(encoded as usize) {
                Some(Choice::Number(value)) => *value,
                _ => encoded,
            },
            _ => encoded,
        }
    }
}

fn choice_text(choice: &Choice) -> String {
    match choice {
        Choice::Text(text) => text.clone(),
        Choice::Number(value) => value.to_string(),
    }
}

pub(super) fn read(reader: &mut Reader, table: &Table) -> Vec<ParamSpec> {
    let mut out = Vec::with_capacity(table.entries.len());
    for entry in &table.entries {
        if !is_name(&entry.key) {
            let message = format!("`{}` cannot be the name of a parameter", entry.key);
            reader.error(
                Diagnostic::new(entry.span.clone(), message)
                    .hint("use letters, digits and _, not starting with a digit"),
            );
            continue;
        }
        let spec = match &entry.item.value {
            Value::Table(definition) => read_definition(reader, &entry.key, &entry.span, definition),
            constant => read_constant(&entry.key, &entry.span, constant).or_else(|| {
                let message = format!(
                    "parameter `{}` must be a table or a constant, found {}",
                    entry.key,
                    constant.kind()
                );
                let hint = "for example { int = [5, 60], default = 20 }";
                reader.error(Diagnostic::new(entry.item.span.clone(), message).hint(hint));
                None
            }),
        };
        out.extend(spec);
    }
    out
}

/// `n = 20`: a constant that is not searched but can be set.
fn read_constant(name: &str, span: &Range<usize>, value: &Value) -> Option<ParamSpec> {
    let (domain, code) = match value {
        Value::Int(v) => (Domain::Int { low: *v, high: *v, step: 1, log: false }, *v as f64),
        Value::Float(v) if v.is_finite() => (Domain::Float { low: *v, high: *v, step: None, log: false }, *v),
        Value::Bool(v) => (Domain::Bool, f64::from(u8::from(*v))),
        Value::Text(v, _) => (Domain::Choice { options: vec![Choice::Text(v.clone())] }, 0.0),
        _ => return None,
    };
    Some(ParamSpec {
        name: name.into(),
        domain,
        default: code,
        fixed: Some(code),
        when: None,
        span: span.clone(),
    })
}

fn read_definition(reader: &mut Reader, name: &str, span: &Range<usize>, table: &Table) -> Option<ParamSpec> {
    let before = reader.diagnostics.len();
    let place = format!("parameter `{name}`");
    reader.known_keys(table, &["int", "float", "choice", "bool", "default", "step", "log", "when"], &place);
    let kinds: Vec<&str> =
        ["int", "float", "choice", "bool"].into_iter().filter(|kind| table.get(kind).is_some()).collect();
    let [kind] = kinds[..] else {
        let message = format!("{place} needs exactly one of int, float, choice, bool");
        reader.error(
            Diagnostic::new(span.clone(), message).hint("for example { float = [0.5, 4.0], default = 2.0 }"),
        );
        return None;
    };
    let item = table.get(kind)?;
    let log = match table.get("log").map(|item| &item.value) {
        None => false,
        Some(Value::Bool(value)) => *value,
        Some(other) => {
            reader.error(Diagnostic::new(
                span.clone(),
                format!("`log` must be true or false, found {}", other.kind()),
            ));
            false
        }
    };
    let numeric = kind == "int" || kind == "float";
    for key in ["step", "log"] {
        if let (false, Some(item)) = (numeric, table.get(key)) {
            reader.error(Diagnostic::new(
                item.span.clone(),
                format!("`{key}` has no meaning for a {kind} parameter"),
            ));
        }
    }
    let domain = match kind {
        "int" => int_domain(reader, item, table, log),
        "float" => float_domain(reader, item, table, log),
        "choice" => choice_domain(reader, item),
        _ => match item.value {
            Value::Bool(_) => Some(Domain::Bool),
            _ => {
                reader.error(Diagnostic::new(item.span.clone(), "`bool` must be true or false"));
                None
            }
        },
    };
    let when = reader.expression(table, "when");
    let domain = domain?;
    let space = Space { params: vec![Param::new(name, domain.clone(), 0.0)] };
    for error in space.validate().err().into_iter().flatten() {
        if !matches!(error, SpaceError::OutsideDomain { .. }) {
            reader.error(Diagnostic::new(item.span.clone(), error.to_string()));
            return None;
        }
    }
    let mut spec =
        ParamSpec { name: name.into(), domain, default: 0.0, fixed: None, when, span: span.clone() };
    spec.default = match table.get("default") {
        Some(default) => match spec.encode(&default.value) {
            Ok(code) if spec.domain.contains(code) => code,
            Ok(_) => {
                let message = format!("the default of `{name}` lies outside its range");
                reader.error(Diagnostic::new(default.span.clone(), message));
                0.0
            }
            Err(message) => {
                reader.error(Diagnostic::new(default.span.clone(), message));
                0.0
            }
        },
        // Without a default: the switch as written, the first option, the middle of the range.
        None => match (&spec.domain, &item.value) {
            (Domain::Bool, Value::Bool(value)) => f64::from(u8::from(*value)),
            (Domain::Choice { .. }, _) => 0.0,
            _ => spec.domain.from_unit(0.5),
        },
    };
    (reader.diagnostics.len() == before).then_some(spec)
}

fn range<'a>(reader: &mut Reader, item: &'a crate::document::Item) -> Option<(&'a Value, &'a Value)> {
    if let Value::Array(items) = &item.value
        && let [low, high] = &items[..]
    {
        return Some((&low.value, &high.value));
    }
    reader.error(Diagnostic::new(item.span.clone(), "a range is written [low, high]"));
    None
}

fn int_domain(reader: &mut Reader, item: &crate::document::Item, table: &Table, log: bool) -> Option<Domain> {
    let (low, high) = range(reader, item)?;
    let (Value::Int(low), Value::Int(high)) = (low, high) else {
        reader.error(Diagnostic::new(item.span.clone(), "an int range needs two integers"));
        return None;
    };
    let step = match table.get("step").map(|item| &item.value) {
        None => 1,
        Some(Value::Int(step)) if *step >= 1 => *step,
        Some(_) => {
            reader.error(Diagnostic::new(
                item.span.clone(),
                "`step` of an int must be an integer of at least 1",
            ));
            return None;
        }
    };
    let limit = 1_i64 << 53;
    if low > high || *low < -limit || *high > limit {
        reader.error(Diagnostic::new(
            item.span.clone(),
            format!("the range [{low}, {high}] is empty or too large"),
        ));
        return None;
    }
    if log && *low <= 0 {
        reader.error(Diagnostic::new(item.span.clone(), "a logarithmic range must be above 0"));
        return None;
    }
    Some(Domain::Int { low: *low, high: *high, step, log })
}

fn float_domain(
    reader: &mut Reader,
    item: &crate::document::Item,
    table: &Table,
    log: bool,
) -> Option<Domain> {
    let (low, high) = range(reader, item)?;
    let (Some(low), Some(high)) = (number(low), number(high)) else {
        reader.error(Diagnostic::new(item.span.clone(), "a float range needs two finite numbers"));
        return None;
    };
    let step = match table.get("step") {
        None => None,
        Some(step) => match number(&step.value) {
            Some(step) if step > 0.0 => Some(step),
            _ => {
                reader.error(Diagnostic::new(step.span.clone(), "`step` must be a number above 0"));
                return None;
            }
        },
    };
    if low > high {
        reader.error(Diagnostic::new(item.span.clone(), format!("the range [{low}, {high}] is empty")));
        return None;
    }
    if log && low <= 0.0 {
        reader.error(Diagnostic::new(item.span.clone(), "a logarithmic range must be above 0"));
        return None;
    }
    Some(Domain::Float { low, high, step, log })
}

fn choice_domain(reader: &mut Reader, item: &crate::document::Item) -> Option<Domain> {
    let Value::Array(items) = &item.value else {
        reader.error(Diagnostic::new(item.span.clone(), "a choice is written [\"a\", \"b\"] or [1, 2, 3]"));
        return None;
    };
    let mut options: Vec<Choice> = Vec::new();
    for option in items {
        let choice = match &option.value {
            Value::Text(text, _) => Choice::Text(text.clone()),
            value => match number(value) {
                Some(value) => Choice::Number(value),
                None => {
                    let message = format!("an option is text or a number, found {}", value.kind());
                    reader.error(Diagnostic::new(option.span.clone(), message));
                    return None;
                }
            },
        };
        let mixed = options
            .first()
            .is_some_and(|first| matches!(first, Choice::Text(_)) != matches!(choice, Choice::Text(_)));
        if mixed || options.contains(&choice) {
            let message =
                if mixed { "options are all text or all numbers" } else { "this option is there twice" };
            reader.error(Diagnostic::new(option.span.clone(), message));
            return None;
        }
        options.push(choice);
    }
    if options.is_empty() {
        reader.error(Diagnostic::new(item.span.clone(), "a choice needs at least one option"));
        return None;
    }
    Some(Domain::Choice { options })
}

/// Orders parameters so that conditions look backwards only, otherwise as written. Conditions may go through `lets`.
pub(super) fn order_by_condition(
    params: Vec<ParamSpec>,
    lets: &[(String, Expr)],
) -> Result<Vec<ParamSpec>, Diagnostic> {
    let names: HashMap<&str, usize> =
        params.iter().enumerate().map(|(at, param)| (param.name.as_str(), at)).collect();
    let lets: HashMap<&str, &Expr> = lets.iter().map(|(name, expr)| (name.as_str(), expr)).collect();
    let parents: Vec<Vec<usize>> = params
        .iter()
        .map(|param| {
            let mut used = Vec::new();
            let mut seen = HashSet::new();
            let mut open: Vec<&Expr> = param.when.iter().collect();
            while let Some(expr) = open.pop() {
                expr.names(&mut |name| {
                    if let Some(at) = names.get(name) {
                        used.push(*at);
                    } else if let (true, Some(expr)) = (seen.insert(name), lets.get(name)) {
                        open.push(expr);
                    }
                });
            }
            used
        })
        .collect();
    let mut placed = vec![false; params.len()];
    let mut order = Vec::with_capacity(params.len());
    while order.len() < params.len() {
        let before = order.len();
        for at in 0..params.len() {
            if !placed[at] && parents[at].iter().all(|parent| placed[*parent]) {
                placed[at] = true;
                order.push(at);
            }
        }
        if order.len() == before {
            let stuck = placed.iter().position(|done| !done).unwrap_or(0);
            let message = format!("the condition of `{}` depends on itself", params[stuck].name);
            return Err(Diagnostic::new(params[stuck].span.clone(), message));
        }
    }
    let mut params: Vec<Option<ParamSpec>> = params.into_iter().map(Some).collect();
    Ok(order.into_iter().filter_map(|at| params[at].take()).collect())
}
