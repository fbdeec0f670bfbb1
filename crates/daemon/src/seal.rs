//! Secrets in the store are sealed: written down so that nobody can read them without a key, which
//! lies elsewhere.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

use crate::private::make_folder;
use crate::store::StoreError;

/// Before a text that is sealed; no JSON begins so.
const MARK: &str = "sealed:1:";

/// Bytes of a key.
const KEY: usize = 32;

/// The key of a store.
#[derive(Debug)]
pub struct StoreKey {
    key: LessSafeKey,
    path: PathBuf,
}

impl StoreKey {
    /// Reads the key; none if there is no such file.
    pub fn read(path: &Path) -> Result<Option<Self>, StoreError> {
        let unusable = |why: String| StoreError::Key { path: path.to_owned(), why };
        let mut options = fs::File::options();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt as _;
            let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
            options.custom_flags(flags.bits() as i32);
        }
        let file = match options.open(path) {
            Err(err) if err.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|err| unusable(err.to_string()))?,
        };
        check_rights(&file).map_err(&unusable)?;
        let mut text = String::new();
        file.take(1024).read_to_string(&mut text).map_err(|err| unusable(err.to_string()))?;
        let bytes = STANDARD.decode(text.trim()).ok().filter(|bytes| bytes.len() == KEY);
        let bytes = bytes.ok_or_else(|| unusable("it holds no key".to_owned()))?;
        Self::of(&bytes, path).map(Some)
    }

    /// Reads the key, or makes one.
    pub fn read_or_make(path: &Path) -> Result<Self, StoreError> {
        if let Some(key) = Self::read(path)? {
            return Ok(key);
        }
        let unusable = |why: String| StoreError::Key { path: path.to_owned(), why };
        let mut bytes = [0; KEY];
        let no_chance = |_| unusable("the system gives no random numbers".to_owned());
        SystemRandom::new().fill(&mut bytes).map_err(no_chance)?;
        // One that is there may be shared with other things, and stays as it is.
        if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
            make_folder(folder).map_err(|err| unusable(err.to_string()))?;
        }
        write_new(path, &STANDARD.encode(bytes)).map_err(|err| unusable(err.to_string()))?;
        // Another program may have been quicker; whichever is there is the key.
        Self::read(path)?.ok_or_else(|| unusable("it is gone again".to_owned()))
    }

    fn of(bytes: &[u8], path: &Path) -> Result<Self, StoreError> {
        let unusable =
            |_| StoreError::Key { path: path.to_owned(), why: "it is no key".to_owned() };
        let key = UnboundKey::new(&AES_256_GCM, bytes).map_err(unusable)?;
        Ok(Self { key: LessSafeKey::new(key), path: path.to_owned() })
    }

    /// Seals a text. It can be opened for the same `owner` only.
    pub fn seal(&self, owner: &str, text: &str) -> Result<String, StoreError> {
        let failed = |_| self.unusable("it cannot be used to seal");
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(failed)?;
        let mut bytes = text.as_bytes().to_vec();
        let once = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(once, Aad::from(owner.as_bytes()), &mut bytes)
            .map_err(failed)?;
        let all = [&nonce[..], &bytes].concat();
        Ok(format!("{MARK}{}", STANDARD.encode(all)))
    }

    /// Opens what was sealed for this owner.
    pub fn unseal(&self, owner: &str, sealed: &str) -> Result<String, StoreError> {
        let foreign = || self.unusable("what is in the store was sealed with another key");
        let text = sealed.strip_prefix(MARK).ok_or_else(foreign)?;
        let mut bytes = STANDARD.decode(text).map_err(|_| foreign())?;
        if bytes.len() < NONCE_LEN {
            return Err(foreign());
        }
        let mut sealed = bytes.split_off(NONCE_LEN);
        let nonce = Nonce::try_assume_unique_for_key(&bytes).map_err(|_| foreign())?;
        let opened = self.key.open_in_place(nonce, Aad::from(owner.as_bytes()), &mut sealed);
        let opened = opened.map_err(|_| foreign())?.to_vec();
        String::from_utf8(opened).map_err(|_| foreign())
    }

    fn unusable(&self, why: &str) -> StoreError {
        StoreError::Key { path: self.path.clone(), why: why.to_owned() }
    }
}

/// Whether a text of the store is sealed.
pub fn is_sealed(text: &str) -> bool {
    text.starts_with(MARK)
}

/// A key that others can read keeps nothing from them.
#[cfg(unix)]
fn check_rights(file: &fs::File) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let meta = file.metadata().map_err(|err| err.to_string())?;
    if !meta.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    if meta.mode() & 0o077 != 0 {
        return Err("others can read it; `chmod 600` it, and think of it as known".to_owned());
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_rights(_: &fs::File) -> Result<(), String> {
    Ok(())
}

/// Writes a file that only we can read, whole or not at all, and only if there is none.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    writeln!(file, "{text}")?;
    file.sync_all()?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(err) if err.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_is_opened_by_its_key_for_its_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config/bindery/store.key");
        assert!(StoreKey::read(&path).unwrap().is_none());
        let key = StoreKey::read_or_make(&path).unwrap();
        let sealed = key.seal("ten_1", "sk-secret").unwrap();
        assert!(is_sealed(&sealed) && !sealed.contains("secret"));
        assert_ne!(sealed, key.seal("ten_1", "sk-secret").unwrap());
        let again = StoreKey::read_or_make(&path).unwrap();
        assert_eq!(again.unseal("ten_1", &sealed).unwrap(), "sk-secret");
        again.unseal("ten_2", &sealed).unwrap_err();
        let mut broken = sealed.clone();
        let last = if broken.pop() == Some('A') { 'B' } else { 'A' };
        broken.push(last);
        for broken in [broken.as_str(), "sealed:1:", "sealed:1:AAAA", "{}", ""] {
            again.unseal("ten_1", broken).unwrap_err();
        }
        let other = StoreKey::read_or_make(&folder.path().join("other")).unwrap();
        let told = other.unseal("ten_1", &sealed).unwrap_err().to_string();
        assert!(told.contains("sealed with another key"), "{told}");
    }

    #[test]
    #[cfg(unix)]
    fn a_key_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.key");
        StoreKey::read_or_make(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let told = StoreKey::read(&path).unwrap_err().to_string();
        assert!(told.contains("others can read it"), "{told}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, "short").unwrap();
        StoreKey::read(&path).unwrap_err();
        std::os::unix::fs::symlink(&path, folder.path().join("link")).unwrap();
        StoreKey::read(&folder.path().join("link")).unwrap_err();
    }
}
