//! Why the state could not be read or written.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use setpoint_graph::TypesError;

/// Why the state could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The state belongs to another set of manifests.
    #[error("the state in {} belongs to the set {}, not to {}", .dir.display(), quoted(.found), quoted(.wanted))]
    OtherSet {
        /// Where the state is.
        dir: PathBuf,
        /// Whose it is.
        found: String,
        /// Who asked.
        wanted: String,
    },
    /// Something else may write.
    #[error("the state in {} is in use by {holder}", .dir.display())]
    Locked {
        /// Where the state is.
        dir: PathBuf,
        /// Who has it, in words.
        holder: String,
    },
    /// A file or directory of the state could not be used.
    #[error("can't {what} {}: {source}", .path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The database was in use by others for too long.
    #[error("{} was in use by another process for {} s", .path.display(), .waited.as_secs())]
    Busy {
        /// The database.
        path: PathBuf,
        /// For how long.
        waited: Duration,
    },
    /// The database could not be read or written.
    #[error("can't {what} {}: {source}", .path.display())]
    Database {
        /// What was tried.
        what: &'static str,
        /// The database.
        path: PathBuf,
        /// What it says.
        source: Box<redb::Error>,
    },
    /// The database is damaged, and there is no copy of it that could be used.
    #[error("{} is damaged: {why}", .path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What reading it came to.
        why: String,
    },
    /// Something in the state can't be understood.
    #[error("{} holds something that can't be understood: {what}: {source}", .path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// Which part of it.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// An item in the state can't be understood.
    #[error("{} holds an item that can't be understood: {why}", .path.display())]
    BrokenItem {
        /// The file.
        path: PathBuf,
        /// Which item, and why.
        why: String,
    },
    /// An item could not be read again if it were saved like this: nothing was written.
    #[error("{} is as it was: what is to be saved could not be read again: {why}", .path.display())]
    Unreadable {
        /// The database.
        path: PathBuf,
        /// Which item, and why.
        why: String,
    },
    /// The state was written by a later version.
    #[error("{} has the format {found}, this version knows {known}", .path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u64,
        /// The format of this version.
        known: u64,
    },
    /// An item could not be written or read.
    #[error(transparent)]
    Item(#[from] TypesError),
}

impl StateError {
    /// Returns whether what was written can't be read any more, rather than not be read now.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } | Self::Broken { .. } | Self::BrokenItem { .. } => true,
            Self::Database { source, .. } => is_damaged(source),
            _ => false,
        }
    }

    /// What kind of error the system gave, where it refused something.
    pub fn system_error(&self) -> Option<io::ErrorKind> {
        match self {
            Self::File { source, .. } => Some(source.kind()),
            Self::Database { source, .. } => match &**source {
                redb::Error::Io(error) => Some(error.kind()),
                _ => None,
            },
            _ => None,
        }
    }

    pub(crate) fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}

/// A text in quotes, as JSON writes it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns whether an error of the database says that what is in the file is not what was written. Whatever it says is wrong in
/// there, Setpoint did not write it: tables of other types, an unknown version, or pages outside of the file.
fn is_damaged(error: &redb::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error {
        redb::Error::Io(error) => matches!(error.kind(), InvalidData | InvalidInput | UnexpectedEof),
        // What another process does, what the system can't do now, and what comes after that.
        redb::Error::DatabaseAlreadyOpen
        | redb::Error::TransactionInProgress
        | redb::Error::ValueTooLarge(_)
        | redb::Error::Unsupported
        | redb::Error::DatabaseClosed
        | redb::Error::PreviousIo
        | redb::Error::ReadTransactionStillInUse(_) => false,
        _ => true,
    }
}
