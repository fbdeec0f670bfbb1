//! Which Codex is at the other end, and whether we can speak to it.

use std::fmt;

use crate::error::Error;

/// A version of Codex; a pre-release counts as its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// `0` so far.
    pub major: u32,
    /// Grows with every release.
    pub minor: u32,
    /// Fixes.
    pub patch: u32,
}

/// The oldest Codex that was seen to run a turn of text and to take a history.
///
/// Not that all works there: only 0.166 passes every test. 0.120 and older have no
/// `thread/inject_items`, and a labelled transcript takes its place. 0.130 counts the tokens of a
/// resumed thread's earlier turns again. Before 0.166 steering does not cut a running answer.
pub const OLDEST: Version = Version { major: 0, minor: 100, patch: 0 };

impl Version {
    /// Reads the version out of a user agent: `<client>/0.166.0 (…)`.
    ///
    /// Codex tells its version nowhere else.
    pub fn from_user_agent(agent: &str) -> Option<Self> {
        agent.split_whitespace().find_map(|word| Self::parse(word.rsplit_once('/')?.1))
    }

    /// Reads `0.166.0`, `v0.166.0` or `0.166.0-alpha.3`.
    pub fn parse(text: &str) -> Option<Self> {
        let release = text.trim().trim_start_matches('v').split(['-', '+']).next()?;
        let mut numbers = release.split('.').map(|number| number.parse().ok());
        let version =
            Self { major: numbers.next()??, minor: numbers.next()??, patch: numbers.next()?? };
        numbers.next().is_none().then_some(version)
    }

    /// An error for one that is too old.
    pub fn check(self) -> Result<(), Error> {
        if self >= OLDEST {
            return Ok(());
        }
        Err(Error::TooOld { found: self.to_string(), needed: OLDEST.to_string() })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_out_of_the_user_agent() {
        #[rustfmt::skip]
        let table = [
            ("probe/0.166.0 (Debian 12.0.0; x86_64) xterm (probe; 0.1.0)", Some("0.166.0")),
            ("my app/0.98.2-alpha.1 (Mac OS 15.1; arm64)",                 Some("0.98.2")),
            ("a/b/1.2.3 (x)",                                               Some("1.2.3")),
            ("nothing here",                                                None),
            ("x/1.2 (y)",                                                   None),
        ];
        for (agent, want) in table {
            let found = Version::from_user_agent(agent).map(|version| version.to_string());
            assert_eq!(found.as_deref(), want, "{agent}");
        }
    }
}
