//! What a turn asks of the model: the thread's settings and the request's as one call.

use std::path::PathBuf;

use bindery_core::call::CallOptions;
use bindery_core::map::prompt_to_turn::{PlanContext, ThreadSource, plan};
use bindery_core::prompt::Prompt;
use bindery_core::spec::PROVIDER_KEY;
use bindery_core::wire::app_server::input::UserInput;
use bindery_core::wire::app_server::params::{ThreadSettings, ThreadStart};
use serde_json::{Map, Value, json};

use crate::error::Error;
use crate::store::ThreadRow;
use crate::tenant::{Tenant, bound_codex, roots_of};

/// The call of a turn's request. The same rows give the same call, whichever daemon asks.
pub(super) fn of(
    tenant: &Tenant,
    thread: &ThreadRow,
    request: Value,
) -> Result<CallOptions, Error> {
    let options: CallOptions = serde_json::from_value(request)
        .map_err(|err| Error::invalid("request", err.to_string()))?;
    within(tenant, thread, options)
}

/// How a thread begins when what runs in it first is no call.
pub(super) fn beginning(tenant: &Tenant, thread: &ThreadRow) -> Result<ThreadStart, Error> {
    let options = CallOptions { prompt: Prompt::user("begin"), ..CallOptions::default() };
    let plan = plan(&within(tenant, thread, options)?, &context(thread))?;
    let tools = Some(plan.dynamic_tools).filter(|tools| !tools.is_empty());
    let settings = plan.thread_settings;
    Ok(ThreadStart { settings, dynamic_tools: tools, ..ThreadStart::default() })
}

/// How a thread goes on when what runs in it is no call.
pub(super) fn resumption(tenant: &Tenant, thread: &ThreadRow) -> Result<ThreadSettings, Error> {
    let all = beginning(tenant, thread)?.settings;
    let policy = &tenant.settings.policy;
    let sandbox = all.sandbox.filter(|_| !policy.full_access);
    let bounded = thread.backend == "codex" && !(policy.full_access && policy.config);
    let config = all.config.filter(|_| bounded);
    Ok(ThreadSettings {
        cwd: Some(thread.cwd.clone()),
        sandbox,
        config,
        ..ThreadSettings::default()
    })
}

/// The thread's settings beneath the call's, held to the tenant's policy as it is now: neither may
/// have been allowed when it was written down.
fn within(
    tenant: &Tenant,
    thread: &ThreadRow,
    mut options: CallOptions,
) -> Result<CallOptions, Error> {
    if options.tools.is_none() && thread.tools.as_array().is_some_and(|tools| !tools.is_empty()) {
        let tools = serde_json::from_value(thread.tools.clone());
        options.tools = tools.map_err(|err| Error::invalid("tools", err.to_string()))?;
    }
    let all = options.provider_options.get_or_insert_default();
    let own = all.entry(PROVIDER_KEY).or_insert_with(|| json!({}));
    let mut merged = thread.settings.as_object().cloned().unwrap_or_default();
    merged.extend(own.as_object().cloned().unwrap_or_default());
    merged.insert("cwd".to_owned(), json!(thread.cwd));
    tenant.settings.policy.confine(&tenant.settings, thread.cwd.as_ref(), &mut merged)?;
    if thread.backend == "codex" {
        bound_codex(tenant, thread.cwd.as_ref(), &mut merged);
    }
    place(&mut merged, thread);
    *own = Value::Object(merged);
    Ok(options)
}

/// Folders that a turn with this request may write beside its own, if it may not write everywhere.
pub(super) fn writable_roots(
    tenant: &Tenant,
    thread: &ThreadRow,
    request: &Value,
) -> Result<Vec<PathBuf>, Error> {
    if tenant.settings.policy.full_access {
        return Ok(Vec::new());
    }
    let own = request["providerOptions"][PROVIDER_KEY].as_object();
    let mut merged = thread.settings.as_object().cloned().unwrap_or_default();
    merged.extend(own.cloned().unwrap_or_default());
    tenant.settings.policy.confine(&tenant.settings, thread.cwd.as_ref(), &mut merged)?;
    Ok(roots_of(&merged))
}

/// The thread is ours to choose, whatever the call says.
fn place(options: &mut Map<String, Value>, thread: &ThreadRow) {
    options.remove("threadId");
    options.remove("fork");
    match (&thread.session, &thread.fork) {
        (Some(session), _) => {
            options.insert("threadId".to_owned(), json!(session));
        }
        (None, Some(fork)) => {
            options.insert("threadId".to_owned(), fork["session"].clone());
            options.insert("fork".to_owned(), json!(true));
        }
        (None, None) => {}
    }
}

/// What the planner knows of a thread.
pub(super) fn context(thread: &ThreadRow) -> PlanContext {
    let source = match (&thread.session, &thread.fork) {
        (None, None) => ThreadSource::Fresh,
        _ => ThreadSource::History,
    };
    let cwd = Some(thread.cwd.clone());
    // Here a thread has a name of its own, and its caller forks it by that.
    PlanContext { thread: source, cwd, branches: false, ..PlanContext::default() }
}

/// What a prompt adds to a turn that runs.
pub fn steering(options: &CallOptions) -> Result<Vec<UserInput>, Error> {
    let context = PlanContext { thread: ThreadSource::Fresh, ..PlanContext::default() };
    Ok(plan(options, &context)?.input)
}
