//! `[long]` and `[short]`: when to enter, and the ways out in order of priority.

use super::reader::Reader;
use crate::diagnostic::Diagnostic;
use crate::document::{Table, Value};
use crate::expr::{self, Expr};

/// The kinds of exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitKind {
    /// A fixed level against the position.
    Stop,
    /// A fixed level in favour of the position.
    Target,
    /// A level that follows the best price at a fixed distance.
    Trail,
    /// A stop at the entry price, armed once the given multiple of risk was reached.
    Breakeven,
    /// A condition on closed bars.
    Signal,
    /// A number of bars.
    Time,
}

/// A piece of a label.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelPart {
    /// Plain text.
    Text(String),
    /// A scalar expression shown with so many decimals.
    Value(Expr, usize),
}

/// The reason shown for a trade; `"FIB_{100 * level:.1}"` shows a scalar with one decimal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Label {
    /// The pieces.
    pub parts: Vec<LabelPart>,
}

/// One way out.
#[derive(Clone, Debug, PartialEq)]
pub struct Exit {
    /// What `value` means.
    pub kind: ExitKind,
    /// Level, distance, multiple of risk, condition or number of bars, by kind.
    pub value: Expr,
    /// Looked at on the signal bar; the exit exists only where it holds.
    pub when: Option<Expr>,
    /// Reason of the trade.
    pub label: Label,
    /// Reason of the trade when the bar opened beyond the level.
    pub gap_label: Label,
}

/// Rules of one side.
#[derive(Clone, Debug, PartialEq)]
pub struct SideRules {
    /// Entry condition.
    pub enter: Expr,
    /// Ways out, in order of priority.
    pub exits: Vec<Exit>,
    /// What one R is, if written.
    pub risk: Option<Expr>,
}

impl SideRules {
    /// Its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Expr> {
        fn of_exit(exit: &Exit) -> impl Iterator<Item = &Expr> {
            std::iter::once(&exit.value).chain(&exit.when)
        }
        [&self.enter].into_iter().chain(&self.risk).chain(self.exits.iter().flat_map(of_exit))
    }
}

/// Short keys in their order of priority, with kind and default label.
const SHORT: [(&str, ExitKind, &str); 6] = [
    ("stop", ExitKind::Stop, "STOP"),
    ("trail", ExitKind::Trail, "TRAIL"),
    ("breakeven", ExitKind::Breakeven, "BREAKEVEN"),
    ("target", ExitKind::Target, "TARGET"),
    ("exit", ExitKind::Signal, "SIGNAL"),
    ("max_hold", ExitKind::Time, "TIME"),
];

/// The key that holds the value of an exit in the long form.
fn value_key(kind: ExitKind) -> &'static str {
    match kind {
        ExitKind::Stop | ExitKind::Target => "level",
        ExitKind::Trail => "distance",
        ExitKind::Breakeven => "after",
        ExitKind::Signal => "signal",
        ExitKind::Time => "bars",
    }
}

/// Removes from `base` the exits in the form that `over` does not use.
pub(super) fn drop_other_form(base: &mut Table, over: &Table) {
    let long_form = over.get("exits").is_some();
    let short_form = SHORT.iter().any(|(key, ..)| over.get(key).is_some());
    if long_form {
        base.entries.retain(|entry| !SHORT.iter().any(|(key, ..)| *key == entry.key));
    } else if short_form {
        base.entries.retain(|entry| entry.key != "exits");
    }
}

pub(super) fn read(reader: &mut Reader, table: &Table, side: &str) -> Option<SideRules> {
    let mut known = vec!["enter", "risk", "exits"];
    known.extend(SHORT.iter().map(|(key, ..)| *key));
    reader.known_keys(table, &known, &format!("[{side}]"));
    let mut exits = Vec::new();
    if let Some(list) = table.get("exits") {
        for (key, ..) in SHORT {
            if let Some(item) = table.get(key) {
                let message = format!("`{key}` and [[{side}.exits]] cannot be combined");
                let hint = "write every exit as one [[exits]] entry, or use the short keys only";
                reader.error(Diagnostic::new(item.span.clone(), message).hint(hint));
            }
        }
        match &list.value {
            Value::Array(items) => {
                for item in items {
                    match &item.value {
                        Value::Table(entry) => exits.extend(read_exit(reader, entry, &item.span)),
                        other => {
                            let message = format!("an exit is a table, found {}", other.kind());
                            reader.error(Diagnostic::new(item.span.clone(), message));
                        }
                    }
                }
            }
            other => {
                let message = format!("`exits` must be written as [[{side}.exits]], found {}", other.kind());
                reader.error(Diagnostic::new(list.span.clone(), message));
            }
        }
    } else {
        for (key, kind, label) in SHORT {
            if let Some(value) = reader.expression(table, key) {
                exits.push(Exit {
                    kind,
                    value,
                    when: None,
                    label: text(label),
                    gap_label: gap_default(kind, &text(label)),
                });
            }
        }
    }
    let enter = reader.expression(table, "enter");
    if table.get("enter").is_none() {
        let span = table.entries.first().map_or(0..0, |entry| entry.span.clone());
        reader.error(Diagnostic::new(span, format!("[{side}] has no `enter`")));
    }
    let risk = reader.expression(table, "risk");
    Some(SideRules { enter: enter?, exits, risk })
}

fn read_exit(reader: &mut Reader, table: &Table, span: &std::ops::Range<usize>) -> Option<Exit> {
    let options: Vec<(&str, ExitKind)> = [
        ("stop", ExitKind::Stop),
        ("target", ExitKind::Target),
        ("trail", ExitKind::Trail),
        ("breakeven", ExitKind::Breakeven),
        ("signal", ExitKind::Signal),
        ("time", ExitKind::Time),
    ]
    .to_vec();
    if table.get("kind").is_none() {
        let names: Vec<&str> = options.iter().map(|(name, _)| *name).collect();
        let at = table.entries.first().map_or(span.clone(), |entry| entry.span.clone());
        reader.error(
            Diagnostic::new(at, "an exit needs a `kind`").hint(format!("one of {}", names.join(", "))),
        );
        return None;
    }
    let kind = reader.option(table, "kind", &options)?;
    let key = value_key(kind);
    let name = options.iter().find(|(_, k)| *k == kind).map_or("", |(name, _)| *name);
    reader.known_keys(table, &["kind", key, "when", "label", "gap_label"], &format!("a {name} exit"));
    if table.get(key).is_none() {
        let at = table.get("kind").map_or(span.clone(), |item| item.span.clone());
        reader.error(Diagnostic::new(at, format!("a {name} exit needs `{key} = \"…\"`")));
        return None;
    }
    let value = reader.expression(table, key)?;
    let when = reader.expression(table, "when");
    let default = SHORT.iter().find(|(_, k, _)| *k == kind).map_or("", |(.., label)| *label);
    let label = read_label(reader, table, "label").unwrap_or_else(|| text(default));
    let gap_label = read_label(reader, table, "gap_label").unwrap_or_else(|| gap_default(kind, &label));
    Some(Exit { kind, value, when, label, gap_label })
}

fn text(label: &str) -> Label {
    Label { parts: vec![LabelPart::Text(label.into())] }
}

/// The label of a stop that gapped shows it; a target that gapped keeps its label.
fn gap_default(kind: ExitKind, label: &Label) -> Label {
    let mut label = label.clone();
    if matches!(kind, ExitKind::Stop | ExitKind::Trail | ExitKind::Breakeven) {
        label.parts.push(LabelPart::Text("_GAP".into()));
    }
    label
}

fn read_label(reader: &mut Reader, table: &Table, key: &str) -> Option<Label> {
    let item = table.get(key)?;
    let Value::Text(label, start) = &item.value else {
        reader.error(Diagnostic::new(
            item.span.clone(),
            format!("`{key}` must be text, found {}", item.value.kind()),
        ));
        return None;
    };
    let mut parts = Vec::new();
    let mut rest = label.as_str();
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}').map(|at| open + at) else {
            reader.error(Diagnostic::new(item.span.clone(), "the `{` in this label is not closed"));
            return None;
        };
        parts.push(LabelPart::Text(rest[..open].into()));
        let inner = &rest[open + 1..close];
        let offset = start + (label.len() - rest.len()) + open + 1;
        let (body, decimals) = match inner.rsplit_once(":.") {
            Some((body, digits)) => match digits.parse::<usize>() {
                Ok(digits) if digits <= 12 => (body, digits),
                _ => {
                    reader
                        .error(Diagnostic::new(item.span.clone(), "decimals are written `:.1`, at most 12"));
                    return None;
                }
            },
            None => (inner, 0),
        };
        match expr::parse(body, offset) {
            Ok(expr) => parts.push(LabelPart::Value(expr, decimals)),
            Err(diagnostic) => {
                reader.error(diagnostic);
                return None;
            }
        }
        rest = &rest[close + 1..];
    }
    parts.push(LabelPart::Text(rest.into()));
    Some(Label { parts })
}
