//! Where the API is, and how it is spoken to.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Something that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a secret.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Tells it.
    pub(super) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A name and its password.
pub type Credentials = (String, Secret);

/// How the API is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address, such as `http://192.0.2.1:5555`; `/v3` at its end is allowed.
    pub url: String,
    /// A socket of this machine, where the API listens on one; the host of the address is only shown then.
    pub socket: Option<PathBuf>,
    /// What the API is called in messages, in the place of its address.
    pub name: Option<String>,
    /// Who asks: name and password. Those in the address go before them.
    pub credentials: Option<Credentials>,
    /// For `https`.
    pub tls: Tls,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The length of the longest answer that is read, in bytes.
    pub longest_answer: usize,
    /// How many calls are under way at a time, each on a connection of its own; others wait for their turn.
    pub most_calls: usize,
}

/// Certificates, in PEM.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// The authorities that are trusted instead of those of the system.
    pub authorities: Option<Vec<u8>>,
    /// What is shown to an API that asks for it: a certificate and its key.
    pub identity: Option<Vec<u8>>,
}

impl Settings {
    /// Settings for an address, with all else as it is by default. A name and a password in the address are taken out of it.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            socket: None,
            name: None,
            credentials: None,
            tls: Tls::default(),
            connect_timeout: Duration::from_secs(5),
            timeout: Duration::from_secs(30),
            longest_answer: 256 << 20,
            most_calls: 64,
        }
    }

    /// Says who asks.
    #[must_use]
    pub fn with_credentials(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.credentials = Some((user.into(), Secret::new(password)));
        self
    }
}

/// Why settings can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The address is none.
    #[error("{url} is no address of an API: {why}")]
    Url {
        /// The address, without a password.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The certificates can't be used.
    #[error("the certificates can't be used: {0}")]
    Tls(String),
}
