//! What of a model's settings nobody may read, taken out of what others say.

use crate::model::Provider;

/// Shorter values are words, not secrets.
const SHORTEST: usize = 6;

/// The secrets of one provider: its key, its password, the values of its headers and of its query.
#[derive(Clone)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those of these settings.
    pub fn of(provider: &Provider) -> Self {
        let pairs = provider.headers.iter().chain(&provider.query);
        let values = pairs.map(|(_, value)| value.trim());
        let chat = provider.chat.for_model("").extra_headers;
        let values = values.chain(chat.values().map(|value| value.trim()));
        let key = provider.key.as_deref().map(str::trim);
        let address = reqwest::Url::parse(&provider.base_url).ok();
        let password = address.as_ref().and_then(|url| url.password());
        let mut all: Vec<String> = values.chain(key).chain(password).map(str::to_owned).collect();
        all.retain(|secret| secret.chars().count() >= SHORTEST);
        // A secret that holds another goes first, or half of it would be left.
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(all)
    }

    /// A text without them.
    pub fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use crate::model::{Provider, Wire};

    #[test]
    fn no_secret_is_left_in_what_a_server_says() {
        let mut provider = Provider::new(Wire::Chat, "http://me:password@localhost/v1");
        provider.key = Some(" sk-secret\n".to_owned());
        provider.headers = vec![("x-key".to_owned(), "sk-secret-longer".to_owned())];
        provider.query = vec![("sig".to_owned(), "signature".to_owned())];
        let secrets = Secrets::of(&provider);
        let said = "no sk-secret, sk-secret-longer, signature or password is right";
        assert_eq!(secrets.hide(said), "no …, …, … or … is right");
        assert_eq!(format!("{secrets:?}"), "Secrets(4)");
    }

    #[test]
    fn a_value_that_is_a_word_stays() {
        let mut provider = Provider::new(Wire::Chat, "http://localhost/v1");
        provider.query = vec![("tier".to_owned(), "batch".to_owned())];
        assert_eq!(Secrets::of(&provider).hide("a batch"), "a batch");
    }
}
