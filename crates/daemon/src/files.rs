//! Files that a prompt names: read by us, at the moment they are needed, and handed on as data.
//!
//! A worker that got a path would open it later, and by then it may lead to another tenant's file.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindery_client::error::Error as ClientError;
use bindery_client::model::InputFilter;
use bindery_core::call::CallOptions;
use bindery_core::wire::app_server::input::UserInput;
use bindery_sessions::plain;
use futures_util::future::BoxFuture;

use crate::config::Config;
use crate::error::Error;
use crate::shelf::Shelf;
use crate::tenant::{Tenant, open_file};
use crate::turns::steering;

/// The largest image that is read, in bytes.
const LARGEST: u64 = 32 << 20;

/// The files that a tenant's prompts may name: those below its root, and those it has sent.
#[derive(Clone, Debug)]
pub struct TenantFiles {
    root: PathBuf,
    uploads: PathBuf,
}

impl TenantFiles {
    /// The files of this tenant.
    pub fn new(config: &Config, tenant: &Tenant) -> Self {
        let uploads = Shelf::new(&config.data, &tenant.id).folder().to_owned();
        Self { root: tenant.settings.root.clone(), uploads }
    }

    /// Refuses a call that names a file which is not the tenant's now.
    pub fn check(&self, options: &CallOptions) -> Result<(), Error> {
        // A call that only brings answers has no input of its own, and names no files.
        let Ok(input) = steering(options) else { return Ok(()) };
        for path in input.iter().filter_map(path_of) {
            self.open(path).map_err(|_| Error::invalid("prompt", strange(path)))?;
        }
        Ok(())
    }

    /// The same input with what is in its files in the place of their paths.
    pub async fn take(&self, input: Vec<UserInput>) -> Result<Vec<UserInput>, ClientError> {
        if input.iter().all(|input| path_of(input).is_none()) {
            return Ok(input);
        }
        let files = self.clone();
        let reading = move || input.into_iter().map(|input| files.replace(input)).collect();
        let read = tokio::task::spawn_blocking(reading).await;
        read.map_err(|err| ClientError::InputRefused { why: err.to_string() })?
    }

    fn replace(&self, input: UserInput) -> Result<UserInput, ClientError> {
        let Some(path) = path_of(&input) else { return Ok(input) };
        let refused = |why: String| ClientError::InputRefused { why };
        let file = self.open(path).map_err(|_| refused(strange(path)))?;
        let UserInput::LocalImage { path, detail } = input else { return Ok(input) };
        let bytes = read(file).map_err(|err| refused(format!("`{path}`: {err}")))?;
        let kind = kind_of(&bytes).ok_or_else(|| refused(format!("`{path}` is no image")))?;
        Ok(UserInput::Image {
            url: format!("data:{kind};base64,{}", STANDARD.encode(bytes)),
            detail,
        })
    }

    fn open(&self, path: &str) -> io::Result<std::fs::File> {
        let path = Path::new(path);
        match path.starts_with(&self.uploads) {
            // We made them, and no link is among them.
            true => plain::open_file(&self.uploads, path),
            false => open_file(&self.root, path),
        }
    }
}

impl InputFilter for TenantFiles {
    fn filter(
        &self,
        input: Vec<UserInput>,
    ) -> BoxFuture<'static, Result<Vec<UserInput>, ClientError>> {
        let files = self.clone();
        Box::pin(async move { files.take(input).await })
    }
}

/// The file that an input names, if it names one.
fn path_of(input: &UserInput) -> Option<&str> {
    match input {
        UserInput::LocalImage { path, .. } | UserInput::Skill { path, .. } => Some(path),
        UserInput::Text { .. } | UserInput::Image { .. } | UserInput::Mention { .. } => None,
    }
}

/// One and the same answer for what is outside and what is not there: it tells nothing.
fn strange(path: &str) -> String {
    format!("`{path}` is no file of this tenant's")
}

fn read(file: std::fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > LARGEST {
        true => Err(io::Error::other(format!("it is longer than {LARGEST} bytes"))),
        false => Ok(bytes),
    }
}

/// The type of an image, by how it begins.
fn kind_of(bytes: &[u8]) -> Option<&'static str> {
    let kinds = crate::http::uploads::KINDS.iter();
    kinds.filter(|(_, begins, _)| bytes.starts_with(begins)).map(|(kind, ..)| *kind).next()
}
