//! What can go wrong below the root, in words that say what to do.

use rustix::io::Errno;

use crate::item::{RootPath, quoted};

/// Why something below the root could not be read or changed. Whatever failed has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FsError {
    /// A symbolic link on the way leads out of the root.
    #[error("{path} leads out of the root, through a symbolic link on the way")]
    Outside {
        /// The path.
        path: String,
    },
    /// The directory around it is not there.
    #[error("the directory around {path} is not there; declare it in `directories`, or make it")]
    NoDirectory {
        /// The path.
        path: String,
    },
    /// Something on the way is no directory.
    #[error("something on the way to {path} is no directory")]
    NotADirectory {
        /// The path.
        path: String,
    },
    /// Something is there already.
    #[error("{path} is there already ({what}) and was not made by Setpoint; {}", adopt_words(*adoptable))]
    Exists {
        /// The path.
        path: String,
        /// What it is.
        what: &'static str,
        /// Whether it could be adopted.
        adoptable: bool,
    },
    /// Something of another type is there.
    #[error("{path} should be {wanted}, but {found} is in its place; remove it, or declare another path")]
    OtherType {
        /// The path.
        path: String,
        /// What should be there.
        wanted: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// The directory that it was in is not the one that is there now.
    #[error(
        "{path} is not the one that Setpoint looks after: {directory} is another directory than before, and what is in it is left as it is; put the old directory back, or say `setpoint state accept` if this one is to be looked after"
    )]
    Elsewhere {
        /// The path.
        path: String,
        /// The directory around it, in words.
        directory: String,
    },
    /// The directory that something was in is not there, or another one is.
    #[error(
        "{path} can't be looked at: the directory that it was in is not {directory} any more; mount it, put it back, or say `setpoint state rm` with this item to forget it"
    )]
    Unreachable {
        /// The path.
        path: String,
        /// The directory around it.
        directory: String,
    },
    /// Another directory is in the place of one.
    #[error(
        "{path} is another directory than the one that Setpoint looks after, and is left as it is with all that is in it; put the old one back, or say `setpoint state accept` if this one is to be looked after"
    )]
    Replaced {
        /// The path.
        path: String,
    },
    /// The directory holds what nobody declared.
    #[error("{path} is not removed, as it holds what Setpoint did not put there: {entries}")]
    NotEmpty {
        /// The path.
        path: String,
        /// Some of the entries.
        entries: String,
    },
    /// The system does not allow it.
    #[error("can't {verb} {path}: {errno}; run as a user who may, or change the permissions")]
    NoAccess {
        /// What was to be done.
        verb: &'static str,
        /// The path.
        path: String,
        /// What the system says.
        errno: Errno,
    },
    /// Nothing on the file system can be changed.
    #[error(
        "can't {verb} {path}: the file system is mounted read-only; mount it so that it can be written to, and run again"
    )]
    ReadOnly {
        /// What was to be done.
        verb: &'static str,
        /// The path.
        path: String,
    },
    /// What is there has other names, which would change with it.
    #[error(
        "can't change the permissions of {path}, as it has another name, a hard link, and would change there too"
    )]
    OtherNames {
        /// The path.
        path: String,
    },
    /// It is marked as not to be changed, which holds for every user.
    #[error(
        "can't {verb} {path}: {what} is marked as not to be changed; `chattr -ia` with it, and run again"
    )]
    Immutable {
        /// What was to be done.
        verb: &'static str,
        /// The path.
        path: String,
        /// What is marked: it, or the directory around it.
        what: String,
    },
    /// There is no room.
    #[error("can't {verb} {path}: {errno}; nothing was changed, free some space and run again")]
    Full {
        /// What was to be done.
        verb: &'static str,
        /// The path.
        path: String,
        /// What the system says.
        errno: Errno,
    },
    /// A rename can't lead to another file system.
    #[error(
        "can't move {from} to {to}, which is on another file system; `--replace` with this item deletes it there and makes it anew here"
    )]
    OtherFileSystem {
        /// Where it is.
        from: String,
        /// Where it was to go.
        to: String,
    },
    /// What is about to be done could not be written down.
    #[error("can't note that {item} is made: {why}; it is not made without")]
    Unnoted {
        /// The item.
        item: String,
        /// Why.
        why: String,
    },
    /// A link that is to be replaced points to what is no text.
    #[error("{path} points to what is not UTF-8, and could not be put back as it is; move it away")]
    NotText {
        /// The path.
        path: String,
    },
    /// There is no such user or group.
    #[error("there is no {what} {}", quoted(.name))]
    NoAccount {
        /// User or group.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// What is to be written can't be had.
    #[error("can't write {path}: {why}")]
    NoContent {
        /// The path.
        path: String,
        /// Why.
        why: String,
    },
    /// What somebody wrote there meanwhile can't be kept.
    #[error("{path} is not replaced: {why}")]
    Unkept {
        /// The path.
        path: String,
        /// Why.
        why: String,
    },
    /// The directory that it is to be in is somewhere else.
    #[error("{path} has to wait: {directory}, which it is to be in, is still {at}")]
    NotArrived {
        /// The path.
        path: String,
        /// The item of the directory.
        directory: String,
        /// Where that is.
        at: String,
    },
    /// What somebody wrote there meanwhile can be neither kept nor put back.
    #[error("{path} was replaced, and what somebody wrote there is in {saved}: {why}")]
    Saved {
        /// The path.
        path: String,
        /// Where it is now.
        saved: String,
        /// Why it can't be kept.
        why: String,
    },
    /// What was replaced can't be removed.
    #[error(
        "{path} was written, and what it replaced is still there and can't be removed: {errno}; remove {temporary}"
    )]
    LeftBehind {
        /// The path.
        path: String,
        /// What is left.
        temporary: String,
        /// What the system says.
        errno: Errno,
    },
    /// Somebody has it open, and writes to it.
    #[error(
        "{path} is not replaced: somebody has it open and writes to it; it is replaced once it was closed, or left alone for 5 s"
    )]
    BeingWritten {
        /// The path.
        path: String,
    },
    /// It was cancelled before it was whole.
    #[error("writing {path} was cancelled; it is as it was")]
    Cancelled {
        /// The path.
        path: String,
    },
    /// An extended attribute, such as an access control list or a label, would be lost.
    #[error(
        "can't keep the attribute {name} of {path}: {errno}; it is not rewritten without, so run as a user who may, or take the attribute away"
    )]
    Attribute {
        /// The path.
        path: String,
        /// The attribute.
        name: String,
        /// What the system says.
        errno: Errno,
    },
    /// Anything else.
    #[error("can't {verb} {path}: {errno}")]
    Failed {
        /// What was to be done.
        verb: &'static str,
        /// The path.
        path: String,
        /// What the system says.
        errno: Errno,
    },
}

fn adopt_words(adoptable: bool) -> &'static str {
    if adoptable {
        "add `adopt: true` to take it over, or declare another path"
    } else {
        "move it away, or declare another path"
    }
}

impl FsError {
    /// What is at a path is in another directory than before.
    pub(crate) fn elsewhere(path: &RootPath) -> Self {
        let directory = path.parent().map_or_else(|| "the root".to_owned(), str::to_owned);
        Self::Elsewhere { path: path.to_string(), directory }
    }

    /// The directory around a path is another one, and nothing is there.
    pub(crate) fn unreachable(path: &RootPath) -> Self {
        Self::Unreachable { path: path.to_string(), directory: path.parent().unwrap_or_default().to_owned() }
    }

    /// Another directory is at a path.
    pub(crate) fn replaced(path: &RootPath) -> Self {
        Self::Replaced { path: path.to_string() }
    }

    /// An attribute of the file at a path can't be kept.
    pub(crate) fn attribute(path: &RootPath, (name, errno): (String, Errno)) -> Self {
        Self::Attribute { path: path.to_string(), name, errno }
    }

    /// Says what the system's error means for a path.
    pub(crate) fn new(verb: &'static str, path: &str, errno: Errno) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::XDEV | Errno::LOOP => Self::Outside { path },
            Errno::NOENT => Self::NoDirectory { path },
            Errno::NOTDIR => Self::NotADirectory { path },
            Errno::ACCESS | Errno::PERM => Self::NoAccess { verb, path, errno },
            Errno::ROFS => Self::ReadOnly { verb, path },
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::Full { verb, path, errno },
            errno => Self::Failed { verb, path, errno },
        }
    }
}

/// A failure that has changed nothing.
pub(crate) fn untouched(error: &FsError) -> setpoint_engine::OpError {
    setpoint_engine::OpError::untouched(error.to_string())
}
