//! Where Consul is, and how it is reached.

use std::path::PathBuf;
use std::time::Duration;

use crate::auth::Auth;

/// How Consul is reached.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The address of its HTTP API, such as `http://localhost:8500`; a path before `/v1` is kept.
    pub url: String,
    /// Who we are.
    pub auth: Auth,
    /// The data centre to ask; none for the agent's own.
    pub datacenter: Option<String>,
    /// The namespace, of the enterprise edition.
    pub namespace: Option<String>,
    /// The admin partition, of the enterprise edition.
    pub partition: Option<String>,
    /// For `https`.
    pub tls: Tls,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long an answer may take that is not waited for on purpose.
    pub timeout: Duration,
}

impl Settings {
    /// Settings for an address, with all else as it is by default.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            auth: Auth::Anonymous,
            datacenter: None,
            namespace: None,
            partition: None,
            tls: Tls::default(),
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
        }
    }
}

/// Certificates. The files are read when a [`Client`](crate::Client) is made, and when it is asked to read them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// A file with the authorities that are trusted (PEM), instead of those of the system.
    pub ca_file: Option<PathBuf>,
    /// What we show to a server that asks for it.
    pub client: Option<ClientCertificate>,
}

/// A certificate and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate, with those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}
