//! Why the model differs from the original where it does: one row for each reason.

use super::Difference;

/// A reason to differ from the original.
#[derive(Debug)]
pub struct Reason {
    /// A short name.
    pub name: &'static str,
    /// What the original does, and why the model does not.
    pub why: &'static str,
    /// Says whether a difference is of this kind.
    applies: fn(&Difference) -> bool,
}

impl Reason {
    /// Says whether this is the reason of a difference.
    pub fn explains(&self, difference: &Difference) -> bool {
        (self.applies)(difference)
    }
}

/// All reasons. The first that applies is counted.
pub const REASONS: &[Reason] = &[Reason {
    name: "refused",
    why: "HAProxy refuses what the original writes or keeps, so there is nothing to agree with.",
    applies: |difference| difference.accepted == Some(false),
}];
