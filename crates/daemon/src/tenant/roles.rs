//! What a token may be used for.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// One thing that a token may be used for. Each may read what is its tenant's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Start, steer and stop turns, and change threads.
    Run,
    /// Answer the questions of turns.
    Answer,
    /// See what is overall: metrics, the questions of all tenants.
    Admin,
}

impl Role {
    /// All roles.
    pub const ALL: [Self; 3] = [Self::Run, Self::Answer, Self::Admin];

    /// Its word on command lines, in the store and in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Answer => "answer",
            Self::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|role| role.word() == word);
        known.ok_or_else(|| format!("no role is called `{word}`; use `run`, `answer` or `admin`"))
    }
}

/// The roles of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Roles(BTreeSet<Role>);

impl Roles {
    /// These roles.
    pub fn new(roles: impl IntoIterator<Item = Role>) -> Self {
        Self(roles.into_iter().collect())
    }

    /// Those of a token that is made without naming any.
    pub fn usual() -> Self {
        Self::new([Role::Run, Role::Answer])
    }

    /// Whether this one is among them.
    pub fn has(&self, role: Role) -> bool {
        self.0.contains(&role)
    }

    /// There are none, so nothing is allowed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = self.0.iter().map(|role| role.word()).collect();
        f.write_str(&words.join(" "))
    }
}

impl FromStr for Roles {
    type Err = String;

    fn from_str(words: &str) -> Result<Self, String> {
        words.split_whitespace().map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// Who has had a part in a thread: whoever is to approve what it asks for must be somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contributor {
    /// The token, by its name in lists.
    pub token: String,
    /// What the token is for. Tokens of one name belong to one person, program or pipeline.
    pub name: String,
}

impl Contributor {
    /// Whether both are the same party.
    pub fn is_same_party(&self, other: &Self) -> bool {
        let name = |one: &Self| one.name.trim().to_lowercase();
        self.token == other.token || name(self) == name(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_read_as_they_are_written_and_unknown_ones_refused() {
        for roles in [Roles::usual(), Roles::new(Role::ALL), Roles::new([])] {
            assert_eq!(roles.to_string().parse(), Ok(roles));
        }
        assert!("run root".parse::<Roles>().is_err());
    }

    #[test]
    fn tokens_of_one_name_are_one_party() {
        let party =
            |token: &str, name: &str| Contributor { token: token.into(), name: name.into() };
        assert!(party("tok_1", "ci").is_same_party(&party("tok_2", " CI ")));
        assert!(party("tok_1", "ci").is_same_party(&party("tok_1", "renamed")));
        assert!(!party("tok_1", "ci").is_same_party(&party("tok_2", "ann")));
    }
}
