//! `bindery doctor --model`: a short conversation with a model, and what to set where it fails.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use bindery::engine::config::{Config, WireApi};
use serde_json::json;

use super::probe::Respondent;
use super::probes::{Probe, ProbeStatus, Probes};
use crate::failure::Hinted;
use crate::model_server::{ServerFlags, shown_address, wire_name};
use crate::terminal::Style;
use crate::view::clean::visible;
use crate::view::theme::Theme;
use crate::view::wording::duration;

/// Tries a model and tells what works.
pub(super) async fn try_model(
    server: &ServerFlags,
    model: &str,
    limit: Duration,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let config = server.load(Some(model))?;
    if config.provider.wire_api == WireApi::Demo {
        let message = "the demo model has no server that could be tried";
        return Err(Hinted::misuse(message, "name a server with `--provider NAME`"));
    }
    let respondent = Respondent::new(&config, limit);
    let probes = Probes::run(&config, &respondent).await;
    let is_broken = probes.iter().any(|probe| probe.needed && probe.status == ProbeStatus::Error);
    let text = match as_json {
        true => json(&config, &probes, !is_broken)?,
        false => table(&config, &probes, &Theme::of(&Style::here())),
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(if is_broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn json(config: &Config, probes: &[Probe], ok: bool) -> anyhow::Result<String> {
    let report = json!({
        "ok": ok,
        "model": config.model,
        "provider": config.provider.id,
        "base_url": shown_address(&config.provider),
        "wire_api": wire_name(config.provider.wire_api),
        "checks": probes,
    });
    Ok(format!("{}\n", serde_json::to_string_pretty(&report)?))
}

fn table(config: &Config, probes: &[Probe], theme: &Theme) -> String {
    let provider = &config.provider;
    let mut text = format!(
        "{} of {} at {}, {} wire\n",
        visible(&config.model),
        provider.name,
        shown_address(provider),
        wire_name(provider.wire_api)
    );
    let width = probes.iter().map(|probe| probe.name.len()).max().unwrap_or_default();
    let indent = " ".repeat(width + 4);
    for probe in probes {
        let glyph = match probe.status {
            ProbeStatus::Ok => theme.glyphs.ok,
            ProbeStatus::Warning => "!",
            ProbeStatus::Error => theme.glyphs.bad,
            ProbeStatus::Skipped => "-",
        };
        let told = visible(&probe.text).trim_end().replace('\n', &format!("\n{indent}"));
        let broken = if probe.status == ProbeStatus::Error { "does not work: " } else { "" };
        let time = probe.ms.map(|ms| format!("   {}", duration(ms))).unwrap_or_default();
        text.push_str(&format!("{glyph} {:<width$}  {broken}{told}{time}\n", probe.name));
        if let Some(hint) = &probe.hint {
            text.push_str(&format!("{indent}hint: {}\n", visible(hint)));
        }
    }
    text.push_str(&closing(probes));
    text
}

fn closing(probes: &[Probe]) -> String {
    let of = |status| probes.iter().filter(move |probe| probe.status == status);
    let broken: Vec<&str> = of(ProbeStatus::Error).map(|probe| probe.name).collect();
    match (broken.is_empty(), of(ProbeStatus::Warning).count()) {
        (true, 0) => "all well\n".to_owned(),
        (true, 1) => "1 warning\n".to_owned(),
        (true, warnings) => format!("{warnings} warnings\n"),
        (false, _) => format!("does not work: {}\n", broken.join(", ")),
    }
}
