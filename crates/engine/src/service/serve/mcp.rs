//! MCP servers for clients: which there are, what they offer, what they hold.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Cx, Refused, Served};
use crate::mcp::{self, Detail, Server, Servers};
use crate::outlet::Outlet;
use crate::service::crowd::CrowdOutlet;
use crate::service::page::Paging;
use crate::service::supply::Wish;
use crate::service::threads::Loaded;

/// `mcpServerStatus/list`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StatusList {
    #[serde(flatten)]
    paging: Paging,
    #[serde(default)]
    detail: Option<Detail>,
    #[serde(default)]
    server_name: Option<String>,
    #[serde(default)]
    thread_id: Option<String>,
}

/// `mcpServer/resource/read`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceRead {
    #[serde(default)]
    thread_id: Option<String>,
    server: String,
    uri: String,
}

/// `mcpServer/tool/call`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolCall {
    thread_id: String,
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Option<Map<String, Value>>,
}

/// Servers, of a thread or started for one question.
enum Borrowed {
    Of(Arc<Loaded>, Arc<Servers>),
    Own(Arc<Servers>),
}

/// The servers of a thread, or those that a new one would have, are started and told.
pub(super) async fn status(cx: &Cx, params: StatusList) -> Served {
    let detail = params.detail.unwrap_or_default();
    let only = params.server_name.as_deref();
    let Some(servers) = borrow(cx, params.thread_id.as_deref(), only)? else {
        return Ok(params.paging.cut(Vec::new())?.into());
    };
    let rows = cx.unless_stopped(async {
        servers.ready().await;
        Ok(servers.servers().status(detail, only).await)
    });
    let rows = rows.await;
    let mut rows = servers.give_back(rows).await?;
    if params.thread_id.is_none() {
        // They ran for this question only.
        rows.iter_mut().for_each(|row| row["runtimeStatus"] = Value::Null);
    }
    Ok(params.paging.cut(rows)?.into())
}

/// Reads one resource.
pub(super) async fn resource(cx: &Cx, params: ResourceRead) -> Served {
    let ResourceRead { thread_id, server, uri } = params;
    let read = with(cx, thread_id.as_deref(), &server, async |server| server.resource(&uri).await);
    let read = read.await?;
    Ok(json!({ "contents": read["contents"], "originCallId": null }).into())
}

/// Calls one tool: whoever speaks the protocol has decided already.
pub(super) async fn call(cx: &Cx, params: ToolCall) -> Served {
    let ToolCall { thread_id, server, tool, arguments } = params;
    let call = async |server: &Server| {
        let called = server.call_apart(&tool, arguments.unwrap_or_default()).await?;
        serde_json::to_value(called).map_err(|err| err.to_string())
    };
    Ok(with(cx, Some(&thread_id), &server, call).await?.into())
}

/// Does something with one server that runs.
async fn with(
    cx: &Cx,
    thread: Option<&str>,
    name: &str,
    ask: impl AsyncFnOnce(&Server) -> Result<Value, String>,
) -> Result<Value, Refused> {
    let unknown = || Refused::invalid(format!("unknown MCP server '{name}'"));
    let servers = borrow(cx, thread, Some(name))?.ok_or_else(unknown)?;
    let asked = cx.unless_stopped(async {
        let running = servers.ready().await;
        let server = running.iter().find(|server| server.name == name).ok_or_else(unknown)?;
        ask(server).await.map_err(Refused::internal)
    });
    let asked = asked.await;
    servers.give_back(asked).await
}

fn borrow(cx: &Cx, thread: Option<&str>, only: Option<&str>) -> Result<Option<Borrowed>, Refused> {
    if let Some(id) = thread {
        let loaded = cx.loaded(id)?;
        let servers = loaded.thread.servers().cloned();
        return Ok(servers.map(|servers| Borrowed::Of(loaded, servers)));
    }
    let supplied = cx.inner.supply.thread(&Wish::default())?;
    let mut wanted = supplied.mcp;
    wanted.retain(|server| only.is_none_or(|name| name == server.name));
    Ok(Servers::new(wanted, supplied.standing.cwd).map(Borrowed::Own))
}

impl Borrowed {
    fn servers(&self) -> &Servers {
        match self {
            Self::Of(_, servers) | Self::Own(servers) => servers,
        }
    }

    async fn ready(&self) -> Vec<Arc<Server>> {
        match self {
            Self::Of(loaded, servers) => {
                let outlet = CrowdOutlet(loaded.crowd.clone());
                let tell = |mut told: Value| {
                    told["threadId"] = json!(loaded.thread.id());
                    outlet.tell(mcp::STARTUP, told);
                };
                servers.ready(&tell).await
            }
            Self::Own(servers) => servers.ready(&|_| ()).await,
        }
    }

    /// Ends what was started for one question.
    async fn give_back<T>(self, asked: Result<T, Refused>) -> Result<T, Refused> {
        if let Self::Own(servers) = self {
            servers.end().await;
        }
        asked
    }
}

impl Cx {
    async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, Refused>>,
    ) -> Result<T, Refused> {
        tokio::select! {
            biased;
            () = self.inner.stop.cancelled() => Err(Refused::internal("the server stops")),
            done = work => done,
        }
    }
}
