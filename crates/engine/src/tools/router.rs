//! Finds the tool that a call names, and runs it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::RwLock;

use super::{Call, Cx, Ended, Tool};
use super::{apply_patch, client, exec_command, mcp, plan, shell, view_image};
use crate::item::{HistoryItem, Item};
use crate::mcp::{Server, Servers};
use crate::model::ToolSpec;
use crate::prompter::{ExecForm, PatchForm, Profile};
use crate::thread::DynamicTool;

/// The tools of a turn.
pub(crate) struct Router {
    tools: Vec<Arc<dyn Tool>>,
    /// Groups, which are offered as one.
    groups: Vec<ToolSpec>,
}

impl Router {
    /// The tools that a model is offered. A tool of the client's does not hide one of ours.
    pub(crate) fn new(
        profile: &Profile,
        dynamic: &[DynamicTool],
        servers: Option<(&Arc<Servers>, &[Arc<Server>])>,
    ) -> Self {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        match profile.exec {
            ExecForm::Unified => {
                tools.push(Arc::new(exec_command::ExecCommand));
                tools.push(Arc::new(exec_command::WriteStdin));
            }
            ExecForm::Shell => tools.push(Arc::new(shell::Shell)),
            ExecForm::ShellCommand => tools.push(Arc::new(shell::ShellCommand)),
            ExecForm::None => {}
        }
        if profile.plan {
            tools.push(Arc::new(plan::UpdatePlan));
        }
        match profile.patch {
            PatchForm::Freeform => tools.push(Arc::new(apply_patch::ApplyPatch { free: true })),
            PatchForm::Function => tools.push(Arc::new(apply_patch::ApplyPatch { free: false })),
            PatchForm::None => {}
        }
        if profile.view_image {
            tools.push(Arc::new(view_image::ViewImage));
        }
        let mut groups = Vec::new();
        for tool in dynamic {
            client::add(tool, &mut tools, &mut groups);
        }
        if let Some((servers, running)) = servers {
            mcp::add(servers, running, &mut tools, &mut groups);
        }
        Self { tools, groups }
    }

    pub(crate) fn specs(&self) -> Vec<ToolSpec> {
        let single = self.tools.iter().filter_map(|tool| tool.spec());
        single.chain(self.groups.iter().cloned()).collect()
    }

    /// Runs a call: beside others if its tool allows it, else alone.
    pub(crate) fn run(
        router: &Arc<Self>,
        call: HistoryItem,
        cx: &Arc<Cx>,
        lock: &Arc<RwLock<()>>,
    ) -> impl Future<Output = Ended> + Send + 'static {
        let (router, cx, lock) = (Arc::clone(router), Arc::clone(cx), Arc::clone(lock));
        async move {
            let Some((name, namespace, call)) = read(call) else {
                return Ended::text("unsupported call");
            };
            let Some(tool) = router.find(&name, namespace.as_deref()) else {
                return Ended::text(format!("unsupported call: {name}"));
            };
            let (_beside, _alone);
            if tool.parallel() {
                _beside = lock.read().await;
            } else {
                _alone = lock.write().await;
            }
            let run = AssertUnwindSafe(tool.call(call, &cx)).catch_unwind();
            run.await.unwrap_or_else(|_| Ended::text(format!("`{name}` failed inside the engine")))
        }
    }

    /// A wire without groups calls a tool by its group's name and its own in one.
    fn find(&self, name: &str, namespace: Option<&str>) -> Option<&Arc<dyn Tool>> {
        let exact = |tool: &&Arc<dyn Tool>| tool.name() == name && tool.namespace() == namespace;
        let flat = |tool: &&Arc<dyn Tool>| {
            let rest = tool.namespace().and_then(|group| name.strip_prefix(group));
            let rest = rest.map(|rest| rest.trim_start_matches(['_', '.', '/']));
            namespace.is_none() && rest == Some(tool.name())
        };
        self.tools.iter().find(exact).or_else(|| self.tools.iter().find(flat))
    }
}

fn read(item: HistoryItem) -> Option<(String, Option<String>, Call)> {
    match item {
        HistoryItem::Known(Item::FunctionCall(call)) => {
            let read = Call { id: call.call_id, input: call.arguments, free: false };
            Some((call.name, call.namespace, read))
        }
        HistoryItem::Known(Item::CustomToolCall(call)) => {
            Some((call.name, None, Call { id: call.call_id, input: call.input, free: true }))
        }
        _ => None,
    }
}
