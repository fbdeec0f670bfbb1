//! Folders and files that nobody but the daemon's user may look into, also where they were there
//! before.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// The file that an older version kept an administrator's token in.
const OLD_TOKEN: &str = "token";

/// Makes a folder, and those above it that are missing, for our eyes only. One that is there is
/// made so; one that is a link or belongs to somebody else is refused.
pub fn make_folder(path: &Path) -> Result<(), Error> {
    let failed = |err| Error::io(path, err);
    if !path.exists() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(path).map_err(failed)?;
    }
    check_owner(path)?;
    restrict(path).map_err(failed)
}

/// Whether a folder is one of ours and no link: whoever owns it may replace what is in it.
pub fn check_owner(path: &Path) -> Result<(), Error> {
    let refused =
        |why: &str| Error::Config { what: path.display().to_string(), why: why.to_owned() };
    // With a slash or a dot at its end, a path leads to what a link leads to.
    let path = path.components().collect::<PathBuf>();
    let path = path.as_path();
    let meta = fs::symlink_metadata(path).map_err(|err| Error::io(path, err))?;
    if meta.is_symlink() {
        return Err(refused("it is a link; name the folder that it leads to"));
    }
    if !meta.is_dir() {
        return Err(refused("it is no folder; choose another"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::MetadataExt::uid(&meta) != rustix::process::geteuid().as_raw() {
        return Err(refused("it belongs to another user; choose another, or run as that user"));
    }
    Ok(())
}

/// Makes a file that only we can read, if it is not there, and one that is there into such a file.
pub fn make_file(path: &Path) -> std::io::Result<fs::File> {
    let mut options = fs::File::options();
    options.create(true).truncate(false).write(true).read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits() as i32);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    rustix::fs::fchmod(&file, rustix::fs::Mode::from_raw_mode(0o600))?;
    Ok(file)
}

/// Takes from everybody else what a daemon before us left open to them: everything of the daemon's
/// own below its data folder. What lies in tenants' folders is theirs; the folders are closed.
pub fn restrict_data(data: &Path) -> Result<(), Error> {
    let failed = |err| Error::io(data, err);
    for entry in fs::read_dir(data).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let deep = matches!(name(&path), "uploads" | "workers");
        restrict_below(&path, if deep { 3 } else { 0 }).map_err(|err| Error::io(&path, err))?;
    }
    for folder in ["tenants", "homes", "temporary"] {
        // What is not there yet is made closed.
        let _ = restrict_below(&data.join(folder), 1);
    }
    Ok(())
}

fn restrict_below(path: &Path, depth: usize) -> std::io::Result<()> {
    let kind = fs::symlink_metadata(path)?.file_type();
    if kind.is_symlink() {
        return Ok(());
    }
    restrict(path)?;
    if kind.is_dir() && depth > 0 {
        for entry in fs::read_dir(path)?.flatten() {
            restrict_below(&entry.path(), depth - 1)?;
        }
    }
    Ok(())
}

/// Takes all rights of the group and of others away; what is a link is left alone.
#[cfg(unix)]
fn restrict(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let meta = fs::symlink_metadata(path)?;
    if meta.is_symlink() || meta.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let mode = if meta.is_dir() { 0o700 } else { 0o600 };
    match fs::set_permissions(path, fs::Permissions::from_mode(mode)) {
        // Somebody else has removed it meanwhile.
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(not(unix))]
fn restrict(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Removes the token that an older version kept in clear; true if there was one.
pub fn remove_old_token(data: &Path) -> Result<bool, Error> {
    let path = data.join(OLD_TOKEN);
    match fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(err) if err.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(err) => Err(Error::io(&path, err)),
    }
}

/// What this process and its children make is for nobody else, from now on.
pub fn keep_to_ourselves() {
    #[cfg(unix)]
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_was_open_to_others_is_closed() {
        let outer = tempfile::tempdir().unwrap();
        let data = outer.path().join("data");
        for folder in ["uploads/ten_1", "workers/w1", "tenants/acme/work", "homes/ten_1"] {
            fs::create_dir_all(data.join(folder)).unwrap();
        }
        let files = [
            "bindery.sqlite",
            "bindery.sqlite-wal",
            "bindery.sqlite-shm",
            "lock",
            "lease",
            "uploads/ten_1/upl_1.png",
            "workers/w1/log",
        ];
        let own = "tenants/acme/work/own";
        for file in files.iter().chain([&own]) {
            fs::write(data.join(file), "").unwrap();
            fs::set_permissions(data.join(file), fs::Permissions::from_mode(0o644)).unwrap();
        }
        let others = outer.path().join("others");
        fs::write(&others, "").unwrap();
        fs::set_permissions(&others, fs::Permissions::from_mode(0o644)).unwrap();
        symlink(&others, data.join("linked")).unwrap();
        fs::set_permissions(&data, fs::Permissions::from_mode(0o755)).unwrap();
        make_folder(&data).unwrap();
        restrict_data(&data).unwrap();
        assert_eq!(mode(&data), 0o700);
        for file in files {
            assert_eq!(mode(&data.join(file)), 0o600, "{file}");
        }
        let folders = ["uploads", "uploads/ten_1", "workers/w1", "tenants/acme", "homes/ten_1"];
        for folder in folders {
            assert_eq!(mode(&data.join(folder)), 0o700, "{folder}");
        }
        // What is a tenant's, or lies elsewhere, is not ours to change.
        assert_eq!((mode(&data.join(own)), mode(&others)), (0o644, 0o644));
    }

    #[test]
    fn a_folder_that_is_a_link_or_a_file_is_refused() {
        let outer = tempfile::tempdir().unwrap();
        let (real, link) = (outer.path().join("real"), outer.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        for end in ["", "/", "//", "/.", "/./"] {
            let path = format!("{}{end}", link.display());
            let told = make_folder(Path::new(&path)).unwrap_err().to_string();
            assert!(told.contains("it is a link"), "{path}: {told}");
        }
        fs::write(outer.path().join("file"), "").unwrap();
        assert_eq!(make_folder(&outer.path().join("file")).unwrap_err().code(), "config");
        assert!(make_file(&link).is_err());
    }

    #[test]
    fn a_folder_of_another_user_is_refused() {
        // The root folder is root's; whoever is root has `/proc/1` of itself, and gives one away.
        let outer = tempfile::tempdir().unwrap();
        let folder = outer.path().join("theirs");
        fs::create_dir(&folder).unwrap();
        let path = match std::os::unix::fs::chown(&folder, Some(65534), None) {
            Ok(()) => folder.as_path(),
            Err(_) => Path::new("/"),
        };
        let told = make_folder(path).unwrap_err().to_string();
        assert!(told.contains("it belongs to another user"), "{told}");
    }
}
