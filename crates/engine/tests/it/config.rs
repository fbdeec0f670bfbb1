//! Settings from files and flags.

use bindery_engine::config::{
    ApprovalPolicy, Config, SandboxMode, Truncation, Trust, WireApi, endpoint, parse_override,
};
use bindery_engine::sandbox::environment::{EnvironmentPolicy, Inherit};
use toml::Value;

use crate::place::Place;

fn chosen(config: &Config) -> String {
    let provider = &config.provider;
    format!("{} at {} over {:?}", config.model, provider.id, provider.wire_api)
}

#[test]
fn with_nothing_said_it_is_the_demo() {
    let mut place = Place::new();
    assert_eq!(chosen(&place.load(&[]).unwrap()), "demo at demo over Demo");
    assert_eq!(
        chosen(&place.load(&["model=gpt-5.5"]).unwrap()),
        "gpt-5.5 at openai over Responses"
    );
    place.variables.push(("OPENAI_API_KEY", "sk-test"));
    let config = place.load(&[]).unwrap();
    assert_eq!(chosen(&config), "gpt-5.5 at openai over Responses");
    assert_eq!(config.provider.key(&config.home).as_deref(), Some("sk-test"));
}

#[test]
fn a_key_that_codex_has_stored_counts_and_a_login_does_not() {
    let place = Place::new();
    place.write("codex/auth.json", r#"{"tokens":{"access_token":"x"},"OPENAI_API_KEY":null}"#);
    assert_eq!(chosen(&place.load(&[]).unwrap()), "demo at demo over Demo");
    place.write("codex/auth.json", r#"{"OPENAI_API_KEY":"sk-stored"}"#);
    let config = place.load(&[]).unwrap();
    assert_eq!(config.provider.key(&config.home).as_deref(), Some("sk-stored"));
}

#[test]
fn flags_go_before_profiles_before_our_file_before_codex() {
    let place = Place::with(
        "model = 'codex'\nmodel_verbosity = 'low'\nreview_model = 'codex'\nprofile = 'p'\n\
         compact_prompt = 'codex'\n[profiles.p]\nmodel_verbosity = 'high'\nreview_model = 'profile'\n",
    );
    place.write("bindery/bindery.toml", "model = 'ours'\nreview_model = 'ours'\n");
    let config = place.load(&["model_verbosity=medium"]).unwrap();
    let said = (config.model.as_str(), config.verbosity.as_deref(), config.review_model.as_deref());
    assert_eq!(said, ("ours", Some("medium"), Some("profile")));
    assert_eq!(config.compact_prompt.as_deref(), Some("codex"));
}

#[test]
fn a_profile_may_be_a_file() {
    let place = Place::with("profile = 'fast'\n");
    place.write("codex/fast.config.toml", "model = 'gpt-5.6-sol'\n");
    assert_eq!(place.load(&[]).unwrap().model, "gpt-5.6-sol");
    let failure = place.failure(&["profile=../fast"]);
    assert_eq!(failure, "no profile `../fast`\nhint: add a `[profiles.../fast]` table");
}

#[test]
fn the_chat_wire_works() {
    let place = Place::with(
        "model = 'qwen3-coder:30b'\nmodel_provider = 'house'\n[model_providers.house]\n\
         name = 'House'\nbase_url = 'https://models.example/v1/'\nwire_api = 'chat'\n\
         env_key = 'HOUSE_KEY'\nhttp_headers = { x-team = 'a' }\n\
         env_http_headers = { x-user = 'HOUSE_USER', x-none = 'HOUSE_NONE' }\n\
         query_params = { v = '2' }\nrequest_max_retries = 900\n",
    );
    let mut place = place;
    place.variables = vec![("HOUSE_KEY", "k"), ("HOUSE_USER", "u")];
    let config = place.load(&[]).unwrap();
    assert_eq!(chosen(&config), "qwen3-coder:30b at house over Chat");
    assert_eq!(config.provider.base_url, "https://models.example/v1");
    assert_eq!(config.provider.key(&config.home).as_deref(), Some("k"));
    let headers: Vec<_> = config.provider.headers(&config.home).into_iter().collect();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(headers, [pair("x-team", "a"), pair("x-user", "u")]);
    assert_eq!(config.provider.request_max_retries, 100);
    assert_eq!(config.entry.context_window, 262_144);
}

#[test]
fn an_address_can_be_given_by_flag() {
    let place = Place::new();
    let mut flags = endpoint("http://localhost:9/v1", WireApi::Chat);
    flags.push(("model".to_owned(), Value::from("mine")));
    let config = Config::load(&place.home(), &place.project(), &flags).unwrap();
    assert_eq!(chosen(&config), "mine at endpoint over Chat");
    // Nothing is known of it, and it is nearby: a careful window, not Codex's 272,000.
    assert_eq!((config.entry.known, config.entry.context_window), (false, 32_768));
}

#[test]
fn known_providers_can_be_changed_in_part() {
    let place = Place::with("model_provider = 'azure'\nmodel = 'gpt-5.5'\n");
    place.write(
        "bindery/bindery.toml",
        "[model_providers.azure]\nbase_url = 'https://r.openai.azure.com/openai/v1'\n",
    );
    let provider = place.load(&[]).unwrap().provider;
    assert_eq!(provider.key_header.as_deref(), Some("api-key"));
    assert_eq!(provider.query_params["api-version"], "preview");
    assert_eq!(provider.base_url, "https://r.openai.azure.com/openai/v1");
}

#[test]
fn repeats_and_patience_are_those_of_codex_and_have_a_bound() {
    let plain =
        "model_provider = 'p'\nmodel = 'm'\n[model_providers.p]\nbase_url = 'http://x/v1'\n";
    let numbers = |text: &str| {
        let provider = Place::with(text).load(&[]).unwrap().provider;
        let idle = provider.stream_idle_timeout_ms;
        (provider.request_max_retries, provider.stream_max_retries, idle)
    };
    assert_eq!(numbers(plain), (4, 5, 300_000));
    let said = "request_max_retries = 1\nstream_max_retries = 2\nstream_idle_timeout_ms = 3\n";
    assert_eq!(numbers(&format!("{plain}{said}")), (1, 2, 3));
    let many = "request_max_retries = 1000\nstream_max_retries = 101\n";
    assert_eq!(numbers(&format!("{plain}{many}")), (100, 100, 300_000));
}

#[test]
fn settings_of_the_model_go_over_its_entry() {
    let place = Place::with(
        "model = 'gpt-5.5'\nmodel_context_window = 100000\nmodel_auto_compact_token_limit = 95000\n\
         tool_output_token_limit = 500\n",
    );
    let entry = place.load(&[]).unwrap().entry;
    assert_eq!((entry.usable_window(), entry.compact_at()), (95_000, 90_000));
    assert_eq!(entry.truncation, Truncation::Tokens(500));
}

#[test]
fn overrides_are_toml_and_else_text() {
    #[rustfmt::skip]
    let table = [
        ("a=1",                     "a",   "1"),
        ("a.b=[\"x\"]",             "a.b", "[\"x\"]"),
        ("a=true",                  "a",   "true"),
        ("a=gpt-5.5",               "a",   "\"gpt-5.5\""),
        ("a = \"quoted\"",          "a",   "\"quoted\""),
        ("a=x=y",                   "a",   "\"x=y\""),
        ("a=",                      "a",   "\"\""),
        ("a=1\nb=2",                "a",   "\"1\\nb=2\""),
    ];
    for (flag, key, value) in table {
        let (said, parsed) = parse_override(flag).unwrap();
        assert_eq!(
            (said.as_str(), serde_json::to_string(&parsed).unwrap().as_str()),
            (key, value),
            "{flag}"
        );
    }
    for flag in ["a", "=1", "a..b=1"] {
        assert!(parse_override(flag).is_err(), "{flag}");
    }
}

#[test]
fn a_broken_file_names_its_line() {
    let place = Place::with("model = 'x'\n\nmodel = [\n");
    insta::assert_snapshot!(place.failure(&[]), @"`~/codex/config.toml` is not TOML, line 3: unclosed array, expected `]`");
    let place = Place::with("\nmodel_context_window = 'wide'\n");
    insta::assert_snapshot!(place.failure(&[]), @r#"`model_context_window` in `~/codex/config.toml`, line 2: invalid type: string "wide", expected u64"#);
    let place = Place::with(
        "[model_providers.a]\nbase_url = 'x'\n\n[model_providers.b]\nwire_api = 'fax'\n",
    );
    insta::assert_snapshot!(place.failure(&[]), @"`model_providers.b` in `~/codex/config.toml`, line 4: unknown variant `fax`, expected one of `responses`, `chat`, `demo`");
    let place = Place::with("approval_policy = 'sometimes'\n");
    insta::assert_snapshot!(place.failure(&[]), @"`approval_policy` in `~/codex/config.toml`, line 1: it is `on-request`, `never`, `untrusted` or a `granular` table");
    insta::assert_snapshot!(Place::new().failure(&["project_doc_max_bytes=-1"]), @"`project_doc_max_bytes` in `-c`: invalid value: integer `-1`, expected u64");
    insta::assert_snapshot!(Place::new().failure(&["model_provider=nowhere"]), @"
    no model provider `nowhere`; there are azure, demo, lmstudio, ollama, openai, vllm
    hint: add `[model_providers.nowhere]` with a `base_url` to `bindery.toml`
    ");
    insta::assert_snapshot!(Place::new().failure(&["model_provider=vllm"]), @"
    provider `vllm` needs the name of a model
    hint: name the model with `--model NAME`
    ");
    insta::assert_snapshot!(Place::new().failure(&["model_provider=azure"]), @"`model_providers.azure` in the settings: it has no `base_url`");
}

#[test]
fn hostile_files_are_errors_and_no_panic() {
    let deep = format!("a = {}1{}", "[".repeat(5_000), "]".repeat(5_000));
    for text in [&b"\xff\xfe"[..], b"a = ", b"\0", deep.as_bytes(), b"[a\n", b"a.b.c = 1\na = 2"] {
        let place = Place::new();
        place.write("codex/config.toml", text);
        assert!(
            place.load(&[]).is_err(),
            "{:?}",
            String::from_utf8_lossy(&text[..text.len().min(20)])
        );
    }
}

#[test]
fn what_is_not_used_is_kept_and_told() {
    let place = Place::with("model = 'gpt-5.5'\nhologram = 7\n[tui]\ntheme = 'x'\n");
    place.write("project/.codex/config.toml", "model = 'other'\n");
    let config = place.load(&[]).unwrap();
    assert_eq!(config.rest["hologram"], Value::from(7));
    let told: Vec<String> = config.notices.iter().map(|notice| place.stable(notice)).collect();
    insta::assert_debug_snapshot!(told, @r#"
    [
        "`~/project/.codex/config.toml` is not read: a project does not set up the engine",
    ]
    "#);
    // Not told with every turn: those who ask are told.
    let aside = "the engine has no use for `hologram`, `tui` of the configuration";
    assert_eq!(config.aside().as_deref(), Some(aside));
    assert_eq!(Place::new().load(&[]).unwrap().aside(), None);
    assert_eq!(config.model, "gpt-5.5");
}

#[test]
fn trust_is_found_for_folder_root_and_worktree() {
    let place = Place::new();
    let sub = place.project().join("a/b");
    std::fs::create_dir_all(&sub).unwrap();
    let of = |folder: &str, cwd: &std::path::Path| {
        let path = place.root().join(folder);
        place.write(
            "codex/config.toml",
            format!("[projects.'{}']\ntrust_level = 'untrusted'\n", path.display()),
        );
        let config = place.load_in(cwd, &[]).unwrap();
        (config.trust, config.approval_policy, config.sandbox.mode)
    };
    let yes = (Trust::Untrusted, ApprovalPolicy::Untrusted, SandboxMode::WorkspaceWrite);
    let unknown = (Trust::Undecided, ApprovalPolicy::OnRequest, SandboxMode::ReadOnly);
    assert_eq!(of("project", &sub), yes);
    assert_eq!(of("project/a/b", &sub), yes);
    assert_eq!(of("project/a", &sub), unknown);
    assert_eq!(of("elsewhere", &sub), unknown);
    let gitdir = place.project().join(".git/worktrees/w");
    std::fs::create_dir_all(&gitdir).unwrap();
    place.write("tree/.git", format!("gitdir: {}\n", gitdir.display()));
    assert_eq!(of("project", &place.root().join("tree")), yes);
}

#[test]
fn the_sandbox_is_read() {
    let place = Place::with(
        "sandbox_mode = 'workspace-write'\napproval_policy = 'never'\nfeatures.a = true\n\
         features.b = { enabled = false }\nweb_search = false\nnotify = []\n\
         [sandbox_workspace_write]\nwritable_roots = ['/x', 'y']\nnetwork_access = true\n\
         [mcp_servers.m]\ncommand = 'c'\n",
    );
    let config = place.load(&[]).unwrap();
    assert!(!config.loopback, "this machine's services are closed unless they are named");
    let named = place.load(&["sandbox_workspace_write.loopback=true"]).unwrap();
    assert!(named.loopback);
    assert!(config.sandbox.network() && config.feature("a", false) && !config.feature("b", true));
    assert_eq!(config.sandbox.writable_roots, ["/x".into(), place.project().join("y")]);
    assert_eq!(config.approval_policy, ApprovalPolicy::Never);
    assert_eq!(config.web_search.as_deref(), Some("disabled"));
    assert_eq!(config.mcp_servers["m"]["command"], Value::from("c"));
    assert_eq!(config.notices, [""; 0]);
}

#[test]
fn policies_of_approval_are_named_as_in_codex() {
    let policy = |text: &str| Place::with(text).load(&[]).unwrap().approval_policy;
    assert_eq!(policy(""), ApprovalPolicy::OnRequest);
    assert_eq!(policy("approval_policy = 'on-request'\n"), ApprovalPolicy::OnRequest);
    assert_eq!(policy("approval_policy = 'on-failure'\n"), ApprovalPolicy::OnRequest);
    assert_eq!(policy("approval_policy = 'never'\n"), ApprovalPolicy::Never);
    // Codex has retired it; it asks more, not less.
    assert_eq!(policy("approval_policy = 'untrusted'\n"), ApprovalPolicy::Untrusted);
}

#[test]
fn what_is_read_and_has_no_effect_is_told() {
    let place = Place::with("web_search = 'live'\nnotify = ['bell']\n");
    let told = place.load(&[]).unwrap().notices;
    let has = |name: &str| told.iter().any(|notice| notice.starts_with(name));
    assert!(has("`web_search` has no effect") && has("`notify` has no effect"), "{told:?}");
    assert_eq!(Place::with("web_search = 'disabled'\n").load(&[]).unwrap().notices.len(), 0);
}

#[test]
fn a_tier_is_called_what_servers_call_it() {
    let tier = |text: &str| {
        let config = Place::with(text).load(&[]).unwrap();
        (config.service_tier, config.notices.len())
    };
    assert_eq!(tier("model = 'gpt-5.5'\nservice_tier = 'fast'\n"), (Some("priority".into()), 0));
    assert_eq!(tier("model = 'gpt-5.5'\nservice_tier = 'flex'\n"), (Some("flex".into()), 0));
    assert_eq!(tier("model = 'gpt-5.5'\n"), (None, 0));
    let chat = "model_provider = 'ollama'\nmodel = 'gpt-oss:20b'\nservice_tier = 'flex'\n";
    assert_eq!(tier(chat), (Some("flex".into()), 1));
}

#[test]
fn the_environment_of_commands_is_read() {
    let text = "[shell_environment_policy]\ninherit = 'core'\nignore_default_excludes = true\n\
                exclude = ['AWS_*']\nset = { A = '1' }\ninclude_only = ['A']\nshape = 1\n";
    let config = Place::with(text).load(&["shell_environment_policy.set.B=2"]);
    let config = config.unwrap_err().to_string();
    assert!(config.contains("shell_environment_policy"), "a number is no text: {config}");
    let config = Place::with(text).load(&["shell_environment_policy.set.B='2'"]).unwrap();
    let policy = &config.environment;
    assert_eq!(policy.inherit, Inherit::Core);
    assert!(policy.ignore_default_excludes);
    assert_eq!(
        (policy.exclude.join(" "), policy.include_only.join(" ")),
        ("AWS_*".into(), "A".into())
    );
    assert_eq!(policy.set.iter().map(|(k, v)| format!("{k}{v}")).collect::<String>(), "A1B2");
    let told = "the engine has no use for `shell_environment_policy.shape` of the configuration";
    assert_eq!((config.aside().as_deref(), config.notices.len()), (Some(told), 0));
    let none = Place::new().load(&[]).unwrap();
    assert_eq!(none.environment, EnvironmentPolicy::default());
    let profile = "shell_environment_policy.experimental_use_profile=true";
    let told = Place::new().load(&[profile]).unwrap().notices;
    assert!(told.iter().any(|notice| notice.contains("has no effect")), "{told:?}");
}
