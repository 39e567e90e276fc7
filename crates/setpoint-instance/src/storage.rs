//! Files that a configuration refers to: maps, certificates, lists of certificates, and others.
//!
//! Names are made safe: what is not a letter, a digit, `-` or `_` becomes `_`, but for the last dot, and folders are cut off.
//! A file is written whole or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use setpoint_files::{Draft, WriteError};
use setpoint_haproxy::api::stored_name;

use crate::references::NamingLine;

/// The endings of lists of certificates, which share a folder with certificates.
const LISTS: [&str; 3] = ["txt", "crtlist", "list"];

/// Returns whether a file beside certificates is a list of them, by its name.
pub fn is_crt_list(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| LISTS.contains(&ending))
}

/// A folder of files of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    /// What names end with.
    ending: Option<&'static str>,
}

/// Why a file is not there, or can't be changed.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// It is not there.
    #[error("file {name} doesn't exist in dir: {}", folder.display())]
    Missing {
        /// Its name.
        name: String,
        /// Where it is not.
        folder: PathBuf,
    },
    /// It is there.
    #[error("file {} already exists", .0.display())]
    Exists(PathBuf),
    /// The configuration names it, or a list of certificates that the configuration names.
    #[error(
        "rejecting attempt to delete file {} referenced in {} at line {line}: {text}",
        path.display(),
        list.as_ref().map_or_else(|| "haproxy conf".to_owned(), |list| list.display().to_string())
    )]
    InUse {
        /// The file.
        path: PathBuf,
        /// The list that names it, if it is not the configuration itself.
        list: Option<PathBuf>,
        /// The line that names it, counted from 1.
        line: usize,
        /// What the line says.
        text: String,
    },
    /// No name is left of it when it is made safe.
    #[error("a file can't be called {0:?}")]
    Name(String),
    /// It can't be read or removed.
    #[error("can't {step} {}: {source}", path.display())]
    Step {
        /// What was to be done.
        step: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It can't be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl Folder {
    /// A folder, which is made when the first file comes.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), ending: None }
    }

    /// The same, in which all names end with a dot and this.
    #[must_use]
    pub fn ending(mut self, ending: &'static str) -> Self {
        self.ending = Some(ending);
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The name that a file has here.
    pub fn name(&self, name: &str) -> Result<String, StorageError> {
        let safe = stored_name(name).ok_or_else(|| StorageError::Name(name.to_owned()))?;
        Ok(match self.ending {
            Some(ending) if safe.rsplit_once('.').is_none_or(|(_, held)| held != ending) => {
                format!("{safe}.{ending}")
            }
            _ => safe,
        })
    }

    /// The names of all files, sorted. Drafts are none.
    pub fn list(&self) -> Result<Vec<String>, StorageError> {
        let failed = |source| StorageError::Step { step: "read", path: self.path.clone(), source };
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if let Ok(name) = entry.file_name().into_string()
                && !name.starts_with('.')
                && entry.path().is_file()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Where a file is that has to be there.
    pub fn find(&self, name: &str) -> Result<PathBuf, StorageError> {
        let missing = || StorageError::Missing { name: name.to_owned(), folder: self.path.clone() };
        // Others may have put files here whose names were not made safe, such as `www.example.test.pem`.
        let is_plain = !name.contains('/') && !name.starts_with('.');
        let exact = is_plain.then(|| self.path.join(name)).filter(|path| path.is_file());
        if let Some(path) = exact {
            return Ok(path);
        }
        let path = self.path.join(stored_name(name).ok_or_else(missing)?);
        if path.is_file() { Ok(path) } else { Err(missing()) }
    }

    /// Removes what a process that was killed was about to write here. Only who knows that nobody else writes here may do so.
    pub fn remove_drafts(&self) -> io::Result<()> {
        setpoint_files::remove_drafts_in(&self.path)
    }

    /// What a file holds.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        let path = self.find(name)?;
        fs::read(&path).map_err(|source| StorageError::Step { step: "read", path, source })
    }

    /// Makes a file that is not there yet. Returns where it is.
    pub fn create(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, StorageError> {
        let path = self.path.join(self.name(name)?);
        if path.exists() {
            return Err(StorageError::Exists(path));
        }
        fs::create_dir_all(&self.path).map_err(|source| StorageError::Step {
            step: "make",
            path: self.path.clone(),
            source,
        })?;
        Draft::prepare(&path, bytes)?.place()?;
        Ok(path)
    }

    /// Puts something else into a file that is there. Returns where it is.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, StorageError> {
        let path = self.find(name)?;
        Draft::prepare(&path, bytes)?.place()?;
        Ok(path)
    }

    /// Removes a file, whatever names it.
    pub(crate) fn remove(&self, name: &str) -> Result<(), StorageError> {
        let path = self.find(name)?;
        fs::remove_file(&path).map_err(|source| StorageError::Step { step: "remove", path, source })
    }

    /// Makes sure that a file is there and that no line names it.
    pub(crate) fn is_free(
        &self,
        name: &str,
        naming: impl FnOnce(&str) -> Option<NamingLine>,
    ) -> Result<(), StorageError> {
        let path = self.find(name)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(NamingLine { list, number, text }) = naming(&name) {
            return Err(StorageError::InUse { path, list, line: number, text });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_safe_as_the_original_does() {
        let maps = Folder::new("/m").ending("map");
        for (sent, kept) in [
            ("My File.map", "My_File.map"),
            ("noext", "noext.map"),
            ("../evil.map", "evil.map"),
            ("dots.in.name.map", "dots_in_name.map"),
            ("plus+and(paren).map", "plus_and_paren_.map"),
            ("ünï.map", "_n_.map"),
            (".hidden", "_hidden.map"),
            ("x.map.bak", "x_map.bak.map"),
            ("spaces  two.map", "spaces_two.map"),
        ] {
            assert_eq!(maps.name(sent).unwrap(), kept, "{sent}");
        }
        let others = Folder::new("/o");
        assert_eq!(others.name("*.example.test.pem").unwrap(), "_example_test.pem");
        assert_eq!(others.name("dots.in.name").unwrap(), "dots_in.name");
        for name in ["", "..", "/", "a/"] {
            assert!(others.name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_file_that_others_have_put_there_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("www.example.test.pem"), "x").unwrap();
        fs::write(folder.path().join(".hidden"), "x").unwrap();
        let files = Folder::new(folder.path());
        assert_eq!(files.list().unwrap(), ["www.example.test.pem"]);
        assert_eq!(files.read("www.example.test.pem").unwrap(), b"x");
        files.replace("www.example.test.pem", b"y").unwrap();
        assert_eq!(files.read("www.example.test.pem").unwrap(), b"y");
        for name in [".hidden", "..", "../etc/passwd", ""] {
            assert!(files.find(name).is_err(), "{name}");
        }
        files.remove("www.example.test.pem").unwrap();
    }

    #[test]
    fn a_file_that_a_line_names_can_not_be_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let files = Folder::new(folder.path());
        files.create("site.pem", b"x").unwrap();
        let line = NamingLine { list: None, number: 2, text: "crt site.pem".to_owned() };
        let error = files.is_free("site.pem", |_| Some(line)).unwrap_err();
        assert!(matches!(error, StorageError::InUse { line: 2, .. }), "{error}");
        files.is_free("site.pem", |_| None).unwrap();
        files.remove("site.pem").unwrap();
        assert!(matches!(files.remove("site.pem"), Err(StorageError::Missing { .. })));
    }

    #[test]
    fn files_are_made_once_and_listed_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let files = Folder::new(folder.path().join("maps"));
        assert_eq!(files.list().unwrap(), Vec::<String>::new());
        files.create("b", b"1").unwrap();
        files.create("a", b"2").unwrap();
        assert!(matches!(files.create("a", b"3"), Err(StorageError::Exists(_))));
        files.replace("a", b"4").unwrap();
        assert_eq!(
            (files.list().unwrap(), files.read("a").unwrap()),
            (vec!["a".into(), "b".into()], b"4".to_vec())
        );
    }
}
