//! `update_plan`: the model tells what it is going to do.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::session::Step;
use super::{Call, Cx, Ended, Tool};
use crate::model::ToolSpec;

/// The tool.
pub(super) struct UpdatePlan;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    explanation: Option<String>,
    plan: Vec<Planned>,
}

#[derive(Deserialize)]
struct Planned {
    step: String,
    status: Status,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

impl Tool for UpdatePlan {
    fn name(&self) -> &'static str {
        "update_plan"
    }

    fn spec(&self) -> Option<ToolSpec> {
        Some(ToolSpec::Function {
            name: self.name().to_owned(),
            description: "Shows the user your plan for the work at hand. Give the whole plan each \
                time; keep at most one step in progress."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "explanation": { "type": "string", "description": "Why the plan changed." },
                    "plan": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "step": { "type": "string", "description": "A few words." },
                                "status": {
                                    "type": "string",
                                    "enum": ["pending", "in_progress", "completed"],
                                },
                            },
                            "required": ["step", "status"],
                            "additionalProperties": false,
                        },
                    },
                },
                "required": ["plan"],
                "additionalProperties": false,
            }),
        })
    }

    fn call<'a>(&'a self, call: Call, cx: &'a Cx) -> BoxFuture<'a, Ended> {
        async move {
            let Arguments { explanation, plan } = match call.arguments() {
                Ok(arguments) => arguments,
                Err(ended) => return ended,
            };
            let steps: Vec<Value> = plan.iter().map(|planned| planned.value()).collect();
            let told = json!({ "explanation": explanation, "plan": steps });
            cx.session.set_plan(plan.into_iter().map(Planned::keep).collect());
            cx.voice.tell("turn/plan/updated", told);
            Ended::text("Plan updated")
        }
        .boxed()
    }
}

/// The plan in a call's arguments.
pub(crate) fn read(arguments: &str) -> Option<Vec<Step>> {
    let Arguments { plan, .. } = serde_json::from_str(arguments).ok()?;
    Some(plan.into_iter().map(Planned::keep).collect())
}

impl Planned {
    fn value(&self) -> Value {
        let status = match self.status {
            Status::Pending => "pending",
            Status::InProgress => "inProgress",
            Status::Completed => "completed",
        };
        json!({ "step": self.step, "status": status })
    }

    fn keep(self) -> Step {
        let status = match self.status {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
        };
        Step { step: self.step, status: status.to_owned() }
    }
}
