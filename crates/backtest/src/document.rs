//! A TOML document as a tree with source positions, in the order written.
//!
//! Serde would stop at the first problem; a strategy file is read by hand from this tree, so that all its problems are shown at once.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::Diagnostic;

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The value.
    pub value: Value,
    /// Byte range in the source.
    pub span: Range<usize>,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text, and the offset of its first character in the file.
    Text(String, usize),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// An array.
    Array(Vec<Item>),
    /// A table, in the order written.
    Table(Table),
    /// A date or time; strategy files have no use for them.
    Date,
}

impl Value {
    /// What to call it in a message.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(..) => "text",
            Self::Int(_) => "an integer",
            Self::Float(_) => "a number",
            Self::Bool(_) => "a boolean",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
            Self::Date => "a date",
        }
    }
}

/// Keys and values in the order written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The entries.
    pub entries: Vec<Entry>,
}

/// One key with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub span: Range<usize>,
    /// The value.
    pub item: Item,
}

impl Table {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Item> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    /// The table under a key, if there is one.
    pub fn table(&self, key: &str) -> Option<&Table> {
        match self.get(key).map(|item| &item.value) {
            Some(Value::Table(table)) => Some(table),
            _ => None,
        }
    }

    /// Lays `over` on top: tables merge key by key, anything else replaces.
    pub fn overlay(&mut self, over: &Table) {
        for entry in &over.entries {
            match self.entries.iter_mut().find(|mine| mine.key == entry.key) {
                Some(mine) => match (&mut mine.item.value, &entry.item.value) {
                    (Value::Table(mine), Value::Table(over)) => mine.overlay(over),
                    (mine_value, over_value) => {
                        *mine_value = over_value.clone();
                        mine.item.span = entry.item.span.clone();
                    }
                },
                None => self.entries.push(entry.clone()),
            }
        }
    }
}

/// Parses a document; syntax errors are collected.
pub fn parse(source: &str) -> Result<Table, Vec<Diagnostic>> {
    let (document, errors) = DeTable::parse_recoverable(source);
    if errors.is_empty() {
        return Ok(table(source, document.get_ref()));
    }
    let end = source.len();
    Err(errors
        .into_iter()
        .map(|error| Diagnostic::new(error.span().unwrap_or(end..end), error.message().trim().to_string()))
        .collect())
}

/// Parses a single value as it would stand after `key =`.
pub fn parse_value(text: &str) -> Option<Value> {
    DeValue::parse(text).ok().map(|value| item(text, &value).value)
}

fn table(source: &str, table: &DeTable<'_>) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            span: key.span(),
            item: item(source, value),
        })
        .collect();
    entries.sort_by_key(|entry| entry.span.start);
    Table { entries }
}

fn item(source: &str, spanned: &Spanned<DeValue<'_>>) -> Item {
    let span = spanned.span();
    let value = match spanned.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string(), content_start(source, &span)),
        DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(value) => Value::Int(value),
            Err(_) => Value::Float(integer.as_str().parse().unwrap_or(f64::NAN)),
        },
        DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Value::Bool(*value),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(array) => Value::Array(array.iter().map(|inner| item(source, inner)).collect()),
        DeValue::Table(inner) => Value::Table(table(source, inner)),
    };
    Item { value, span }
}

/// Where the text of a string literal begins: after one or three quotes, and after the line break that TOML trims.
fn content_start(source: &str, span: &Range<usize>) -> usize {
    let literal = source.get(span.clone()).unwrap_or("");
    for quotes in ["\"\"\"", "'''"] {
        if let Some(rest) = literal.strip_prefix(quotes) {
            let skipped = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
            return span.start + 3 + skipped;
        }
    }
    span.start + usize::from(literal.starts_with(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_order_written_and_the_place_of_text() {
        let source = "b = 'xy'\na = \"\"\"\nz\"\"\"\n";
        let table = parse(source).unwrap();
        assert_eq!(table.entries.iter().map(|e| e.key.as_str()).collect::<Vec<_>>(), ["b", "a"]);
        let Value::Text(text, start) = &table.get("a").unwrap().value else { panic!() };
        assert_eq!((&source[*start..*start + 1], text.as_str()), ("z", "z"));
    }

    #[test]
    fn overlay_merges_tables_and_replaces_the_rest() {
        let mut base = parse("[a]\nx = 1\ny = [1]\n").unwrap();
        base.overlay(&parse("[a]\ny = [2, 3]\nz = 4\n").unwrap());
        let a = base.table("a").unwrap();
        assert_eq!(a.get("x").unwrap().value, Value::Int(1));
        assert!(matches!(&a.get("y").unwrap().value, Value::Array(items) if items.len() == 2));
        assert_eq!(a.get("z").unwrap().value, Value::Int(4));
    }

    #[test]
    fn syntax_errors_have_a_place() {
        let errors = parse("a = \nb = [1,\n").unwrap_err();
        assert!(!errors.is_empty());
    }
}
