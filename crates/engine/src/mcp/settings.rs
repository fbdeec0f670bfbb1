//! `[mcp_servers.*]` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toml::Value;

use crate::config::Home;
use crate::tls;

/// How long a server may take to start, unless it says otherwise.
const STARTUP: f64 = 10.0;

/// How long a call may take, unless the server says otherwise.
const CALL: f64 = 60.0;

/// What of the environment a server gets without being asked. Keys are not among it.
const INHERITED: [&str; 14] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
];

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    /// Its name in the configuration.
    pub name: String,
    /// Whether it is to be started at all.
    pub enabled: bool,
    /// How it is reached.
    pub way: Way,
    /// How long it may take to start.
    pub startup_timeout: Duration,
    /// How long a call may take.
    pub tool_timeout: Duration,
    /// The only tools that are offered; none for all.
    pub enabled_tools: Option<Vec<String>>,
    /// Tools that are not offered.
    pub disabled_tools: Vec<String>,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
pub enum Way {
    /// As a process of ours.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its whole environment.
        env: BTreeMap<String, String>,
        /// Where it runs; none for the thread's folder.
        cwd: Option<PathBuf>,
    },
    /// Over HTTP.
    Http {
        /// Its address.
        url: String,
        /// Headers of every request, the key's among them.
        headers: BTreeMap<String, String>,
        /// A file with authorities to trust besides the system's, in PEM.
        authority: Option<PathBuf>,
    },
}

/// Keys stand in environments and headers.
impl std::fmt::Debug for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, what) = match self {
            Self::Stdio { command, .. } => ("Stdio", command),
            Self::Http { url, .. } => ("Http", url),
        };
        f.debug_tuple(kind).field(what).finish()
    }
}

#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    env_vars: Vec<String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    bearer_token_env_var: Option<String>,
    #[serde(default)]
    http_headers: BTreeMap<String, String>,
    #[serde(default)]
    env_http_headers: BTreeMap<String, String>,
    enabled: Option<bool>,
    startup_timeout_sec: Option<f64>,
    startup_timeout_ms: Option<f64>,
    tool_timeout_sec: Option<f64>,
    enabled_tools: Option<Vec<String>>,
    #[serde(default)]
    disabled_tools: Vec<String>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

/// Reads the servers, those that are switched off too, and what is wrong with some: one that
/// cannot be read is left out, and the thread goes on without it.
pub fn read(servers: &BTreeMap<String, Value>, home: &Home) -> (Vec<ServerSettings>, Vec<String>) {
    let (mut read, mut notices) = (Vec::new(), Vec::new());
    for (name, table) in servers {
        match one(name, table, home, &mut notices) {
            Ok(settings) => read.push(settings),
            Err(why) => notices.push(format!("mcp_servers.{name} is left out: {why}")),
        }
    }
    (read, notices)
}

fn one(
    name: &str,
    table: &Value,
    home: &Home,
    notices: &mut Vec<String>,
) -> Result<ServerSettings, String> {
    let entry: Entry = table.clone().try_into().map_err(|err: toml::de::Error| err.to_string())?;
    for key in entry.other.keys() {
        notices.push(format!("mcp_servers.{name}.{key} is not known to the engine"));
    }
    let startup = entry.startup_timeout_ms.map(|ms| ms / 1000.0);
    let startup = entry.startup_timeout_sec.or(startup).unwrap_or(STARTUP);
    Ok(ServerSettings {
        name: name.to_owned(),
        enabled: entry.enabled.unwrap_or(true),
        startup_timeout: seconds(startup)?,
        tool_timeout: seconds(entry.tool_timeout_sec.unwrap_or(CALL))?,
        enabled_tools: entry.enabled_tools.clone(),
        disabled_tools: entry.disabled_tools.clone(),
        way: entry.way(home)?,
    })
}

fn seconds(number: f64) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(number).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| format!("a time of {number} s cannot be waited"))
}

impl Entry {
    fn way(self, home: &Home) -> Result<Way, String> {
        let variable = |name: &str| home.variable(name).map(str::to_owned);
        match (self.command, self.url) {
            (Some(command), None) => {
                let named = self.env_vars.iter().map(String::as_str);
                let inherited = INHERITED.into_iter().chain(named);
                let inherited = inherited.filter_map(|key| Some((key.to_owned(), variable(key)?)));
                let env = inherited.chain(self.env).collect();
                Ok(Way::Stdio { command, args: self.args, env, cwd: self.cwd })
            }
            (None, Some(url)) => {
                let mut headers = self.http_headers;
                for (header, key) in self.env_http_headers {
                    headers.extend(variable(&key).map(|value| (header, value)));
                }
                if let Some(key) = self.bearer_token_env_var {
                    let token = variable(&key).ok_or(format!("`{key}` is not set"))?;
                    headers.insert("authorization".to_owned(), format!("Bearer {token}"));
                }
                Ok(Way::Http { url, headers, authority: tls::authority(home) })
            }
            (None, None) => Err("it has neither `command` nor `url`".to_owned()),
            (Some(_), Some(_)) => Err("it has both `command` and `url`".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_toml(text: &str) -> (Vec<ServerSettings>, Vec<String>) {
        let table: BTreeMap<String, Value> = toml::from_str(text).expect("TOML");
        let variables = [("HOME", "/h"), ("KEY", "secret"), ("OPENAI_API_KEY", "sk")];
        let variables = variables.map(|(key, value)| (key.to_owned(), value.to_owned()));
        read(&table, &Home::of(variables.into()).expect("a home"))
    }

    #[test]
    fn servers_are_read_with_their_defaults() {
        let (servers, notices) = read_toml(
            "[a]\ncommand = 'x'\nargs = ['y']\nenv = { B = 'c' }\nenv_vars = ['KEY']\n\
             [b]\nurl = 'http://h/'\nbearer_token_env_var = 'KEY'\ntool_timeout_sec = 0.5\n\
             [c]\ncommand = 'z'\nenabled = false",
        );
        assert_eq!(notices, Vec::<String>::new());
        let [a, b, c] = servers.as_slice() else { panic!("{servers:?}") };
        assert_eq!([a.enabled, b.enabled, c.enabled], [true, true, false]);
        let times = (a.startup_timeout.as_secs(), a.tool_timeout.as_secs());
        assert_eq!((times, b.tool_timeout.as_millis()), ((10, 60), 500));
        let Way::Stdio { env, .. } = &a.way else { panic!("{a:?}") };
        let keys: Vec<&str> = env.keys().map(String::as_str).collect();
        assert_eq!(keys, ["B", "HOME", "KEY"], "keys are given only by name");
        let Way::Http { headers, .. } = &b.way else { panic!("{b:?}") };
        assert_eq!(headers["authorization"], "Bearer secret");
        assert!(!format!("{servers:?}").contains("secret"));
    }

    #[test]
    fn what_cannot_be_read_is_left_out_and_told() {
        let (servers, notices) = read_toml(
            "a = 5\n[b]\n[c]\ncommand = 'x'\nurl = 'y'\n[d]\nurl = 'y'\n\
             bearer_token_env_var = 'NOPE'\n[e]\ncommand = 'x'\ntool_timeout_sec = -1\n\
             [f]\ncommand = 'x'\nmystery = 1",
        );
        assert_eq!(servers.len(), 1);
        assert_eq!(notices.len(), 6, "{notices:#?}");
        assert_eq!(notices[5], "mcp_servers.f.mystery is not known to the engine");
    }
}
