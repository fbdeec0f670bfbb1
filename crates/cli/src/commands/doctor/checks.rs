//! The checks, in the order they depend on each other.

use std::path::{Path, PathBuf};

use bindery::client::drift::{self, Drift};
use bindery::client::locate::Located;
use bindery::client::version::OLDEST;
use bindery::core::wire::app_server::notification::Body;
use bindery::engine::sandbox::{Mechanism, Sandbox};
use bindery::{AppServer, EngineError, EngineOptions};
use serde_json::{Value, json};

use super::{Finding, Status};
use crate::server::WhichCodex;

/// Runs every check that can be run.
pub(super) async fn all(which: &WhichCodex) -> Vec<Finding> {
    let mut findings = codexes(which).await;
    findings.extend(engine());
    findings.extend(engine_sandbox());
    findings
}

async fn codexes(which: &WhichCodex) -> Vec<Finding> {
    let located = match which.locate() {
        Ok(located) => located,
        // Nobody asked for one, and the engine runs without.
        Err(err @ bindery::Error::NotFound { .. }) if !which.is_named() => {
            return vec![Finding { status: Status::Warning, ..failed("codex", &err) }];
        }
        Err(err) => return vec![failed("codex", &err)],
    };
    let server = match which.start(&std::env::temp_dir(), &[]).await {
        Ok(server) => server,
        Err(err) => {
            let hint = err.downcast_ref::<bindery::Error>().and_then(bindery::Error::hint);
            let text = format!("{}: {err}", located.path.display());
            let finding = Finding::new("codex", Status::Error, text);
            return vec![hint.into_iter().fold(finding, |finding, hint| finding.hint(hint))];
        }
    };
    let mut findings = vec![codex(&server, &located), login(&server).await];
    findings.extend(config(&server));
    findings.push(protocol(&located.path).await);
    findings.push(sandbox());
    findings.extend(sessions(&server));
    server.close().await;
    findings
}

/// What runs where there is no Codex, and what it makes of the settings.
fn engine() -> Vec<Finding> {
    let here = std::env::current_dir().unwrap_or_default();
    let house = bindery::engine_house(&EngineOptions::default());
    let outfit = house.and_then(|house| house.outfit(&here).map_err(EngineError::from));
    let outfit = match outfit {
        Ok(outfit) => outfit,
        Err(err) => {
            let finding = Finding::new("engine", Status::Warning, err.to_string());
            return vec![err.hint().into_iter().fold(finding, |finding, hint| finding.hint(hint))];
        }
    };
    let version = env!("CARGO_PKG_VERSION");
    let text = match outfit.demo {
        true => format!("{version}   demo model: no real model answers"),
        false => format!("{version}   {} of {}", outfit.model, outfit.name),
    };
    let notices = outfit.notices.into_iter();
    let notices = notices.map(|notice| Finding::new("settings", Status::Warning, notice));
    let aside = outfit.aside.into_iter();
    let aside = aside.map(|aside| Finding::new("settings", Status::Ok, aside));
    let first = Finding::new("engine", Status::Ok, text);
    std::iter::once(first).chain(notices).chain(aside).collect()
}

/// What keeps the engine's commands within their limits, and what it cannot do.
fn engine_sandbox() -> Option<Finding> {
    let helper = crate::helper::program()?;
    let mechanism = Sandbox::detect(helper, Vec::new()).mechanism().clone();
    let text = match &mechanism {
        Mechanism::Bubblewrap { program, .. } => {
            format!("of the engine: bubblewrap at {}", program.display())
        }
        Mechanism::None => "of the engine: none works here".to_owned(),
        other => format!("of the engine: {}", other.name()),
    };
    let limits = mechanism.limits();
    let text = limits.iter().fold(text, |text, limit| format!("{text}\n- {limit}"));
    let hint = match mechanism {
        Mechanism::Bubblewrap { .. } | Mechanism::Namespaces { .. } => None,
        Mechanism::Landlock | Mechanism::None => {
            Some("install bubblewrap, or allow user namespaces")
        }
    };
    let status = if hint.is_none() { Status::Ok } else { Status::Warning };
    let finding = Finding::new("sandbox", status, text);
    Some(hint.into_iter().fold(finding, |finding, hint| finding.hint(hint)))
}

fn failed(name: &'static str, err: &bindery::Error) -> Finding {
    let finding = Finding::new(name, Status::Error, err.to_string());
    err.hint().into_iter().fold(finding, |finding, hint| finding.hint(hint))
}

fn codex(server: &AppServer, located: &Located) -> Finding {
    let kind = if located.shim.is_some() { "native, behind the npm shim" } else { "native" };
    let text = format!("{}   {} ({kind})", server.version(), located.path.display());
    debug_assert!(server.version() >= OLDEST, "an older one is refused at the greeting");
    Finding::new("codex", Status::Ok, text)
}

async fn login(server: &AppServer) -> Finding {
    let account: Result<Value, _> = server.request("account/read", &json!({})).await;
    match account {
        Err(err) => failed("login", &err),
        Ok(reply) => match (reply["account"]["type"].as_str(), &reply["requiresOpenaiAuth"]) {
            (Some("apiKey"), _) => Finding::new("login", Status::Ok, "API key"),
            (Some("chatgpt"), _) => {
                let who = reply["account"]["email"].as_str().unwrap_or("ChatGPT account");
                Finding::new("login", Status::Ok, who)
            }
            (Some(other), _) => Finding::new("login", Status::Ok, other),
            (None, Value::Bool(false)) => {
                Finding::new("login", Status::Ok, "the configured provider needs none")
            }
            (None, _) => Finding::new("login", Status::Warning, "not logged in")
                .hint("run `codex login`, or set `OPENAI_API_KEY` and a provider in the config"),
        },
    }
}

/// What Codex said about its configuration when it started.
fn config(server: &AppServer) -> Vec<Finding> {
    let notices = server.notices().into_iter().filter_map(|notice| match notice.body {
        Body::Notice { method, params } if method == "configWarning" => Some(params),
        _ => None,
    });
    notices
        // The sandbox check tells this one in our own words.
        .filter(|params| !params["summary"].as_str().unwrap_or_default().contains("bubblewrap"))
        .map(|params| {
            let text = params["summary"].as_str().unwrap_or("a warning without words");
            let more = params["details"].as_str().map(|more| format!("\n{more}"));
            let text = format!("{text}{}", more.unwrap_or_default());
            // Codex 0.166 greets us all the same, and then starts no thread.
            match text.starts_with("Invalid configuration") {
                true => Finding::new("config", Status::Error, text)
                    .hint("correct the file: until then Codex runs no turn"),
                false => Finding::new("config", Status::Warning, text),
            }
        })
        .collect()
}

async fn protocol(program: &Path) -> Finding {
    match drift::check(program).await {
        Err(err) => failed("protocol", &err),
        Ok(drift) if drift.is_harmless() => {
            let ours = drift::Inventory::ours();
            let text = format!(
                "{} notifications, {} questions, {} items: all known",
                ours.notifications.len() - drift::HIDDEN.len(),
                ours.requests.len(),
                ours.items.len()
            );
            Finding::new("protocol", Status::Ok, text)
        }
        Ok(drift) => {
            let text = format!("words that this version does not know: {}", unknown(&drift));
            Finding::new("protocol", Status::Warning, text)
                .hint("they are shown as unknown, nothing is lost; a newer Bindery may know them")
        }
    }
}

fn unknown(drift: &Drift) -> String {
    let words = drift.unknown_notifications.iter().chain(&drift.unknown_requests);
    words.chain(&drift.unknown_items).map(String::as_str).collect::<Vec<_>>().join(", ")
}

/// Codex brings a sandbox program of its own; the system's is the better kept one.
fn sandbox() -> Finding {
    if !cfg!(target_os = "linux") {
        return Finding::new("sandbox", Status::Ok, "the system's own");
    }
    match on_path("bwrap") {
        Some(path) => {
            Finding::new("sandbox", Status::Ok, format!("bubblewrap at {}", path.display()))
        }
        None => Finding::new(
            "sandbox",
            Status::Warning,
            "bubblewrap not found; Codex uses the copy it brings along",
        )
        .hint("install the package `bubblewrap`"),
    }
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// How many session files there are, and how large they are together.
fn sessions(server: &AppServer) -> Option<Finding> {
    let home = PathBuf::from(server.codex_home()?);
    let (files, bytes) = measure(&home.join("sessions"));
    let size = match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1000)),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10),
    };
    let text = format!("{files} in {} ({size})", home.display());
    Some(Finding::new("sessions", Status::Ok, text))
}

fn measure(folder: &Path) -> (u64, u64) {
    let Ok(entries) = std::fs::read_dir(folder) else { return (0, 0) };
    let sizes = entries.flatten().map(|entry| match entry.metadata() {
        // A link is counted where it leads from, so that a circle ends.
        Ok(meta) if meta.is_dir() => measure(&entry.path()),
        Ok(meta) if meta.is_file() => (1, meta.len()),
        _ => (0, 0),
    });
    sizes.fold((0, 0), |(files, bytes), (more, size)| (files + more, bytes + size))
}
