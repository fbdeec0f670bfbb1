//! Requests of the server: questions that stop a turn until they are answered.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::inventory::{self, Fate};
use super::notification::Address;

/// One request of the server, with where it belongs.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRequest {
    /// The method.
    pub method: String,
    /// Thread, turn and item it speaks of.
    pub address: Address,
    /// What is asked.
    pub body: Body,
    /// The parameters as they came.
    pub params: Value,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// May this command run?
    Command(CommandApproval),
    /// May these files change? The changes are in the item of the same name.
    FileChange(FileChangeApproval),
    /// May the model have these permissions?
    Permissions(PermissionsApproval),
    /// A tool of the caller's is called.
    ToolCall(ToolCall),
    /// The model asks the user.
    UserInput(UserInput),
    /// An MCP server asks the user; approval of an MCP tool comes this way too.
    Elicitation(Elicitation),
    /// We do not do this, for the listed reason.
    NotServed(&'static str),
    /// Not on any list, or of a shape we do not know.
    Unknown {
        /// What the decoder stumbled over.
        why: String,
    },
}

/// `item/commandExecution/requestApproval`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandApproval {
    /// `command`; `writeStdin` for typing into a running one; `humanCommand` (0.169) for a managed
    /// checkpoint that a person must decide, once.
    #[serde(default)]
    pub kind: Option<String>,
    /// Sub-approval of the item, when there are several.
    #[serde(default)]
    pub approval_id: Option<String>,
    /// The command line.
    #[serde(default)]
    pub command: Option<String>,
    /// Where it would run.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Why the model wants it.
    #[serde(default)]
    pub reason: Option<String>,
    /// The rule that "always" would save.
    #[serde(default)]
    pub proposed_execpolicy_amendment: Option<Vec<String>>,
    /// The network access it is about.
    #[serde(default)]
    pub network_approval_context: Option<Value>,
    /// The network rules that "always" could save.
    #[serde(default)]
    pub proposed_network_policy_amendments: Option<Vec<Value>>,
    /// What Codex offers; a hint for menus, other decisions are honoured too.
    #[serde(default)]
    pub available_decisions: Option<Vec<Value>>,
}

/// `item/fileChange/requestApproval`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeApproval {
    /// Why the model wants it.
    #[serde(default)]
    pub reason: Option<String>,
    /// The folder that would become writable.
    #[serde(default)]
    pub grant_root: Option<String>,
}

/// `item/permissions/requestApproval`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionsApproval {
    /// What is wanted.
    pub permissions: Value,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
    /// Where.
    #[serde(default)]
    pub cwd: Option<String>,
}

/// `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The call; also the item's name.
    pub call_id: String,
    /// The tool.
    pub tool: String,
    /// Its namespace.
    #[serde(default)]
    pub namespace: Option<String>,
    /// Its input.
    #[serde(default)]
    pub arguments: Value,
}

/// `item/tool/requestUserInput`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInput {
    /// The questions: id, header, text, options.
    pub questions: Vec<Value>,
}

/// `mcpServer/elicitation/request`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation {
    /// The server.
    pub server_name: String,
    /// `form`, `url` …
    #[serde(default)]
    pub mode: Option<String>,
    /// In words.
    #[serde(default)]
    pub message: Option<String>,
    /// Schema of the form.
    #[serde(default)]
    pub requested_schema: Option<Value>,
    /// Tells an MCP tool's approval (`codex_approval_kind`) from a real question.
    #[serde(default, rename = "_meta")]
    pub meta: Option<Value>,
}

impl ServerRequest {
    /// Reads a request. Never fails, never drops.
    pub fn decode(method: &str, params: &RawValue) -> Self {
        let mut address = Address::read(params);
        let body = body_of(method, params).unwrap_or_else(|why| Body::Unknown { why });
        if let Body::ToolCall(call) = &body {
            address.item_id = Some(call.call_id.as_str().into());
        }
        let params = parse(params).unwrap_or_default();
        Self { method: method.to_owned(), address, body, params }
    }
}

fn body_of(method: &str, params: &RawValue) -> Result<Body, String> {
    Ok(match method {
        "item/commandExecution/requestApproval" => Body::Command(parse(params)?),
        "item/fileChange/requestApproval" => Body::FileChange(parse(params)?),
        "item/permissions/requestApproval" => Body::Permissions(parse(params)?),
        "item/tool/call" => Body::ToolCall(parse(params)?),
        "item/tool/requestUserInput" => Body::UserInput(parse(params)?),
        "mcpServer/elicitation/request" => Body::Elicitation(parse(params)?),
        other => match inventory::server_request(other) {
            Some(Fate::NotShown(why)) => Body::NotServed(why),
            _ => return Err("this version knows no such request".to_owned()),
        },
    })
}

fn parse<T: DeserializeOwned>(params: &RawValue) -> Result<T, String> {
    serde_json::from_str(params.get()).map_err(|err| err.to_string())
}
