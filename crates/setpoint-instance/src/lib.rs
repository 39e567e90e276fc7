//! One HAProxy on this machine: its process, its sockets, its configuration files.
//!
//! ```text
//!                 ┌─ check ──────── `haproxy -c` on exactly the bytes that are to be written
//!  text to write ─┼─ setpoint_files  written whole or not at all, owner, mode and link kept
//!                 └─ reload ─────── asked for, and judged by the workers that are there afterwards
//!                        │
//!     process: started, adopted, stopped ◀──┴──▶ cli: what is said on its sockets
//! ```
//!
//! What a text means is `setpoint-haproxy`'s to say. Here is what it takes to bring a text to a running HAProxy, and to know
//! what that HAProxy runs: [`instance`] puts all of it together.

pub mod blocking;
pub mod check;
pub mod cli;
pub mod configuration;
pub mod instance;
pub mod journal;
pub mod process;
mod references;
pub mod reload;
pub mod runtime;
pub mod storage;
mod text;
