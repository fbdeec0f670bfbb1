//! What servers say in words because their protocol has no field for it.

use std::time::Duration;

/// Pieces of sentences, lower case, each with the server that says it.
const OVERFLOW: &[&str] = &[
    // OpenAI and Azure; vLLM, OpenRouter and others after them.
    "context_length_exceeded",
    "maximum context length",
    "exceeds the context window",
    "exceed the context window",
    "context window exceeded",
    "string_above_max_length",
    // vLLM.
    "longer than the maximum model length",
    "exceeds the model's max",
    // llama.cpp, and Ollama with it.
    "exceed_context_size",
    "available context size",
    "context size has been exceeded",
    // Ollama.
    "input length exceeds",
    "exceeds the context length",
    "input exceeds context",
    "prompt too long",
    // Newer vLLM: the first for the engine, the second for requests with a limit.
    "exceeds the max_model_len",
    "context length is only",
    "exceeds model's maximum context length",
    // SGLang.
    "is longer than the model's context length",
    "exceeds the model's maximum context length",
    "exceeds the maximum allowed length",
    // text-generation-inference.
    "`inputs` must have less than",
    "tokens + `max_new_tokens` must be <=",
    // xAI.
    "maximum prompt length",
    // Moonshot.
    "exceeded model token limit",
    // MiniMax.
    "context window exceeds limit",
    // Zhipu, by words and by code.
    "prompt exceeds max length",
    "prompt 超长",
    // DashScope.
    "range of input length should be",
    "input length should be",
    // Cohere.
    "too many tokens",
    // Bedrock, and Claude behind it.
    "input is too long",
    "input tokens exceeded",
    "exceed context limit",
    // Mistral, Groq and Together.
    "too large for model with",
    "please reduce the length of the messages",
    "inputs tokens + max_new_tokens must be",
    // LM Studio.
    "when context the overflows",
    "when the context overflows",
    "is greater than the context length",
    "mid-generation context overflow",
    "reached context length of",
    // Anthropic, Gemini and text-generation-inference behind compatible doors.
    "prompt is too long",
    "exceeds the maximum number of tokens",
    "`max_new_tokens` must be <=",
];

/// Whether a server says that the history is longer than the model's window.
pub(super) fn is_overflow(text: &str) -> bool {
    let text = text.to_lowercase();
    OVERFLOW.iter().any(|piece| text.contains(piece))
}

/// Whether a server says that the model's chat template refused the history.
pub(super) fn is_template_error(text: &str) -> bool {
    const PIECES: &[&str] = &[
        "jinja",
        "chat template",
        "chat_template",
        "templateerror",
        // What Jinja and its kin say where a template meets what it does not expect.
        "object' has no attribute",
        "unknown filter",
        "is not a function: got",
        "can only concatenate",
        "template: :",
    ];
    let text = text.to_lowercase();
    PIECES.iter().any(|piece| text.contains(piece))
}

/// The time in `… try again in 1.5s …`; OpenAI writes `20s`, `350ms`, `6m0s`, Azure `7 seconds`.
pub(super) fn wait(text: &str) -> Option<Duration> {
    let text = text.to_lowercase();
    let places = ["try again in ", "retry after ", "retry in "];
    let rest = places.iter().find_map(|words| text.split_once(words))?.1;
    let mut rest = rest;
    let mut sum = None;
    while let Some((seconds, after)) = span(rest) {
        sum = Some(sum.unwrap_or(0.0) + seconds);
        rest = after;
    }
    sum.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
}

/// One number with its unit, in seconds, and what follows.
fn span(text: &str) -> Option<(f64, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].trim_end_matches('.').parse().ok()?;
    let rest = text[digits..].trim_start();
    let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let factor = match &rest[..letters] {
        "ms" | "millisecond" | "milliseconds" => 0.001,
        "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Some((number * factor, &rest[letters..]))
}

/// `2 hours`, `3 minutes`: good enough for a person who must wait.
pub(super) fn roughly(wait: Duration) -> String {
    let seconds = wait.as_secs();
    let (count, unit) = match seconds {
        0..120 => (seconds.max(1), "second"),
        120..7200 => (seconds.div_ceil(60), "minute"),
        7200..172_800 => (seconds.div_ceil(3600), "hour"),
        _ => (seconds.div_ceil(86_400), "day"),
    };
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{is_overflow, roughly, wait};

    #[test]
    fn an_overflow_is_known_in_every_servers_words() {
        let said = [
            "This model's maximum context length is 128000 tokens. However, your messages resulted \
             in 150000 tokens. Please reduce the length of the messages.",
            "Your input exceeds the context window of this model. Please adjust your input.",
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            "request (36146 tokens) exceeds the available context size (32768 tokens), try \
             increasing it",
            "the request exceeds the available context size. try increasing the context size",
            "the input length exceeds the context length",
            "Trying to keep the first 15857 tokens when context the overflows. However, the model \
             is loaded with context length of only 4096 tokens, which is not enough.",
            "The number of tokens to keep from the initial prompt is greater than the context \
             length",
            "Reached context length of 4096 tokens with model (arch: qwen3) that does not \
             currently support mid-generation context overflow.",
            "Context size has been exceeded.",
            "prompt is too long: 210000 tokens > 200000 maximum",
            // SGLang.
            "The input (40005 tokens) is longer than the model's context length (32768 tokens).",
            "Requested token count exceeds the model's maximum context length of 32768 tokens.",
            // text-generation-inference.
            "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens",
            "Input validation error: `inputs` must have less than 4095 tokens. Given: 5000",
            // xAI.
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            // Moonshot.
            "Invalid request: Your request exceeded model token limit: 131072",
            // MiniMax.
            "invalid params, context window exceeds limit (2013)",
            // Zhipu.
            "Prompt exceeds max length",
            // DashScope.
            "Range of input length should be [1, 129024]",
            // Cohere.
            "too many tokens: total number of tokens in the prompt cannot exceed 4081",
            // Bedrock.
            "Input is too long for requested model.",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
            // Newer vLLM.
            "The engine prompt length 1327246 exceeds the max_model_len 32768.",
            "You passed 9000 input tokens and requested 0 output tokens. However, the model's \
             context length is only 8192 tokens",
        ];
        for text in said {
            assert!(is_overflow(text), "{text}");
        }
        let others = [
            "Request too large for gpt-5 on tokens per min (TPM): Limit 10000, Requested 15000",
            "max_tokens must be at least 1",
            "model not found",
            "",
        ];
        for text in others {
            assert!(!is_overflow(text), "{text}");
        }
    }

    #[test]
    fn a_time_to_wait_is_found_in_words() {
        #[rustfmt::skip]
        let table = [
            ("Please try again in 1.5s. Visit …",       Some(1500)),
            ("try again in 350ms.",                     Some(350)),
            ("Please try again in 6m0.5s.",             Some(360_500)),
            ("Try again in 7 seconds",                  Some(7000)),
            ("please retry after 2 seconds.",           Some(2000)),
            ("try again in a while",                    None),
            ("try again in 5",                          None),
            ("try again later",                         None),
            ("try again in 99999999999999999999999999999999h", None),
        ];
        for (text, want) in table {
            assert_eq!(wait(text), want.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn times_are_rough() {
        let say = |seconds| roughly(Duration::from_secs(seconds));
        let want = ["1 second", "90 seconds", "60 minutes", "3 hours", "7 days"];
        assert_eq!([0, 90, 3600, 7300, 604_800].map(say), want);
    }
}
