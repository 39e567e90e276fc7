//! Files that a configuration names.
//!
//! The API changes names: dots before the ending become underscores, and `.map` is appended. What it answers is the name that
//! counts.

use std::fmt;

use serde::Deserialize;

use super::answer::ApiError;
use super::configuration::Changed;
use super::transport::Call;
use super::{Capability, Client};

const STORAGE: &str = "services/haproxy/storage";
const CA_FILES: &str = "services/haproxy/runtime/ssl_ca_files";

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileKind {
    /// A map.
    Map,
    /// A file that is none of the others: error pages, lists of certificates, authorities.
    General,
    /// A certificate and its key.
    Certificate,
}

impl FileKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Map, Self::General, Self::Certificate];

    /// What the API calls its collection.
    fn collection(self) -> &'static str {
        match self {
            Self::Map => "maps",
            Self::General => "general",
            Self::Certificate => "ssl_certificates",
        }
    }

    /// Returns whether the API gives back what a file holds.
    pub fn is_readable(self) -> bool {
        self != Self::Certificate
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Map => "map",
            Self::General => "file",
            Self::Certificate => "certificate",
        })
    }
}

/// A file that the API has.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct StoredFile {
    /// Its name.
    pub storage_name: String,
    /// Where it is, for a configuration to name.
    #[serde(default)]
    pub file: String,
}

impl Client {
    /// The files of a kind. A folder that is not there holds none.
    pub async fn files(&self, kind: FileKind) -> Result<Vec<StoredFile>, ApiError> {
        let call = Call::get(STORAGE).part(kind.collection());
        match self.transport().json::<Option<Vec<StoredFile>>>(call, &[200]).await {
            Ok((files, _)) => Ok(files.unwrap_or_default()),
            Err(ApiError::NotFound { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// What a file holds; none if it is not there.
    pub async fn file(&self, kind: FileKind, name: &str) -> Result<Option<Vec<u8>>, ApiError> {
        let call = Call::get(STORAGE).part(kind.collection()).part(name);
        match self.transport().call(call, &[200]).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(ApiError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a file that is not there. Returns what it is called.
    pub async fn create_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
    ) -> Result<(StoredFile, Changed), ApiError> {
        let mut call = Call::post(STORAGE).part(kind.collection()).file(name, bytes.to_vec());
        if kind == FileKind::Certificate {
            call = call.query("skip_reload", true);
        }
        let (file, answer) = self.transport().json(call, &[201, 202]).await?;
        Ok((file, Changed::of(answer)))
    }

    /// Replaces what a file holds. Without a reload, a running HAProxy goes on with what it has read.
    pub async fn replace_file(
        &self,
        kind: FileKind,
        name: &str,
        bytes: &[u8],
        skip_reload: bool,
    ) -> Result<Changed, ApiError> {
        let call = Call::put(STORAGE).part(kind.collection()).part(name);
        let call = if skip_reload { call.query("skip_reload", true) } else { call };
        let call = match kind {
            FileKind::General => call.file(name, bytes.to_vec()),
            FileKind::Map | FileKind::Certificate => call.text(bytes.to_vec()),
        };
        Ok(Changed::of(self.transport().call(call, &[200, 202, 204]).await?))
    }

    /// Deletes a file. One that is gone already is deleted.
    pub async fn delete_file(&self, kind: FileKind, name: &str) -> Result<Changed, ApiError> {
        let mut call = Call::delete(STORAGE).part(kind.collection()).part(name);
        if kind == FileKind::Certificate {
            call = call.query("skip_reload", true);
        }
        match self.transport().call(call, &[200, 202, 204]).await {
            Ok(answer) => Ok(Changed::of(answer)),
            Err(ApiError::NotFound { .. }) => {
                Ok(Changed { version: None, reload_id: None, is_delayed: false })
            }
            Err(error) => Err(error),
        }
    }

    /// Gives a running HAProxy another file of authorities.
    pub async fn replace_ca_file(&self, name: &str, bytes: &[u8]) -> Result<(), ApiError> {
        self.capabilities().require(Capability::SslCaFiles)?;
        let call = Call::put(CA_FILES).part(name).file(name, closed(bytes));
        // The original 3.4 says that it was made.
        self.transport().call(call, &[200, 201]).await?;
        Ok(())
    }
}

/// What ends with an empty line. The original 3.2 passes authorities on to HAProxy as they are, which waits for that line until the API
/// gives up.
fn closed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    while !bytes.ends_with(b"\n\n") {
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::closed;

    #[test]
    fn what_haproxy_is_told_ends_with_an_empty_line() {
        for (bytes, told) in [("a", "a\n\n"), ("a\n", "a\n\n"), ("a\n\n", "a\n\n")] {
            assert_eq!(closed(bytes.as_bytes()), told.as_bytes());
        }
    }
}
