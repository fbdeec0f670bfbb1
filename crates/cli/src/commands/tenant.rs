//! `bindery tenant`: who may use a server.

mod told;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bindery_daemon::config::{Config, Flags};
use bindery_daemon::error::Error;
use bindery_daemon::serve::{STORE, is_running, make_data, open_store, prepare_folders};
use bindery_daemon::shelf::Shelf;
use bindery_daemon::tenant::{Role, Roles, SettingsFile, TenantSettings, Tenants};

use self::told::Told;
use super::serve::hinted;
use crate::failure::Hinted;

/// Add, list and revoke the users of `bindery serve`
///
/// Works on the data folder, also while a server runs on it: what is revoked is void at once, and
/// settings count from the next request on.
#[derive(Debug, clap::Args)]
pub struct Tenant {
    /// The data folder of the server [default: that of this folder, or the only one there is]
    #[arg(long, value_name = "DIR", global = true)]
    data: Option<PathBuf>,
    /// Settings of the server, as TOML
    #[arg(long, value_name = "FILE", global = true)]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
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
        /// Its limits, policy, webhooks, tools and environment, as TOML
        #[arg(long, value_name = "FILE")]
        settings: Option<PathBuf>,
    },
    /// Change a tenant's settings
    Set {
        /// The tenant
        tenant: String,
        /// Its limits, policy, webhooks, tools and environment, as TOML; what is not named stays
        #[arg(long, value_name = "FILE")]
        settings: PathBuf,
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
        /// What it may be used for; may be given several times [default: run and answer]
        #[arg(long, value_name = "ROLE", value_parser = role)]
        role: Vec<Role>,
        /// Let it see all tenants' questions: the role `admin` besides
        #[arg(long)]
        admin: bool,
    },
    /// Give a token other roles
    Roles {
        /// The token's name, as `bindery tenant list` shows it
        token: String,
        /// What it may be used for; may be given several times
        #[arg(long, value_name = "ROLE", required = true, value_parser = role)]
        role: Vec<Role>,
    },
    /// Remove a tenant: its tokens, threads, turns and uploads, but not its root and Codex home
    Remove {
        /// The tenant
        tenant: String,
        /// Also when it has turns that wait or run; the server must be stopped then
        #[arg(long)]
        force: bool,
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
        let named = flags.data.is_some();
        let mut config = Config::load(self.config.as_deref(), env, flags).map_err(hinted)?;
        config.data = std::path::absolute(&config.data)?;
        match &self.action {
            _ if !named && config.has_usual_data(env) => {
                config.data = store_to_use(config.data, Config::usual_data_with(env, STORE))?;
                let told = format!("using the server's data in {}\n", config.data.display());
                std::io::stderr().write_all(told.as_bytes())?;
            }
            Action::Add { .. } => make_data(&config.data).map_err(hinted)?,
            _ => must_be_there(&config.data)?,
        }
        let store = open_store(&config).map_err(hinted)?;
        let told = act(&config.data, &Tenants::new(store.clone()), self.action).await;
        store.close().await.map_err(|err| hinted(err.into()))?;
        let text = if self.json { format!("{}\n", told?.json()) } else { told?.text() };
        std::io::stdout().write_all(text.as_bytes())?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The data folder when nobody names one: that of the current folder if a server has used it, else
/// the only one that there is, or the only one that a server uses now. A new one would be of no
/// server at all.
fn store_to_use(usual: PathBuf, others: Vec<PathBuf>) -> anyhow::Result<PathBuf> {
    if usual.join(STORE).exists() {
        return Ok(usual);
    }
    let running: Vec<&PathBuf> = others.iter().filter(|data| is_running(data)).collect();
    let message = match (&others[..], &running[..]) {
        ([only], _) => return Ok(only.clone()),
        (_, [only]) => return Ok((*only).clone()),
        ([], _) => "no server has kept anything yet".to_owned(),
        (several, _) => {
            let several = several.iter().map(|data| format!("\n  {}", data.display()));
            format!("there are data of several servers:{}", several.collect::<String>())
        }
    };
    let hint = "name the data folder with `--data DIR` or `--config FILE`".to_owned();
    Err(Hinted { message, hint, misuse: false }.into())
}

/// A data folder that is misspelt must not come to be.
fn must_be_there(data: &Path) -> anyhow::Result<()> {
    if data.join(STORE).exists() {
        return Ok(());
    }
    let message = format!("no server has kept anything in `{}`", data.display());
    let hint = "name its data folder with `--data DIR` or `--config FILE`".to_owned();
    Err(Hinted { message, hint, misuse: false }.into())
}

async fn act(data: &Path, tenants: &Tenants, action: Action) -> anyhow::Result<Told> {
    match action {
        Action::Add { name, codex_home, root, full_access, allow_config, settings } => {
            let own = data.join("tenants").join(&name);
            let home = codex_home.unwrap_or_else(|| own.join("codex"));
            let root = root.unwrap_or_else(|| own.join("work"));
            let mut new =
                TenantSettings::new(std::path::absolute(home)?, std::path::absolute(root)?);
            take(settings.as_deref(), &mut new)?;
            new.policy.full_access |= full_access;
            new.policy.config |= allow_config;
            tenants.check_new(&name).await.map_err(hinted)?;
            prepare_folders(&new).map_err(hinted)?;
            let tenant = tenants.add(&name, new).await.map_err(hinted)?;
            let token =
                tenants.token(&tenant, "first token", Roles::usual()).await.map_err(hinted)?;
            Ok(Told::Added { tenant: Box::new(tenant), token })
        }
        Action::Set { tenant, settings } => {
            let mut tenant = tenants.find(&tenant).await.map_err(hinted)?;
            take(Some(&settings), &mut tenant.settings)?;
            prepare_folders(&tenant.settings).map_err(hinted)?;
            tenants.set(&tenant).await.map_err(hinted)?;
            Ok(Told::Set(Box::new(tenant)))
        }
        Action::List => {
            let mut all = Vec::new();
            for tenant in tenants.list().await.map_err(hinted)? {
                let tokens = tenants.tokens(&tenant).await.map_err(hinted)?;
                all.push((tenant, tokens));
            }
            Ok(Told::List(all))
        }
        Action::Token { tenant, name, role, admin } => {
            let tenant = tenants.find(&tenant).await.map_err(hinted)?;
            let usual = [Role::Run, Role::Answer].into_iter().filter(|_| role.is_empty());
            let admin = admin.then_some(Role::Admin);
            let roles = Roles::new(usual.chain(role.iter().copied()).chain(admin));
            let token = tenants.token(&tenant, &name, roles).await.map_err(hinted)?;
            Ok(Told::Token { tenant: tenant.name, token })
        }
        Action::Roles { token, role } => {
            let roles = Roles::new(role);
            tenants.set_roles(&token, roles.clone()).await.map_err(hinted)?;
            Ok(Told::Roles { token, roles })
        }
        Action::Remove { tenant, force } => {
            let tenant = tenants.find(&tenant).await.map_err(hinted)?;
            remove(data, tenants, &tenant, force).await?;
            Ok(Told::Removed(Box::new(tenant)))
        }
        Action::Revoke { token } => {
            tenants.revoke(&token).await.map_err(hinted)?;
            Ok(Told::Revoked(token))
        }
    }
}

/// Removes what the server keeps of a tenant. Turns that run are in the hands of a server while one
/// runs, and would go on without a tenant.
async fn remove(
    data: &Path,
    tenants: &Tenants,
    tenant: &bindery_daemon::tenant::Tenant,
    force: bool,
) -> anyhow::Result<()> {
    let running = is_running(data);
    match tenants.remove(tenant, force && !running).await {
        Err(Error::Conflict { message, .. }) if force && running => {
            let message = format!("{message}, and a server runs on this data folder");
            let hint = "stop the server first, or wait for the turns".to_owned();
            return Err(Hinted { message, hint, misuse: false }.into());
        }
        removed => removed.map_err(hinted)?,
    }
    let uploads = Shelf::new(data, &tenant.id).folder().to_owned();
    for folder in
        [uploads, data.join("homes").join(&tenant.id), data.join("temporary").join(&tenant.id)]
    {
        match std::fs::remove_dir_all(&folder) {
            Err(err) if err.kind() != std::io::ErrorKind::NotFound => {
                return Err(hinted(Error::io(&folder, err)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Reads a role, with the others to choose from when it is none.
fn role(word: &str) -> Result<Role, String> {
    word.parse()
}

fn take(file: Option<&Path>, settings: &mut TenantSettings) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    SettingsFile::read(file).and_then(|file| file.apply(settings)).map_err(hinted)
}
