//! TLS for the API: a certificate, its key, and whose clients may connect.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// How often the files are looked at for renewed ones.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The files of a TLS server, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and the chain above it.
    pub certificate: PathBuf,
    /// Its private key; it may be in the same file.
    pub key: PathBuf,
    /// The authorities of clients. With it, only clients that have a certificate of theirs can connect.
    pub client_authorities: Option<PathBuf>,
}

/// Why TLS can't be had.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be used.
    #[error("can't use {what} in {}: {why}", path.display())]
    File {
        /// What should be in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The certificate and the key can't be used together.
    #[error("can't use the certificate of {} with the key of {}: {why}", certificate.display(), key.display())]
    Pair {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// Why not.
        why: String,
    },
}

/// A TLS server whose files may be renewed while it runs.
#[derive(Debug)]
pub(crate) struct Tls {
    files: TlsFiles,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    acceptor: TlsAcceptor,
    modified: Vec<Option<SystemTime>>,
    looked: Instant,
}

impl std::fmt::Debug for Loaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Keys are nobody's business.
        f.debug_struct("Loaded").finish_non_exhaustive()
    }
}

impl Tls {
    pub(crate) fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let loaded =
            Loaded { modified: files.modified(), acceptor: files.acceptor()?, looked: Instant::now() };
        Ok(Self { files, loaded: Mutex::new(loaded) })
    }

    /// What accepts the next connection. Files that were renewed are read; those from before stay in use while the new ones
    /// can't be used.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.looked.elapsed() >= LOOK_EVERY {
            loaded.looked = Instant::now();
            let modified = self.files.modified();
            if modified != loaded.modified {
                match self.files.acceptor() {
                    Ok(acceptor) => {
                        (loaded.acceptor, loaded.modified) = (acceptor, modified);
                        tracing::info!(certificate = %self.files.certificate.display(), "the certificate was renewed");
                    }
                    Err(error) => tracing::warn!(%error, "the certificate from before stays in use"),
                }
            }
        }
        loaded.acceptor.clone()
    }
}

impl TlsFiles {
    fn modified(&self) -> Vec<Option<SystemTime>> {
        let files = [Some(&self.certificate), Some(&self.key), self.client_authorities.as_ref()];
        let modified = |path: &PathBuf| std::fs::metadata(path).and_then(|status| status.modified()).ok();
        files.into_iter().flatten().map(modified).collect()
    }

    fn acceptor(&self) -> Result<TlsAcceptor, TlsError> {
        let chain = certificates(&self.certificate, "the certificate")?;
        let key = PrivateKeyDer::from_pem_file(&self.key)
            .map_err(|error| problem("the private key", &self.key, &error))?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let pair = |error: rustls::Error| TlsError::Pair {
            certificate: self.certificate.clone(),
            key: self.key.clone(),
            why: message_of(&error),
        };
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().map_err(pair)?;
        let builder = match &self.client_authorities {
            None => builder.with_no_client_auth(),
            Some(path) => {
                const WHAT: &str = "the authorities of clients";
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path, WHAT)? {
                    roots.add(certificate).map_err(|error| problem(WHAT, path, &message_of(&error)))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder
                    .with_client_cert_verifier(verifier.build().map_err(|error| problem(WHAT, path, &error))?)
            }
        };
        let mut config = builder.with_single_cert(chain, key).map_err(pair)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

/// What is wrong with a certificate, in words for who has made it.
fn message_of(error: &rustls::Error) -> String {
    let text = error.to_string();
    if text.contains("UnsupportedCertVersion") {
        return "it is a certificate of X.509 version 1; make one of version 3 (with a subjectAltName, say)"
            .to_owned();
    }
    text
}

fn problem(what: &'static str, path: &Path, why: &impl ToString) -> TlsError {
    TlsError::File { what, path: path.to_owned(), why: why.to_string() }
}

fn certificates(path: &Path, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| problem(what, path, &error))?;
    if found.is_empty() {
        return Err(problem(what, path, &"there is none"));
    }
    Ok(found)
}
