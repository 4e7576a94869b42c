//! The secret that both ends of a socket must know, and how each shows the other that it does.
//!
//! The secret itself never travels. The worker sends a random number; the coordinator answers with one of its own and the HMAC-SHA256 of both
//! under the secret; only if that is right the worker answers with the HMAC of both in the other order. Before that, a worker has told nothing
//! but a random number.

use std::io::{self, Read, Write};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Letters of a secret, at least.
const LEAST_LEN: usize = 16;

const NONCE_LEN: usize = 32;

/// What a coordinator proves that it knows, and a worker.
const COORDINATOR: &[u8] = b"tidemill coordinator 1";
const WORKER: &[u8] = b"tidemill worker 1";

/// A secret that both sides know.
#[derive(Clone)]
pub struct Token(Vec<u8>);

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("cannot read the token file {}: {error}\n  hint: `head -c 32 /dev/urandom | base64 > {}` makes one", path.display(), path.display())]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A secret that can be guessed.
    #[error("the token in {} has {len} characters, and at least {LEAST_LEN} are needed\n  hint: `head -c 32 /dev/urandom | base64 > {}` makes one", path.display(), path.display())]
    Short {
        /// The file.
        path: std::path::PathBuf,
        /// How many it has.
        len: usize,
    },
}

impl Token {
    /// Reads a secret from a file; space around it does not count.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let text = std::fs::read(path).map_err(|error| TokenError::Read { path: path.into(), error })?;
        let secret = text.trim_ascii();
        if secret.len() < LEAST_LEN {
            return Err(TokenError::Short { path: path.into(), len: secret.len() });
        }
        Ok(Self(secret.to_vec()))
    }

    /// The worker's side: whether the other end is a coordinator that knows the secret.
    pub(crate) fn admit(&self, stream: &mut (impl Read + Write)) -> io::Result<bool> {
        let ours = nonce()?;
        stream.write_all(&ours)?;
        stream.flush()?;
        let (mut theirs, mut proof) = ([0; NONCE_LEN], [0; NONCE_LEN]);
        stream.read_exact(&mut theirs)?;
        stream.read_exact(&mut proof)?;
        if self.proof([COORDINATOR, &ours, &theirs]).verify_slice(&proof).is_err() {
            return Ok(false);
        }
        stream.write_all(&self.proof([WORKER, &theirs, &ours]).finalize().into_bytes())?;
        stream.flush()?;
        Ok(true)
    }

    /// The coordinator's side: whether the other end is a worker that knows the secret.
    pub(crate) fn present(&self, stream: &mut (impl Read + Write)) -> io::Result<bool> {
        let mut theirs = [0; NONCE_LEN];
        stream.read_exact(&mut theirs)?;
        let ours = nonce()?;
        stream.write_all(&ours)?;
        stream.write_all(&self.proof([COORDINATOR, &theirs, &ours]).finalize().into_bytes())?;
        stream.flush()?;
        let mut proof = [0; NONCE_LEN];
        stream.read_exact(&mut proof)?;
        Ok(self.proof([WORKER, &ours, &theirs]).verify_slice(&proof).is_ok())
    }

    /// HMAC-SHA256 of these parts.
    fn proof(&self, parts: [&[u8]; 3]) -> Hmac<Sha256> {
        let Ok(mac) = Hmac::new_from_slice(&self.0) else { unreachable!("HMAC takes keys of any length") };
        parts.iter().fold(mac, |mac, part| mac.chain_update(part))
    }
}

fn nonce() -> io::Result<[u8; NONCE_LEN]> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).map_err(io::Error::other)?;
    Ok(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proof_is_the_hmac_of_rfc_4231() {
        let hex = |proof: Hmac<Sha256>| {
            proof.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        };
        let jefe = Token(b"Jefe".to_vec()).proof([b"what do ya want ", b"for ", b"nothing?"]);
        assert_eq!(hex(jefe), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
        let long = Token(vec![0xaa; 131]).proof([
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            b"",
            b"",
        ]);
        assert_eq!(hex(long), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
    }

    #[test]
    fn a_short_or_missing_secret_is_an_error_that_says_how_to_make_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let error = |path| Token::read(path).err().unwrap().to_string();
        assert!(error(&path).contains("/dev/urandom"));
        std::fs::write(&path, "  short\n").unwrap();
        assert!(error(&path).contains("has 5 characters"));
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        assert!(Token::read(&path).is_ok());
    }
}
