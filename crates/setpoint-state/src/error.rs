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
            Self::Database { source, .. } => {
                matches!(**source, redb::Error::Corrupted(_)) || is_no_database(source)
            }
            _ => false,
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

/// Returns whether a file does not even begin as a database does.
fn is_no_database(error: &redb::Error) -> bool {
    matches!(error, redb::Error::Io(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof))
}
