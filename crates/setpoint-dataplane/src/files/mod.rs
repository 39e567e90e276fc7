//! Files that a configuration names: what is desired, and what differs from what is there.
//!
//! ```text
//! five kinds, each managed or not ──▶ three storages ──▶ to create, to update (before the configuration)
//!        notes of what was written ──────────┘       └─▶ to delete (after it)
//! ```

mod notes;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{try_join, try_join_all};
use setpoint_haproxy::api::stored_name;

use crate::client::{ApiError, FileKind};
use crate::target::Target;
use notes::digest;
pub(crate) use notes::{NOTES, Notes};
pub use usage::Usage;

/// Files by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The files that are desired. A kind that is none is left alone; one that is empty has all its files deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuxiliaryFiles {
    /// Maps.
    pub maps: Option<Files>,
    /// Files that are none of the others.
    pub general: Option<Files>,
    /// Certificates with their keys.
    pub certificates: Option<Files>,
    /// Authorities. They are kept with the general files.
    pub ca_files: Option<Files>,
    /// Lists of certificates. They are kept with the general files.
    pub crt_lists: Option<Files>,
}

/// A name that the API can't keep a file under, or that two files would have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Nothing is left of it.
    #[error("a file can't be called {0:?}")]
    Unusable(String),
    /// It is where Setpoint keeps its notes.
    #[error("a file can't be called {0:?}: Setpoint keeps its notes there")]
    Reserved(String),
    /// Another file has it.
    #[error("{first:?} and {second:?} would both be kept as {stored:?}")]
    Taken {
        /// One of them.
        first: String,
        /// The other.
        second: String,
        /// The name that both would have.
        stored: String,
    },
}

/// Which of the kinds that share general storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum General {
    /// None of the others.
    Plain,
    /// Authorities.
    Authorities,
    /// Lists of certificates.
    CrtList,
}

/// What is to be in one storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted<'f> {
    /// By the name that the API gives them.
    files: BTreeMap<String, &'f [u8]>,
    /// Whether something is managed there.
    is_managed: bool,
}

impl AuxiliaryFiles {
    /// Returns whether any kind is managed.
    fn is_any_managed(&self) -> bool {
        let Self { maps, general, certificates, ca_files, crt_lists } = self;
        [maps, general, certificates, ca_files, crt_lists].into_iter().any(Option::is_some)
    }

    fn wanted(&self, kind: FileKind) -> Result<Wanted<'_>, NameError> {
        let sources = match kind {
            FileKind::Map => vec![&self.maps],
            FileKind::Certificate => vec![&self.certificates],
            FileKind::General => vec![&self.general, &self.ca_files, &self.crt_lists],
        };
        let is_managed = sources.iter().any(|source| source.is_some());
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        let mut files = BTreeMap::new();
        for (name, bytes) in sources.into_iter().flatten().flatten() {
            let stored = name_in(kind, name).ok_or_else(|| NameError::Unusable(name.clone()))?;
            if kind == FileKind::General && stored == NOTES {
                return Err(NameError::Reserved(name.clone()));
            }
            if let Some(first) = names.insert(stored.clone(), name) {
                return Err(NameError::Taken { first: first.to_owned(), second: name.clone(), stored });
            }
            files.insert(stored, bytes.as_slice());
        }
        Ok(Wanted { files, is_managed })
    }

    /// The names that files of a kind in general storage are to have; none if it is not managed.
    fn names(&self, of: General) -> Option<BTreeSet<String>> {
        let source = match of {
            General::Plain => &self.general,
            General::Authorities => &self.ca_files,
            General::CrtList => &self.crt_lists,
        };
        let stored = |name: &String| name_in(FileKind::General, name);
        source.as_ref().map(|files| files.keys().filter_map(stored).collect())
    }

    /// The names of a kind as they are noted when all is written.
    fn noted(&self, of: General, known: &BTreeSet<String>) -> BTreeSet<String> {
        let others = [General::Plain, General::Authorities, General::CrtList].into_iter();
        let taken: BTreeSet<String> =
            others.filter(|other| *other != of).filter_map(|other| self.names(other)).flatten().collect();
        self.names(of).unwrap_or_else(|| known.difference(&taken).cloned().collect())
    }
}

/// The name that the API gives a file.
fn name_in(kind: FileKind, name: &str) -> Option<String> {
    let stored = stored_name(name)?;
    let is_map = stored.rsplit_once('.').is_some_and(|(_, ending)| ending == "map");
    Some(if kind == FileKind::Map && !is_map { format!("{stored}.map") } else { stored })
}

/// What differs in one storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiff {
    /// Files that are not there, with what they are to hold.
    pub to_create: BTreeMap<String, Vec<u8>>,
    /// Files that hold something else.
    pub to_update: BTreeMap<String, Vec<u8>>,
    /// Files that are not wanted any more.
    pub to_delete: BTreeSet<String>,
}

impl FileDiff {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.to_create.is_empty() && self.to_update.is_empty() && self.to_delete.is_empty()
    }

    /// The files that are written: name, content, and whether it is new.
    pub(crate) fn written(&self) -> impl Iterator<Item = (&str, &[u8], bool)> {
        let new = self.to_create.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice(), true));
        new.chain(self.to_update.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice(), false)))
    }
}

/// What differs in all storages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiffs {
    /// Certificates.
    pub certificates: FileDiff,
    /// Maps.
    pub maps: FileDiff,
    /// General files, authorities and lists of certificates.
    pub general: FileDiff,
    /// Which of the general files are authorities.
    pub authorities: BTreeSet<String>,
    /// The files, by kind and name, that were replaced before, and that HAProxy has not loaded since.
    pub awaiting_reload: BTreeSet<String>,
    /// The files, by kind and name, that nobody wants any more, and that stay all the same.
    kept: BTreeMap<FileKind, BTreeSet<String>>,
    /// What is noted; none where nothing ever was.
    noted: Option<Notes>,
    /// What is to be noted when all is done.
    wanted: Notes,
}

impl FileDiffs {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        [&self.certificates, &self.maps, &self.general].into_iter().all(FileDiff::is_empty)
            && self.awaiting_reload.is_empty()
    }

    /// Returns whether there are files that nobody wants any more.
    pub(crate) fn deletes_any(&self) -> bool {
        [&self.certificates, &self.maps, &self.general].into_iter().any(|diff| !diff.to_delete.is_empty())
    }

    /// What differs in the storage of a kind.
    pub fn of(&self, kind: FileKind) -> &FileDiff {
        match kind {
            FileKind::Certificate => &self.certificates,
            FileKind::Map => &self.maps,
            FileKind::General => &self.general,
        }
    }

    /// Leaves files where they are that nobody wants any more.
    pub(crate) fn keep(&mut self) {
        for (kind, diff) in [
            (FileKind::Certificate, &mut self.certificates),
            (FileKind::Map, &mut self.maps),
            (FileKind::General, &mut self.general),
        ] {
            self.kept.insert(kind, std::mem::take(&mut diff.to_delete));
        }
    }

    /// The names of the files that stay though nobody wants them.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &str> {
        self.kept.values().flatten().map(String::as_str)
    }

    /// What is noted now; none where nothing ever was.
    pub(crate) fn noted(&self) -> Option<&Notes> {
        self.noted.as_ref()
    }

    /// What is to be noted before anything is written, so that whoever finds only a part of it written knows that: digests of what
    /// is about to be replaced are none, and `waiting` files wait for a reload.
    pub(crate) fn notes_before(&self, waiting: impl Iterator<Item = String>) -> Notes {
        let mut notes = self.noted.clone().unwrap_or_default();
        for (name, ..) in self.certificates.written() {
            notes.ssl_certificates.remove(name);
        }
        notes.ca_files.extend(self.wanted.ca_files.iter().cloned());
        notes.crt_lists.extend(self.wanted.crt_lists.iter().cloned());
        notes.awaiting_reload.extend(waiting);
        notes
    }

    /// What is to be noted when all is written, where `before` is noted.
    pub(crate) fn notes_written(&self, before: &Notes) -> Notes {
        let mut notes = before.clone();
        let wanted = &self.wanted.ssl_certificates;
        notes.ssl_certificates.extend(wanted.iter().map(|(name, digest)| (name.clone(), digest.clone())));
        notes
    }

    /// What is to be noted when all is done, but for files that could not be deleted.
    pub(crate) fn notes_done(&self, kept: &BTreeSet<String>) -> Notes {
        let mut notes = self.wanted.clone();
        let noted = self.noted.clone().unwrap_or_default();
        let stays = |name: &&String| {
            kept.contains(*name) || self.kept.get(&FileKind::General).is_some_and(|kept| kept.contains(*name))
        };
        notes.ca_files.extend(noted.ca_files.iter().filter(stays).cloned());
        notes.crt_lists.extend(noted.crt_lists.iter().filter(stays).cloned());
        notes
    }
}

/// Why files can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareFilesError {
    /// A name can't be used.
    #[error(transparent)]
    Name(#[from] NameError),
    /// They can't be read.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Finds out what differs, all kinds at once.
pub(crate) async fn compare<T: Target>(
    target: &T,
    files: &AuxiliaryFiles,
) -> Result<FileDiffs, CompareFilesError> {
    if !files.is_any_managed() {
        return Ok(FileDiffs::default());
    }
    let (maps, general) = (files.wanted(FileKind::Map)?, files.wanted(FileKind::General)?);
    let certificates = files.wanted(FileKind::Certificate)?;
    let readable = try_join(
        compare_readable(target, FileKind::Map, &maps),
        compare_readable(target, FileKind::General, &general),
    );
    let others =
        try_join(there(target, FileKind::Certificate, &certificates), target.file(FileKind::General, NOTES));
    let ((maps, mut general), (certificates_there, held)) = try_join(readable, others).await?;
    let known = Notes::read(held.as_deref());
    let noted = held.map(|_| known.clone());
    let (certificates, digests) = compare_certificates(&certificates_there, &certificates, &known);
    general.to_delete.retain(|name| {
        let kind = if known.ca_files.contains(name) {
            General::Authorities
        } else if known.crt_lists.contains(name) {
            General::CrtList
        } else {
            General::Plain
        };
        name != NOTES && files.names(kind).is_some()
    });
    let wanted = Notes {
        ssl_certificates: digests,
        ca_files: files.noted(General::Authorities, &known.ca_files),
        crt_lists: files.noted(General::CrtList, &known.crt_lists),
        awaiting_reload: BTreeSet::new(),
    };
    let authorities = wanted.ca_files.clone();
    let awaiting_reload = known.awaiting_reload;
    let kept = BTreeMap::new();
    Ok(FileDiffs { certificates, maps, general, authorities, awaiting_reload, kept, noted, wanted })
}

/// The names that are there, where something is managed.
async fn there<T: Target>(
    target: &T,
    kind: FileKind,
    wanted: &Wanted<'_>,
) -> Result<BTreeSet<String>, ApiError> {
    if !wanted.is_managed {
        return Ok(BTreeSet::new());
    }
    Ok(target.files(kind).await?.into_iter().collect())
}

/// Compares what files hold. What is not wanted is to be deleted.
async fn compare_readable<T: Target>(
    target: &T,
    kind: FileKind,
    wanted: &Wanted<'_>,
) -> Result<FileDiff, ApiError> {
    let there = there(target, kind, wanted).await?;
    let mut diff = FileDiff::default();
    let reads = wanted.files.iter().filter(|(name, _)| there.contains(*name)).map(async |(name, bytes)| {
        let held = target.file(kind, name).await?;
        Ok::<_, ApiError>((name, bytes, held))
    });
    for (name, bytes, held) in try_join_all(reads).await? {
        match held {
            Some(held) if held == **bytes => {}
            Some(_) => drop(diff.to_update.insert(name.clone(), bytes.to_vec())),
            // It went while it was looked at.
            None => drop(diff.to_create.insert(name.clone(), bytes.to_vec())),
        }
    }
    for (name, bytes) in wanted.files.iter().filter(|(name, _)| !there.contains(*name)) {
        diff.to_create.insert(name.clone(), bytes.to_vec());
    }
    diff.to_delete = there.into_iter().filter(|name| !wanted.files.contains_key(name)).collect();
    Ok(diff)
}

/// Compares certificates by what was written last: the API does not give them back. Returns the digests afterwards, too.
fn compare_certificates(
    there: &BTreeSet<String>,
    wanted: &Wanted<'_>,
    known: &Notes,
) -> (FileDiff, BTreeMap<String, String>) {
    let mut diff = FileDiff::default();
    if !wanted.is_managed {
        return (diff, known.ssl_certificates.clone());
    }
    let mut digests = BTreeMap::new();
    for (name, bytes) in &wanted.files {
        let digest = digest(bytes);
        if !there.contains(name) {
            diff.to_create.insert(name.clone(), bytes.to_vec());
        } else if known.ssl_certificates.get(name) != Some(&digest) {
            diff.to_update.insert(name.clone(), bytes.to_vec());
        }
        digests.insert(name.clone(), digest);
    }
    diff.to_delete = there.iter().filter(|name| !wanted.files.contains_key(*name)).cloned().collect();
    (diff, digests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(names: &[&str]) -> Files {
        names.iter().map(|name| ((*name).to_owned(), b"x".to_vec())).collect()
    }

    #[test]
    fn a_kind_that_is_not_managed_deletes_nothing_and_an_empty_one_everything() {
        let desired = AuxiliaryFiles {
            maps: Some(files(&[])),
            crt_lists: Some(files(&["a.txt"])),
            ..AuxiliaryFiles::default()
        };
        assert!(desired.wanted(FileKind::Map).unwrap().is_managed);
        assert!(!desired.wanted(FileKind::Certificate).unwrap().is_managed);
        assert_eq!(desired.names(General::CrtList).unwrap().len(), 1);
        assert_eq!(desired.names(General::Plain), None, "what else is general is left alone");
    }

    #[test]
    fn crt_list_files_stored_as_general_files() {
        let desired = AuxiliaryFiles {
            general: Some(files(&["503.http"])),
            ca_files: Some(files(&["ca.pem"])),
            crt_lists: Some(files(&["list.txt"])),
            ..AuxiliaryFiles::default()
        };
        let general = desired.wanted(FileKind::General).unwrap();
        assert_eq!(general.files.keys().collect::<Vec<_>>(), ["503.http", "ca.pem", "list.txt"]);
        assert!(general.is_managed, "what is none of them goes, once");
    }

    #[test]
    fn names_are_those_that_the_api_gives_and_two_files_never_share_one() {
        let desired =
            AuxiliaryFiles { maps: Some(files(&["my.hosts", "a.map"])), ..AuxiliaryFiles::default() };
        let maps = desired.wanted(FileKind::Map).unwrap();
        assert_eq!(maps.files.keys().collect::<Vec<_>>(), ["a.map", "my.hosts.map"]);
        let shared = AuxiliaryFiles {
            certificates: Some(files(&["a.b.pem", "a_b.pem"])),
            ..AuxiliaryFiles::default()
        };
        assert!(matches!(shared.wanted(FileKind::Certificate), Err(NameError::Taken { .. })));
        let none = AuxiliaryFiles { general: Some(files(&[".."])), ..AuxiliaryFiles::default() };
        assert_eq!(none.wanted(FileKind::General), Err(NameError::Unusable("..".to_owned())));
    }

    #[test]
    fn the_name_of_the_notes_is_no_files() {
        let desired = AuxiliaryFiles { general: Some(files(&["x.txt", NOTES])), ..AuxiliaryFiles::default() };
        assert_eq!(desired.wanted(FileKind::General), Err(NameError::Reserved(NOTES.to_owned())));
        let elsewhere = AuxiliaryFiles { certificates: Some(files(&[NOTES])), ..AuxiliaryFiles::default() };
        assert!(elsewhere.wanted(FileKind::Certificate).is_ok(), "certificates are kept elsewhere");
    }
}
