//! A call to an address that somebody has set: signed, and bounded whatever is there.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, Response};

use crate::clock;
use crate::secret;

/// The longest reply read.
const REPLY: usize = 8 << 20;

/// Whom to call, and with what.
pub(in crate::interrupts) struct Letter<'a> {
    pub(in crate::interrupts) url: &'a str,
    /// What it is signed with.
    pub(in crate::interrupts) secret: &'a str,
    /// Names it, also when it is made again.
    pub(in crate::interrupts) id: &'a str,
    pub(in crate::interrupts) body: String,
    /// How long it may take.
    pub(in crate::interrupts) limit: Duration,
}

/// Makes calls.
#[derive(Default)]
pub(super) struct Caller {
    /// Made when first used: most daemons call nobody.
    client: OnceLock<Client>,
}

impl Caller {
    /// Tells somebody something; what they reply but for its status is not read.
    pub(super) async fn tell(&self, letter: Letter<'_>) -> Result<(), String> {
        taken(&self.send(letter).await?)
    }

    /// Asks somebody something; gives the body of the reply.
    pub(super) async fn ask(&self, letter: Letter<'_>) -> Result<Vec<u8>, String> {
        let reply = self.send(letter).await?;
        taken(&reply)?;
        bounded(reply).await
    }

    async fn send(&self, letter: Letter<'_>) -> Result<Response, String> {
        let Letter { url, secret, id, body, limit } = letter;
        let time = clock::now() / 1000;
        let signature = secret::sign(secret, time, body.as_bytes());
        let standard = secret::sign_standard(secret, id, time, body.as_bytes());
        let request = self
            .client()?
            .post(url)
            .timeout(limit)
            .header("content-type", "application/json")
            .header("webhook-id", id)
            .header("webhook-timestamp", time)
            .header("webhook-signature", standard)
            // As versions before had it.
            .header("bindery-delivery", id)
            .header("bindery-signature", format!("t={time},v1={signature}"))
            .body(body);
        request.send().await.map_err(|err| in_words(&err))
    }

    fn client(&self) -> Result<&Client, String> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // It fails only if the process has one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // An address is called as it was set; it leads nowhere else.
        let builder = Client::builder().redirect(reqwest::redirect::Policy::none());
        let client = builder.build().map_err(|err| in_words(&err))?;
        Ok(self.client.get_or_init(|| client))
    }
}

fn taken(reply: &Response) -> Result<(), String> {
    let status = reply.status();
    if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
}

async fn bounded(mut reply: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(piece) = reply.chunk().await.map_err(|err| in_words(&err))? {
        body.extend_from_slice(&piece);
        if body.len() > REPLY {
            return Err("its answer is too long".to_owned());
        }
    }
    Ok(body)
}

/// Without the address, which may hold a secret.
fn in_words(err: &reqwest::Error) -> String {
    let mut words = String::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(err);
    while let Some(err) = cause {
        words = err.to_string();
        cause = err.source();
    }
    match (err.is_timeout(), words.is_empty()) {
        (true, _) => "it did not answer in time".to_owned(),
        (false, true) => "it cannot be called".to_owned(),
        (false, false) => words,
    }
}
