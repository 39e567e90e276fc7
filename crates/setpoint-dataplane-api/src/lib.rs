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
mod crypt;
mod dialect;
mod events;
mod multipart;
mod objects;
mod request;
mod route;
mod runtime;
mod server;
mod storage;
mod table;
mod transactions;

pub use auth::{Users, UsersError};
pub use dialect::{Dialect, UnknownDialect};
pub use server::serve;
use setpoint_instance::instance::Instance;
pub use storage::Storage;

use route::Routes;

/// What is decided about the API as a whole.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether properties that nobody knows are refused.
    pub strict: bool,
    /// Whether nothing may be changed.
    pub read_only: bool,
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
        Self { instance, dialect, users, storage, options, routes: Routes::of(dialect) }
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
