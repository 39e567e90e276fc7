//! Who we are to Consul.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Where our token comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// No token.
    Anonymous,
    /// This token.
    Token(Secret),
    /// The token in this file, which is read for each request: a new token in the file is used at once.
    TokenFile(PathBuf),
    /// A token that Consul gives for the token of a service account, by an auth method of type `kubernetes` or
    /// `jwt`.
    Login(Login),
}

/// How to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Login {
    /// The name of the auth method.
    pub method: String,
    /// The file with the service account's token. It is read at each login.
    pub bearer_file: PathBuf,
}

/// Something that is never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Keeps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Reads a secret from a file, without the white space around it.
pub(crate) async fn read_secret(path: &Path) -> Result<Secret, Error> {
    let text = tokio::fs::read_to_string(path).await;
    let text = text.map_err(|source| Error::File { path: path.to_owned(), source })?;
    let secret = text.trim();
    if secret.is_empty() {
        return Err(Error::Settings(format!("{} is empty: it should hold a token", path.display())));
    }
    Ok(Secret::new(secret))
}
