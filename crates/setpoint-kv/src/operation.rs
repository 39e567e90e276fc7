//! The operations of a transaction.

/// How many operations a transaction has at most. Current servers take 128, older ones 64.
pub const MAX_OPERATIONS: usize = 64;

/// One operation of a transaction. Each holds only while its key is as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Writes a key.
    Set {
        /// The key.
        key: &'a str,
        /// Its new value.
        value: &'a str,
        /// The number beside the value.
        flags: u64,
        /// The index at which the key was read; 0 if there was no such key.
        index: u64,
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: &'a str,
        /// The index at which it was read.
        index: u64,
    },
    /// Changes nothing.
    Check {
        /// The key.
        key: &'a str,
        /// The index at which it was read.
        index: u64,
    },
}
