//! The HAProxy Dataplane API v3 in front of one HAProxy on this machine.
//!
//! ```text
//!  HTTP ──▶ server: limits, who asks, which operation ──▶ sections and children (one table) ──▶ setpoint-instance
//!                                                     ├──▶ transactions, raw, reloads
//!                                                     ├──▶ storage
//!                                                     └──▶ runtime
//! ```
//!
//! The table of sections, children and other paths drives routes, models and text: there is no handler for a single
//! operation. How errors are told depends on the [`Dialect`].

mod about;
mod answer;
mod auth;
mod certificate;
mod change;
mod configuration;
mod crt_list;
mod crypt;
mod dialect;
mod events;
mod limits;
mod listen;
mod metrics;
mod multipart;
mod objects;
mod request;
mod route;
mod runtime;
mod server;
mod specification;
mod storage;
mod table;
mod tls;
mod transactions;

use std::time::Duration;

pub use auth::{Users, UsersError};
pub use dialect::{Dialect, UnknownDialect};
pub use listen::{Address, ListenError, Listener};
pub use server::serve;
use setpoint_instance::instance::Instance;
pub use storage::Storage;
pub use tls::{TlsError, TlsFiles};
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use limits::Buckets;
use metrics::Metrics;
use route::Routes;

/// What is decided about the API as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether properties that nobody knows are refused.
    pub strict: bool,
    /// Whether nothing may be changed.
    pub read_only: bool,
    /// The length of the longest body that is read, in bytes.
    pub longest_body: usize,
    /// How long a client may take to send a body.
    pub body_within: Duration,
    /// How many connections may be open at once; more have to wait.
    pub connections: usize,
    /// How many requests a second one address may make, if there is a limit.
    pub requests_per_second: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            strict: false,
            read_only: false,
            longest_body: 256 << 20,
            body_within: Duration::from_mins(1),
            connections: 4_000,
            requests_per_second: None,
        }
    }
}

/// The API of one instance.
#[derive(Debug)]
pub struct Api {
    instance: Instance,
    dialect: Dialect,
    users: Users,
    storage: Storage,
    options: Options,
    routes: Routes,
    requests: Option<Buckets>,
    metrics: Metrics,
    /// Cancelled when the API ends.
    stopping: CancellationToken,
    /// What changes are made on; the runtime that serves if there is no other.
    changes: Option<Handle>,
}

impl Api {
    /// The API of an instance, in a dialect.
    pub fn new(
        instance: Instance,
        dialect: Dialect,
        users: Users,
        storage: Storage,
        options: Options,
    ) -> Self {
        let requests =
            options.requests_per_second.map(f64::from).map(|limit| Buckets::new(limit.max(1.0), limit));
        Self {
            instance,
            dialect,
            users,
            storage,
            options,
            routes: Routes::of(dialect),
            requests,
            metrics: Metrics::default(),
            stopping: CancellationToken::new(),
            changes: None,
        }
    }

    /// The same, and changes are made on another runtime than the one that serves: whatever they take, whoever reads is answered.
    #[must_use]
    pub fn with_changes_on(mut self, runtime: Handle) -> Self {
        self.changes = Some(runtime);
        self
    }

    /// The instance behind it.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// All paths and methods that are routed, as the specification writes them.
    pub fn operations(&self) -> Vec<(String, &'static str)> {
        let paths = self.routes.paths.iter();
        paths
            .flat_map(|path| {
                path.operations.iter().map(|(method, _)| (format!("/{}", path.template), *method))
            })
            .collect()
    }
}
