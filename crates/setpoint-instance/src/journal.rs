//! Files that change together: all of them, or none, whenever the process or the machine ends.
//!
//! ```text
//!  drafts beside their places ──▶ journal on disk ──▶ each draft into its place ──▶ journal removed
//!                                  └ from here on the change is made, by this process or the next
//! ```
//!
//! A file that is a mount of its own can't be renamed over. Its draft stands in the folder of the journal, and its content is
//! written in place, where room for it was reserved before the journal is; one that was cut off is completed by the next
//! [`Journal::recover`].

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use setpoint_files::{Draft, WriteError, is_mount, overwrite, reserve, sync_folder, target};

/// The file in the folder that says what is being changed.
const FILE: &str = "journal.json";

/// A folder in which changes are noted. One process at a time may have it.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
}

/// One file of a change.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// The file gets this content.
    Write(&'a Path, &'a [u8]),
    /// The file goes.
    Remove(&'a Path),
}

/// What is noted of one file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Step {
    /// A draft is renamed into its place.
    Rename { draft: PathBuf, place: PathBuf },
    /// What a draft holds is written into a file that can't be replaced.
    Copy { draft: PathBuf, place: PathBuf },
    /// A file is removed.
    Remove { place: PathBuf },
}

/// Why files could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// A draft could not be written: nothing has changed.
    #[error(transparent)]
    Draft(#[from] WriteError),
    /// The journal could not be read or written: nothing has changed.
    #[error("can't {step} the journal {}: {source}", path.display())]
    Journal {
        /// What was to be done.
        step: &'static str,
        /// The journal.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The change is noted, and could not be completed: the next start, or the next change, completes it.
    #[error("the change of {} is noted in {} and could not be completed: {source}", place.display(), journal.display())]
    Incomplete {
        /// The file that could not be changed.
        place: PathBuf,
        /// The journal.
        journal: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl JournalError {
    /// Returns whether the change is noted and not completed, so that the files hold a part of it.
    pub(crate) fn is_incomplete(&self) -> bool {
        matches!(self, Self::Incomplete { .. })
    }
}

impl Journal {
    /// A journal in a folder that is there.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    fn failed(&self, step: &'static str) -> impl FnOnce(io::Error) -> JournalError {
        let path = self.path();
        move |source| JournalError::Journal { step, path, source }
    }

    /// Completes what was cut off, and returns the files that were changed by that.
    pub fn recover(&self) -> Result<Vec<PathBuf>, JournalError> {
        let text = match fs::read(self.path()) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(self.failed("read")(error)),
        };
        let steps: Vec<Step> =
            serde_json::from_slice(&text).map_err(|error| self.failed("read")(error.into()))?;
        self.carry_out(&steps)?;
        Ok(steps.iter().map(|step| step.place().to_owned()).collect())
    }

    /// Changes files: all of them or none.
    ///
    /// What was cut off before is completed first.
    pub fn commit(&self, changes: &[Change<'_>]) -> Result<(), JournalError> {
        self.recover()?;
        let mut steps = Vec::new();
        let mut drafts = Vec::new();
        for change in changes {
            match *change {
                Change::Remove(file) => steps.push(Step::Remove { place: place(file)? }),
                Change::Write(file, bytes) => {
                    let place = place(file)?;
                    let mounted = is_mount(&place).unwrap_or(false);
                    let draft = if mounted {
                        reserve(&place, bytes.len())?;
                        // It is copied from, not renamed.
                        Draft::prepare(&self.folder.join(format!("copy-{}", steps.len())), bytes)?
                    } else {
                        Draft::prepare(file, bytes)?
                    };
                    let path = draft.path().to_owned();
                    steps.push(if mounted {
                        Step::Copy { draft: path, place }
                    } else {
                        Step::Rename { draft: path, place }
                    });
                    drafts.push(draft);
                }
            }
        }
        // One rename is whole by itself.
        if let [Step::Rename { .. }] = steps.as_slice()
            && let Some(draft) = drafts.pop()
        {
            return Ok(draft.place()?);
        }
        let text = serde_json::to_vec(&steps).map_err(|error| self.failed("write")(error.into()))?;
        Draft::prepare(&self.path(), &text)?.place()?;
        // From here on they belong to the journal.
        drafts.into_iter().for_each(Draft::keep);
        self.carry_out(&steps)
    }

    fn carry_out(&self, steps: &[Step]) -> Result<(), JournalError> {
        for step in steps {
            step.carry_out().map_err(|source| {
                let (place, journal) = (step.place().to_owned(), self.path());
                JournalError::Incomplete { place, journal, source }
            })?;
        }
        for step in steps {
            if let Step::Copy { draft, .. } = step {
                // What stays is passed over: its name is not used again while it is there.
                let _ = fs::remove_file(draft);
            }
        }
        fs::remove_file(self.path()).map_err(self.failed("remove"))?;
        sync_folder(&self.path()).map_err(self.failed("write to disk"))
    }
}

fn place(file: &Path) -> Result<PathBuf, WriteError> {
    target(file).map_err(|source| WriteError::Step { step: "find", path: file.to_owned(), source })
}

impl Step {
    fn place(&self) -> &Path {
        let (Self::Rename { place, .. } | Self::Copy { place, .. } | Self::Remove { place }) = self;
        place
    }

    /// Does it, also where it was done before.
    fn carry_out(&self) -> io::Result<()> {
        match self {
            Self::Rename { draft, place } => match fs::rename(draft, place) {
                // It was renamed before the process ended.
                Err(error) if error.kind() == io::ErrorKind::NotFound && place.exists() => Ok(()),
                renamed => renamed.and_then(|()| sync_folder(place)),
            },
            Self::Copy { draft, place } => {
                let bytes = match fs::read(draft) {
                    // It is removed only after all steps have been done.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                    bytes => bytes?,
                };
                overwrite(place, &bytes).map_err(|error| match error {
                    WriteError::Step { source, .. } => source,
                    error @ WriteError::Mounted(_) => io::Error::other(error),
                })
            }
            Self::Remove { place } => match fs::remove_file(place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                removed => removed.and_then(|()| sync_folder(place)),
            },
        }
    }
}
