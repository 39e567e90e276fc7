//! What controllers of Kubernetes share.
//!
//! ```text
//!  client ──▶ lease: campaign, hold, release ──▶ Fence ──before every write──▶ records: finalizer, status
//!                                                                         └──▶ apply: server-side apply
//! ```
//!
//! Nothing here knows what a controller is for: [`lease`] elects a leader and fences its writes, [`client`] connects,
//! [`follow`] lists and watches, [`known`] distinguishes what others write from what is written here, [`records`] write to the resources that
//! people declare, [`apply`] writes what is made for them, [`conditions`] say how that went, and [`manifests`] are the rights and the
//! workload that install a controller.

pub mod apply;
pub mod client;
pub mod conditions;
mod error;
pub mod follow;
pub mod known;
pub mod lease;
mod limits;
pub mod manifests;
pub mod records;
mod store;

pub use error::message_of;
pub use limits::{Limited, LimitedBody, Limits, Silent};
pub use store::Store;
