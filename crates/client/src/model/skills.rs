//! Skills by name: Codex knows which there are, and wants each with its path.

use std::collections::BTreeMap;

use bindery_core::call::CallOptions;
use bindery_core::map::prompt_to_turn::{PlanContext, names_skills, plan};
use serde::Deserialize;
use serde_json::{Value, json};

use super::LanguageModel;
use crate::error::Error;

#[derive(Deserialize)]
struct Listed {
    data: Vec<OfFolder>,
}

#[derive(Deserialize)]
struct OfFolder {
    #[serde(default)]
    skills: Vec<Value>,
}

impl LanguageModel {
    /// What the planner is told, with the skills of the call's folder where the call names some.
    /// Those that the settings name come first. Without the list the planner warns of each name.
    pub(super) async fn context(&self, options: &CallOptions) -> Result<PlanContext, Error> {
        let mut context = self.settings.plan.clone();
        if !names_skills(options, &context) {
            return Ok(context);
        }
        let own = plan(options, &context)?.thread_settings.cwd;
        let cwd = own.or_else(|| self.settings.thread.cwd.clone()).or_else(|| context.cwd.clone());
        let params = json!({ "cwds": cwd.into_iter().collect::<Vec<_>>() });
        match self.server.request::<Listed>("skills/list", &params).await {
            Ok(listed) => {
                let mut known = paths(listed);
                known.append(&mut context.skills);
                context.skills = known;
            }
            Err(err) => tracing::warn!(%err, "Codex does not tell its skills"),
        }
        Ok(context)
    }
}

/// Of two skills with one name the first that Codex lists; one that is switched off is none.
fn paths(listed: Listed) -> BTreeMap<String, String> {
    let mut paths = BTreeMap::new();
    for skill in listed.data.iter().flat_map(|folder| &folder.skills) {
        let (name, path) = (skill["name"].as_str(), skill["path"].as_str());
        if let (Some(name), Some(path), true) = (name, path, skill["enabled"] != false) {
            paths.entry(name.to_owned()).or_insert_with(|| path.to_owned());
        }
    }
    paths
}
