//! Splits expression text into tokens.

use std::ops::Range;

use crate::diagnostic::Diagnostic;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Number(f64, bool),
    Text(String),
    Name(String),
    Symbol(&'static str),
    End,
}

impl Token {
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Number(value, _) => format!("`{value}`"),
            Self::Text(text) => format!("'{text}'"),
            Self::Name(name) => format!("`{name}`"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end of the expression".into(),
        }
    }
}

const SYMBOLS: [&str; 17] =
    ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", "[", "]", ",", ".", "="];

/// Tokens with their ranges in `text`, closed by [`Token::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Range<usize>)>, Diagnostic> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if byte.is_ascii_digit() || (byte == b'.' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)) {
            while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'_') {
                at += 1;
            }
            let mut whole = true;
            if bytes.get(at) == Some(&b'.') && bytes.get(at + 1).is_none_or(u8::is_ascii_digit) {
                whole = false;
                at += 1;
                while at < bytes.len() && (bytes[at].is_ascii_digit() || bytes[at] == b'_') {
                    at += 1;
                }
            }
            if matches!(bytes.get(at), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
                if bytes.get(at + 1 + sign).is_some_and(u8::is_ascii_digit) {
                    whole = false;
                    at += 1 + sign;
                    while at < bytes.len() && bytes[at].is_ascii_digit() {
                        at += 1;
                    }
                }
            }
            let digits = text[start..at].replace('_', "");
            let value: f64 = digits
                .parse()
                .map_err(|_| Diagnostic::new(start..at, format!("`{digits}` is not a number")))?;
            if !value.is_finite() {
                return Err(Diagnostic::new(start..at, format!("`{digits}` is too large for a number")));
            }
            out.push((Token::Number(value, whole), start..at));
        } else if byte == b'_' || byte.is_ascii_alphabetic() {
            while at < bytes.len() && (bytes[at] == b'_' || bytes[at].is_ascii_alphanumeric()) {
                at += 1;
            }
            out.push((Token::Name(text[start..at].to_string()), start..at));
        } else if byte == b'\'' || byte == b'"' {
            at += 1;
            while at < bytes.len() && bytes[at] != byte {
                at += 1;
            }
            if at == bytes.len() {
                return Err(Diagnostic::new(start..at, "the quoted text does not end"));
            }
            out.push((Token::Text(text[start + 1..at].to_string()), start..at + 1));
            at += 1;
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| text[at..].starts_with(**s)) {
            at += symbol.len();
            out.push((Token::Symbol(symbol), start..at));
        } else {
            let character = text[at..].chars().next().unwrap_or(' ');
            let end = at + character.len_utf8();
            let problem = Diagnostic::new(at..end, format!("unexpected character `{character}`"));
            return Err(match character {
                '&' => problem.hint("write `and`"),
                '|' => problem.hint("write `or`"),
                '!' => problem.hint("write `not`"),
                '%' => problem.hint("there are no per cents and no remainder here; write 0.02 for 2 %"),
                '^' => problem.hint("there is no power operator here; multiply"),
                _ => problem,
            });
        }
    }
    out.push((Token::End, text.len()..text.len()));
    Ok(out)
}
