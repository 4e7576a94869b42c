//! Filters over trials, as users write them: `trades >= 30 and (sharpe > 1 or mode == fast)`.
//!
//! A comparison with a value that a trial does not have is false. Text is compared by equality alone.

mod parse;

use std::cmp::Ordering;

/// Columns that a message names.
const MAX_LISTED: usize = 12;

/// A condition on the columns of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    text: String,
    condition: Condition<Name>,
}

/// The same with its names found among the columns.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundFilter(Condition<usize>);

/// What is wrong with a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("filter, character {}: {message}", at + 1)]
pub struct FilterError {
    /// Where, in characters from the beginning.
    pub at: usize,
    /// What is wrong there.
    pub message: String,
}

/// What a trial has in a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A number.
    Number(f64),
    /// A text; a switch is `true` or `false`.
    Text(&'a str),
    /// The trial has no value in this column.
    Absent,
}

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq)]
struct Name {
    text: String,
    at: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Condition<N> {
    /// An empty filter, which every trial passes.
    Always,
    Compare(N, Relation, Operand<N>),
    Not(Box<Condition<N>>),
    And(Box<Condition<N>>, Box<Condition<N>>),
    Or(Box<Condition<N>>, Box<Condition<N>>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq)]
enum Operand<N> {
    Number(f64),
    Text(String),
    /// A word that may be a column or a text.
    Word(N),
    Column(N),
}

impl Filter {
    /// Reads a filter; an empty one accepts every trial.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { text: text.trim().to_owned(), condition: parse::condition(text)? })
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Finds its names among those of the columns.
    pub fn bind(&self, columns: &[&str]) -> Result<BoundFilter, FilterError> {
        Ok(BoundFilter(bind(&self.condition, columns)?))
    }
}

impl BoundFilter {
    /// Whether it accepts a trial that has these values in its columns.
    pub fn accepts<'a>(&self, cell: impl Fn(usize) -> Cell<'a>) -> bool {
        accepts(&self.0, &cell)
    }

    /// Whether it accepts everything.
    pub fn is_open(&self) -> bool {
        self.0 == Condition::Always
    }
}

fn bind(condition: &Condition<Name>, columns: &[&str]) -> Result<Condition<usize>, FilterError> {
    let place = |name: &Name| columns.iter().position(|column| *column == name.text);
    let boxed = |condition: &Condition<Name>| bind(condition, columns).map(Box::new);
    Ok(match condition {
        Condition::Always => Condition::Always,
        Condition::Compare(name, relation, operand) => {
            let column = place(name).ok_or_else(|| unknown(name, columns))?;
            let operand = match operand {
                Operand::Number(value) => Operand::Number(*value),
                Operand::Text(text) => Operand::Text(text.clone()),
                Operand::Word(word) | Operand::Column(word) => match place(word) {
                    Some(place) => Operand::Column(place),
                    None => Operand::Text(word.text.clone()),
                },
            };
            Condition::Compare(column, *relation, operand)
        }
        Condition::Not(inner) => Condition::Not(boxed(inner)?),
        Condition::And(left, right) => Condition::And(boxed(left)?, boxed(right)?),
        Condition::Or(left, right) => Condition::Or(boxed(left)?, boxed(right)?),
    })
}

fn unknown(name: &Name, columns: &[&str]) -> FilterError {
    let near = columns.iter().find(|column| column.contains(&name.text) || name.text.contains(*column));
    let message = match near {
        Some(near) => format!("there is no column `{}`; did you mean `{near}`?", name.text),
        None => format!("there is no column `{}`; the columns are {}", name.text, listed(columns)),
    };
    FilterError { at: name.at, message }
}

/// The first columns by name, and how many more there are.
fn listed(columns: &[&str]) -> String {
    let shown = &columns[..columns.len().min(MAX_LISTED)];
    match columns.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn accepts<'a>(condition: &Condition<usize>, cell: &impl Fn(usize) -> Cell<'a>) -> bool {
    match condition {
        Condition::Always => true,
        Condition::Not(inner) => !accepts(inner, cell),
        Condition::And(left, right) => accepts(left, cell) && accepts(right, cell),
        Condition::Or(left, right) => accepts(left, cell) || accepts(right, cell),
        Condition::Compare(column, relation, operand) => {
            let left = cell(*column);
            match operand {
                Operand::Number(value) => holds(left, *relation, Cell::Number(*value)),
                Operand::Text(text) => holds(left, *relation, Cell::Text(text)),
                Operand::Word(place) | Operand::Column(place) => holds(left, *relation, cell(*place)),
            }
        }
    }
}

fn holds(left: Cell<'_>, relation: Relation, right: Cell<'_>) -> bool {
    let order = match (left, right) {
        (Cell::Number(left), Cell::Number(right)) => left.partial_cmp(&right),
        (Cell::Text(left), Cell::Text(right)) => match relation {
            Relation::Equal | Relation::Unequal => Some(left.cmp(right)),
            _ => None,
        },
        _ => None,
    };
    match (order, relation) {
        (None, _) => false,
        (Some(order), Relation::Equal) => order == Ordering::Equal,
        (Some(order), Relation::Unequal) => order != Ordering::Equal,
        (Some(order), Relation::Less) => order == Ordering::Less,
        (Some(order), Relation::LessOrEqual) => order != Ordering::Greater,
        (Some(order), Relation::Greater) => order == Ordering::Greater,
        (Some(order), Relation::GreaterOrEqual) => order != Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 5] = ["trades", "sharpe", "mode", "use_stop", "missing"];

    fn accepted(text: &str) -> bool {
        let cells =
            [Cell::Number(40.0), Cell::Number(-0.5), Cell::Text("fast"), Cell::Text("true"), Cell::Absent];
        Filter::parse(text).unwrap().bind(&COLUMNS).unwrap().accepts(|at| cells[at])
    }

    fn refused(text: &str) -> String {
        match Filter::parse(text) {
            Ok(filter) => filter.bind(&COLUMNS).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn comparisons_join_as_they_are_read() {
        for text in [
            "",
            "trades >= 40",
            "trades>=30 and sharpe<0",
            "trades > 1e3 or sharpe = -0.5",
            "trades > 50 or trades < 45 and sharpe < 0",
            "not trades > 50",
            "!(trades > 50) && mode == fast",
            "mode == 'fast' || trades == 0",
            "use_stop == true",
            "mode != slow",
            "trades > sharpe",
            "30 < trades",
        ] {
            assert!(accepted(text), "{text}");
        }
        for text in
            ["trades > 40", "(trades > 50 or trades < 45) and sharpe > 0", "mode == \"slow\"", "mode > fast"]
        {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn what_a_trial_does_not_have_is_never_accepted() {
        assert!(!accepted("missing > 0") && !accepted("missing <= 0") && !accepted("missing != 0"));
        assert!(accepted("not missing > 0"));
    }

    #[test]
    fn a_mistake_is_named_with_its_place() {
        assert_eq!(refused("trades >"), "filter, character 9: expected a number, a name or a text in quotes");
        assert_eq!(refused("trades 30"), "filter, character 8: expected a comparison such as `>=`");
        assert_eq!(refused("trades > 3 mode"), "filter, character 12: expected `and`, `or` or the end");
        assert_eq!(refused("(trades > 3"), "filter, character 12: expected `)`");
        assert_eq!(refused("x == 'a"), "filter, character 6: the quote is not closed");
        assert_eq!(refused("1 < 2"), "filter, character 1: a comparison needs the name of a column");
        assert_eq!(
            refused("sharp > 1"),
            "filter, character 1: there is no column `sharp`; did you mean `sharpe`?"
        );
        assert_eq!(refused("é > 1 #"), "filter, character 7: `#` is not expected here");
        assert!(refused(&"(".repeat(5000)).contains("too many"), "{}", refused(&"(".repeat(5000)));
        assert!(refused(&"not ".repeat(5000)).contains("too"), "deep");
    }
}
