//! Secrets: made from chance, kept as hashes, compared in constant time.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
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

/// SHA-256 of bytes, as text.
pub fn hash_bytes(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
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

/// The signature of a message in the form of Standard Webhooks: `v1,` and HMAC-SHA-256 over
/// `id.time.body`, as base64. The key is what `whsec_` stands before, decoded, or the secret itself
/// if it is none of that form.
pub fn sign_standard(secret: &str, id: &str, time: i64, body: &[u8]) -> String {
    let decoded = secret.strip_prefix("whsec_").and_then(|key| STANDARD.decode(key).ok());
    let key = decoded.as_deref().unwrap_or(secret.as_bytes());
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key);
    let mut context = ring::hmac::Context::with_key(&key);
    context.update(format!("{id}.{time}.").as_bytes());
    context.update(body);
    format!("v1,{}", STANDARD.encode(context.sign().as_ref()))
}

/// Bytes as hexadecimal text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What may be shown of an address: user, path and query can each hold a secret.
pub fn origin(url: &str) -> Option<String> {
    reqwest::Url::parse(url).ok().map(|url| url.origin().ascii_serialization())
}

/// What stands before secrets, and is followed by nothing else.
const BEFORE: [&str; 5] = ["bnd_", "sk-", "whsec_", "Bearer ", "bearer "];

/// A text with its secrets made unreadable.
pub fn masked(text: &str) -> Cow<'_, str> {
    let first = |text: &str| BEFORE.iter().filter_map(|mark| Some((text.find(mark)?, *mark))).min();
    if first(text).is_none() {
        return Cow::Borrowed(text);
    }
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((at, mark)) = first(rest) {
        let (before, after) = rest.split_at(at + mark.len());
        shown.push_str(before);
        let secret = |letter: char| letter.is_ascii_alphanumeric() || "-_.~+/=".contains(letter);
        let end = after.find(|letter| !secret(letter)).unwrap_or(after.len());
        if end > 0 {
            shown.push('…');
        }
        rest = &after[end..];
    }
    shown.push_str(rest);
    Cow::Owned(shown)
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
    fn an_address_is_shown_without_what_may_be_secret() {
        let url = "https://user:pass@hooks.example:8443/services/T0/B1?token=x#y";
        assert_eq!(origin(url).as_deref(), Some("https://hooks.example:8443"));
        assert_eq!(origin("no address"), None);
    }

    #[test]
    fn secrets_are_masked() {
        let token = random("bnd_", 32).unwrap();
        for (text, shown) in [
            ("nothing here", "nothing here"),
            (&*format!("token={token}, and more"), "token=bnd_…, and more"),
            ("Authorization: Bearer abc.def x sk-proj-1", "Authorization: Bearer … x sk-…"),
            ("é bnd_", "é bnd_"),
            ("bearer bnd_12", "bearer …"),
        ] {
            assert_eq!(masked(text), shown);
        }
    }

    #[test]
    fn a_signature_covers_time_and_body() {
        let signed = sign("s", 1, b"body");
        assert_eq!(signed.len(), 64);
        assert_ne!(signed, sign("s", 2, b"body"));
        assert_ne!(signed, sign("t", 1, b"body"));
    }
}
