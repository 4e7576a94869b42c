//! Recursive-descent parser.

use std::ops::Range;

use super::token::{Token, tokens};
use super::{Binary, Expr, Kind, Unary};
use crate::diagnostic::Diagnostic;

/// Deepest nesting accepted, so that hostile text cannot exhaust the stack.
const MAX_DEPTH: usize = 128;
/// Most tokens accepted in one expression; operator chains make left-deep trees, which are walked recursively.
const MAX_TOKENS: usize = 2_048;

/// Parses one expression. Spans are byte ranges of `text` moved by `offset`, so that they point into the file.
pub fn parse(text: &str, offset: usize) -> Result<Expr, Diagnostic> {
    let shift = |mut diagnostic: Diagnostic| {
        diagnostic.span = diagnostic.span.start + offset..diagnostic.span.end + offset;
        diagnostic
    };
    let tokens = tokens(text).map_err(shift)?;
    if tokens.len() > MAX_TOKENS {
        let message = format!("the expression has more than {MAX_TOKENS} tokens");
        return Err(
            Diagnostic::new(offset..offset + text.len(), message).hint("name parts of it under [let]")
        );
    }
    let mut parser = Parser { tokens, at: 0, depth: 0, offset };
    let expr = parser.or().map_err(shift)?;
    match parser.peek() {
        Token::End => Ok(expr),
        other => {
            let message = format!("expected an operator or the end, found {}", other.describe());
            Err(shift(Diagnostic::new(parser.span(), message)))
        }
    }
}

struct Parser {
    tokens: Vec<(Token, Range<usize>)>,
    at: usize,
    depth: usize,
    offset: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].0
    }

    fn span(&self) -> Range<usize> {
        self.tokens[self.at].1.clone()
    }

    fn take(&mut self) -> (Token, Range<usize>) {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn symbol(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if *s == symbol);
        if found {
            self.take();
        }
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Token::Name(name) if name == word);
        if found {
            self.take();
        }
        found
    }

    fn expect(&mut self, symbol: &'static str) -> Result<Range<usize>, Diagnostic> {
        let span = self.span();
        if self.symbol(symbol) {
            return Ok(span);
        }
        let problem = Diagnostic::new(span, format!("expected `{symbol}`, found {}", self.peek().describe()));
        Err(match self.bare_duration() {
            Some(duration) => problem.hint(format!("a duration stands in quotes: '{duration}'")),
            None => problem,
        })
    }

    /// A duration without quotes, such as `4h`, whose unit is the next token.
    fn bare_duration(&self) -> Option<String> {
        let before = self.tokens.get(self.at.checked_sub(1)?)?;
        match (before, self.peek()) {
            ((Token::Number(count, _), at), Token::Name(unit))
                if at.end == self.span().start && ["s", "m", "h", "d", "w"].contains(&unit.as_str()) =>
            {
                Some(format!("{count}{unit}"))
            }
            _ => None,
        }
    }

    fn expr(&self, kind: Kind, span: Range<usize>) -> Expr {
        Expr { kind, span: span.start + self.offset..span.end + self.offset }
    }

    fn join(&self, op: Binary, a: Expr, b: Expr) -> Expr {
        let span = a.span.start..b.span.end;
        Expr { kind: Kind::Binary(op, Box::new(a), Box::new(b)), span }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Diagnostic>) -> Result<T, Diagnostic> {
        if self.depth >= MAX_DEPTH {
            return Err(Diagnostic::new(self.span(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn or(&mut self) -> Result<Expr, Diagnostic> {
        let mut left = self.and()?;
        while self.word("or") {
            let right = self.and()?;
            left = self.join(Binary::Or, left, right);
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, Diagnostic> {
        let mut left = self.not()?;
        while self.word("and") {
            let right = self.not()?;
            left = self.join(Binary::And, left, right);
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.span();
        if self.word("not") {
            let inner = self.deeper(Self::not)?;
            let end = inner.span.end;
            let mut expr = self.expr(Kind::Unary(Unary::Not, Box::new(inner)), start);
            expr.span.end = end;
            return Ok(expr);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Expr, Diagnostic> {
        let left = self.sum()?;
        let Some(op) = self.comparison_operator()? else { return Ok(left) };
        let right = self.sum()?;
        let span = self.span();
        if self.comparison_operator()?.is_some() {
            return Err(
                Diagnostic::new(span, "comparisons cannot be chained").hint("write `a < b and b < c`")
            );
        }
        Ok(self.join(op, left, right))
    }

    fn comparison_operator(&mut self) -> Result<Option<Binary>, Diagnostic> {
        let op = match self.peek() {
            Token::Symbol("<") => Binary::Lt,
            Token::Symbol("<=") => Binary::Le,
            Token::Symbol(">") => Binary::Gt,
            Token::Symbol(">=") => Binary::Ge,
            Token::Symbol("==") => Binary::Eq,
            Token::Symbol("!=") => Binary::Ne,
            Token::Symbol("=") => {
                return Err(Diagnostic::new(self.span(), "unexpected `=`").hint("equality is `==`"));
            }
            _ => return Ok(None),
        };
        self.take();
        Ok(Some(op))
    }

    fn sum(&mut self) -> Result<Expr, Diagnostic> {
        let mut left = self.product()?;
        loop {
            let op = match self.peek() {
                Token::Symbol("+") => Binary::Add,
                Token::Symbol("-") => Binary::Sub,
                _ => return Ok(left),
            };
            self.take();
            let right = self.product()?;
            left = self.join(op, left, right);
        }
    }

    fn product(&mut self) -> Result<Expr, Diagnostic> {
        let mut left = self.unary()?;
        loop {
            let op = match self.peek() {
                Token::Symbol("*") => Binary::Mul,
                Token::Symbol("/") => Binary::Div,
                _ => return Ok(left),
            };
            self.take();
            let right = self.unary()?;
            left = self.join(op, left, right);
        }
    }

    fn unary(&mut self) -> Result<Expr, Diagnostic> {
        let start = self.span();
        if self.symbol("-") {
            let inner = self.deeper(Self::unary)?;
            let end = inner.span.end;
            let mut expr = self.expr(Kind::Unary(Unary::Neg, Box::new(inner)), start);
            expr.span.end = end;
            return Ok(expr);
        }
        self.postfix()
    }

    fn postfix(&mut self) -> Result<Expr, Diagnostic> {
        let mut expr = self.primary()?;
        loop {
            if self.symbol("[") {
                let index = self.deeper(Self::or)?;
                let close = self.expect("]")?;
                let span = expr.span.start..close.end + self.offset;
                expr = Expr { kind: Kind::Index(Box::new(expr), Box::new(index)), span };
            } else if self.symbol(".") {
                let (token, range) = self.take();
                let Token::Name(field) = token else {
                    return Err(Diagnostic::new(
                        range,
                        format!("expected an output name after `.`, found {}", token.describe()),
                    ));
                };
                if let (Kind::Name(prefix), Token::Symbol("(")) = (&expr.kind, self.peek()) {
                    let message = format!("functions have no prefix, and `{prefix}.{field}` has one");
                    return Err(Diagnostic::new(range, message).hint(format!("write {field}(…)")));
                }
                let span = expr.span.start..range.end + self.offset;
                expr = Expr { kind: Kind::Field(Box::new(expr), field), span };
            } else {
                return Ok(expr);
            }
        }
    }

    fn primary(&mut self) -> Result<Expr, Diagnostic> {
        let (token, span) = self.take();
        match token {
            Token::Number(value, whole) => Ok(self.expr(Kind::Number(value, whole), span)),
            Token::Text(text) => Ok(self.expr(Kind::Text(text), span)),
            Token::Name(name) => match name.as_str() {
                "true" => Ok(self.expr(Kind::Bool(true), span)),
                "false" => Ok(self.expr(Kind::Bool(false), span)),
                "and" | "or" | "not" => {
                    Err(Diagnostic::new(span, format!("expected a value, found `{name}`")))
                }
                _ if self.symbol("(") => {
                    let mut arguments = Vec::new();
                    if !self.symbol(")") {
                        loop {
                            arguments.push(self.deeper(Self::or)?);
                            if !self.symbol(",") {
                                break;
                            }
                        }
                        let close = self.expect(")")?;
                        return Ok(self.expr(Kind::Call(name, arguments), span.start..close.end));
                    }
                    let end = self.tokens[self.at - 1].1.end;
                    Ok(self.expr(Kind::Call(name, arguments), span.start..end))
                }
                _ => Ok(self.expr(Kind::Name(name), span)),
            },
            Token::Symbol("(") => {
                let mut inner = self.deeper(Self::or)?;
                let close = self.expect(")")?;
                inner.span = span.start + self.offset..close.end + self.offset;
                Ok(inner)
            }
            other => Err(Diagnostic::new(span, format!("expected a value, found {}", other.describe()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(expr: &Expr) -> String {
        match &expr.kind {
            Kind::Number(value, _) => value.to_string(),
            Kind::Text(text) => format!("'{text}'"),
            Kind::Bool(value) => value.to_string(),
            Kind::Name(name) => name.clone(),
            Kind::Unary(op, a) => format!("({} {})", if *op == Unary::Neg { "neg" } else { "not" }, show(a)),
            Kind::Binary(op, a, b) => format!("({} {} {})", op.symbol(), show(a), show(b)),
            Kind::Call(name, args) => {
                format!("{name}({})", args.iter().map(show).collect::<Vec<_>>().join(", "))
            }
            Kind::Index(a, k) => format!("{}[{}]", show(a), show(k)),
            Kind::Field(a, name) => format!("{}.{name}", show(a)),
        }
    }

    #[test]
    fn precedence_is_that_of_arithmetic_then_comparison_then_logic() {
        let tree = parse("not a + 2 * b[1] > -c and x.y or f(1, g())", 0).unwrap();
        assert_eq!(show(&tree), "(or (and (not (> (+ a (* 2 b[1])) (neg c))) x.y) f(1, g()))");
    }

    #[test]
    fn errors_say_what_was_expected_and_where() {
        let error = parse("ema(close, ", 10).unwrap_err();
        assert_eq!(error.message, "expected a value, found the end of the expression");
        assert_eq!(error.span, 21..21);
        assert!(parse("a < b < c", 0).unwrap_err().hint.is_some());
        assert!(parse("a = b", 0).unwrap_err().message.contains('='));
        assert!(parse("a b", 0).is_err());
        assert!(parse("", 0).is_err());
    }

    #[test]
    fn deep_nesting_is_refused_not_overflowed() {
        assert!(parse(&"(".repeat(100_000), 0).is_err());
        assert!(parse(&"-".repeat(100_000), 0).is_err());
        assert!(parse(&"not ".repeat(100_000), 0).is_err());
        assert!(parse(&vec!["1"; 50_000].join("+"), 0).is_err());
    }
}
