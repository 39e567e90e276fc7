//! Brings a HAProxy configuration, with the files that it names, to a HAProxy behind a Dataplane API.
//!
//! ```text
//! desired text ──parse──┐
//!                       ├──compare──▶ operations ──▶ transaction, runtime or raw push ──▶ reload ──▶ read back
//! target ──read, parse──┘                 ▲
//! files ──────────compare─────────────────┘ written before it, deleted after it
//! ```
//!
//! What a configuration means, and what leads from one to another, is [`setpoint_haproxy`]'s to say. Here is what it takes to
//! carry that over: a [`client`] of the API in all its versions, [`target`]s with the [`costs`] of their calls, and the [`mod@sync`]
//! of one. [`error`]s name the step that failed.

pub mod client;
pub mod costs;
pub mod error;
pub mod files;
#[cfg(feature = "local")]
pub mod local;
pub mod retry;
pub mod rolling;
pub mod running;
pub mod sync;
pub mod target;
