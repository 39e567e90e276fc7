//! Leader election by a Lease, and the fence that keeps a former leader from writing.
//!
//! ```text
//!            ┌────────────── lost: not renewed in time, or taken ◀─────────────┐
//!            ▼                                                                 │
//!  Standby: campaign ──nobody holds it, or it expired──▶ Leading ────────renew┤
//!                                                          │  Fence: deadline,  │
//!                                                          │  transition count  │
//!                                                          └──asked to end──▶ released
//! ```
//!
//! A leader may write until its own deadline, which is earlier than the moment at which another may take the Lease, and
//! which is held against a clock that also runs while the process is stopped ([`Fence::check`]). What was already on its way
//! when the process was stopped is refused by the API server: each write carries the version of the object that it was
//! made from, and a new leader's first write to each object, its transition count, makes another version of it.

mod clock;
mod decide;
mod elector;
mod fence;
mod lead;

pub use clock::boot_time;
pub use decide::{Observed, Step, Timing, decide};
pub use elector::{Elector, Leadership, LeaseError};
pub use fence::{Fence, Fenced};
pub use lead::{LeadershipEvent, lead};
