//! `bindery doctor`: what is installed, which versions, what has drifted, what to do; with a model,
//! what its server can do.

mod checks;

mod model;

mod probe;

mod probes;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;

use crate::failure::Hinted;
use crate::global_flags::CommandSettings;
use crate::model_server::ServerFlags;
use crate::server::WhichCodex;
use crate::terminal::Style;
use crate::view::clean::visible;
use crate::view::theme::Theme;

/// Check what Bindery needs and say what to do
///
/// Exits with 1 if anything keeps Bindery from working; warnings do not. With `--model` that model
/// is tried instead, in a short conversation: exits with 1 if it cannot answer or call tools.
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// Try this model, through the code that turns use
    #[arg(long, short, value_name = "NAME", conflicts_with = "codex")]
    model: Option<String>,

    /// How long each part of the conversation may take
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "model")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    timeout: u64,

    #[command(flatten)]
    server: ServerFlags,

    /// Write the findings as JSON
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    codex: WhichCodex,
}

/// What one check found.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    /// What was looked at.
    name: &'static str,
    /// How it is.
    status: Status,
    /// In words.
    text: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Warning,
    Error,
}

impl Finding {
    fn new(name: &'static str, status: Status, text: impl Into<String>) -> Self {
        Self { name, status, text: text.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl Doctor {
    /// The settings that go with a model; none without one.
    pub(super) fn settings(&mut self) -> Option<CommandSettings<'_>> {
        self.model.as_ref()?;
        Some(self.server.settings())
    }

    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(model) = &self.model {
            let limit = Duration::from_secs(self.timeout);
            return model::try_model(&self.server, model, limit, self.json).await;
        }
        if self.server.is_given() {
            let message = "`--provider`, `--profile` and `--config` go with `--model`";
            return Err(Hinted::misuse(message, "name a model with `--model NAME`"));
        }
        let findings = checks::all(&self.codex).await;
        let failed = findings.iter().any(|finding| finding.status == Status::Error);
        let text = match self.json {
            true => json(&findings, !failed)?,
            false => table(&findings, &Theme::of(&Style::here())),
        };
        std::io::stdout().lock().write_all(text.as_bytes())?;
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn json(findings: &[Finding], ok: bool) -> anyhow::Result<String> {
    let report = serde_json::json!({ "ok": ok, "checks": findings });
    Ok(format!("{}\n", serde_json::to_string_pretty(&report)?))
}

fn table(findings: &[Finding], theme: &Theme) -> String {
    let mut text = String::new();
    for finding in findings {
        let glyph = match finding.status {
            Status::Ok => theme.glyphs.ok,
            Status::Warning => "!",
            Status::Error => theme.glyphs.bad,
        };
        let told = visible(&finding.text).trim_end().replace('\n', "\n            ");
        text.push_str(&format!("{glyph} {:<9} {told}\n", finding.name));
        if let Some(hint) = &finding.hint {
            text.push_str(&format!("            hint: {hint}\n"));
        }
    }
    text.push_str(&closing(findings));
    text
}

fn closing(findings: &[Finding]) -> String {
    let count = |status| findings.iter().filter(|finding| finding.status == status).count();
    let words = |count: usize, word: &str| match count {
        1 => format!("1 {word}"),
        count => format!("{count} {word}s"),
    };
    match (count(Status::Error), count(Status::Warning)) {
        (0, 0) => "all well\n".to_owned(),
        (0, warnings) => format!("{}\n", words(warnings, "warning")),
        (errors, 0) => format!("{}\n", words(errors, "error")),
        (errors, warnings) => {
            format!("{}, {}\n", words(errors, "error"), words(warnings, "warning"))
        }
    }
}
