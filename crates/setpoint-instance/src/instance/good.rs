//! The last text that HAProxy accepted, kept on disk for as long as the files hold another one.
//!
//! ```text
//!  files are good ──commit──▶ good kept, files not known to be good ──loaded, or told and checked──▶ files are good
//!                                      └── refused: the good text is written back
//! ```
//!
//! A program that was killed in between leaves the kept text to the next one, which has the files checked, and can restore it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use setpoint_haproxy::model::Context;

use super::{Instance, Standing, Writer};
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

/// Writes a file that only its owner can read: configurations hold passwords.
fn write_private(bytes: &[u8], path: &Path) -> io::Result<()> {
    let mut file = fs::File::options().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

impl Instance {
    /// Keeps the last good text, before the files are going to hold another one: the files as they are, if they hold it.
    pub(super) fn keep_good(&self, writer: &mut Writer, standing: Standing) {
        let Some(good) = &writer.good else { return };
        if writer.good_is_kept {
            return;
        }
        let (own, files) = (&self.inner.settings.folder, &self.inner.settings.files);
        let folder = folder(own);
        let texts = if standing == Standing::Good { Vec::new() } else { good.texts() };
        // The first one comes last: without it, nothing is kept.
        let all = || {
            let _ = fs::remove_dir_all(&folder);
            fs::DirBuilder::new().mode(0o700).create(&folder)?;
            files.iter().enumerate().rev().try_for_each(|(number, file)| {
                let kept = folder.join(number.to_string());
                match texts.get(number) {
                    Some(text) => write_private(text, &kept),
                    None => keep(file, &kept),
                }
            })
        };
        match all() {
            Ok(()) => writer.good_is_kept = true,
            Err(error) => {
                tracing::warn!(%error, folder = %folder.display(), "the last good text could not be kept");
            }
        }
    }

    /// Takes the current text for good: HAProxy has accepted it, and runs it.
    pub(super) fn accept(&self, writer: &mut Writer) {
        let good = {
            let mut state = self.state();
            state.standing = Standing::Good;
            state.current.fork()
        };
        writer.good = Some(good);
        if std::mem::take(&mut writer.good_is_kept) {
            let folder = folder(&self.inner.settings.folder);
            let _ = fs::remove_file(folder.join("0")).and_then(|()| fs::remove_dir_all(&folder));
        }
    }
}
