//! The access token for servers that other machines can reach.

use subtle::ConstantTimeEq;

/// The shortest token: shorter ones can be guessed.
const LEAST_CHARS: usize = 16;

/// A secret that fits into a URL and a cookie.
#[derive(Clone)]
pub struct Token(String);

/// Why a text is not a token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Too short.
    #[error("the token has {n_chars} characters, it needs at least {LEAST_CHARS}")]
    Short {
        /// How many it has.
        n_chars: usize,
    },
    /// Not fit for a URL.
    #[error("the token contains {found:?}; use letters, digits, `-`, `_`, `.` and `~` only")]
    Character {
        /// The first character that may not be used.
        found: char,
    },
}

impl Token {
    /// Checks a text and makes it a token.
    pub fn new(text: &str) -> Result<Self, TokenError> {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "-_.~".contains(c);
        if let Some(found) = text.chars().find(|c| !is_fit(*c)) {
            return Err(TokenError::Character { found });
        }
        let n_chars = text.len();
        if n_chars < LEAST_CHARS { Err(TokenError::Short { n_chars }) } else { Ok(Self(text.to_owned())) }
    }

    /// A token from random bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The token as clients send it.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether a text is this token, in constant time.
    pub fn is(&self, text: &str) -> bool {
        self.0.as_bytes().ct_eq(text.as_bytes()).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_fit_for_an_address() {
        assert_eq!(Token::new("short").unwrap_err(), TokenError::Short { n_chars: 5 });
        assert_eq!(Token::new("sixteen;chars;ok").unwrap_err(), TokenError::Character { found: ';' });
        let token = Token::new("sixteen-chars-ok").unwrap();
        assert!(token.is("sixteen-chars-ok"));
        assert!(!token.is("sixteen-chars-oK") && !token.is("") && !token.is("sixteen-chars-ok2"));
        for end in 0..token.text().len() {
            assert!(!token.is(&token.text()[..end]), "its first {end} characters");
        }
    }

    #[test]
    fn a_made_token_is_a_token_and_does_not_show_in_logs() {
        let token = Token::from_bytes([7; 16]);
        assert!(Token::new(token.text()).is_ok());
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
