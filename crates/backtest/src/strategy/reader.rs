//! Reads typed values out of a document table and collects what is wrong.

use crate::diagnostic::{Diagnostic, nearest};
use crate::document::{Item, Table, Value};
use crate::expr::{self, Expr};
use crate::synonym;

#[derive(Default)]
pub(super) struct Reader {
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Reader {
    pub(super) fn error(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports every key that is not among `known`.
    pub(super) fn known_keys(&mut self, table: &Table, known: &[&str], place: &str) {
        for entry in &table.entries {
            if !known.contains(&entry.key.as_str()) {
                let near = nearest(&entry.key, known.iter().copied());
                let hint = match (synonym::key(&entry.key, known), near) {
                    (Some(hint), _) => hint.to_owned(),
                    (None, Some(near)) => format!("did you mean `{near}`?"),
                    (None, None) => format!("known keys are {}", known.join(", ")),
                };
                let message = format!("unknown key `{}` in {place}", entry.key);
                self.error(Diagnostic::new(entry.span.clone(), message).hint(hint));
            }
        }
    }

    /// Parses the expression under a key; numbers and booleans may stand without quotes.
    pub(super) fn expression(&mut self, table: &Table, key: &str) -> Option<Expr> {
        let item = table.get(key)?;
        self.item_expression(item, key)
    }

    pub(super) fn item_expression(&mut self, item: &Item, key: &str) -> Option<Expr> {
        let literal = |kind| Some(Expr { kind, span: item.span.clone() });
        match &item.value {
            Value::Text(text, start) => match expr::parse(text, *start) {
                Ok(expr) => Some(expr),
                Err(mut diagnostic) => {
                    // Escapes inside the literal move positions; keep the mark inside the literal.
                    diagnostic.span.start = diagnostic.span.start.min(item.span.end.saturating_sub(1));
                    diagnostic.span.end = diagnostic.span.end.min(item.span.end).max(diagnostic.span.start);
                    self.error(diagnostic);
                    None
                }
            },
            Value::Int(value) => literal(expr::Kind::Number(*value as f64, true)),
            Value::Float(value) if value.is_finite() => literal(expr::Kind::Number(*value, false)),
            Value::Bool(value) => literal(expr::Kind::Bool(*value)),
            other => {
                let message = format!("`{key}` must be an expression in quotes, found {}", other.kind());
                self.error(Diagnostic::new(item.span.clone(), message));
                None
            }
        }
    }

    /// Every entry of the table as a named expression.
    pub(super) fn expressions(&mut self, table: &Table) -> Vec<(String, Expr)> {
        let mut out = Vec::new();
        for entry in &table.entries {
            if !is_name(&entry.key) {
                let message = format!("`{}` is not a name", entry.key);
                self.error(
                    Diagnostic::new(entry.span.clone(), message)
                        .hint("use letters, digits and _, not starting with a digit"),
                );
            } else if let Some(expr) = self.item_expression(&entry.item, &entry.key) {
                out.push((entry.key.clone(), expr));
            }
        }
        out
    }

    /// One of several words.
    pub(super) fn option<T: Copy>(&mut self, table: &Table, key: &str, options: &[(&str, T)]) -> Option<T> {
        let item = table.get(key)?;
        match option_value(&item.value, options) {
            Ok(value) => Some(value),
            Err(message) => {
                self.error(Diagnostic::new(item.span.clone(), format!("`{key}` {message}")));
                None
            }
        }
    }
}

/// Finds a word among options, or says which there are.
pub(super) fn option_value<T: Copy>(value: &Value, options: &[(&str, T)]) -> Result<T, String> {
    if let Value::Text(text, _) = value
        && let Some((_, found)) = options.iter().find(|(name, _)| name == text)
    {
        return Ok(*found);
    }
    let names: Vec<String> = options.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    Err(format!("must be one of {}", names.join(", ")))
}

/// Whether a text can be written as a name in an expression.
pub(super) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c == '_' || c.is_ascii_alphabetic())
        && characters.all(|c| c == '_' || c.is_ascii_alphanumeric())
        && !matches!(text, "and" | "or" | "not" | "true" | "false")
}

/// A finite number, integer or float.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) if value.is_finite() => Some(*value),
        _ => None,
    }
}
