//! `bindery models`: what the configured server offers, and what the engine makes of it.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use bindery::engine::config::{Config, WireApi};
use bindery::engine::server_models::{Detail, ServerModel, ServerModels, list_models};
use bindery::engine::service::house::model_provider;
use serde_json::json;

use crate::failure::Hinted;
use crate::model_server::{ServerFlags, list_hint, shown_address, wire_name};
use crate::view::clean::visible;
use crate::view::wording::count;

/// List the models that the configured server offers
///
/// With the context window that the server reports, and what the engine assumes where that differs.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Models {
    #[command(flatten)]
    pub(super) server: ServerFlags,

    /// Write them as JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  bindery models --provider ollama
  bindery models --provider ollama --json";

/// The server has this long for all its answers.
const LIMIT: Duration = Duration::from_secs(20);

/// A model of the server's beside what the engine knows of it.
struct Row {
    model: ServerModel,
    /// What the engine assumes.
    assumed: u64,
    /// It is the model in force.
    in_force: bool,
}

impl Models {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let (config, model) = self.server.load_server()?;
        if config.provider.wire_api == WireApi::Demo {
            let message = "the demo model is in force, which has no server";
            let hint = "name a server with `--provider NAME`, such as `ollama`";
            return Err(Hinted::misuse(message, hint));
        }
        let found = list_models(&model_provider(&config), Detail::Everything, LIMIT).await;
        let found = found.map_err(|error| {
            let hint = list_hint(error.fault, &config.provider);
            Hinted { message: error.message, hint, misuse: false }
        })?;
        let listing = Listing::new(&config, model, found);
        let text = if self.json { listing.json()? } else { listing.table() };
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

struct Listing<'a> {
    config: &'a Config,
    rows: Vec<Row>,
    notes: Vec<String>,
}

impl<'a> Listing<'a> {
    fn new(config: &'a Config, in_force: Option<String>, found: ServerModels) -> Self {
        let row = |model: ServerModel| Row {
            assumed: config.entry_of(&model.id).context_window,
            in_force: Some(&model.id) == in_force.as_ref(),
            model,
        };
        let rows: Vec<Row> = found.models.into_iter().map(row).collect();
        let mut notes = found.notes;
        if rows.is_empty() {
            notes.push("the server offers no model".to_owned());
        } else if let Some(name) = in_force.filter(|_| !rows.iter().any(|row| row.in_force)) {
            notes.push(format!("the model in force, `{name}`, is not among them"));
        }
        Self { config, rows, notes }
    }

    fn table(&self) -> String {
        let provider = &self.config.provider;
        let mut text = format!("{} at {}\n", provider.name, shown_address(provider));
        let longest = |cell: fn(&Row) -> String| {
            self.rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or_default()
        };
        let (names, windows) = (longest(Row::name), longest(Row::window));
        for row in &self.rows {
            let mark = if row.in_force { '*' } else { ' ' };
            let line = format!(
                "{mark} {:<names$}  {:>windows$}  {}",
                row.name(),
                row.window(),
                row.remarks().join(", ")
            );
            text.push_str(&format!("{}\n", line.trim_end()));
        }
        self.notes.iter().for_each(|note| text.push_str(&format!("note: {}\n", visible(note))));
        if let Some(row) = self.rows.iter().find(|row| row.is_too_small()) {
            text.push_str(&row.hint());
        }
        text
    }

    fn json(&self) -> anyhow::Result<String> {
        let rows = self.rows.iter().map(|row| {
            json!({
                "id": row.model.id,
                "in_force": row.in_force,
                "context_window": row.model.context_window,
                "max_context_window": row.model.max_context_window,
                "assumed_context_window": row.assumed,
                "images": row.model.images,
                "tools": row.model.tools,
                "chat": row.model.chat,
                "loaded": row.model.loaded,
            })
        });
        let provider = &self.config.provider;
        let report = json!({
            "provider": provider.id,
            "base_url": shown_address(provider),
            "wire_api": wire_name(provider.wire_api),
            "models": rows.collect::<Vec<_>>(),
            "notes": self.notes,
        });
        Ok(format!("{}\n", serde_json::to_string_pretty(&report)?))
    }
}

impl Row {
    fn name(&self) -> String {
        visible(&self.model.id).into_owned()
    }

    fn window(&self) -> String {
        self.model.context_window.map_or("?".to_owned(), count)
    }

    /// The server cuts or refuses what the engine thinks that it takes.
    fn is_too_small(&self) -> bool {
        let answers = self.model.chat != Some(false);
        answers && self.model.context_window.is_some_and(|window| window < self.assumed)
    }

    fn remarks(&self) -> Vec<String> {
        let model = &self.model;
        let mut remarks = Vec::new();
        if model.chat == Some(false) {
            return vec!["does not chat".to_owned()];
        }
        if model.context_window != Some(self.assumed) {
            remarks.push(format!("the engine assumes {}", count(self.assumed)));
        }
        let most = model.max_context_window.filter(|most| Some(*most) != model.context_window);
        remarks.extend(most.map(|most| format!("up to {}", count(most))));
        remarks.extend((model.loaded == Some(true)).then(|| "loaded".to_owned()));
        remarks.extend((model.images == Some(true)).then(|| "images".to_owned()));
        remarks.extend((model.tools == Some(false)).then(|| "no tools".to_owned()));
        remarks
    }

    fn hint(&self) -> String {
        let window = self.model.context_window.unwrap_or_default();
        format!(
            "hint: a window that is smaller than assumed is overrun; with `{}` set \
             `model_context_window = {window}`\n",
            self.name()
        )
    }
}
