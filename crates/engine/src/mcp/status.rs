//! What can be told of a server, in the protocol's shape.

use std::sync::Arc;

use rmcp::model::Implementation;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::settings::{ServerSettings, Way};
use super::{Server, State};

/// How much is asked of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Detail {
    /// Its resources too.
    #[default]
    Full,
    /// What is known already.
    ToolsAndAuthOnly,
}

/// One row of `mcpServerStatus/list`.
pub(super) async fn of(settings: &ServerSettings, state: &State, detail: Detail) -> Value {
    let (word, error) = match state {
        State::Idle => ("notStarted", None),
        State::Up(_) => ("connected", None),
        State::Down(why) => ("failed", Some(why)),
        State::Off => ("disabled", None),
    };
    let server = state.server();
    let info = server.and_then(|server| server.info());
    let (resources, templates) = match (server, detail) {
        (Some(server), Detail::Full) => server.resources().await,
        _ => (Vec::new(), Vec::new()),
    };
    json!({
        "name": settings.name,
        "runtimeStatus": word,
        "pluginId": null,
        "httpOrigin": origin(&settings.way),
        "serverInfo": info.as_ref().and_then(|info| info.server_info.as_ref()).map(named),
        "serverCapabilities": info.as_ref().map(|info| &info.capabilities),
        "toolListMeta": null,
        "tools": tools(server),
        "toolsError": error,
        "resources": resources,
        "resourceTemplates": templates,
        "authStatus": auth(&settings.way),
    })
}

fn named(info: &Implementation) -> Value {
    json!({
        "name": info.name,
        "title": info.title,
        "version": info.version,
        "description": info.description,
        "icons": info.icons,
        "websiteUrl": info.website_url,
    })
}

fn tools(server: Option<&Arc<Server>>) -> Map<String, Value> {
    let tools = server.into_iter().flat_map(|server| &server.tools);
    tools.map(|offered| (offered.tool.name.to_string(), json!(offered.tool))).collect()
}

/// Keys may stand in the rest of an address.
fn origin(way: &Way) -> Option<String> {
    let Way::Http { url, .. } = way else { return None };
    Some(reqwest::Url::parse(url).ok()?.origin().ascii_serialization())
}

fn auth(way: &Way) -> &'static str {
    let is_key = |name: &String| name.eq_ignore_ascii_case("authorization");
    match way {
        Way::Http { headers, .. } if headers.keys().any(is_key) => "bearerToken",
        Way::Http { .. } | Way::Stdio { .. } => "unsupported",
    }
}
