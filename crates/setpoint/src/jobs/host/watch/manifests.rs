//! The manifests of `watch`: read when nobody writes them, and kept as they were while they are wrong.

use std::time::{Instant, SystemTime};

use setpoint_host::Manifest;

use super::follow::{Changes, LONG, QUIET, manifests_at, quiet_before, were_written_since};
use super::{Mode, WatchLoop};
use crate::error::CliError;
use crate::jobs::host::args::SetArgs;
use crate::jobs::host::error::Error;
use crate::jobs::host::set::{Set, add_parents, declaring, directory_of, load_manifest, no_longer_declaring};
use crate::report::Report;

/// Loads the manifests when nobody has written to them for a moment: what the second half of one declares would be deleted.
pub(super) fn load_when_quiet(args: &SetArgs, report: Report) -> Result<Set, CliError> {
    let (began, mut is_reported) = (Instant::now(), false);
    loop {
        let loading = SystemTime::now();
        let set = Set::load(args);
        if !is_being_written(set.as_ref().ok().map(|set| &set.manifest), args, loading) {
            return set;
        }
        if began.elapsed() >= LONG && !std::mem::replace(&mut is_reported, true) {
            report.info("manifests are being written; they are read when they were left alone for a moment");
        }
        std::thread::sleep(QUIET / 2);
    }
}

/// Returns whether manifests that were loaded from a time on, or something that they refer to, were written at that time or
/// shortly before.
fn is_being_written(manifest: Option<&Manifest>, args: &SetArgs, loading: SystemTime) -> bool {
    let files = manifest.map_or_else(|| manifests_at(&args.at.file), |manifest| manifest.files().to_vec());
    were_written_since(&files, quiet_before(loading))
}

impl WatchLoop {
    /// What is wrong with manifests that declare nothing of what is there.
    pub(super) fn nothing_left(&self, manifest: &Manifest) -> Option<CliError> {
        let current = self.current.as_ref().filter(|_| !self.allow_empty)?;
        let mut there = current.items().filter(|node| !node.item().external()).peekable();
        there.peek()?;
        let left = there.any(|node| manifest.declared(node.reference()).is_some());
        (!left).then(|| Error::NothingLeft { declared: manifest.len(), there: current.len() }.into())
    }

    /// What is wrong with a file that is there, declared something, and does not any more, where something would be deleted: it
    /// is being written, or was damaged.
    pub(super) fn emptied(&self, manifest: &Manifest) -> Option<CliError> {
        let current = self.current.as_ref().filter(|_| !self.allow_empty)?;
        let mut there = current.items().filter(|node| !node.item().external());
        there.find(|node| !manifest.graph().contains(node.reference()))?;
        let before = match &self.mode {
            Mode::Reconcile(writer) => writer.manifests(),
            Mode::Report { .. } => Some(declaring(&self.set.manifest)),
        };
        // Where nobody knows which files declared anything, each of them may have.
        let before = before.unwrap_or_else(|| {
            let files = manifests_at(&self.args.at.file);
            files.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect()
        });
        let file = no_longer_declaring(&before, manifest, directory_of(&self.args.at.file))?;
        let is_read = self.args.at.file.is_dir() || self.args.at.file.file_name() == file.file_name();
        Some(if is_read { Error::Emptied(file).into() } else { Error::LeftOut(file).into() })
    }

    /// Takes over what the manifests say now; while they are wrong, what they said last stands.
    pub(super) fn reload(&mut self) -> Result<(), CliError> {
        let loading = SystemTime::now();
        let loaded = load_manifest(&self.args);
        if is_being_written(loaded.as_ref().ok(), &self.args, loading) {
            // They are read again when they were left alone.
            self.meanwhile.follower.add(Changes { manifests: true, ..Changes::nothing() });
            return Ok(());
        }
        let old = &self.set.manifest;
        let loaded = loaded.and_then(|mut manifest| {
            if let Some(current) = &self.current {
                add_parents(&mut manifest, &self.host, current);
            }
            if let Some(error) = self.nothing_left(&manifest).or_else(|| self.emptied(&manifest)) {
                Err(error)
            } else if manifest.name() == old.name() && manifest.root() == old.root() {
                Ok(manifest)
            } else {
                Err(Error::OtherSetNow.into())
            }
        });
        match loaded {
            Ok(manifest) => {
                if !manifest.graph().diff(old.graph()).is_empty() || !self.wrong.is_empty() {
                    self.events.reloaded(manifest.len())?;
                }
                self.set.manifest = manifest;
                self.wrong.clear();
            }
            Err(error) => {
                let wrong = error.to_string();
                if wrong != self.wrong {
                    self.events.wrong(&error)?;
                    self.wrong = wrong;
                }
            }
        }
        Ok(())
    }
}
