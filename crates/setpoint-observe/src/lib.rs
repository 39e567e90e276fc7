//! What can be seen of a long-running command from outside: probes, metrics, its state, and its log.
//!
//! ```text
//!  command ──implements──▶ Observed ──▶ Server ──▶ /healthz      would it help to start it anew
//!              │                                   /readyz       does it do its work, or stand by to do it
//!              └── Health: signs of life, role     /metrics      for Prometheus
//!                    │                             /debug/state  what it knows, as JSON
//!                    └──▶ StateChange, whenever it does something else
//! ```

mod command;
mod health;
#[cfg(feature = "logging")]
pub mod logging;
mod server;

use serde_json::Value;

pub use command::ObservedCommand;
pub use health::{Health, Role, StateChange};
pub use server::{ServeError, Server};

/// What a command shows of itself. Each is called for every request, and must not wait.
pub trait Observed: Send + Sync + 'static {
    /// Returns why it would help to start the process anew, if it would.
    fn liveness(&self) -> Result<(), String>;

    /// Returns what the process does now, as an error if that is not its work nor standing by for it.
    fn readiness(&self) -> Result<String, String>;

    /// Returns all metrics, as Prometheus reads them.
    fn metrics(&self) -> String;

    /// Returns what the process knows, for debugging. It must hold no secrets.
    fn state(&self) -> Value {
        Value::Null
    }
}
