//! A client of the Dataplane API, 3.0 to 3.4, in one build.
//!
//! ```text
//! settings ──▶ transport: one pool of connections, credentials, limits ──▶ answers
//!                 ▲
//!   info ─────────┤ which version, which edition: what the calls below are allowed to ask for
//!   configuration ┤ version, raw text, transactions, operations, reloads
//!   storage ──────┤ maps, general files, certificates
//!   runtime ──────┘ servers, entries of maps
//! ```
//!
//! What is at the other end is asked once, when a client [connects](Client::connect). A call that this version or edition does
//! not have says so before anything is sent.

mod answer;
mod bundle;
mod calls;
mod capabilities;
mod configuration;
pub(crate) mod entries;
mod info;
mod runtime;
mod settings;
mod storage;
mod transport;

use std::sync::Arc;

use setpoint_haproxy::model::{Context, Edition, Version};

pub use answer::ApiError;
pub use bundle::{Bundle, BundleEffect};
pub use calls::NoCall;
pub use capabilities::{Capabilities, Capability, NotSupported};
pub use configuration::{Changed, For, OperateError, PushReload, Reload, ReloadStatus, Transaction};
pub use info::{ApiVersion, UnknownApi};
pub use runtime::{Health, MapEntry, Process, RunningServer};
pub use settings::{Credentials, Secret, Settings, SettingsError, Tls};
pub use storage::{FileKind, StoredFile};

use transport::Transport;

/// Speaks with one Dataplane API. Clones share connections.
#[derive(Clone, Debug)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    transport: Transport,
    version: ApiVersion,
    edition: Edition,
    capabilities: Capabilities,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The settings can't be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The API does not answer as it should.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// What answers is no Dataplane API that is known.
    #[error("{endpoint}: {source}")]
    Unknown {
        /// Who answers.
        endpoint: String,
        /// What is wrong.
        source: UnknownApi,
    },
}

impl Client {
    /// Finds out what is at the other end.
    pub async fn connect(settings: Settings) -> Result<Self, ConnectError> {
        let transport = Transport::new(settings)?;
        let (version, edition) = info::detect(&transport).await?;
        let capabilities = Capabilities::of(&version, edition);
        tracing::debug!(endpoint = transport.endpoint(), %version, ?edition, "connected");
        Ok(Self { inner: Arc::new(Inner { transport, version, edition, capabilities }) })
    }

    /// Where the API is, without credentials.
    pub fn endpoint(&self) -> &str {
        self.inner.transport.endpoint()
    }

    /// The version of the API.
    pub fn version(&self) -> &ApiVersion {
        &self.inner.version
    }

    /// The edition of the HAProxy behind it.
    pub fn edition(&self) -> Edition {
        self.inner.edition
    }

    /// Returns whether the HAProxy behind it is the one that is sold.
    pub fn is_enterprise(&self) -> bool {
        self.inner.edition == Edition::Enterprise
    }

    /// Returns whether it is Setpoint that serves the API, which tells a running HAProxy what the original reloads for.
    pub fn is_setpoint(&self) -> bool {
        self.inner.version.is_setpoint()
    }

    /// What this version and edition can do.
    pub fn capabilities(&self) -> &Capabilities {
        &self.inner.capabilities
    }

    /// What configurations are read for: the schema of this API, and a HAProxy.
    pub fn context(&self, haproxy: Version) -> Context {
        Context {
            edition: self.inner.edition,
            ..Context::new(self.inner.version.schema()).with_haproxy(haproxy)
        }
    }

    fn transport(&self) -> &Transport {
        &self.inner.transport
    }
}
