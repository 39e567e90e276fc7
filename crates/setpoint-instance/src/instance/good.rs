//! The last text that HAProxy accepted, kept on disk for as long as the files hold another one.
//!
//! ```text
//!  files are good ──commit──▶ good kept, files not known to be good ──loaded, or checked with no reload to come──▶ files are good
//!                                      └── refused: the good text is written back
//! ```
//!
//! A program that was killed in between leaves the kept text to the next one, which has the files checked, and can restore it.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use setpoint_haproxy::model::Context;

use super::{Instance, Writer};
use crate::configuration::Configuration;

fn folder(own: &Path) -> PathBuf {
    own.join("good")
}

/// The last good text that an earlier program has kept, if it was killed before HAProxy accepted what followed.
pub(super) fn kept(own: &Path, files: &[PathBuf], cx: &'static Context) -> Option<Configuration> {
    let read = |(number, file): (usize, &PathBuf)| {
        let bytes = fs::read(folder(own).join(number.to_string())).ok()?;
        Some((file.clone(), bytes))
    };
    Configuration::of(files.iter().enumerate().map(read).collect::<Option<Vec<_>>>()?, cx)
}

/// Keeps a file under another name: the same bytes if it is going to be replaced as a whole, else a copy.
fn keep(file: &Path, kept: &Path) -> io::Result<()> {
    let place = setpoint_files::target(file)?;
    if setpoint_files::is_mount(&place)? || fs::hard_link(&place, kept).is_err() {
        fs::copy(&place, kept)?;
    }
    Ok(())
}

impl Instance {
    /// Keeps the files as they are, if they are what HAProxy accepted last.
    pub(super) fn keep_good(&self, writer: &mut Writer) {
        if writer.good_is_kept {
            return;
        }
        let (own, files) = (&self.inner.settings.folder, &self.inner.settings.files);
        let folder = folder(own);
        // The first one comes last: without it, nothing is kept.
        let all = || {
            let _ = fs::remove_dir_all(&folder);
            fs::DirBuilder::new().mode(0o700).create(&folder)?;
            let mut files = files.iter().enumerate().rev();
            files.try_for_each(|(number, file)| keep(file, &folder.join(number.to_string())))
        };
        match all() {
            Ok(()) => writer.good_is_kept = true,
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "the last good text could not be kept");
            }
        }
    }

    /// Takes the current text for good: HAProxy has accepted it.
    pub(super) fn accept(&self, writer: &mut Writer) {
        writer.good = self.state().current.fork();
        writer.unchecked = false;
        if std::mem::take(&mut writer.good_is_kept) {
            let folder = folder(&self.inner.settings.folder);
            let _ = fs::remove_file(folder.join("0")).and_then(|()| fs::remove_dir_all(&folder));
        }
    }
}
