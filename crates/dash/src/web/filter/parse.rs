//! Text to condition: words, then `or` over `and` over `not` over comparisons.

use super::{Condition, FilterError, Name, Operand, Relation};

/// Longest filter.
const MAX_CHARS: usize = 2000;

/// Deepest nesting.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Text(String),
    Word(String),
    Relation(Relation),
    And,
    Or,
    Not,
    Open,
    Close,
}

/// Reads a condition.
pub(super) fn condition(text: &str) -> Result<Condition<Name>, FilterError> {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() > MAX_CHARS {
        return Err(FilterError {
            at: MAX_CHARS,
            message: format!("too many characters; the limit is {MAX_CHARS}"),
        });
    }
    let mut parser = Parser { tokens: tokens(&chars)?, at: 0, end: chars.len() };
    if parser.tokens.is_empty() {
        return Ok(Condition::Always);
    }
    let condition = parser.or(0)?;
    match parser.tokens.get(parser.at) {
        None => Ok(condition),
        Some(_) => Err(parser.error("expected `and`, `or` or the end")),
    }
}

fn tokens(chars: &[char]) -> Result<Vec<(usize, Token)>, FilterError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = chars.get(at) {
        let begin = at;
        let next = chars.get(at + 1).copied();
        let (token, len) = match (c, next) {
            _ if c.is_whitespace() => {
                at += 1;
                continue;
            }
            ('>', Some('=')) => (Token::Relation(Relation::GreaterOrEqual), 2),
            ('<', Some('=')) => (Token::Relation(Relation::LessOrEqual), 2),
            ('=', Some('=')) => (Token::Relation(Relation::Equal), 2),
            ('!', Some('=')) => (Token::Relation(Relation::Unequal), 2),
            ('&', Some('&')) => (Token::And, 2),
            ('|', Some('|')) => (Token::Or, 2),
            ('>', _) => (Token::Relation(Relation::Greater), 1),
            ('<', _) => (Token::Relation(Relation::Less), 1),
            ('=', _) => (Token::Relation(Relation::Equal), 1),
            ('!', _) => (Token::Not, 1),
            ('(', _) => (Token::Open, 1),
            (')', _) => (Token::Close, 1),
            ('"' | '\'', _) => {
                let len = chars[at + 1..].iter().position(|end| *end == c);
                let len = len.ok_or(FilterError { at: begin, message: "the quote is not closed".into() })?;
                (Token::Text(chars[at + 1..at + 1 + len].iter().collect()), len + 2)
            }
            _ if c.is_ascii_digit() || "+-.".contains(c) => number(chars, at)?,
            _ if c.is_alphabetic() || c == '_' => {
                let is_part = |c: &&char| c.is_alphanumeric() || "_.-".contains(**c);
                let word: String = chars[at..].iter().take_while(is_part).collect();
                let len = word.chars().count();
                (keyword(word), len)
            }
            _ => return Err(FilterError { at, message: format!("`{c}` is not expected here") }),
        };
        tokens.push((begin, token));
        at += len;
    }
    Ok(tokens)
}

fn keyword(word: String) -> Token {
    match word.to_ascii_lowercase().as_str() {
        "and" => Token::And,
        "or" => Token::Or,
        "not" => Token::Not,
        _ => Token::Word(word),
    }
}

fn number(chars: &[char], at: usize) -> Result<(Token, usize), FilterError> {
    let mut len = 0;
    while let Some(&c) = chars.get(at + len) {
        let is_sign = "+-".contains(c) && (len == 0 || "eE".contains(chars[at + len - 1]));
        if !(c.is_ascii_digit() || c == '.' || "eE".contains(c) || is_sign) {
            break;
        }
        len += 1;
    }
    let text: String = chars[at..at + len].iter().collect();
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok((Token::Number(value), len)),
        _ => Err(FilterError { at, message: format!("`{text}` is not a number") }),
    }
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    /// Where the text ends.
    end: usize,
}

impl Parser {
    fn error(&self, message: impl Into<String>) -> FilterError {
        let at = self.tokens.get(self.at).map_or(self.end, |(at, _)| *at);
        FilterError { at, message: message.into() }
    }

    fn takes(&mut self, token: &Token) -> bool {
        let is_next = self.tokens.get(self.at).is_some_and(|(_, next)| next == token);
        self.at += usize::from(is_next);
        is_next
    }

    fn or(&mut self, depth: usize) -> Result<Condition<Name>, FilterError> {
        let mut left = self.and(depth)?;
        while self.takes(&Token::Or) {
            left = Condition::Or(Box::new(left), Box::new(self.and(depth)?));
        }
        Ok(left)
    }

    fn and(&mut self, depth: usize) -> Result<Condition<Name>, FilterError> {
        let mut left = self.not(depth)?;
        while self.takes(&Token::And) {
            left = Condition::And(Box::new(left), Box::new(self.not(depth)?));
        }
        Ok(left)
    }

    fn not(&mut self, depth: usize) -> Result<Condition<Name>, FilterError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested too deep"));
        }
        if self.takes(&Token::Not) {
            return Ok(Condition::Not(Box::new(self.not(depth + 1)?)));
        }
        if self.takes(&Token::Open) {
            let inner = self.or(depth + 1)?;
            return if self.takes(&Token::Close) { Ok(inner) } else { Err(self.error("expected `)`")) };
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Condition<Name>, FilterError> {
        let begin = self.at;
        let left = self.operand()?;
        let relation = match self.tokens.get(self.at) {
            Some((_, Token::Relation(relation))) => *relation,
            _ => return Err(self.error("expected a comparison such as `>=`")),
        };
        self.at += 1;
        let right = self.operand()?;
        match (left, right) {
            (Operand::Word(name), right) => Ok(Condition::Compare(name, relation, right)),
            (left, Operand::Word(name)) => Ok(Condition::Compare(name, turned(relation), left)),
            _ => {
                self.at = begin;
                Err(self.error("a comparison needs the name of a column"))
            }
        }
    }

    fn operand(&mut self) -> Result<Operand<Name>, FilterError> {
        let operand = match self.tokens.get(self.at) {
            Some((_, Token::Number(value))) => Operand::Number(*value),
            Some((_, Token::Text(text))) => Operand::Text(text.clone()),
            Some((at, Token::Word(word))) => Operand::Word(Name { text: word.clone(), at: *at }),
            _ => return Err(self.error("expected a number, a name or a text in quotes")),
        };
        self.at += 1;
        Ok(operand)
    }
}

/// The relation with its sides exchanged.
fn turned(relation: Relation) -> Relation {
    match relation {
        Relation::Less => Relation::Greater,
        Relation::LessOrEqual => Relation::GreaterOrEqual,
        Relation::Greater => Relation::Less,
        Relation::GreaterOrEqual => Relation::LessOrEqual,
        same => same,
    }
}
