//! The files of a sync: what is written before the configuration may name it, how it takes effect, and what goes afterwards.
//!
//! ```text
//! notes ─▶ certificates, authorities ─▶ maps and all others ─▶ notes ─▶ (configuration, reload) ─▶ deletions ─▶ notes
//! ```

use std::collections::BTreeSet;
use std::sync::PoisonError;

use futures::future::try_join;
use setpoint_haproxy::compare::Diff;
use setpoint_haproxy::text::Document;

use super::failure::not_written;
use super::{Run, SyncResult};
use crate::client::FileKind;
use crate::error::{Stage, SyncError};
use crate::files::{self, FileDiffs, NOTES, Notes, Usage};
use crate::target::{Effect, Target};

/// What it takes until HAProxy uses what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// Nothing: nothing uses the file.
    Nothing,
    /// HAProxy is told of it.
    Telling,
    /// A reload.
    Reload,
}

/// A file that is written.
struct Write<'f> {
    kind: FileKind,
    name: &'f str,
    bytes: &'f [u8],
    is_new: bool,
    /// Whether it comes before all others: what is loaded with others must not find the old one.
    is_first: bool,
    usage: Usage,
    takes: Takes,
}

impl Write<'_> {
    fn title(&self) -> String {
        format!("{} {}", self.kind, self.name)
    }
}

/// What files do to HAProxy that are to be written.
pub(super) struct Writes<'f> {
    writes: Vec<Write<'f>>,
    files: &'f FileDiffs,
}

impl Writes<'_> {
    /// The files that take a reload, each with the reason.
    pub(super) fn why_they_reload(&self) -> impl Iterator<Item = (String, String)> {
        let written = self.writes.iter().filter(|write| write.takes == Takes::Reload);
        let written = written.map(|write| {
            let why = if write.is_new { "it joins what is in use" } else { "it is replaced" };
            (write.title(), why.to_owned())
        });
        let before = self.files.awaiting_reload.iter();
        written.chain(
            before.map(|title| (title.clone(), "it was replaced, and HAProxy has not loaded it".to_owned())),
        )
    }

    /// Returns whether some of them take a reload.
    pub(super) fn take_reload(&self) -> bool {
        self.why_they_reload().next().is_some()
    }
}

/// What came of writing files.
pub(super) struct Written {
    /// Whether some wait for a reload that nobody has ordered.
    pub(super) wait: bool,
    /// What is noted now.
    notes: Option<Notes>,
}

impl<T: Target> Run<'_, T> {
    pub(super) async fn compare_files(&self, diff: &Diff) -> Result<FileDiffs, SyncError> {
        let options = self.options;
        let is_same =
            options.content_checksum.is_some() && options.content_checksum == options.last_deployed_checksum;
        if diff.is_empty() && is_same {
            return Ok(FileDiffs::default());
        }
        let mut found = files::compare(self.target, &self.desired.files).await.map_err(|error| {
            SyncError::new(Stage::CompareFiles, "the files can't be compared").caused_by(error)
        })?;
        if options.keep_files {
            found.keep();
        }
        Ok(found)
    }

    /// Decides how files take effect. Where the configuration takes a reload anyway, they take the same one.
    pub(super) fn writes<'f>(&self, files: &'f FileDiffs, current: &Document, diff: &Diff) -> Writes<'f> {
        let reloads = diff.operations().iter().any(|operation| !operation.runtime.is_possible());
        let of = |kind: FileKind| {
            files.of(kind).written().map(move |(name, bytes, is_new)| {
                let usage = Usage::of(current, kind, name);
                let takes = match usage {
                    Usage::Unused => Takes::Nothing,
                    _ if is_new || reloads || !self.target.tells(kind, &usage, bytes) => Takes::Reload,
                    _ => Takes::Telling,
                };
                let is_first = kind == FileKind::Certificate
                    || kind == FileKind::General && files.authorities.contains(name);
                Write { kind, name, bytes, is_new, is_first, usage, takes }
            })
        };
        let writes = FileKind::ALL.into_iter().flat_map(of).collect();
        Writes { writes, files }
    }

    /// Makes and replaces files before a configuration may name them: certificates and authorities first, all else at once.
    pub(super) async fn write_files(
        &self,
        writes: &Writes<'_>,
        result: &mut SyncResult,
    ) -> Result<Written, SyncError> {
        let Writes { writes, files } = writes;
        let before = self.process_before().await;
        let waiting = writes.iter().filter(|write| write.takes == Takes::Reload).map(Write::title);
        let notes = files.notes_before(waiting);
        let mut noted = self.note(files.noted().cloned(), notes).await?;
        let of = |kind: Option<FileKind>| {
            writes.iter().filter(move |write| {
                kind.map_or(write.is_first, |kind| !write.is_first && write.kind == kind)
            })
        };
        let mut effects = self.write_each(of(None)).await?;
        let written = files.notes_written(&noted.clone().unwrap_or_default());
        noted = self.note(noted, written).await?;
        let others =
            try_join(self.write_each(of(Some(FileKind::General))), self.write_each(of(Some(FileKind::Map))));
        let (general, maps) = others.await?;
        effects.extend(general.into_iter().chain(maps));
        let late = effects.iter().filter(|(_, effect)| *effect == Effect::NextReload);
        let late: Vec<String> = late.map(|(write, _)| write.title()).collect();
        if !late.is_empty() {
            let notes = noted.clone().unwrap_or_default().awaiting(late);
            noted = self.note(noted, notes).await?;
        }
        let mut wait = !files.awaiting_reload.is_empty();
        for (write, effect) in effects {
            wait |= write.takes == Takes::Reload || effect == Effect::NextReload;
            let Effect::Ordered(id) = effect else {
                if write.kind == FileKind::Map && write.takes == Takes::Telling && effect == Effect::Now {
                    self.read_back_map(write.name, write.bytes).await?;
                }
                continue;
            };
            result.reload_triggered = true;
            if self.options.verify_reload {
                self.verify(&id, before.as_ref()).await.map_err(|why| {
                    let message = format!("the reload for {} did not succeed: {why}", write.title());
                    SyncError::new(Stage::AuxiliaryReloadVerification, message)
                        .hint("the configuration was not changed; look at what HAProxy says of the file")
                })?;
                result.reload_verified = true;
            }
        }
        Ok(Written { wait, notes: noted })
    }

    /// Writes files one after the other.
    async fn write_each<'w, 'f: 'w>(
        &self,
        writes: impl Iterator<Item = &'w Write<'f>>,
    ) -> Result<Vec<(&'w Write<'f>, Effect)>, SyncError> {
        let mut effects = Vec::new();
        for write in writes {
            let Write { kind, name, bytes, .. } = *write;
            let told = Some(&write.usage).filter(|_| write.takes == Takes::Telling);
            let effect = if write.is_new {
                self.target.create_file(kind, name, bytes).await
            } else {
                self.target.replace_file(kind, name, bytes, told).await
            };
            let effect = effect.map_err(|error| not_written(kind, name, error))?;
            let sign = if write.is_new { '+' } else { '~' };
            self.written
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(format!("{sign} {}", write.title()));
            effects.push((write, effect));
        }
        Ok(effects)
    }

    /// Writes notes, where they are not there yet. Returns what is noted then.
    async fn note(&self, noted: Option<Notes>, notes: Notes) -> Result<Option<Notes>, SyncError> {
        if noted.as_ref().map_or(notes == Notes::default(), |noted| *noted == notes) {
            return Ok(noted);
        }
        let written = self.target.write_notes(&notes.bytes(), noted.is_some()).await;
        written.map_err(|error| not_written(FileKind::General, NOTES, error))?;
        Ok(Some(notes))
    }

    /// Notes what is there where nothing had to be written: which general files are of which kind may be new.
    pub(super) async fn note_what_is_there(&self, files: &FileDiffs) -> Result<(), SyncError> {
        if self.desired.files != <_>::default() {
            self.note(files.noted().cloned(), files.notes_done(&BTreeSet::new())).await?;
        }
        Ok(())
    }

    /// Deletes files that nothing names any more. That it can't be done is no failure. Where HAProxy reloads and nobody has seen that
    /// succeed, they stay: what it goes back to may name them.
    pub(super) async fn delete_files(&self, files: &FileDiffs, written: Written, result: &mut SyncResult) {
        result.kept_files = files.kept().map(str::to_owned).collect();
        let is_unseen = result.reload_triggered && !result.reload_verified;
        let mut kept = BTreeSet::new();
        for kind in FileKind::ALL {
            for name in &files.of(kind).to_delete {
                if is_unseen {
                    let why = "it stays until a sync has not to reload, or sees the reload succeed";
                    result.warnings.push(format!("{kind} {name} is not deleted: {why}"));
                    result.kept_files.push(name.clone());
                    kept.insert(name.clone());
                    continue;
                }
                match self.target.delete_file(kind, name).await {
                    Ok(()) => result.applied_files.push(format!("- {kind} {name}")),
                    Err(error) => {
                        tracing::warn!(endpoint = self.target.endpoint(), name, %error, "a file can't be deleted");
                        result.warnings.push(format!("{kind} {name} can't be deleted: {error}"));
                        kept.insert(name.clone());
                    }
                }
            }
        }
        if let Err(error) = self.note(written.notes, files.notes_done(&kept)).await {
            result.warnings.push(error.to_string());
        }
    }
}
