//! What makes two workers interchangeable.

use std::sync::Arc;

use crate::transport::stdio::Launch;

/// A program with its arguments, folder and environment (`CODEX_HOME` included), compared as a
/// whole: users who differ in any of it never share a worker.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WorkerKey(Arc<Launch>);

impl WorkerKey {
    /// How to start such a worker.
    pub fn launch(&self) -> &Launch {
        &self.0
    }
}

impl From<Launch> for WorkerKey {
    /// Puts the environment in order, so that the same variables are the same key.
    fn from(mut launch: Launch) -> Self {
        // Stable, and the last of a name wins as it does when a process is started.
        launch.env.sort_by(|a, b| a.0.cmp(&b.0));
        launch.env.reverse();
        launch.env.dedup_by(|later, kept| later.0 == kept.0);
        launch.env.reverse();
        let set = |name: &std::ffi::OsString| launch.env.iter().any(|(known, _)| known == name);
        launch.env_remove.retain(|name| !set(name));
        launch.env_remove.sort();
        launch.env_remove.dedup();
        Self(Arc::new(launch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(env: &[(&str, &str)], remove: &[&str]) -> WorkerKey {
        let mut launch = Launch::new("codex");
        launch.env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        launch.env_remove = remove.iter().map(Into::into).collect();
        launch.into()
    }

    #[test]
    fn order_and_repetition_do_not_count() {
        let plain = key(&[("A", "1"), ("B", "2")], &[]);
        assert_eq!(plain, key(&[("B", "2"), ("A", "1")], &[]));
        assert_eq!(plain, key(&[("A", "0"), ("B", "2"), ("A", "1")], &["A"]));
        assert_eq!(key(&[], &["X", "Y"]), key(&[], &["Y", "X", "Y"]));
    }

    #[test]
    fn any_other_difference_does() {
        let plain = key(&[("CODEX_HOME", "/a")], &[]);
        assert_ne!(plain, key(&[("CODEX_HOME", "/b")], &[]));
        assert_ne!(plain, key(&[("CODEX_HOME", "/a")], &["PATH"]));
        let mut launch = plain.launch().clone();
        launch.args.push("--strict".into());
        assert_ne!(plain, launch.into());
    }
}
