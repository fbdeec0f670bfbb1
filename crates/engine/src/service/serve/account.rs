//! Models, configuration, and the little that there is to say about accounts.

use std::path::PathBuf;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Cx, Refused, Served, read, read_or_default};
use crate::service::page::Paging;

/// `config/read`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ConfigRead {
    cwd: Option<PathBuf>,
}

/// Folders that lists are asked for.
#[derive(Default, Deserialize)]
#[serde(default)]
struct OfFolders {
    cwds: Option<Vec<String>>,
}

impl OfFolders {
    fn rows(self, row: impl Fn(String) -> Value) -> Value {
        let here = || vec![here().display().to_string()];
        let cwds = self.cwds.filter(|cwds| !cwds.is_empty()).unwrap_or_else(here);
        json!({ "data": cwds.into_iter().map(row).collect::<Vec<_>>() })
    }
}

/// `model/list`.
pub(super) async fn models(cx: &Cx, paging: &Paging) -> Served {
    Ok(paging.cut(cx.inner.supply.models().await)?.into())
}

/// Serves what is known at once.
pub(super) fn serve(cx: &Cx, method: &str, params: &RawValue) -> Served {
    let result = match method {
        "config/read" => {
            let wanted: ConfigRead = read(params)?;
            let cwd = wanted.cwd.unwrap_or_else(here);
            let config = cx.inner.supply.config(&cwd)?;
            json!({ "config": config, "origins": {}, "layers": null })
        }
        "configRequirements/read" => json!({ "requirements": null }),
        "account/read" => json!({ "account": null, "requiresOpenaiAuth": false }),
        "getAuthStatus" => {
            json!({ "authMethod": null, "authToken": null, "requiresOpenaiAuth": false })
        }
        "account/rateLimits/read" => {
            let why = "codex account authentication required to read rate limits";
            return Err(Refused::invalid(why));
        }
        "modelProvider/capabilities/read" => {
            json!({ "imageGeneration": false, "webSearch": false })
        }
        "skills/list" => {
            let folders: OfFolders = read_or_default(params)?;
            folders.rows(|cwd| json!({ "cwd": cwd, "skills": [], "errors": [] }))
        }
        "hooks/list" => {
            let folders: OfFolders = read_or_default(params)?;
            folders.rows(|cwd| json!({ "cwd": cwd, "hooks": [], "warnings": [], "errors": [] }))
        }
        _ => return Err(Refused::not_served(method)),
    };
    Ok(result.into())
}

fn here() -> PathBuf {
    std::env::current_dir().unwrap_or_default()
}
