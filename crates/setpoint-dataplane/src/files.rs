//! Files that a configuration names: what is desired, and what differs from what is there.
//!
//! ```text
//! five kinds, each managed or not ──▶ three storages ──▶ to create, to update (before the configuration)
//!                                                    └─▶ to delete (after it)
//! ```

use std::collections::{BTreeMap, BTreeSet};

use futures::future::{try_join, try_join_all};
use serde::{Deserialize, Serialize};
use setpoint_haproxy::api::stored_name;
use sha2::{Digest, Sha256};

use crate::client::{ApiError, FileKind};
use crate::target::Target;

/// The file in general storage that holds what certificates were written: the API does not give them back.
pub(crate) const DIGESTS: &str = "setpoint-digests.json";

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

/// What is to be in one storage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Wanted<'f> {
    /// By the name that the API gives them.
    files: BTreeMap<String, &'f [u8]>,
    /// Whether files that are not among them are deleted.
    deletes: bool,
}

impl AuxiliaryFiles {
    fn wanted(&self, kind: FileKind) -> Result<Wanted<'_>, NameError> {
        let sources = match kind {
            FileKind::Map => vec![&self.maps],
            FileKind::Certificate => vec![&self.certificates],
            FileKind::General => vec![&self.general, &self.ca_files, &self.crt_lists],
        };
        // Of a general file that is there nobody knows which of the three it is.
        let deletes = sources.first().is_some_and(|first| first.is_some());
        let mut names: BTreeMap<String, &str> = BTreeMap::new();
        let mut files = BTreeMap::new();
        for (name, bytes) in sources.into_iter().flatten().flatten() {
            let stored = name_in(kind, name).ok_or_else(|| NameError::Unusable(name.clone()))?;
            if let Some(first) = names.insert(stored.clone(), name) {
                return Err(NameError::Taken { first: first.to_owned(), second: name.clone(), stored });
            }
            files.insert(stored, bytes.as_slice());
        }
        Ok(Wanted { files, deletes })
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
}

/// What differs in all storages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileDiffs {
    /// Certificates, with their digests as they are afterwards.
    pub certificates: FileDiff,
    /// Maps.
    pub maps: FileDiff,
    /// General files, authorities and lists of certificates.
    pub general: FileDiff,
    /// Sha-256 of each certificate that was written.
    digests: Digests,
}

/// What certificates were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Digests {
    #[serde(default)]
    ssl_certificates: BTreeMap<String, String>,
}

fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl FileDiffs {
    /// Returns whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        [&self.certificates, &self.maps, &self.general].into_iter().all(FileDiff::is_empty)
    }

    /// What differs in the storage of a kind.
    pub fn of(&self, kind: FileKind) -> &FileDiff {
        match kind {
            FileKind::Certificate => &self.certificates,
            FileKind::Map => &self.maps,
            FileKind::General => &self.general,
        }
    }

    /// The file of digests as it is when all is written.
    pub(crate) fn digests(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(&self.digests).unwrap_or_default()
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
    let (maps, general) = (files.wanted(FileKind::Map)?, files.wanted(FileKind::General)?);
    let certificates = files.wanted(FileKind::Certificate)?;
    let readable = try_join(
        compare_readable(target, FileKind::Map, &maps),
        compare_readable(target, FileKind::General, &general),
    );
    let ((maps, general), (certificates, digests)) =
        try_join(readable, compare_certificates(target, &certificates)).await?;
    Ok(FileDiffs { certificates, maps, general, digests })
}

/// Compares what files hold.
async fn compare_readable<T: Target>(
    target: &T,
    kind: FileKind,
    wanted: &Wanted<'_>,
) -> Result<FileDiff, ApiError> {
    if wanted.files.is_empty() && !wanted.deletes {
        return Ok(FileDiff::default());
    }
    let there: BTreeSet<String> = target.files(kind).await?.into_iter().collect();
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
    if wanted.deletes {
        let is_gone = |name: &String| !wanted.files.contains_key(name) && name != DIGESTS;
        diff.to_delete = there.into_iter().filter(is_gone).collect();
    }
    Ok(diff)
}

/// Compares certificates by what was written last: the API does not give them back.
async fn compare_certificates<T: Target>(
    target: &T,
    wanted: &Wanted<'_>,
) -> Result<(FileDiff, Digests), ApiError> {
    if wanted.files.is_empty() && !wanted.deletes {
        return Ok((FileDiff::default(), Digests::default()));
    }
    let (there, held) =
        try_join(target.files(FileKind::Certificate), target.file(FileKind::General, DIGESTS)).await?;
    let there: BTreeSet<String> = there.into_iter().collect();
    let known: Digests = held.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let (mut diff, mut digests) = (FileDiff::default(), Digests::default());
    for (name, bytes) in &wanted.files {
        let digest = digest(bytes);
        if !there.contains(name) {
            diff.to_create.insert(name.clone(), bytes.to_vec());
        } else if known.ssl_certificates.get(name) != Some(&digest) {
            diff.to_update.insert(name.clone(), bytes.to_vec());
        }
        digests.ssl_certificates.insert(name.clone(), digest);
    }
    if wanted.deletes {
        diff.to_delete = there.into_iter().filter(|name| !wanted.files.contains_key(name)).collect();
    }
    Ok((diff, digests))
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
        assert!(desired.wanted(FileKind::Map).unwrap().deletes);
        assert!(!desired.wanted(FileKind::Certificate).unwrap().deletes);
        let general = desired.wanted(FileKind::General).unwrap();
        assert_eq!((general.deletes, general.files.len()), (false, 1), "what else is general is not known");
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
        assert!(general.deletes, "what is none of them goes, once");
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
}
