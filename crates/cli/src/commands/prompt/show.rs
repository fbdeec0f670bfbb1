//! `bindery prompt show`.

use std::io::Write;
use std::path::Path;

use bindery::engine::config::{Config, Home, WireApi};
use bindery::engine::item::{Message, Role};
use bindery::engine::prompt::ledger::{self, Block};
use bindery::engine::prompt::{Context, Mode, ThreadScene, base, custom, git};
use serde_json::{Value, json};

use super::settings::Settings;
use crate::terminal::Style;
use crate::view::clean::visible;
use crate::view::theme::Theme;
use crate::view::wording::count;

/// Show what would be sent first, block by block, with its source and size
///
/// Tokens are estimated at four bytes each.
#[derive(Debug, clap::Args)]
pub(super) struct Show {
    /// What you would say; `/prompts:NAME …` is filled in
    prompt: Option<String>,

    #[command(flatten)]
    settings: Settings,

    /// Print the texts, too
    #[arg(long)]
    full: bool,

    /// Wait for git to count changes, up to 5 seconds, however large the repository
    #[arg(long)]
    wait_for_git: bool,

    /// Write JSON; with `--full`, the texts are in it
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(super) fn run(self, out: &mut dyn Write, err: &mut dyn Write) -> anyhow::Result<()> {
        let home = Home::here()?;
        let config = self.settings.load(&home)?;
        let mut scene = ThreadScene::here(&config);
        if self.wait_for_git && scene.git_limit.is_some() {
            scene.git_limit = Some(git::LIMIT);
        }
        let said = self.prompt.as_deref().map(|text| said(&home, text)).transpose()?;
        let base = base::chosen(&config, &config.entry, Mode::Agent)?;
        let context = Context::gather(&config, &scene);
        let placement = config.entry.placement_on(config.provider.wire_api);
        let blocks = ledger::blocks(&base, placement, &context, said.as_ref());
        if self.json {
            let json = as_json(&config, &blocks, self.full);
            writeln!(out, "{}", serde_json::to_string_pretty(&json)?)?;
            return Ok(());
        }
        let page = Page { config: &config, blocks: &blocks, theme: Theme::of(&Style::here()) };
        out.write_all(page.table().as_bytes())?;
        if self.full {
            out.write_all(page.texts().as_bytes())?;
        }
        for notice in config.notices.iter().chain(&config.aside()) {
            writeln!(err, "note: {}", visible(notice))?;
        }
        Ok(())
    }
}

fn said(home: &Home, text: &str) -> anyhow::Result<Message> {
    let prompts = custom::list(&custom::folder(&home.codex));
    let filled = custom::expand(text, &prompts)?;
    Ok(Message::text(Role::User, filled.unwrap_or_else(|| text.to_owned())))
}

fn as_json(config: &Config, blocks: &[Block], full: bool) -> Value {
    let block = |block: &Block| {
        let mut json = json!(block);
        if let Some(fields) = json.as_object_mut().filter(|_| !full) {
            fields.remove("text");
        }
        json
    };
    json!({
        "model": config.model,
        "known_model": config.entry.known,
        "provider": config.provider.id,
        "wire_api": config.provider.wire_api,
        "placement": config.entry.placement_on(config.provider.wire_api),
        "context_window": config.entry.context_window,
        "cwd": config.cwd,
        "blocks": blocks.iter().map(block).collect::<Vec<_>>(),
        "bytes": blocks.iter().map(|block| block.bytes).sum::<usize>(),
        "tokens": blocks.iter().map(|block| block.tokens).sum::<u64>(),
        "notices": config.notices.iter().chain(&config.aside()).collect::<Vec<_>>(),
    })
}

/// The page for people.
struct Page<'a> {
    config: &'a Config,
    blocks: &'a [Block],
    theme: Theme,
}

/// Columns before the source.
const BEFORE: usize = 58;

impl Page<'_> {
    fn table(&self) -> String {
        let mut text = format!("{}\n", self.heading());
        let columns = ("role", "block", "bytes", "tokens", "source");
        text.push_str(&row(columns.0, columns.1, columns.2, columns.3, columns.4));
        for block in self.blocks {
            let sources = self.sources(block);
            let (bytes, tokens) = (count(block.bytes as u64), count(block.tokens));
            text.push_str(&row(block.role, &block.name, &bytes, &tokens, &sources));
        }
        let bytes: usize = self.blocks.iter().map(|block| block.bytes).sum();
        let tokens: u64 = self.blocks.iter().map(|block| block.tokens).sum();
        let window = self.config.entry.context_window.max(1);
        let share = format!("{:.1} % of the window", tokens as f64 * 100.0 / window as f64);
        text + &row("total", "", &count(bytes as u64), &count(tokens), &share)
    }

    fn heading(&self) -> String {
        let config = self.config;
        let wire = match config.provider.wire_api {
            WireApi::Responses => "responses",
            WireApi::Chat => "chat",
            WireApi::Demo => "demo",
        };
        let placement = config.entry.placement_on(config.provider.wire_api);
        let facts = [
            config.model.clone(),
            format!("{} ({wire})", config.provider.name),
            format!("window {}", count(config.entry.context_window)),
            self.short(&config.cwd),
        ];
        let place = ledger::place(placement, config.provider.wire_api);
        format!("{}\nbase prompt: {place}\n", visible(&self.theme.facts(&facts)))
    }

    /// Files below each other, or what stands for them.
    fn sources(&self, block: &Block) -> String {
        let built_in = match block.name.as_str() {
            "base prompt" => "built in",
            "permissions" | "developer instructions" => "settings",
            "your prompt" => "the command line",
            _ => "this machine",
        };
        let files = block.sources.iter().map(|path| self.short(path)).collect::<Vec<_>>();
        match files.is_empty() {
            true => built_in.to_owned(),
            false => files.join(&format!("\n{:BEFORE$}", "")),
        }
    }

    /// A path as people write it.
    fn short(&self, path: &Path) -> String {
        let home = self.config.home.variable("HOME").map(Path::new);
        let below = home.and_then(|home| path.strip_prefix(home).ok());
        match below {
            Some(below) if below.as_os_str().is_empty() => "~".to_owned(),
            Some(below) => format!("~/{}", below.display()),
            None => path.display().to_string(),
        }
    }

    fn texts(&self) -> String {
        let dot = self.theme.glyphs.dot;
        let text = |block: &Block| {
            format!("\n--- {} {dot} {} ---\n{}\n", block.role, block.name, visible(&block.text))
        };
        self.blocks.iter().map(text).collect()
    }
}

fn row(role: &str, block: &str, bytes: &str, tokens: &str, source: &str) -> String {
    let source = visible(source);
    format!("  {role:<12}  {block:<22}  {bytes:>7}  {tokens:>7}  {source}\n")
}
