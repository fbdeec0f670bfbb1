//! The mechanisms by name, and what each cannot do.

use std::path::PathBuf;

/// Names the mechanisms that have to work, separated by commas; for tests and `bindery-sandbox`.
pub const REQUIRE: &str = "BINDERY_REQUIRE";

/// What keeps a command within its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// Bubblewrap, with Landlock where the kernel has it, and seccomp.
    Bubblewrap {
        /// Its program.
        program: PathBuf,
        /// Whether the command has a `/proc` of its own, which some containers do not allow.
        own_proc: bool,
    },
    /// Namespaces that our helper makes, with Landlock where the kernel has it, and seccomp.
    Namespaces {
        /// Whether the command has a `/proc` of its own.
        own_proc: bool,
    },
    /// Landlock, with seccomp.
    Landlock,
    /// Nothing.
    None,
}

impl Mechanism {
    /// Its name for people and for [`REQUIRE`].
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bubblewrap { .. } => "bubblewrap",
            Self::Namespaces { .. } => "namespaces",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }

    /// What it cannot do, a sentence each.
    pub fn limits(&self) -> &'static [&'static str] {
        match self {
            Self::Bubblewrap { own_proc: true, .. } | Self::Namespaces { own_proc: true } => &[],
            Self::Bubblewrap { own_proc: false, .. } | Self::Namespaces { own_proc: false } => {
                &["commands see the names and arguments of other processes in /proc"]
            }
            Self::Landlock => &[
                "in a folder with a `.git` commands can change files, but create, rename and \
                 delete nothing directly in it",
                "where there is no `.git` yet, commands can create one",
                "commands can change modes and times of files outside of the project",
                "commands see the names and arguments of other processes in /proc",
                "commands have no network unless they may use this machine's own services",
                "before Linux 6.12 commands can send signals to your other processes",
            ],
            Self::None => &["every command is asked for, or refused"],
        }
    }
}

/// Which of the mechanisms that `required` names are not among those found.
pub fn missing(found: &[Mechanism], required: &str) -> Vec<String> {
    let names = required.split(',').map(str::trim).filter(|name| !name.is_empty());
    let missing =
        names.filter(|name| *name != "none" && !found.iter().any(|it| it.name() == *name));
    missing.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_required_mechanism_that_does_not_work_is_missing() {
        let found = [Mechanism::Landlock, Mechanism::Namespaces { own_proc: true }];
        assert_eq!(missing(&found, "landlock, namespaces"), Vec::<String>::new());
        assert_eq!(missing(&found, "bubblewrap,landlock,lanlock"), ["bubblewrap", "lanlock"]);
        assert_eq!(missing(&[], "none"), Vec::<String>::new());
    }
}
