//! What a person should know of somebody's files, and no operation says: it went well, or there was none.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use setpoint_graph::ItemRef;

use crate::item::RootPath;

/// Something that was found on the host, and is not Setpoint's work.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Notice {
    /// A run was cut off while it removed an item, and something else is in its place now: it stays.
    Left {
        /// The item, which is forgotten.
        item: ItemRef,
        /// Where it was.
        path: RootPath,
        /// What was there before Setpoint, if it was kept.
        kept: Option<PathBuf>,
    },
    /// What was there before an item can't go back, as something else is there; it stays kept.
    Stays {
        /// The item, which is somewhere else by now.
        item: ItemRef,
        /// Where it was.
        path: RootPath,
        /// Where the original is kept.
        kept: PathBuf,
    },
    /// What was there before an item was taken over, and somebody wrote something else there since, which is taken over now: the
    /// earlier one stays kept.
    Superseded {
        /// The item.
        item: ItemRef,
        /// Where it is.
        path: RootPath,
        /// Where the earlier original is kept.
        kept: PathBuf,
    },
    /// A file that was taken over had other names, which keep what it held.
    OtherNames {
        /// The item.
        item: ItemRef,
        /// Where it is.
        path: RootPath,
    },
    /// What somebody wrote in the place of an item, before a run was cut off that replaced it, can't be kept: it has another name.
    Saved {
        /// The item.
        item: ItemRef,
        /// Where it was.
        path: RootPath,
        /// Where it is.
        saved: RootPath,
        /// Why it can't be kept.
        why: String,
    },
    /// Somebody changed an item that was taken over. The change was replaced, and is kept.
    Changed {
        /// The item.
        item: ItemRef,
        /// Where it was.
        path: RootPath,
        /// Where the change is kept.
        kept: PathBuf,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Left { item, path, kept } => {
                write!(
                    f,
                    "{path} is not what Setpoint wrote before a run was cut off: it is left as it is, and {item} is forgotten"
                )?;
                match kept {
                    Some(kept) => write!(f, "; what was there before Setpoint is kept: {}", Print(kept)),
                    None => Ok(()),
                }
            }
            Self::Stays { item, path, kept } => {
                let print = Print(kept);
                write!(f, "what was at {path} before {item} can't go back there, and stays kept: {print}")
            }
            Self::Superseded { item, path, kept } => {
                let print = Print(kept);
                write!(
                    f,
                    "{path} was written anew, and is what {item} takes over now; what was there before that stays kept: {print}"
                )
            }
            Self::OtherNames { item, path } => write!(
                f,
                "{path} has another name, a hard link: that keeps what was there, and is not the same file as {item} any more"
            ),
            Self::Saved { item, path, saved, why } => write!(
                f,
                "{path} was not what Setpoint wrote for {item}: what was there is in {saved}, as {why}"
            ),
            Self::Changed { item, path, kept } => {
                let print = Print(kept);
                write!(f, "{path} was not what Setpoint wrote for {item}: what was there is kept: {print}")
            }
        }
    }
}

/// How to get back what is kept in a file.
struct Print<'a>(&'a Path);

impl fmt::Display for Print<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "`setpoint state kept {name}` prints it")
    }
}

/// Notices until somebody asks for them, each once.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<BTreeSet<Notice>>);

impl Notices {
    pub(crate) fn add(&self, notice: Notice) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(notice);
    }

    pub(crate) fn take(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_iter().collect()
    }
}
