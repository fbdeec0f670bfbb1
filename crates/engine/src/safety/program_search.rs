//! Whether the program that a name leads to can have been put there by a command.
//!
//! A rule or the list of commands that only read names programs, not files. A search path that
//! has a folder of the project in it, such as that of a virtual environment, lets a command that
//! was confined to the project choose what the name means.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

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

    /// Whether nobody but the user and the system can have put the program where it is found. One
    /// that is not found is a word of the shell itself, or comes from the user's own profile.
    pub fn trusts(&self, program: &str) -> bool {
        if program.contains('/') {
            return self.is_out_of_reach(Path::new(program));
        }
        let mut candidates = self.folders.iter().map(|folder| folder.join(program));
        candidates.find(|file| is_program(file)).is_none_or(|file| self.is_out_of_reach(&file))
    }

    /// Neither the name nor the file behind it is where commands write.
    fn is_out_of_reach(&self, file: &Path) -> bool {
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
        let places = [canonical(folder).join(name), canonical(file)];
        file.is_absolute()
            && places.iter().all(|place| !self.writable.iter().any(|root| place.starts_with(root)))
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
    }
}
