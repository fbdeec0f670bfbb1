//! Where an export goes: a file that is replaced whole or not at all, and is no session itself.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bindery::sessions::find;

use crate::failure::Hinted;

/// A file that is being written.
pub(super) struct Destination {
    out: BufWriter<File>,
    /// The file beside the target, and the target; none for a pipe or a device.
    partial: Option<Partial>,
}

/// A file beside its target, removed unless it is kept.
struct Partial {
    path: PathBuf,
    target: PathBuf,
}

impl Destination {
    /// Opens the place for writing. Refuses what `inputs` are read from, by whatever name it is
    /// called, and every place in a Codex home (`homes`, and what looks like one).
    pub(super) fn open(path: &Path, inputs: &[&Path], homes: &[PathBuf]) -> anyhow::Result<Self> {
        let target = target_of(path)?;
        if let Some(input) = inputs.iter().find(|input| is_same(input, &target)) {
            return Err(Hinted::misuse(
                format!("`{}` is the session that is exported", path.display()),
                format!("name a file other than `{}` with `-o`", input.display()),
            ));
        }
        let named = [std::env::var_os("CODEX_HOME").map(PathBuf::from), usual_home()];
        let homes: Vec<_> = homes.iter().cloned().chain(named.into_iter().flatten()).collect();
        if let Some(home) = find::codex_home_of(&target, &homes) {
            return Err(Hinted::misuse(
                format!("`{}` is in the Codex home `{}`", path.display(), home.display()),
                "name a file elsewhere with `-o`: nothing is written there",
            ));
        }
        let data = fs::metadata(&target).ok();
        if data.as_ref().is_some_and(|data| !data.is_file()) {
            let out = OpenOptions::new().write(true).open(&target).with_context(cannot(path))?;
            return Ok(Self { out: BufWriter::new(out), partial: None });
        }
        let partial = partial_of(&target);
        let out = OpenOptions::new().write(true).create_new(true).open(&partial);
        let out = out.with_context(cannot(path))?;
        let kept = Partial { path: partial, target };
        if let Some(data) = data {
            out.set_permissions(data.permissions()).with_context(cannot(path))?;
        }
        Ok(Self { out: BufWriter::new(out), partial: Some(kept) })
    }

    /// Where to write.
    pub(super) fn out(&mut self) -> &mut dyn Write {
        &mut self.out
    }

    /// Puts what was written in its place.
    pub(super) fn keep(mut self) -> anyhow::Result<()> {
        self.out.flush()?;
        let Some(partial) = self.partial.take() else { return Ok(()) };
        self.out.get_ref().sync_all()?;
        fs::rename(&partial.path, &partial.target).with_context(cannot(&partial.target))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // After a rename there is nothing left under this name.
        let _ = fs::remove_file(&self.path);
    }
}

fn cannot(path: &Path) -> impl FnOnce() -> String + '_ {
    move || format!("cannot write `{}`", path.display())
}

fn usual_home() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".codex"))
}

/// The file itself, behind links: its folder must exist, it need not.
fn target_of(path: &Path) -> anyhow::Result<PathBuf> {
    if let Ok(target) = path.canonicalize() {
        return Ok(target);
    }
    // A pipe of this process, such as `/dev/stdout`, has no path that leads to it.
    if fs::metadata(path).is_ok() {
        return Ok(path.to_owned());
    }
    if fs::symlink_metadata(path).is_ok() {
        bail!("cannot write `{}`: it is a link to nothing", path.display());
    }
    let Some(name) = path.file_name() else {
        bail!("cannot write `{}`: it names no file", path.display());
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new(".")).canonicalize().with_context(cannot(path))?;
    Ok(folder.join(name))
}

/// A name beside the target that nobody else takes.
fn partial_of(target: &Path) -> PathBuf {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    target.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

#[cfg(unix)]
fn is_same(input: &Path, target: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |path: &Path| fs::metadata(path).ok().map(|data| (data.dev(), data.ino()));
    of(input).is_some_and(|input| of(target) == Some(input))
}

#[cfg(not(unix))]
fn is_same(input: &Path, target: &Path) -> bool {
    input.canonicalize().is_ok_and(|input| input == target)
}
