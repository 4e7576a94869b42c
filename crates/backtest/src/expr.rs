//! The expression language: text to syntax tree.
//!
//! Expressions are arithmetic over series and parameters and nothing else, so a stranger's strategy file is safe to open.

mod parse;
mod token;

use std::fmt;
use std::ops::Range;

pub use parse::parse;

/// An expression and where it stands in the source text.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: Kind,
    /// Byte range in the file.
    pub span: Range<usize>,
}

impl Expr {
    /// Reports every name that stands in it; functions and outputs are not names.
    pub fn names<'a>(&'a self, found: &mut impl FnMut(&'a str)) {
        match &self.kind {
            Kind::Name(name) => found(name),
            Kind::Unary(_, a) | Kind::Field(a, _) => a.names(found),
            Kind::Binary(_, a, b) | Kind::Index(a, b) => {
                a.names(found);
                b.names(found);
            }
            Kind::Call(_, arguments) => arguments.iter().for_each(|argument| argument.names(found)),
            Kind::Number(..) | Kind::Text(_) | Kind::Bool(_) => {}
        }
    }
}

impl Expr {
    /// Reports every call that stands in it, with its name and its arguments.
    pub fn calls<'a>(&'a self, found: &mut impl FnMut(&'a Expr, &'a str, &'a [Expr])) {
        match &self.kind {
            Kind::Unary(_, a) | Kind::Field(a, _) => a.calls(found),
            Kind::Binary(_, a, b) | Kind::Index(a, b) => {
                a.calls(found);
                b.calls(found);
            }
            Kind::Call(name, arguments) => {
                found(self, name, arguments);
                arguments.iter().for_each(|argument| argument.calls(found));
            }
            Kind::Number(..) | Kind::Text(_) | Kind::Bool(_) | Kind::Name(_) => {}
        }
    }

    /// The same without places in the source, so that what is written elsewhere, or with other spaces, equals it.
    pub fn unplaced(&self) -> Self {
        let inner = |of: &Expr| Box::new(of.unplaced());
        let kind = match &self.kind {
            Kind::Unary(op, a) => Kind::Unary(*op, inner(a)),
            Kind::Binary(op, a, b) => Kind::Binary(*op, inner(a), inner(b)),
            Kind::Call(name, arguments) => {
                Kind::Call(name.clone(), arguments.iter().map(Self::unplaced).collect())
            }
            Kind::Index(a, k) => Kind::Index(inner(a), inner(k)),
            Kind::Field(a, name) => Kind::Field(inner(a), name.clone()),
            Kind::Number(..) | Kind::Text(_) | Kind::Bool(_) | Kind::Name(_) => self.kind.clone(),
        };
        Self { kind, span: 0..0 }
    }
}

/// As it could be written, for messages.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = |of: &Expr| match of.kind {
            Kind::Binary(..) => format!("({of})"),
            _ => of.to_string(),
        };
        match &self.kind {
            Kind::Number(value, _) => write!(f, "{value}"),
            Kind::Text(text) => write!(f, "'{text}'"),
            Kind::Bool(value) => write!(f, "{value}"),
            Kind::Name(name) => f.write_str(name),
            Kind::Unary(Unary::Neg, a) => write!(f, "-{}", inner(a)),
            Kind::Unary(Unary::Not, a) => write!(f, "not {}", inner(a)),
            Kind::Binary(op, a, b) => write!(f, "{} {} {}", inner(a), op.symbol(), inner(b)),
            Kind::Call(name, arguments) => {
                let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
                write!(f, "{name}({})", arguments.join(", "))
            }
            Kind::Index(a, k) => write!(f, "{}[{k}]", inner(a)),
            Kind::Field(a, name) => write!(f, "{a}.{name}"),
        }
    }
}

/// The forms of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A number literal; `true` for one written without point or exponent.
    Number(f64, bool),
    /// A text literal in single quotes.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
    /// A name.
    Name(String),
    /// `-x` or `not x`.
    Unary(Unary, Box<Expr>),
    /// Two operands.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// `name(arguments)`.
    Call(String, Vec<Expr>),
    /// `x[k]`: the value k bars ago.
    Index(Box<Expr>, Box<Expr>),
    /// `call(…).name`: one of several outputs.
    Field(Box<Expr>, String),
}

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// Minus.
    Neg,
    /// Three-valued negation.
    Not,
}

/// Operators of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// Three-valued conjunction.
    And,
    /// Three-valued disjunction.
    Or,
}

impl Binary {
    /// How it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Lt => "<",
            Self::Le => "<=",
            Self::Gt => ">",
            Self::Ge => ">=",
            Self::Eq => "==",
            Self::Ne => "!=",
            Self::And => "and",
            Self::Or => "or",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_shown_as_it_could_be_written() {
        for text in [
            "trades >= 30",
            "not (a or b)",
            "max(x[2], -0.35) > (a + 1) * 2",
            "macd(close, 3).hist",
            "m == 'wide'",
        ] {
            let shown = parse(text, 0).unwrap().to_string();
            assert_eq!(parse(&shown, 0).unwrap().to_string(), shown, "it reads back: {text}");
            assert!(shown.len() >= text.len(), "{text}: {shown}");
        }
        assert_eq!(parse("trades>=30", 0).unwrap().to_string(), "trades >= 30");
        assert_eq!(parse("a + b > c", 0).unwrap().to_string(), "(a + b) > c");
    }
}
