//! Why a model stopped, in the words of many servers.

/// What a reason means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinishReason {
    /// The answer is whole.
    Done,
    /// It was cut at a limit.
    Length,
    /// It was cut by a filter.
    Filtered,
    /// The server failed; asking again may help.
    Failed,
    /// Nobody knows; never taken for success.
    Unknown,
}

impl FinishReason {
    /// Reads a server's word; `done` has further ones that mean a whole answer.
    pub(super) fn read(word: &str, done: &[String]) -> Self {
        if done.iter().any(|known| known == word) {
            return Self::Done;
        }
        match word.to_ascii_lowercase().as_str() {
            // OpenAI; Anthropic's, Cohere's and Gemini's words behind gateways; TGI's last three.
            "stop" | "tool_calls" | "function_call" | "end_turn" | "tool_use" | "stop_sequence"
            | "complete" | "tool_call" | "eos" | "eos_token" | "end" | "done" => Self::Done,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "model_length"
            | "model_context_window_exceeded" => Self::Length,
            "content_filter" | "safety" | "recitation" | "blocklist" | "prohibited_content"
            | "spii" | "refusal" | "sensitive" => Self::Filtered,
            // vLLM and SGLang, DeepSeek, Gemini, OpenRouter, Zhipu, Mistral.
            "abort"
            | "aborted"
            | "insufficient_system_resource"
            | "malformed_function_call"
            | "error"
            | "network_error"
            | "cancelled"
            | "canceled"
            | "unexpected_tool_call" => Self::Failed,
            _ => Self::Unknown,
        }
    }
}
