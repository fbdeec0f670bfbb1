//! The shipped profiles, and how one is chosen.

use super::super::chat_profile::{ChatProfile, DeveloperRole, SystemPlacement, ToolCallIds};
use super::{ChatProfileFields, ChatProfileRow, ChatProfiles, SHIPPED, fix_for_refusal, matches};

fn chosen(provider: &str, url: &str, model: &str) -> ChatProfile {
    ChatProfiles::choose(provider, url, &[], ChatProfileFields::default()).for_model(model)
}

#[test]
fn the_shipped_rows_are_whole() {
    let names: Vec<_> = SHIPPED.servers.iter().map(|row| row.name.as_str()).collect();
    for server in [
        "Ollama",
        "llama.cpp",
        "vLLM",
        "SGLang",
        "LM Studio",
        "Text Generation Inference",
        "OpenRouter",
        "Groq",
        "DeepSeek",
        "Mistral",
        "Gemini",
        "Azure OpenAI",
        "xAI",
        "Moonshot",
        "MiniMax",
        "Zhipu",
        "DashScope",
        "Cohere",
        "Bedrock gateways",
        "LiteLLM",
    ] {
        assert!(names.contains(&server), "{server}");
    }
    for row in &SHIPPED.servers {
        assert!(!row.providers.is_empty() && row.models.is_empty(), "{}", row.name);
    }
    for row in &SHIPPED.families {
        assert!(!row.models.is_empty() && row.hosts.is_empty(), "{}", row.name);
    }
    for row in &SHIPPED.refusals {
        let fields: Result<ChatProfileFields, _> = row.set.clone().try_into();
        assert!(fields.is_ok(), "{:?}", row.says);
        for piece in &row.says {
            assert_eq!(*piece, piece.to_lowercase());
        }
    }
}

#[test]
fn a_server_is_known_by_its_id_its_host_or_its_port() {
    let mistral = |provider, url| chosen(provider, url, "m").tool_call_ids == ToolCallIds::Alnum9;
    assert!(mistral("mistral", "http://proxy.example/v1"));
    assert!(mistral("mine", "https://api.mistral.ai/v1"));
    assert!(!mistral("mine", "https://api.mistral.ai.example/v1"));
    let field = |url| chosen("mine", url, "m").reasoning_field;
    assert_eq!(field("http://127.0.0.1:8080/v1"), "reasoning_content");
    assert_eq!(field("http://[::1]:30000"), "reasoning_content");
    // A port says nothing about another machine.
    assert_eq!(field("http://models.example:8080/v1"), "reasoning");
    assert_eq!(field("https://openai.azure.com.example/openai"), "reasoning");
    assert_eq!(field("https://me.openai.azure.com/openai"), "");
}

#[test]
fn a_family_is_known_wherever_it_is_served() {
    for name in ["mistralai/Mistral-Small-3.2-24B-Instruct-2506", "devstral:24b", "ministral-8b"] {
        let profile = chosen("vllm", "http://localhost:8000/v1", name);
        assert!(profile.alternate_roles && profile.bridge_tool_to_user, "{name}");
        assert_eq!(profile.developer_role, DeveloperRole::User, "{name}");
    }
    let qwen = chosen("openai", "https://api.openai.com/v1", "Qwen/Qwen3.5-35B-A3B");
    assert_eq!(qwen.system, SystemPlacement::First);
    let llama = chosen("vllm", "http://localhost:8000/v1", "meta-llama/Llama-3.3-70B-Instruct");
    assert!(llama.single_tool_calls);
    let old = chosen("vllm", "", "mistralai/Mistral-7B-Instruct-v0.2");
    assert_eq!((old.system, old.tools_as_text), (SystemPlacement::Unsupported, true));
}

#[test]
fn the_user_has_the_last_word() {
    let row: ChatProfileRow = toml::from_str(
        "name = \"mine\"\nmodels = [\"devstral*\"]\n[set]\nalternate_roles = false\nmax_tokens = 7",
    )
    .unwrap();
    let own: ChatProfileFields = toml::from_str("max_tokens = 9").unwrap();
    let profiles = ChatProfiles::choose("vllm", "", std::slice::from_ref(&row), own);
    let profile = profiles.for_model("devstral-small");
    assert!(!profile.alternate_roles);
    assert_eq!(profile.max_tokens, Some(9));
    assert!(profiles.for_model("mistral-small").alternate_roles);
    let wrong: Result<ChatProfileFields, _> = toml::from_str("alternate_role = true");
    assert!(wrong.unwrap_err().to_string().contains("alternate_roles"));
}

#[test]
fn a_refusal_names_the_field_that_helps() {
    #[rustfmt::skip]
    let table = [
        // Mistral's templates by vLLM and llama.cpp.
        ("After the optional system message, conversation roles must alternate user/assistant", "alternate_roles = true"),
        // Qwen 3.5.
        ("System message must be at the beginning.", "system = \"first\""),
        // Gemma 2.
        ("System role not supported", "system = \"unsupported\""),
        // Llama 3.1.
        ("This model only supports single tool-calls at once!", "single_tool_calls = true"),
        // Mistral.
        ("Tool call IDs should be alphanumeric strings with length 9!", "tool_call_ids = \"alnum9\""),
        ("Unexpected role 'user' after role 'tool'", "bridge_tool_to_user = true"),
        // vLLM without a tool parser.
        ("\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set", "tools_as_text = true"),
        // Ollama.
        ("registry.ollama.ai/library/gemma3:4b does not support tools", "tools_as_text = true"),
        // DeepSeek.
        ("Missing reasoning_content field in the assistant message at index 3", "reasoning_field = \"reasoning_content\""),
        // Groq.
        ("'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning_content' is unsupported)]", "reasoning_field = \"\""),
        // OpenAI.
        ("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens_field = \"max_completion_tokens\""),
    ];
    for (words, field) in table {
        let fix = fix_for_refusal(words).unwrap_or_else(|| panic!("{words}"));
        assert!(fix.settings.contains(field), "{words}: {}", fix.settings);
    }
    assert_eq!(fix_for_refusal("the model is loading"), None);
}

#[test]
fn patterns_match_whole_names() {
    assert!(matches("a*c", "abc") && matches("*b*", "abc") && matches("abc", "abc"));
    assert!(!matches("ab", "abc") && !matches("a*d", "abc") && !matches("b*", "abc"));
    assert!(matches("a*", "a") && !matches("ab*ba", "aba"));
}
