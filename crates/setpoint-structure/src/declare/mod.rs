//! What a Composite declares in Consul: its keys, and the transaction that makes them so. Pure.
//!
//! ```text
//!  Declaration ──keys──▶ declared ─┐
//!  status.ownedKeys ──────▶ owned ─┼─resolve──▶ Changes ──transactions──▶ check-and-set, one per key
//!  Consul: keys, claims ─▶ present ┘      └───▶ conflicts with older claims
//! ```
//!
//! Only what differs is written, and each operation is bound to the index at which its key was read: if anything
//! else wrote it since, the whole transaction is refused, and all is read again. No tree is ever deleted.
//!
//! Which keys are ours is remembered on the resource before they are written ([`owned_before`]) and trimmed
//! afterwards ([`owned_after`]), so that a crash in between leaves nothing behind that nobody knows of.

mod changes;
mod claims;
mod declaration;
mod plan;

pub use changes::{Changes, Delete, Guard, Set, changes, owned_after, owned_before, removal};
pub use claims::{Claimant, Conflict, Resolution, claim_key, claimed, is_claim, ownable, resolve, to_read};
pub use declaration::{Baseline, Declaration, structure_ref_key};
pub use plan::{after, data_changes};
