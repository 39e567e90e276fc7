//! The connections to Consul, made anew when the files with certificates change.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::Path;
use std::time::Duration;

use reqwest::{Certificate, Identity};
use setpoint_names::Resolver;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::error::Error;
use crate::settings::Tls;

/// Makes connections with the certificates that are in the files.
pub(crate) struct Connections {
    /// For `https`; none where no certificates are used.
    tls: Option<Tls>,
    connect_timeout: Duration,
    present: watch::Sender<Made>,
}

/// What connections are made by, and a hash of the files that it was made from.
#[derive(Clone)]
struct Made {
    http: reqwest::Client,
    files: u64,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").field("tls", &self.tls).finish_non_exhaustive()
    }
}

impl Connections {
    /// Reads the files, and connects to nothing yet.
    pub(crate) fn new(tls: Option<Tls>, connect_timeout: Duration) -> Result<Self, Error> {
        let files = Files::read(tls.as_ref())?;
        let made = Made { files: files.hash(), http: files.make(connect_timeout)? };
        Ok(Self { tls, connect_timeout, present: watch::Sender::new(made) })
    }

    /// What requests are made by.
    pub(crate) fn http(&self) -> reqwest::Client {
        self.present.borrow().http.clone()
    }

    /// Reads the files again; returns whether they had changed, and are used from now on.
    ///
    /// Files that can't be used change nothing: one of them may be half written, or its fellow not written yet.
    pub(crate) async fn renew(&self) -> Result<bool, Error> {
        if self.tls.as_ref().is_none_or(|tls| tls.ca_file.is_none() && tls.client.is_none()) {
            return Ok(false);
        }
        let (tls, connect_timeout, before) =
            (self.tls.clone(), self.connect_timeout, self.present.borrow().files);
        let look = move || -> Result<Option<Made>, Error> {
            let files = Files::read(tls.as_ref())?;
            let hash = files.hash();
            if hash == before {
                return Ok(None);
            }
            Ok(Some(Made { files: hash, http: files.make(connect_timeout)? }))
        };
        let looked = spawn_blocking(look).await;
        let made = looked.map_err(|error| Error::Settings(format!("TLS: {error}")))??;
        let changed = made.is_some();
        if let Some(made) = made {
            self.present.send_replace(made);
        }
        Ok(changed)
    }

    /// Waits until requests are made by something else than now.
    pub(crate) async fn renewed(&self) {
        // It lives as long as we do.
        let _ = self.present.subscribe().changed().await;
    }
}

/// What is in the files.
#[derive(Hash)]
struct Files<'a> {
    /// Whether certificates are used at all.
    used: bool,
    authorities: Option<(&'a Path, Vec<u8>)>,
    /// The certificate and its key, and what is in them.
    client: Option<(&'a Path, &'a Path, Vec<u8>)>,
}

impl<'a> Files<'a> {
    fn read(tls: Option<&'a Tls>) -> Result<Self, Error> {
        let read =
            |path: &Path| std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source });
        let authorities = tls.and_then(|tls| tls.ca_file.as_deref());
        let authorities = authorities.map(|path| Ok::<_, Error>((path, read(path)?))).transpose()?;
        let client = tls.and_then(|tls| tls.client.as_ref());
        let client = client.map(|client| {
            let (certificate, key) = (client.certificate.as_path(), client.key.as_path());
            let pem = [read(certificate)?, read(key)?].join(&b'\n');
            Ok::<_, Error>((certificate, key, pem))
        });
        Ok(Self { used: tls.is_some(), authorities, client: client.transpose()? })
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        Hash::hash(self, &mut hasher);
        hasher.finish()
    }

    fn make(self, connect_timeout: Duration) -> Result<reqwest::Client, Error> {
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .dns_resolver(Resolver::default())
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(connect_timeout)
            // A connection whose other end is gone without a word is found in half a minute, not at the end of
            // a long wait.
            .tcp_keepalive(Duration::from_secs(15))
            .tcp_keepalive_interval(Duration::from_secs(5))
            .tcp_keepalive_retries(3);
        if !self.used {
            // The system's authorities are not even looked for.
            builder = builder.tls_certs_only([]);
        }
        if let Some((path, pem)) = self.authorities {
            let wrong = |why: &str| Error::Settings(format!("{} holds no certificates{why}", path.display()));
            let found = Certificate::from_pem_bundle(&pem).map_err(|error| wrong(&format!(": {error}")))?;
            if found.is_empty() {
                return Err(wrong(""));
            }
            builder = builder.tls_certs_only(found);
        }
        let Some((certificate, key, pem)) = self.client else {
            return builder
                .build()
                .map_err(|error| Error::Settings(format!("TLS: {}", crate::error::root(&error))));
        };
        let wrong = || {
            let (certificate, key) = (certificate.display(), key.display());
            Error::Settings(format!("{certificate} and {key} are no certificate with its key"))
        };
        let identity = Identity::from_pem(&pem).map_err(|_| wrong())?;
        builder.identity(identity).build().map_err(|_| wrong())
    }
}
