//! Whether the program that a name leads to can have been put there by a command.
//!
//! A rule or the list of commands that only read names programs, not files. A search path that
//! has a folder of the project in it, such as that of a virtual environment, lets a command that
//! was confined to the project choose what the name means.

use std::ffi::OsStr;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::plain_file::PlainFileReader;

/// As many bytes of a script's first line as the kernel reads.
const MOST_FIRST_LINE: u64 = 256;

/// A script's interpreter may be a script; so often at most.
const MOST_INTERPRETERS: usize = 8;

/// Entries that are looked at for other names of a program. Where there are more, it may have one.
const MOST_ENTRIES: usize = 50_000;

/// Where programs are looked for, and where commands write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramSearch {
    folders: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

impl ProgramSearch {
    /// `path` is the `PATH` of the command; `writable` are folders whose files nobody vouches for.
    pub fn new(path: Option<&OsStr>, writable: &[PathBuf]) -> Self {
        let folders = path.map(std::env::split_paths).into_iter().flatten().collect();
        let writable = writable.iter().map(|folder| canonical(folder)).collect();
        Self { folders, writable }
    }

    /// Whether nobody but the user and the system can have put the program where it is found, nor
    /// what interprets it. One that is not found is a word of the shell itself, or comes from the
    /// user's own profile.
    pub fn trusts(&self, program: &str) -> bool {
        let Some(file) = self.find(program, Path::new("")) else { return true };
        let files = self.with_interpreters(file);
        files.iter().all(|file| self.is_out_of_reach(file) && !self.has_name_in_reach(file))
    }

    /// The file that a program's name leads to, and those of its interpreters. A relative path is
    /// taken from `cwd`.
    pub(super) fn files_of(&self, program: &str, cwd: &Path) -> Vec<PathBuf> {
        self.find(program, cwd).map(|file| self.with_interpreters(file)).unwrap_or_default()
    }

    fn find(&self, program: &str, cwd: &Path) -> Option<PathBuf> {
        if program.contains('/') {
            return Some(cwd.join(program));
        }
        let mut candidates = self.folders.iter().map(|folder| cwd.join(folder).join(program));
        // Whether a relative entry holds it depends on where the command is by then.
        candidates.find(|file| !file.is_absolute() || is_program(file))
    }

    fn with_interpreters(&self, file: PathBuf) -> Vec<PathBuf> {
        let mut files = vec![file];
        while let Some(next) = files.last().and_then(|file| self.interpreters(file)) {
            if files.len() > MOST_INTERPRETERS || next.iter().any(|file| files.contains(file)) {
                break;
            }
            files.extend(next);
        }
        files
    }

    /// What the first line of a script names: a program, and what `env` would look for.
    fn interpreters(&self, file: &Path) -> Option<Vec<PathBuf>> {
        let mut head = Vec::new();
        let opened = PlainFileReader::default().open(file).ok()?;
        opened.take(MOST_FIRST_LINE).read_to_end(&mut head).ok()?;
        let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
        let line = String::from_utf8_lossy(line);
        let mut words = line.split_whitespace();
        let interpreter = PathBuf::from(words.next()?);
        let is_env = interpreter.file_name() == Some(OsStr::new("env"));
        let name = words.find(|word| !word.starts_with('-') && !word.contains('='));
        // What we do not find is found somewhere else, and so nobody vouches for it.
        let found = name.and_then(|name| self.find(name, Path::new(""))).unwrap_or_default();
        let found = is_env.then_some(found);
        Some(std::iter::once(interpreter).chain(found).collect())
    }

    /// Neither the name nor the file behind it is where commands write.
    pub(super) fn is_out_of_reach(&self, file: &Path) -> bool {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
        let places = [canonical(folder).join(name), canonical(file)];
        file.is_absolute()
            && places.iter().all(|place| !self.writable.iter().any(|root| place.starts_with(root)))
    }

    /// Whether a file that we may write has, or may have, another name where commands write.
    fn has_name_in_reach(&self, file: &Path) -> bool {
        let Ok(about) = file.metadata() else { return false };
        let ours = rustix::fs::access(file, rustix::fs::Access::WRITE_OK).is_ok();
        if about.nlink() < 2 || !ours {
            return false;
        }
        let mut open: Vec<PathBuf> = self.writable.clone();
        let mut seen = 0;
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                seen += 1;
                let Ok(found) = entry.metadata() else { continue };
                let same = (found.dev(), found.ino()) == (about.dev(), about.ino());
                if same || seen > MOST_ENTRIES {
                    return true;
                }
                // A hard link does not lead to another file system.
                if found.is_dir() && found.dev() == about.dev() {
                    open.push(entry.path());
                }
            }
        }
        false
    }
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_program_that_a_command_can_replace_is_not_trusted() {
        let project = tempfile::tempdir().unwrap();
        let system = tempfile::tempdir().unwrap();
        let (bin, own) = (project.path().join("bin"), system.path().join("bin"));
        for (folder, names) in [(&bin, ["cargo", "plain"]), (&own, ["cargo", "sed"])] {
            fs::create_dir(folder).unwrap();
            for name in names {
                fs::write(folder.join(name), "").unwrap();
                fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755)).unwrap();
            }
        }
        symlink(bin.join("cargo"), own.join("linked")).unwrap();
        symlink(own.join("sed"), bin.join("outward")).unwrap();
        let writable = [project.path().to_owned()];
        let search = |folders: &[&Path]| {
            ProgramSearch::new(Some(&std::env::join_paths(folders).unwrap()), &writable)
        };
        let first = search(&[&bin, &own]);
        let last = search(&[&own, &bin]);
        assert!(!first.trusts("cargo") && last.trusts("cargo"));
        assert!(first.trusts("sed") && first.trusts("not-there"));
        assert!(!last.trusts("plain") && !last.trusts("linked") && !first.trusts("outward"));
        assert!(!search(&[Path::new("."), &own]).trusts("./cargo"));
        assert!(!search(&[&own]).trusts(&bin.join("cargo").to_string_lossy()));
        assert!(search(&[&own]).trusts(&own.join("cargo").to_string_lossy()));
        assert!(!search(&[Path::new("."), &own]).trusts("cargo"), "it may be in the folder");
    }

    #[test]
    fn neither_is_one_whose_interpreter_or_other_name_a_command_can_replace() {
        let project = tempfile::tempdir().unwrap();
        let system = tempfile::tempdir().unwrap();
        let (bin, own) = (project.path().join("bin"), system.path().to_owned());
        fs::create_dir(&bin).unwrap();
        let program = |file: &Path, text: &str| {
            fs::write(file, text).unwrap();
            fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
        };
        let inner = bin.join("inner");
        program(&inner, "");
        let scripts = [
            ("plain", "#!/bin/sh -e\n".to_owned()),
            ("direct", format!("#!{}\n", inner.display())),
            ("spaced", format!("#! \t{} -x\n", inner.display())),
            ("through", format!("#!{}\n", own.join("direct").display())),
            ("named", "#!/usr/bin/env inner\n".to_owned()),
            ("split", "#!/usr/bin/env -S A=b inner -x\n".to_owned()),
            ("missing", "#!/usr/bin/env no-such-program\n".to_owned()),
            ("relative", "#!inner\n".to_owned()),
            ("linked", String::new()),
            ("twice", String::new()),
        ];
        for (name, text) in &scripts {
            program(&own.join(name), text);
        }
        fs::hard_link(own.join("linked"), bin.join("deeper")).unwrap();
        fs::hard_link(own.join("twice"), own.join("beside")).unwrap();
        let path = std::env::join_paths([&own, &bin]).unwrap();
        let search = ProgramSearch::new(Some(&path), &[project.path().to_owned()]);
        assert!(search.trusts("plain") && search.trusts("twice"));
        let steered =
            ["direct", "spaced", "through", "named", "split", "missing", "relative", "linked"];
        for name in steered {
            assert!(!search.trusts(name), "{name}");
        }
    }
}
