//! Which files a command runs, so that a yes to it is none to others under the same names.
//!
//! A person who allows a command for a session allows what it does now. A command that may write
//! in the project can put another program in its place, change a script that it runs, or put one
//! before it in the search path.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{ProgramSearch, script};

/// A command with more words than this is asked about each time.
const MOST_WORDS: usize = 4096;

/// How deep scripts in arguments of scripts are read.
const MOST_DEPTH: usize = 4;

/// The files of a command, as they were when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramIdentity {
    files: BTreeMap<PathBuf, Option<FileIdentity>>,
}

/// What changes with every change of a file, whoever makes it and by whichever of its names.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileIdentity {
    real: PathBuf,
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileIdentity {
    /// Of a plain file; others run nothing.
    fn of(path: &Path) -> Option<Self> {
        let real = path.canonicalize().ok()?;
        let about = real.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(Self {
            real,
            device: about.dev(),
            inode: about.ino(),
            length: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }
}

impl ProgramIdentity {
    /// Of the programs that a command starts, of their interpreters, and of files that it names
    /// and that commands can write. `None` where its words cannot be known, and so neither what it
    /// runs.
    pub fn of(argv: &[String], cwd: &Path, search: &ProgramSearch) -> Option<Self> {
        let mut words = CommandWords { programs: BTreeSet::new(), others: BTreeSet::new() };
        words.read(argv, MOST_DEPTH)?;
        if words.programs.len() + words.others.len() > MOST_WORDS {
            return None;
        }
        let mut files = BTreeMap::new();
        let mut note = |path: PathBuf| {
            let identity = FileIdentity::of(&path);
            files.insert(path, identity);
        };
        for folder in words.folders(cwd) {
            for program in &words.programs {
                search.files_of(program, &folder).into_iter().for_each(&mut note);
            }
            let named = words.others.iter().map(|word| folder.join(word));
            let named = named.filter(|path| !search.is_out_of_reach(path));
            named.for_each(&mut note);
        }
        Some(Self { files })
    }
}

/// Whether a shell makes something else of a word with this in it.
fn is_expanded(c: char) -> bool {
    matches!(c, '$' | '`' | '*' | '?' | '[' | '{' | '~')
}

/// What may be the value of an option that is written in one word with it: `-fFILE`, `-nfFILE`.
fn glued_values(word: &str) -> impl Iterator<Item = String> + '_ {
    let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    letters.char_indices().skip(1).map(|(at, _)| letters[at..].to_owned())
}

/// The words of a command and of the scripts in it.
struct CommandWords {
    programs: BTreeSet<String>,
    others: BTreeSet<String>,
}

impl CommandWords {
    fn read(&mut self, argv: &[String], depth: usize) -> Option<()> {
        let (program, arguments) = argv.split_first()?;
        if depth == 0 || program.is_empty() || program.contains(is_expanded) {
            return None;
        }
        self.programs.insert(program.clone());
        for word in arguments {
            self.others.insert(word.clone());
            self.others.extend(word.split_once('=').map(|(_, value)| value.to_owned()));
            self.others.extend(glued_values(word));
        }
        let Some(script) = script::script_argument(argv) else { return Some(()) };
        // What is only known when the shell runs is not known here. Quotes may make it harmless,
        // and it is asked about all the same.
        if script.contains(is_expanded) {
            return None;
        }
        for command in script::all(script)? {
            // An assignment comes before the program's name, and may be all there is.
            let assigned = |word: &&String| word.contains('=') && !word.starts_with(['/', '.']);
            let own: Vec<String> = command.iter().skip_while(assigned).cloned().collect();
            // What is assigned may name a file that a program reads before all else.
            let values = command.iter().take_while(assigned);
            let value = |word: &String| word.split_once('=').map(|(_, value)| value.to_owned());
            self.others.extend(values.filter_map(value));
            if !own.is_empty() {
                self.read(&own, depth - 1)?;
            }
        }
        // Files that input is taken from are no words of a command.
        let ends = |c: char| c.is_whitespace() || "<>|&;()\"'`".contains(c);
        self.others.extend(script.split(ends).filter(|word| !word.is_empty()).map(str::to_owned));
        Some(())
    }

    /// The folders that its paths may be relative to: where it runs, and where it goes from there.
    fn folders(&self, cwd: &Path) -> Vec<PathBuf> {
        let goes = ["cd", "pushd", "env", "git", "make"];
        let mut folders = vec![cwd.to_owned()];
        if self.programs.iter().any(|program| goes.contains(&script::name(program))) {
            let named = self.others.iter().map(|word| cwd.join(word));
            folders.extend(named.filter(|folder| folder.is_dir()));
        }
        folders
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn at(&self, path: &str) -> PathBuf {
            self.0.path().join(path)
        }

        fn program(&self, path: &str, text: &str) {
            fs::create_dir_all(self.at(path).parent().unwrap()).unwrap();
            // Replaced, not written over: a program that runs cannot be.
            let _ = fs::remove_file(self.at(path));
            fs::write(self.at(path), text).unwrap();
            fs::set_permissions(self.at(path), PermissionsExt::from_mode(0o755)).unwrap();
        }

        fn identity(&self, argv: &[&str]) -> Option<ProgramIdentity> {
            let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
            let path = std::env::join_paths([self.at("early"), self.at("bin")]).unwrap();
            let search = ProgramSearch::new(Some(&path), &[self.0.path().to_owned()]);
            ProgramIdentity::of(&argv, self.0.path(), &search)
        }
    }

    fn folder() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.program("bin/tool", "#!/usr/bin/env -S python3 -u\n");
        folder.program("bin/python3", "#!/bin/sh\n");
        folder.program("sub/run.sh", "echo\n");
        folder.program("run.sh", "echo\n");
        folder
    }

    #[test]
    fn a_change_of_anything_that_runs_is_seen() {
        let commands: [&[&str]; 12] = [
            &["tool"],
            &["./run.sh"],
            &["bash", "run.sh"],
            &["bash", "-c", "bash ./run.sh"],
            &["bash", "-c", "bash -c 'sh run.sh'"],
            &["bash", "-c", "cd sub && sh run.sh"],
            &["bash", "-c", "bash < run.sh"],
            &["bash", "-c", "X=1 ./run.sh 'a b'"],
            &["bash", "-c", "tool --with=run.sh"],
            &["bash", "-c", "tool -frun.sh"],
            &["bash", "-c", "tool -nf./run.sh"],
            &["bash", "-c", "BASH_ENV=run.sh bash -c true"],
        ];
        let files = ["bin/tool", "run.sh", "run.sh", "run.sh", "run.sh", "sub/run.sh", "run.sh"];
        let files = files.into_iter().chain(["run.sh"; 5]);
        for (command, file) in commands.into_iter().zip(files) {
            let folder = folder();
            let before = folder.identity(command).unwrap();
            assert_eq!(folder.identity(command), Some(before.clone()), "{command:?}");
            folder.program(file, "rm -rf\n");
            assert_ne!(folder.identity(command), Some(before), "{command:?}");
        }
    }

    #[test]
    fn interpreters_the_search_path_and_other_names_count() {
        let changes: [fn(&Folder); 4] = [
            |folder| folder.program("bin/python3", "other"),
            |folder| folder.program("early/tool", "other"),
            |folder| fs::write(folder.at("hard"), "same inode").unwrap(),
            |folder| {
                fs::rename(folder.at("bin/tool"), folder.at("moved")).unwrap();
                symlink(folder.at("run.sh"), folder.at("bin/tool")).unwrap();
            },
        ];
        for change in changes {
            let folder = folder();
            fs::hard_link(folder.at("bin/tool"), folder.at("hard")).unwrap();
            let before = folder.identity(&["tool"]).unwrap();
            change(&folder);
            assert_ne!(folder.identity(&["tool"]), Some(before));
        }
        let folder = folder();
        let before = folder.identity(&["bash", "-c", "tool run.sh"]).unwrap();
        folder.program("unrelated", "x");
        assert_eq!(folder.identity(&["bash", "-c", "tool run.sh"]), Some(before));
    }

    #[test]
    fn what_cannot_be_known_has_no_identity() {
        let folder = folder();
        for script in [
            "$X",
            "./$(echo run.sh)",
            "`cat x`",
            "./r*.sh",
            "if",
            "sh r*.sh",
            "sh ?un.sh",
            "sh [r]un.sh",
            "sh run.{sh,}",
            "sh ~+/run.sh",
            "F=run.sh; sh $F",
            "sh \"$PWD/run.sh\"",
            "bash -c 'sh r*.sh'",
        ] {
            assert_eq!(folder.identity(&["bash", "-c", script]), None, "{script}");
        }
        assert_eq!(folder.identity(&[]), None);
    }
}
