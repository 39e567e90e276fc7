//! The cache folder: one entry for each way a part was ever made.
//!
//! ```text
//! <folder>/<name>/<version>-<architecture>-<recipe>/bin/…      an entry, with its receipt
//! <folder>/<name>/.making-<pid>/                                 one that is being made
//! <folder>/<name>/.building/                                     what several are made of
//! <folder>/<name>/.lock                                          held while one is made
//! ```
//!
//! An entry is made beside its place and moved there when it is whole, receipt included: a run that is cut off
//! leaves nothing that looks like an entry, and what it left is removed by the next. The receipt holds the size of
//! every file and the time of its last change, so that an entry that was damaged later is found out and made again.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::diagnosis::Problem;
use super::{architecture, report};

const RECEIPT: &str = "receipt.json";
/// How long another run may take to make one part.
const LOCK_LIMIT: Duration = Duration::from_mins(45);

/// The cache folder.
#[derive(Debug)]
pub(crate) struct Cache {
    root: PathBuf,
}

/// A whole entry.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The version that was resolved when it was made.
    pub(crate) version: String,
    /// Its folder.
    pub(crate) path: PathBuf,
    /// Whether it was made just now.
    pub(crate) made: bool,
}

/// What an entry was made of, and what it holds.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    name: String,
    version: String,
    architecture: String,
    recipe: String,
    /// Where the entry has to be: programs in it know their own place.
    place: PathBuf,
    /// The folders in it that its programs write to.
    #[serde(default)]
    scratch: Vec<PathBuf>,
    /// All that is in it, apart from the receipt and what is in those folders.
    files: BTreeMap<PathBuf, Content>,
}

/// What is remembered of one thing in an entry.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Content {
    /// A file, by its size and the time of its last change: reading hundreds of megabytes in each run would take long.
    File {
        size: u64,
        seconds: i64,
        nanoseconds: i64,
        /// Not known of entries that were made before it was kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<u32>,
    },
    /// A link, by its target.
    Link(PathBuf),
}

impl Content {
    /// Whether this is what was remembered.
    fn is_like(&self, remembered: &Self) -> bool {
        match (self, remembered) {
            (&Self::File { size, seconds, nanoseconds, .. }, Self::File { mode: None, .. }) => {
                *remembered == Self::File { size, seconds, nanoseconds, mode: None }
            }
            _ => self == remembered,
        }
    }
}

/// A folder for what entries are made of, removed when it is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The right to make entries of one part; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Cache {
    /// Opens the folder, making it if there is none.
    pub(crate) fn open(root: PathBuf) -> Result<Self> {
        fs::create_dir_all(&root).with_context(|| {
            format!("can't make the cache folder {}: give one with --parts-dir", root.display())
        })?;
        Ok(Self { root })
    }

    /// The folder as it is, for those who only look.
    pub(crate) fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Waits for the right to make entries of a part.
    pub(crate) fn lock(&self, name: &str) -> Result<Lock, Problem> {
        let folder = self.root.join(name);
        let problem = |error: io::Error| Problem::from_io("can't lock", &folder, &error);
        fs::create_dir_all(&folder).map_err(problem)?;
        let file = File::create(folder.join(".lock")).map_err(problem)?;
        let started = Instant::now();
        let mut said = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Lock { _file: file }),
                Err(TryLockError::Error(error)) => return Err(problem(error)),
                Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_LIMIT => {
                    return Err(Problem::missing(format!(
                        "another run has been making it for more than {} minutes; end that run and try again",
                        LOCK_LIMIT.as_secs() / 60
                    )));
                }
                Err(TryLockError::WouldBlock) => {
                    if !said {
                        report(name, "waiting for another run that is making it");
                        said = true;
                    }
                    std::thread::sleep(Duration::from_millis(200));
                }
            }
        }
    }

    /// Makes a folder for what entries are made of, in that of a part whose lock is held. What a run that was killed left
    /// there is removed.
    pub(crate) fn scratch(&self, name: &str) -> Result<Scratch, Problem> {
        let folder = self.root.join(name).join(".building");
        let problem = |error: io::Error| Problem::from_io("can't make", &folder, &error);
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(problem(error)),
            _ => fs::create_dir(&folder).map_err(problem)?,
        }
        Ok(Scratch(folder))
    }

    /// Finds the entry of a part that was made last in the given way, whatever its version; a damaged one is
    /// said so and removed if the lock is held, and a problem if not.
    pub(crate) fn find(
        &self,
        name: &str,
        recipe: &str,
        lock: Option<&Lock>,
    ) -> Result<Option<Entry>, Problem> {
        let folder = self.root.join(name);
        let suffix = format!("-{}-{recipe}", architecture());
        let mut entries: Vec<_> = fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .filter_map(Result::ok)
            .filter(|entry| {
                let name = entry.file_name();
                !name.to_string_lossy().starts_with('.') && name.to_string_lossy().ends_with(&suffix)
            })
            .map(|entry| entry.path())
            .collect();
        entries.sort_by_key(|path| {
            fs::metadata(path.join(RECEIPT)).map(|data| (data.mtime(), data.mtime_nsec())).ok()
        });
        while let Some(path) = entries.pop() {
            match verify(&path) {
                Ok(receipt) => return Ok(Some(Entry { version: receipt.version, path, made: false })),
                Err(damage) => {
                    let message = format!("the cache entry {} is damaged: {damage}", path.display());
                    if lock.is_none() {
                        return Err(Problem::missing(format!(
                            "{message}; `cargo xtask parts {name}` makes it anew"
                        )));
                    }
                    report(name, format_args!("{message}; making it anew"));
                    fs::remove_dir_all(&path)
                        .map_err(|error| Problem::from_io("can't remove the damaged", &path, &error))?;
                }
            }
        }
        Ok(None)
    }

    /// Makes an entry: `make` fills a folder that is not yet in its place, and is told the place. What its programs write to the
    /// folders `scratch` later on is no damage.
    pub(crate) fn fill(
        &self,
        _lock: &Lock,
        (name, version, recipe): (&str, &str, &str),
        scratch: &[PathBuf],
        make: impl FnOnce(&Path, &Path) -> Result<(), Problem>,
    ) -> Result<Entry, Problem> {
        let folder = self.root.join(name);
        let place = folder.join(format!("{}-{}-{recipe}", file_name(version), architecture()));
        let problem = |error: io::Error| Problem::from_io("can't fill", &place, &error);
        // The lock is held: what looks like work in progress is left from a run that was cut off.
        for entry in fs::read_dir(&folder).map_err(problem)?.filter_map(Result::ok) {
            if entry.file_name().to_string_lossy().starts_with(".making-") {
                fs::remove_dir_all(entry.path()).map_err(problem)?;
            }
        }
        let making = folder.join(format!(".making-{}", std::process::id()));
        fs::create_dir(&making).map_err(problem)?;
        let outcome = make(&making, &place).and_then(|()| {
            let receipt = Receipt {
                name: name.to_owned(),
                version: version.to_owned(),
                architecture: architecture().to_owned(),
                recipe: recipe.to_owned(),
                place: place.clone(),
                scratch: scratch.to_vec(),
                files: contents(&making, scratch).map_err(problem)?,
            };
            let text = serde_json::to_vec_pretty(&receipt).map_err(|error| problem(error.into()))?;
            write_whole(&making.join(RECEIPT), &text).map_err(problem)?;
            if place.exists() {
                fs::remove_dir_all(&place).map_err(problem)?;
            }
            fs::rename(&making, &place).map_err(problem)
        });
        if outcome.is_err() {
            let _ = fs::remove_dir_all(&making);
        }
        outcome.map(|()| Entry { version: version.to_owned(), path: place, made: true })
    }
}

/// Shortens a recipe, whatever it is made of, to the hash that names it.
pub(crate) fn recipe_hash(ingredients: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for ingredient in ingredients {
        hash.update((ingredient.len() as u64).to_le_bytes());
        hash.update(ingredient);
    }
    hex(hash).chars().take(12).collect()
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// Writes a file so that it is there whole or not at all.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    fs::write(&beside, content)?;
    File::open(&beside)?.sync_all()?;
    fs::rename(&beside, path)
}

/// A version as part of a file name, and of a library path: no colon, no slash.
fn file_name(version: &str) -> String {
    version.chars().map(|c| if c.is_ascii_alphanumeric() || ".+~-".contains(c) { c } else { '_' }).collect()
}

/// Compares an entry with its receipt; the error says what is wrong.
fn verify(path: &Path) -> Result<Receipt, String> {
    let text = fs::read(path.join(RECEIPT)).map_err(|error| format!("its receipt can't be read: {error}"))?;
    let receipt: Receipt =
        serde_json::from_slice(&text).map_err(|error| format!("its receipt is not understood: {error}"))?;
    if receipt.place != path {
        return Err(format!("it was moved here from {}", receipt.place.display()));
    }
    let found =
        contents(path, &receipt.scratch).map_err(|error| format!("its files can't be read: {error}"))?;
    for (file, content) in &receipt.files {
        match found.get(file) {
            None => return Err(format!("{} is gone", file.display())),
            Some(other) if !other.is_like(content) => return Err(format!("{} was changed", file.display())),
            Some(_) => {}
        }
    }
    if let Some(file) = found.keys().find(|file| !receipt.files.contains_key(*file)) {
        return Err(format!("{} was put there", file.display()));
    }
    Ok(receipt)
}

/// All that is below a folder, apart from folders, the receipt and what is in some folders.
fn contents(folder: &Path, scratch: &[PathBuf]) -> io::Result<BTreeMap<PathBuf, Content>> {
    let mut contents = BTreeMap::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            let data = entry.metadata()?;
            if scratch.contains(&name) {
                continue;
            }
            if data.is_dir() {
                folders.push(name);
            } else if data.is_symlink() {
                contents.insert(name, Content::Link(fs::read_link(entry.path())?));
            } else if name.as_os_str() != RECEIPT {
                let (size, seconds, nanoseconds) = (data.size(), data.mtime(), data.mtime_nsec());
                let mode = Some(data.mode() & 0o7777);
                contents.insert(name, Content::File { size, seconds, nanoseconds, mode });
            }
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests;
