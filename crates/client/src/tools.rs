//! Tools of ours that Codex may call: run here, within a limit, never able to hold a turn up.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bindery_core::ids::{CallId, ThreadId, TurnId};
use bindery_core::interrupt::{Answer, Ask, Interrupt};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::timeout;

/// How long a tool may run, unless it says otherwise.
pub const LIMIT: Duration = Duration::from_secs(30);

/// What a tool gave back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    content: Vec<Value>,
}

impl Output {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::default().and_text(text)
    }

    /// A JSON value, as text.
    pub fn json(value: &Value) -> Self {
        Self::text(value.to_string())
    }

    /// Text after what is there.
    #[must_use]
    pub fn and_text(mut self, text: impl Into<String>) -> Self {
        self.content.push(json!({ "type": "inputText", "text": text.into() }));
        self
    }

    /// An image after what is there; Codex takes data URLs only.
    #[must_use]
    pub fn and_image(mut self, data_url: impl Into<String>) -> Self {
        self.content.push(json!({ "type": "inputImage", "imageUrl": data_url.into() }));
        self
    }
}

/// One call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The thread that calls.
    pub thread_id: ThreadId,
    /// Its turn.
    pub turn_id: TurnId,
    /// The call.
    pub call_id: CallId,
    /// The input.
    pub input: Value,
}

type Execute = dyn Fn(Call) -> BoxFuture<'static, Result<Output, String>> + Send + Sync;

/// A tool: what the model is told of it, and what it does.
#[derive(Clone)]
pub struct Tool {
    description: String,
    input_schema: Value,
    limit: Duration,
    execute: Arc<Execute>,
}

impl Tool {
    /// A tool that runs `execute`; its error is told to the model.
    pub fn new<F, R>(description: impl Into<String>, input_schema: Value, execute: F) -> Self
    where
        F: Fn(Call) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Output, String>> + Send + 'static,
    {
        let execute = Arc::new(move |call| execute(call).boxed());
        Self { description: description.into(), input_schema, limit: LIMIT, execute }
    }

    /// The same, with another limit.
    #[must_use]
    pub fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("description", &self.description).finish_non_exhaustive()
    }
}

/// Tools by name.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    tools: BTreeMap<String, Tool>,
}

impl ToolSet {
    /// Adds a tool; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, tool: Tool) -> Self {
        self.tools.insert(name.into(), tool);
        self
    }

    /// What `thread/start` advertises.
    pub fn advertised(&self) -> Vec<Value> {
        let advertised = |(name, tool): (&String, &Tool)| {
            json!({
                "type": "function",
                "name": name,
                "description": tool.description,
                "inputSchema": tool.input_schema,
            })
        };
        self.tools.iter().map(advertised).collect()
    }

    /// Whether it is one of these.
    pub fn has(&self, name: &str) -> bool {
        self.tools.contains_key(name)
    }

    /// Runs the tool a question calls; none if it calls none of these.
    ///
    /// Error, time-out and panic become a failed result, so that Codex goes on.
    pub fn run(&self, interrupt: &Interrupt) -> Option<BoxFuture<'static, Answer>> {
        let Ask::ToolCall { tool: name, namespace: None, arguments } = &interrupt.ask else {
            return None;
        };
        let tool = self.tools.get(name)?.clone();
        let call = Call {
            thread_id: interrupt.thread_id.clone(),
            turn_id: interrupt.turn_id.clone(),
            call_id: interrupt.call_id.clone(),
            input: arguments.clone(),
        };
        Some(Box::pin(async move { finished(&tool, call).await }))
    }
}

async fn finished(tool: &Tool, call: Call) -> Answer {
    // The function itself may panic before there is a future.
    let execute = tool.execute.clone();
    let running = AssertUnwindSafe(async move { execute(call).await }).catch_unwind();
    let why = match timeout(tool.limit, running).await {
        Ok(Ok(Ok(output))) => {
            return Answer::ToolResult { content: output.content, success: true };
        }
        Ok(Ok(Err(why))) => why,
        Ok(Err(_)) => "the tool failed: it panicked".to_owned(),
        Err(_) => format!("the tool did not answer within {:?}", tool.limit),
    };
    Answer::ToolResult {
        content: vec![json!({ "type": "inputText", "text": why })],
        success: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(tool: &str) -> Interrupt {
        Interrupt {
            id: "i".into(),
            thread_id: "t".into(),
            turn_id: "u".into(),
            call_id: "c".into(),
            ask: Ask::ToolCall { tool: tool.into(), namespace: None, arguments: json!({"a": 2}) },
        }
    }

    async fn told(tool: Tool) -> (String, bool) {
        let tools = ToolSet::default().with("t", tool);
        let Answer::ToolResult { content, success } = tools.run(&asked("t")).unwrap().await else {
            panic!("no result")
        };
        (content[0]["text"].as_str().unwrap().to_owned(), success)
    }

    #[tokio::test(start_paused = true)]
    async fn every_way_out_of_a_tool_is_a_result() {
        let schema = json!({"type": "object"});
        type Execute = fn(Call) -> BoxFuture<'static, Result<Output, String>>;
        let tool = |execute: Execute| Tool::new("", schema.clone(), execute);
        let fine = tool(|call: Call| async move { Ok(Output::json(&call.input)) }.boxed());
        assert_eq!(told(fine).await, (r#"{"a":2}"#.into(), true));
        let bad = tool(|_| async { Err("no such city".into()) }.boxed());
        assert_eq!(told(bad).await, ("no such city".into(), false));
        let wild = tool(|_| async { panic!("a bug") }.boxed());
        assert_eq!(told(wild).await, ("the tool failed: it panicked".into(), false));
        let wilder = tool(|_| panic!("a bug before the future"));
        assert_eq!(told(wilder).await, ("the tool failed: it panicked".into(), false));
        let slow = tool(|_| std::future::pending().boxed());
        assert_eq!(told(slow).await, ("the tool did not answer within 30s".into(), false));
    }

    #[test]
    fn a_strange_tool_is_not_ours() {
        assert!(ToolSet::default().run(&asked("t")).is_none());
    }
}
