//! `bindery tenant`: who may use a server.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use bindery_daemon::config::{Config, Flags};
use bindery_daemon::serve::{make_data, open_store};
use bindery_daemon::tenant::{TenantSettings, Tenants};

use super::serve::hinted;

/// Add, list and revoke the users of `bindery serve`
///
/// Works on the data folder, also while a server runs on it: what is revoked is void at once.
#[derive(Debug, clap::Args)]
pub struct Tenant {
    /// The data folder of the server [default: bindery-data]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Settings of the server, as TOML
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add a tenant and print a token for it
    Add {
        /// Its name
        name: String,
        /// The home of its Codex [default: a folder of its own among the data]
        #[arg(long, value_name = "DIR")]
        codex_home: Option<PathBuf>,
        /// The folder its threads work in [default: a folder of its own among the data]
        #[arg(long, value_name = "DIR")]
        root: Option<PathBuf>,
        /// Let it run commands outside the sandbox
        #[arg(long)]
        full_access: bool,
        /// Let it override Codex's settings
        #[arg(long)]
        allow_config: bool,
    },
    /// List tenants and their tokens
    List,
    /// Make another token and print it
    Token {
        /// The tenant
        tenant: String,
        /// What it is for
        #[arg(long, default_value = "made by hand")]
        name: String,
        /// Let it see all tenants' questions
        #[arg(long)]
        admin: bool,
    },
    /// Make a token void
    Revoke {
        /// The token's name, as `bindery tenant list` shows it
        token: String,
    },
}

impl Tenant {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let flags = Flags { data: self.data, ..Flags::default() };
        let env = |name: &str| std::env::var(name).ok();
        let mut config = Config::load(self.config.as_deref(), env, flags).map_err(hinted)?;
        config.data = std::path::absolute(&config.data)?;
        make_data(&config.data).map_err(hinted)?;
        let store = open_store(&config).map_err(hinted)?;
        let text = act(&config, &Tenants::new(store.clone()), self.action).await;
        store.close().await.map_err(|err| hinted(err.into()))?;
        std::io::stdout().write_all(text?.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

async fn act(config: &Config, tenants: &Tenants, action: Action) -> anyhow::Result<String> {
    match action {
        Action::Add { name, codex_home, root, full_access, allow_config } => {
            let own = config.data.join("tenants").join(&name);
            let home = codex_home.unwrap_or_else(|| own.join("codex"));
            let root = root.unwrap_or_else(|| own.join("work"));
            let mut settings =
                TenantSettings::new(std::path::absolute(home)?, std::path::absolute(root)?);
            settings.policy.full_access = full_access;
            settings.policy.config = allow_config;
            let folders = [settings.codex_home.clone(), settings.root.clone()];
            let tenant = tenants.add(&name, settings).await.map_err(hinted)?;
            for folder in folders {
                make_data(&folder).map_err(hinted)?;
            }
            let token = tenants.token(&tenant, "first token", false).await.map_err(hinted)?;
            Ok(format!("{token}\n"))
        }
        Action::List => list(tenants).await,
        Action::Token { tenant, name, admin } => {
            let tenant = tenants.find(&tenant).await.map_err(hinted)?;
            let token = tenants.token(&tenant, &name, admin).await.map_err(hinted)?;
            Ok(format!("{token}\n"))
        }
        Action::Revoke { token } => {
            tenants.revoke(&token).await.map_err(hinted)?;
            Ok(format!("revoked {token}\n"))
        }
    }
}

async fn list(tenants: &Tenants) -> anyhow::Result<String> {
    let mut text = String::new();
    for tenant in tenants.list().await.map_err(hinted)? {
        let settings = &tenant.settings;
        text.push_str(&format!(
            "{}  home {}  root {}\n",
            tenant.name,
            settings.codex_home.display(),
            settings.root.display()
        ));
        for token in tenants.tokens(&tenant).await.map_err(hinted)? {
            let admin = if token.admin { "  admin" } else { "" };
            let state = if token.revoked.is_some() { "  revoked" } else { "" };
            text.push_str(&format!("  {}  {}{admin}{state}\n", token.id, token.name));
        }
    }
    Ok(text)
}
