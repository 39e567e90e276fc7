//! The sockets of HAProxy: what is said to them, and what is believed of their answers.
//!
//! ```text
//!  Request ──▶ Socket ──connect, write, read: each within limits──▶ answer ──▶ Processes, Table, …
//! ```
//!
//! What is on the other side is not trusted: it may be another program, hang, answer without end, or send bytes that are no
//! text. Every exchange has a time and a size that it may not exceed.

mod processes;
mod request;
mod socket;
mod table;

pub use processes::{Process, Processes};
pub use request::{Request, RequestError};
pub use socket::{Limits, Socket, SocketError};
pub use table::{Table, TableError};
