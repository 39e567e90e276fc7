//! Files that the configuration may name: replaced only by what HAProxy accepts, one at a time, and never beside a commit.
//!
//! ```text
//!  bytes ──▶ checked aside ──▶ noted: it is not known what HAProxy runs ──▶ in their place ──▶ HAProxy is told, or reloads
//! ```
//!
//! A program that is killed between the last two leaves the note to the next one, which reloads.

use std::path::PathBuf;

use tokio::sync::MutexGuard;

use super::{CommitError, Instance, Running, Writer};
use crate::blocking::run_blocking;
use crate::references::{Aside, Named};
use crate::storage::{Folder, StorageError};

/// Why a file is not replaced.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// HAProxy refuses the configuration with it.
    #[error("HAProxy refuses the configuration with this file: {0}")]
    Refused(String),
    /// It could not be checked.
    #[error(transparent)]
    Check(#[from] CommitError),
    /// It is not there, or can't be read or written.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A file that holds something else now, of which HAProxy is to be told. Until somebody says what came of that, nothing else is
/// committed.
#[derive(Debug)]
pub struct Replaced<'i> {
    /// Where it is.
    pub path: PathBuf,
    /// What it held.
    pub before: Vec<u8>,
    instance: &'i Instance,
    writer: MutexGuard<'i, Writer>,
    ran: Running,
}

impl Instance {
    /// Makes a file of a folder that is not there yet. Returns where it is.
    pub async fn create_file(
        &self,
        folder: &Folder,
        name: &str,
        bytes: &[u8],
    ) -> Result<PathBuf, StorageError> {
        // Nobody may make one of the same name meanwhile.
        let _writer = self.inner.writer.lock().await;
        run_blocking(|| folder.create(name, bytes))
    }

    /// Puts something else into a file of a folder. If the configuration names it, HAProxy is asked first.
    pub async fn replace_file(
        &self,
        folder: &Folder,
        name: &str,
        bytes: &[u8],
    ) -> Result<Replaced<'_>, FileError> {
        let mut writer = self.inner.writer.lock().await;
        self.begin_with_what_runs(&mut writer).await;
        let (path, before) = (folder.find(name)?, folder.read(name)?);
        self.check_file(folder, &path, bytes).await?;
        let ran = writer.running.interrupt();
        self.note(&mut writer);
        match run_blocking(|| folder.replace(name, bytes)) {
            Ok(path) => Ok(Replaced { path, before, instance: self, writer, ran }),
            Err(error) => {
                writer.running = ran;
                self.note(&mut writer);
                Err(error.into())
            }
        }
    }

    /// Asks HAProxy about the configuration with a file that holds something else, which stands aside meanwhile.
    async fn check_file(
        &self,
        folder: &Folder,
        path: &std::path::Path,
        bytes: &[u8],
    ) -> Result<(), FileError> {
        let settings = &self.inner.settings;
        if !settings.checks {
            return Ok(());
        }
        let texts = self.read(|current| current.named_texts());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let named = Named::new(folder.path(), &name, &texts, &settings.working_directory);
        let place = settings.folder.join("aside");
        let aside = Aside::make(&named, bytes, &texts, &settings.working_directory, place);
        let aside = aside.map_err(|source| StorageError::Step {
            step: "check aside",
            path: path.to_owned(),
            source,
        })?;
        let Some(aside) = aside else { return Ok(()) };
        match self.check_texts(&aside.texts, Vec::new(), "").await {
            Ok(_) => Ok(()),
            Err(CommitError::Refused { messages, .. }) => Err(FileError::Refused(aside.meant(&messages))),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes what somebody else has into a file of a folder, such as the entries that HAProxy holds. Nobody commits or replaces a
    /// file between the two.
    pub async fn write_file<E: From<StorageError>>(
        &self,
        folder: &Folder,
        name: &str,
        bytes: impl Future<Output = Result<Vec<u8>, E>>,
    ) -> Result<PathBuf, E> {
        let _writer = self.inner.writer.lock().await;
        let bytes = bytes.await?;
        Ok(run_blocking(|| folder.replace(name, &bytes))?)
    }

    /// Removes a file of a folder that nothing names.
    pub async fn delete_file(&self, folder: &Folder, name: &str) -> Result<(), StorageError> {
        self.delete_file_after(folder, name, async { Ok(()) }).await
    }

    /// Removes a file of a folder that nothing names, after something else; if that fails, the file stays.
    pub async fn delete_file_after<E: From<StorageError>>(
        &self,
        folder: &Folder,
        name: &str,
        first: impl Future<Output = Result<(), E>>,
    ) -> Result<(), E> {
        let _writer = self.inner.writer.lock().await;
        let texts = self.read(|current| current.named_texts());
        let directory = &self.inner.settings.working_directory;
        let naming = |name: &str| Named::new(folder.path(), name, &texts, directory).find(&texts, directory);
        folder.is_free(name, naming)?;
        first.await?;
        Ok(folder.remove(name)?)
    }
}

impl Replaced<'_> {
    /// HAProxy has it, or need not: somebody else sees to it.
    pub fn done(mut self) {
        self.end();
    }

    /// Orders a reload for it. Returns its name.
    pub fn order_reload(mut self) -> String {
        let id = self.instance.order_reload();
        self.end();
        id
    }

    /// Reloads for it, at once.
    pub async fn reload(mut self) -> Result<String, String> {
        // That is noted when a worker has it.
        self.writer.running = self.ran.clone();
        self.instance.reload_now(&mut self.writer).await
    }

    fn end(&mut self) {
        self.writer.running = self.ran.clone();
        self.instance.note(&mut self.writer);
    }
}
