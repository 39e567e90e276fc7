//! Results in which "not found" is an answer and not an error.

use std::io::{self, ErrorKind};

/// Turns the error that something was not found into an empty result: deleting what is not there is a success, and an item
/// that is not there is read as absent.
///
/// ```
/// use setpoint_core::OptionalExt;
///
/// let read = std::fs::read_to_string("/no/such/file").optional()?;
/// assert_eq!(read, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait OptionalExt<T> {
    /// Returns nothing in the place of the error that something was not found.
    fn optional(self) -> io::Result<Option<T>>;
}

impl<T> OptionalExt<T> for io::Result<T> {
    fn optional(self) -> io::Result<Option<T>> {
        match self {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}
