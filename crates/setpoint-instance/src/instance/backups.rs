//! Former versions of the configuration, kept as whole texts that are named by their version; and texts that HAProxy refused.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Instance;
use crate::configuration::Configuration;

impl Instance {
    /// Keeps what a commit is about to replace, and forgets the oldest.
    pub(super) fn keep(&self, replaced: &Configuration) {
        let settings = &self.inner.settings;
        if settings.backups == 0 {
            return;
        }
        if let Err(error) = self.write_backup(replaced) {
            // A commit is not refused for it.
            tracing::warn!(%error, folder = %settings.backups_folder.display(), "a former version could not be kept");
        }
    }

    fn write_backup(&self, replaced: &Configuration) -> io::Result<()> {
        let folder = &self.inner.settings.backups_folder;
        let draft = write_private(folder, "new", &replaced.print())?;
        fs::rename(draft, folder.join(replaced.version().to_string()))?;
        // By age: versions may be counted from the beginning again.
        let mut kept: Vec<_> = fs::read_dir(folder)?
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let version: u64 = entry.file_name().to_str()?.parse().ok()?;
                Some((entry.metadata().ok()?.modified().ok()?, version))
            })
            .collect();
        kept.sort_unstable();
        let surplus = kept.len().saturating_sub(self.inner.settings.backups);
        let mut oldest = kept.iter().take(surplus);
        oldest.try_for_each(|(_, version)| fs::remove_file(folder.join(version.to_string())))
    }

    /// The whole text of a former version, if it is kept.
    pub fn backup(&self, version: u64) -> Option<Vec<u8>> {
        fs::read(self.inner.settings.backups_folder.join(version.to_string())).ok()
    }

    /// Keeps a text that HAProxy refused, and that is about to be replaced: it may hold what somebody wrote by hand. Returns
    /// where it is.
    pub(super) fn keep_refused(&self, refused: &Configuration) -> io::Result<PathBuf> {
        let folder = self.inner.settings.folder.join("refused");
        write_private(&folder, &format!("{}.cfg", refused.version()), &refused.print())
    }
}

/// Writes a file that only its owner can read: configurations hold passwords.
fn write_private(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(name);
    let mut file = fs::File::options().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
    file.write_all(bytes)?;
    Ok(path)
}
