//! One running server: what it offers, and calls of it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, PaginatedRequestParams, ReadResourceRequestParams,
    Resource, ResourceTemplate, ServerPeerInfo, Tool,
};
use rmcp::service::RunningService;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout};

use super::connect::{Connected, connect};
use super::handler::{Handler, Speaker};
use super::name;
use super::process::ServerProcess;
use super::settings::ServerSettings;

/// Tools of one server that a model is offered; what comes after them is left out.
const MOST_TOOLS: usize = 256;

/// Resources of one server that are told; what comes after them is left out.
const MOST_RESOURCES: usize = 1024;

/// A server that runs.
pub(crate) struct Server {
    /// Its name in the configuration.
    pub(crate) name: String,
    /// Its name for models.
    pub(crate) namespace: String,
    /// What it offers, as far as it is wanted.
    pub(crate) tools: Vec<Offered>,
    tool_timeout: Duration,
    handler: Handler,
    running: RunningService<RoleClient, Handler>,
    process: Mutex<Option<ServerProcess>>,
}

/// A tool that is offered.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    /// Its name for models.
    pub(crate) name: String,
    /// As the server told it.
    pub(crate) tool: Tool,
}

/// How a call ended.
pub(crate) type Called = Result<CallToolResult, String>;

impl Server {
    /// Starts one, or says why not. Dropped before its end, what was started is ended.
    pub(crate) async fn start(
        settings: &ServerSettings,
        namespace: &str,
        cwd: &Path,
    ) -> Result<Self, String> {
        let limit = settings.startup_timeout;
        let starting = Self::open(settings, namespace, cwd);
        timeout(limit, starting).await.unwrap_or_else(|_| {
            let seconds = limit.as_secs_f64();
            Err(format!("it took longer than {seconds} s (`startup_timeout_sec` allows more)"))
        })
    }

    async fn open(settings: &ServerSettings, namespace: &str, cwd: &Path) -> Result<Self, String> {
        let handler = Handler::new(&settings.name);
        let connected = connect(&settings.way, cwd, handler.clone()).await?;
        let Connected { running, .. } = connected;
        let tools = list(&running).await?;
        Ok(Self {
            name: settings.name.clone(),
            namespace: namespace.to_owned(),
            tools: offered(tools, settings),
            tool_timeout: settings.tool_timeout,
            handler,
            running,
            process: Mutex::new(connected.process),
        })
    }

    /// Whether nobody is at the other end any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.running.peer().is_transport_closed()
    }

    /// Calls a tool. Dropped before its end, the server is told that nobody waits.
    pub(crate) async fn call(
        &self,
        tool: &Tool,
        arguments: Map<String, Value>,
        speaker: Speaker<'_>,
    ) -> Called {
        let _line = self.handler.begin(speaker);
        let params = CallToolRequestParams::new(tool.name.clone()).with_arguments(arguments);
        let call = self.running.call_tool(params);
        tokio::pin!(call);
        let mut deadline = Instant::now() + self.tool_timeout;
        loop {
            tokio::select! {
                biased;
                answer = &mut call => return answer.map_err(|err| self.explained(&err)),
                () = sleep_until(deadline) => {}
            }
            // A person who thinks is not the server's fault.
            let asked = tokio::select! {
                biased;
                answer = &mut call => return answer.map_err(|err| self.explained(&err)),
                asked = self.handler.answered() => asked,
            };
            if !asked {
                let seconds = self.tool_timeout.as_secs_f64();
                return Err(format!("the tool took longer than {seconds} s"));
            }
            deadline = Instant::now() + self.tool_timeout;
        }
    }

    /// What it said of itself.
    pub(crate) fn info(&self) -> Option<Arc<ServerPeerInfo>> {
        self.running.peer().peer_info()
    }

    /// Calls a tool for a client rather than for a model: no turn runs, so nobody is asked.
    pub(crate) async fn call_apart(&self, tool: &str, arguments: Map<String, Value>) -> Called {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.within(self.running.call_tool(params)).await
    }

    /// Reads a resource.
    pub(crate) async fn resource(&self, uri: &str) -> Result<Value, String> {
        let params = ReadResourceRequestParams::new(uri);
        let read = self.within(self.running.read_resource(params)).await?;
        serde_json::to_value(read).map_err(|err| err.to_string())
    }

    /// The resources that it has, and the templates of more.
    pub(crate) async fn resources(&self) -> (Vec<Resource>, Vec<ResourceTemplate>) {
        if self.info().is_none_or(|info| info.capabilities.resources.is_none()) {
            return (Vec::new(), Vec::new());
        }
        let listed = self.within(list_resources(&self.running)).await.unwrap_or_default();
        let templates = self.within(list_templates(&self.running)).await.unwrap_or_default();
        (listed, templates)
    }

    async fn within<T>(
        &self,
        asked: impl Future<Output = Result<T, rmcp::ServiceError>>,
    ) -> Result<T, String> {
        let seconds = self.tool_timeout.as_secs_f64();
        let late = || Err(format!("the MCP server `{}` took longer than {seconds} s", self.name));
        match timeout(self.tool_timeout, asked).await {
            Ok(answer) => answer.map_err(|err| self.explained(&err)),
            Err(_) => late(),
        }
    }

    fn explained(&self, err: &rmcp::ServiceError) -> String {
        match err {
            rmcp::ServiceError::McpError(error) => error.message.to_string(),
            rmcp::ServiceError::TransportClosed | rmcp::ServiceError::TransportSend(_) => {
                format!("the MCP server `{}` is gone{}", self.name, self.complaints())
            }
            other => other.to_string(),
        }
    }

    fn complaints(&self) -> String {
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let said = process.as_ref().map(ServerProcess::complaints).unwrap_or_default();
        if said.is_empty() { said } else { format!(": {said}") }
    }

    /// Ends it with all that it started.
    pub(crate) async fn end(&self) {
        self.running.cancellation_token().cancel();
        let process = self.process.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(process) = process {
            process.end().await;
        }
    }
}

async fn list(running: &RunningService<RoleClient, Handler>) -> Result<Vec<Tool>, String> {
    let offers = running.peer().peer_info().is_some_and(|info| info.capabilities.tools.is_some());
    let mut tools = Vec::new();
    let mut cursor = None;
    while offers && tools.len() < MOST_TOOLS {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = running.list_tools(Some(page)).await;
        let page = page.map_err(|err| format!("its tools cannot be listed: {err}"))?;
        tools.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(tools)
}

async fn list_resources(
    running: &RunningService<RoleClient, Handler>,
) -> Result<Vec<Resource>, rmcp::ServiceError> {
    let (mut all, mut cursor) = (Vec::new(), None);
    while all.len() < MOST_RESOURCES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = running.list_resources(Some(page)).await?;
        all.extend(page.resources);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    all.truncate(MOST_RESOURCES);
    Ok(all)
}

async fn list_templates(
    running: &RunningService<RoleClient, Handler>,
) -> Result<Vec<ResourceTemplate>, rmcp::ServiceError> {
    let (mut all, mut cursor) = (Vec::new(), None);
    while all.len() < MOST_RESOURCES {
        let page = PaginatedRequestParams::default().with_cursor(cursor);
        let page = running.list_resource_templates(Some(page)).await?;
        all.extend(page.resource_templates);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    all.truncate(MOST_RESOURCES);
    Ok(all)
}

fn offered(tools: Vec<Tool>, settings: &ServerSettings) -> Vec<Offered> {
    let is = |names: &[String], tool: &Tool| names.iter().any(|name| *name == tool.name);
    let wanted = |tool: &Tool| {
        let enabled = settings.enabled_tools.as_ref().is_none_or(|names| is(names, tool));
        enabled && !is(&settings.disabled_tools, tool)
    };
    let mut taken = HashSet::new();
    let tools = tools.into_iter().filter(wanted).take(MOST_TOOLS);
    let offered = tools.map(|tool| Offered { name: name::tool(&tool.name, &mut taken), tool });
    offered.collect()
}
