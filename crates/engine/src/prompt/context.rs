//! All blocks of one thread at one moment, in the order a model gets them.

use std::path::PathBuf;
use std::time::Duration;

use super::section::{Section, SectionKind, Snapshot};
use super::{agents_md, environment, git, permissions};
use crate::config::{ApprovalPolicy, Config, SandboxMode, SandboxSettings};
use crate::item::{Content, HistoryItem, Message, Role};

/// What differs from thread to thread, and from turn to turn.
#[derive(Clone, Debug)]
pub struct ThreadScene {
    /// Where commands run.
    pub cwd: PathBuf,
    /// When somebody is asked first.
    pub approval_policy: ApprovalPolicy,
    /// What commands may touch.
    pub sandbox: SandboxSettings,
    /// Words of the application.
    pub developer_instructions: Option<String>,
    /// `YYYY-MM-DD`.
    pub date: String,
    /// The zone's IANA name, where the machine says it.
    pub timezone: Option<String>,
    /// The name of the user's shell.
    pub shell: Option<String>,
    /// How long git may take; none asks it nothing.
    pub git_limit: Option<Duration>,
}

/// How long a turn waits for git: enough for most repositories, unnoticed by people. Where git
/// needs longer, branch and head are told and the counts are not.
pub const GIT_PATIENCE: Duration = Duration::from_millis(15);

impl ThreadScene {
    /// The scene that the settings and this machine give.
    pub fn here(config: &Config) -> Self {
        let now = jiff::Zoned::now();
        // Settings turn git off; so does distrust, for a repository can name programs that git
        // runs to compare files.
        let ask_git = config.git_context && config.trust != crate::config::Trust::Untrusted;
        Self {
            cwd: config.cwd.clone(),
            approval_policy: config.approval_policy.clone(),
            sandbox: config.sandbox.clone(),
            developer_instructions: config.developer_instructions.clone(),
            date: now.date().to_string(),
            timezone: now.time_zone().iana_name().map(str::to_owned),
            shell: Some(environment::shell(&config.home)),
            git_limit: ask_git.then_some(GIT_PATIENCE),
        }
    }

    /// Every folder the workspace is made of: where commands run, then the others.
    pub fn roots(&self) -> Vec<PathBuf> {
        let others = match self.sandbox.mode {
            SandboxMode::WorkspaceWrite => self.sandbox.writable_roots.as_slice(),
            SandboxMode::ReadOnly | SandboxMode::DangerFullAccess => &[],
        };
        let mut roots = vec![self.cwd.clone()];
        for root in others.iter().filter(|root| **root != self.cwd) {
            if !roots.contains(root) {
                roots.push(root.clone());
            }
        }
        roots
    }
}

/// The blocks, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// The blocks that have something to say.
    pub sections: Vec<Section>,
}

impl Context {
    /// Reads the world. It touches files and may run git for as long as the scene allows, so call
    /// it where blocking is allowed.
    pub fn gather(config: &Config, scene: &ThreadScene) -> Self {
        Self::gather_after(config, scene, &Snapshot::default())
    }

    /// The same for a model that was told so much already. Blocks that it knows may lack what would
    /// not be told again.
    pub fn gather_after(config: &Config, scene: &ThreadScene, told: &Snapshot) -> Self {
        let put = || git::Question::put(&scene.cwd, scene.git_limit, told);
        let wanted = config.git_context.then(put);
        let developer = scene.developer_instructions.clone().filter(|text| !text.is_empty());
        let plain = |kind, text| Section { kind, text, sources: Vec::new() };
        let documents = agents_md::gather(config, &scene.cwd);
        let sections = [
            developer.map(|text| plain(SectionKind::DeveloperInstructions, text)),
            Some(plain(SectionKind::Permissions, permissions::text(scene))),
            documents.section(&scene.cwd),
            Some(plain(SectionKind::Environment, environment::text(scene))),
            wanted.flatten().map(git::Question::section),
        ];
        Self { sections: sections.into_iter().flatten().collect() }
    }

    /// What to remember once everything here is told.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.sections)
    }

    /// A block, if it has something to say.
    pub fn section(&self, kind: SectionKind) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind)
    }

    /// The messages a model has yet to be told: everything after [`Snapshot::default`], nothing if
    /// nothing changed.
    pub fn changes_since(&self, told: &Snapshot) -> Vec<HistoryItem> {
        let texts =
            SectionKind::ALL.into_iter().filter_map(|kind| Some((kind, self.news(kind, told)?)));
        let texts: Vec<(SectionKind, String)> = texts.collect();
        let message = |role: Role| {
            let parts = texts.iter().filter(|(kind, _)| kind.role() == role);
            let content: Vec<_> =
                parts.map(|(_, text)| Content::InputText { text: text.clone() }.into()).collect();
            (!content.is_empty())
                .then(|| HistoryItem::from(Message { id: None, role, content, phase: None }))
        };
        [Role::Developer, Role::User].into_iter().filter_map(message).collect()
    }

    /// What is to be told of one kind.
    fn news(&self, kind: SectionKind, told: &Snapshot) -> Option<String> {
        let project = kind == SectionKind::ProjectInstructions;
        match self.section(kind) {
            Some(section) if told.is_current(section) => None,
            Some(section) if project && told.knows(kind) => {
                Some(agents_md::replacing(&section.text))
            }
            Some(section) => Some(section.text.clone()),
            // Other blocks that fall away have nothing to take back.
            None if project && told.knows(kind) => Some(agents_md::withdrawn()),
            None => None,
        }
    }
}
