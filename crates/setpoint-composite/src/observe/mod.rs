//! What can be seen of an operator from outside: metrics, and the endpoints for probes.
//!
//! ```text
//!  operator ──▶ Observer ──▶ /metrics   for Prometheus
//!                    │  └──▶ /readyz    does it do its work, or stand by to do it
//!                    └─────▶ /healthz   would it help to start it anew
//! ```

mod metrics;
mod server;
mod vitals;

pub use metrics::{Metrics, Result as RequestResult};
pub use server::{ServeError, Server};
pub use vitals::{Role, Vitals};
