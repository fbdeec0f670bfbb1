//! Secrets: made from chance, kept as hashes, compared in constant time.

use std::fmt::Write as _;

use ring::digest;
use ring::rand::{SecureRandom, SystemRandom};

use crate::error::Error;

/// So many bytes of chance, as hexadecimal text behind a prefix.
pub fn random(prefix: &str, bytes: usize) -> Result<String, Error> {
    let mut chance = vec![0; bytes];
    let failed = |_| Error::Internal("the system gives no random numbers".to_owned());
    SystemRandom::new().fill(&mut chance).map_err(failed)?;
    Ok(format!("{prefix}{}", hex(&chance)))
}

/// What is kept of a token: its SHA-256. Tokens are long and random, so no salt is needed.
pub fn hash(token: &str) -> String {
    hex(digest::digest(&digest::SHA256, token.as_bytes()).as_ref())
}

/// Whether two texts are the same, in a time that tells nothing about where they differ.
pub fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let differing = a.iter().zip(b).fold(0u8, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differing) == 0
}

/// The signature of a webhook's body: HMAC-SHA-256 over `time.body`.
pub fn sign(secret: &str, time: i64, body: &[u8]) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret.as_bytes());
    let mut context = ring::hmac::Context::with_key(&key);
    context.update(format!("{time}.").as_bytes());
    context.update(body);
    hex(context.sign().as_ref())
}

/// Bytes as hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_their_hashes_are_compared() {
        let (a, b) = (random("bnd_", 32).unwrap(), random("bnd_", 32).unwrap());
        assert_ne!(a, b);
        assert_eq!(a.len(), 4 + 64);
        assert!(same(&hash(&a), &hash(&a)));
        assert!(!same(&hash(&a), &hash(&b)));
        assert!(!same("a", "ab"));
    }

    #[test]
    fn a_signature_covers_time_and_body() {
        let signed = sign("s", 1, b"body");
        assert_eq!(signed.len(), 64);
        assert_ne!(signed, sign("s", 2, b"body"));
        assert_ne!(signed, sign("t", 1, b"body"));
    }
}
