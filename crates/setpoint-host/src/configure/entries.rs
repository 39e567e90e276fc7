//! Files and links: what is replaced as a whole, in one step, by a new one that was made beside it.
//!
//! ```text
//!  nothing is there ─────▶ made
//!  something is there ───▶ kept ─▶ noted ─▶ replaced ──▶ … ──▶ what was kept is put back, and released
//! ```
//!
//! What is about to be replaced is kept first, unless Setpoint wrote it: the original of what is taken over, and what somebody
//! wrote in its place since.

use setpoint_engine::{OpCx, OpError};

use super::kept::{self, Original};
use super::locations::Location;
use super::notes::PathNote;
use super::notice::Notice;
use crate::Host;
use crate::fs::{Attached, FileType, FsError, LastLook, Number, Temporary, Written, untouched};
use crate::item::RootPath;
use crate::kinds::{HostKind, Left};

/// A kind of entries of directories.
pub(crate) trait Entries: Send + Sync {
    /// What is declared of it.
    type Item: HostKind;

    /// What it is on disk.
    const KIND: FileType;

    /// The host that they are on.
    fn host(&self) -> &Host;

    /// Where an item is to be.
    fn path(item: &Self::Item) -> &RootPath;

    /// Returns whether an item takes over what is already there.
    fn adopts(item: &Self::Item) -> bool;

    /// Returns whether an item is only added to, and never replaced.
    fn is_log(_item: &Self::Item) -> bool {
        false
    }

    /// What an item holds, as it is noted when it is written.
    fn digest(item: &Self::Item) -> String;

    /// Returns whether two items hold the same.
    fn holds_same(old: &Self::Item, new: &Self::Item) -> bool {
        Self::digest(old) == Self::digest(new)
    }

    /// What is at a path, as it is noted when it is written; none if nothing is there.
    fn found(&self, path: &RootPath) -> Result<Option<String>, FsError>;

    /// Returns whether what is at a path is the beginning of what an item holds: it was being written when a run was cut off.
    fn has_begun(&self, _path: &RootPath, _item: &Self::Item) -> Result<bool, FsError> {
        Ok(false)
    }

    /// What is at a path, to be kept; none if nothing is there. Of what is too large, and as an item that is given, only what else
    /// there is to it.
    fn original(&self, path: &RootPath, unchanged: Option<&Self::Item>) -> Result<Option<Original>, OpError>;

    /// What an original is as an item at a path; none if it is something else.
    fn restored(original: &Original, path: &RootPath) -> Result<Option<Restored<Self::Item>>, OpError>;

    /// Writes an item beside a path, and brings it there if it replaces something.
    fn write<'a>(&'a self, write: EntryWrite<'a, Self::Item>) -> Result<Written<'a>, FsError>;

    /// Returns whether two items differ in who may do what with them.
    fn access_differs(_old: &Self::Item, _new: &Self::Item) -> bool {
        false
    }

    /// Gives what is there the permissions of an item, where it has others.
    fn set_access(&self, _item: &Self::Item) -> Result<(), FsError> {
        Ok(())
    }
}

/// An original as an item.
pub(crate) struct Restored<T> {
    pub(crate) item: T,
    /// What it has besides.
    pub(crate) attached: Attached,
}

/// An item to be written.
pub(crate) struct EntryWrite<'a, T> {
    /// What it is written for, and may be cancelled with.
    pub(crate) cx: &'a OpCx,
    pub(crate) item: &'a T,
    /// Where: the path of the item, or where that is set aside.
    pub(crate) path: &'a RootPath,
    pub(crate) replaces: Replaces,
    /// What it has besides what is attached to what is replaced.
    pub(crate) attached: &'a Attached,
    /// The name it has until it is whole.
    pub(crate) temporary: &'a str,
    /// Is asked right before something is replaced.
    pub(crate) last_look: LastLook<'a>,
}

/// What may be at the path of something that is written.
#[derive(Clone, Copy)]
pub(crate) enum Replaces {
    /// Nothing.
    Nothing,
    /// What is there, if it is in this directory; none for any.
    Within(Option<Number>),
}

/// Creates an item, or takes over what is there.
pub(crate) async fn create<E: Entries>(entries: &E, cx: &OpCx, new: &E::Item) -> Result<(), OpError> {
    let failed = |error: FsError| untouched(&error);
    let (host, path) = (entries.host(), E::path(new));
    host.has_arrived(new.needs(), path).map_err(failed)?;
    if let Some(aside) = host.find_aside(cx, E::KIND).map_err(failed)? {
        if !E::adopts(new) || host.0.root.stat(path).map_err(failed)?.is_none() {
            return bring_back(entries, cx, &aside, new).await;
        }
        // What is there is taken over, and the one that was made here is not needed.
        host.0.root.remove(&aside, None, E::KIND).map_err(failed)?;
    }
    if let Some(was) = host.original_elsewhere(cx, path)? {
        if host.can_go_back(cx, &was)? {
            put_back(entries, cx, &Location { path: was, within: None }).await?;
        } else {
            host.retire_original(cx, was).await?;
        }
    }
    host.begin_anew(cx).await?;
    let takes_over = E::adopts(new) || host.is_released(cx, path);
    if !E::is_log(new) {
        host.will_write(cx, E::digest(new)).await?;
    }
    let is_there = || host.0.root.stat(path).map(|found| found.is_some_and(|found| found.kind == E::KIND));
    if takes_over && is_there().map_err(failed)? {
        // Nothing is written for nothing.
        return take_over(entries, cx, new).await;
    }
    match make(entries, cx, new).await {
        Err(FsError::Exists { adoptable: true, .. }) if takes_over => take_over(entries, cx, new).await,
        made => made.map_err(failed),
    }
}

/// Changes an item, where it is or on its way to another path.
pub(crate) async fn modify<E: Entries>(
    entries: &E,
    cx: &OpCx,
    old: &E::Item,
    new: &E::Item,
) -> Result<(), OpError> {
    let host = entries.host();
    host.forget_made(cx).await?;
    if !E::is_log(new) && host.must_keep(cx) {
        let location = location(entries, cx, old)?;
        keep_unwritten(entries, cx, &location.path).await?;
    }
    let moves = E::path(old) != E::path(new);
    let is_there = !moves || move_to(entries, cx, old, new).await.map_err(|error| untouched(&error))?;
    let failed = |error: FsError| {
        // A move that was done is not undone: what is left is tried again from there.
        if moves { OpError::new(error.to_string()) } else { untouched(&error) }
    };
    // What was logged, or is to be added to, is never replaced.
    if !is_there || !E::is_log(new) && !E::holds_same(old, new) {
        host.will_write(cx, E::digest(new)).await?;
        return replace(entries, cx, new, Some(old)).await.map_err(failed);
    }
    if E::access_differs(old, new) {
        location(entries, cx, new)?;
        change_access(entries, cx, new).await.map_err(failed)?;
    }
    Ok(())
}

/// Removes an item, or puts back what was there before it.
pub(crate) async fn delete<E: Entries>(entries: &E, cx: &OpCx, old: &E::Item) -> Result<(), OpError> {
    if PathNote::of(cx).released.is_some() {
        return Ok(());
    }
    let failed = |error: FsError| untouched(&error);
    let (host, location) = (entries.host(), location(entries, cx, old)?);
    let root = &host.0.root;
    root.remove_temporary(&location.path, &Temporary::name(host.set(), cx.item())).map_err(failed)?;
    if cx.ownership().is_adopted() {
        // What a log holds was never replaced.
        return if E::is_log(old) {
            host.release_original(cx, &location.path).await
        } else {
            put_back(entries, cx, &location).await
        };
    }
    let is_as_made =
        || Ok(E::is_log(old) || entries.found(&location.path)?.is_none_or(|found| found == E::digest(old)));
    if host.is_somebodys(cx, &location.path, is_as_made)? {
        return Ok(());
    }
    if !E::is_log(old) {
        keep_news(entries, cx, &location.path, old)?;
    }
    if cx.is_recreation() && host.set_aside(cx, &location, E::KIND).await.map_err(failed)? {
        return Ok(());
    }
    root.remove(&location.path, location.within, E::KIND).map_err(failed)
}

/// Keeps what is at the path of an item that takes it over by other means than its creation. Returns the name of what is kept.
pub(crate) fn keep_original<E: Entries>(entries: &E, item: &E::Item) -> Result<Option<String>, OpError> {
    let original = entries.original(E::path(item), Some(item))?;
    original.map(|original| entries.host().0.kept.put(&original)).transpose()
}

/// Keeps what a run that was cut off has left under the temporary name of an item that was taken over, if somebody wrote it: it
/// was in the place of the item until right before, and the run could not look at it any more.
pub(crate) fn keep_left<E: Entries>(entries: &E, left: &Left<'_, E::Item>) -> Result<(), OpError> {
    let failed = |error: FsError| untouched(&error);
    if !left.state.ownership().is_adopted() {
        return Ok(());
    }
    let Some(there) = entries.found(left.at).map_err(failed)? else { return Ok(()) };
    let (host, note) = (entries.host(), left.state.noted::<PathNote>().unwrap_or_default());
    let original = note.original.as_ref().map_or(Ok(None), |name| host.0.kept.get(name))?;
    let original = original.map_or(Ok(None), |original| E::restored(&original, left.path))?;
    let original = original.as_ref().map(|original| &original.item);
    if note.wrote.contains(&there) || original.is_some_and(|original| E::digest(original) == there) {
        return Ok(());
    }
    for ours in left.values.iter().copied().chain(original) {
        if E::digest(ours) == there || entries.has_begun(left.at, ours).map_err(failed)? {
            return Ok(());
        }
    }
    let Some(found) = entries.original(left.at, None)? else { return Ok(()) };
    let kept = host.0.kept.put_change(&found.moved_to(left.path))?;
    host.0.notices.add(Notice::Changed { item: left.item.clone(), path: left.path.clone(), kept });
    Ok(())
}

/// Where an item is now.
fn location<E: Entries>(entries: &E, cx: &OpCx, item: &E::Item) -> Result<Location, OpError> {
    entries.host().locate(cx, E::path(item), E::KIND).map_err(|error| untouched(&error))
}

/// Makes an item where nothing is.
async fn make<E: Entries>(entries: &E, cx: &OpCx, new: &E::Item) -> Result<(), FsError> {
    write(entries, cx, new, E::path(new), Replaces::Nothing, &Attached::default(), None).await
}

/// Writes an item, also in the place of what is there. What somebody wrote there, until right before that, is kept: anything in the
/// place of what was there before, and what has come into the place of an item that was made here since that was read as `old`.
async fn replace<E: Entries>(
    entries: &E,
    cx: &OpCx,
    new: &E::Item,
    old: Option<&E::Item>,
) -> Result<(), FsError> {
    let (path, root) = (E::path(new), &entries.host().0.root);
    let replaces = Replaces::Within(PathNote::of(cx).within(path, || root.holder(path)));
    let is_adopted = cx.ownership().is_adopted();
    let last_look = |at: &RootPath| {
        let kept = match old {
            _ if is_adopted => keep_drift(entries, cx, path, at),
            Some(old) if at == path => keep_news(entries, cx, path, old),
            Some(_) | None => Ok(()),
        };
        unkept(path, kept)
    };
    // What was logged is not replaced.
    let is_looked_at = (is_adopted || old.is_some()) && !E::is_log(new);
    let last_look: LastLook<'_> = if is_looked_at { Some(&last_look) } else { None };
    write(entries, cx, new, path, replaces, &Attached::default(), last_look).await
}

async fn write<E: Entries>(
    entries: &E,
    cx: &OpCx,
    item: &E::Item,
    path: &RootPath,
    replaces: Replaces,
    attached: &Attached,
    last_look: LastLook<'_>,
) -> Result<(), FsError> {
    let temporary = Temporary::name(entries.host().set(), cx.item());
    let write = EntryWrite { cx, item, path, replaces, attached, temporary: &temporary, last_look };
    match entries.write(write)? {
        Written::Replaced => Ok(()),
        Written::New(prepared) => entries.host().publish(cx, prepared).await,
    }
}

/// Writes an item where it was set aside, and brings it to its path.
async fn bring_back<E: Entries>(
    entries: &E,
    cx: &OpCx,
    aside: &RootPath,
    new: &E::Item,
) -> Result<(), OpError> {
    let failed = |error: FsError| untouched(&error);
    let host = entries.host();
    if !E::is_log(new) {
        let temporary = Temporary::name(host.set(), cx.item());
        let write = EntryWrite {
            cx,
            item: new,
            path: aside,
            replaces: Replaces::Within(None),
            attached: &Attached::default(),
            temporary: &temporary,
            last_look: None,
        };
        entries.write(write).map(drop).map_err(failed)?;
    }
    if host.bring_back(cx, aside, E::path(new), E::KIND).await? {
        return Ok(());
    }
    make(entries, cx, new).await.map_err(failed)?;
    // What is left is found by the next attempt.
    let removed = host.0.root.remove(aside, None, E::KIND);
    removed.map_err(|error| OpError::new(error.to_string()))
}

/// Brings an item to its new path. Returns whether it is there with what it held.
async fn move_to<E: Entries>(entries: &E, cx: &OpCx, old: &E::Item, new: &E::Item) -> Result<bool, FsError> {
    let (host, from, to) = (entries.host(), E::path(old), E::path(new));
    host.has_arrived(new.needs(), to)?;
    if host.move_entry(cx, from, to, E::KIND).await? {
        return Ok(true);
    }
    // It may have moved with the directory around it, or be gone.
    if host.locate(cx, from, E::KIND)?.path == *to {
        return Ok(true);
    }
    host.0.root.is_free(to).map(|()| false)
}

/// Gives what is there the permissions of an item.
async fn change_access<E: Entries>(entries: &E, cx: &OpCx, new: &E::Item) -> Result<(), FsError> {
    match entries.set_access(new) {
        // A file that may not be opened may still be replaced.
        Err(FsError::NoAccess { .. }) => replace(entries, cx, new, None).await,
        Err(FsError::OtherNames { .. }) if !E::is_log(new) => {
            replace(entries, cx, new, None).await?;
            let (item, path) = (cx.item().clone(), E::path(new).clone());
            entries.host().0.notices.add(Notice::OtherNames { item, path });
            Ok(())
        }
        set => set,
    }
}

/// Takes over what is at the path of an item. What is about to be replaced is kept.
async fn take_over<E: Entries>(entries: &E, cx: &OpCx, new: &E::Item) -> Result<(), OpError> {
    let failed = |error: FsError| untouched(&error);
    let (host, path) = (entries.host(), E::path(new));
    if E::is_log(new) {
        // What was logged before goes on.
        return host.adopt(cx, path, E::KIND, None, None).await;
    }
    let (known, earlier) = (known_original(entries, cx, new)?, Host::original_name(cx));
    let kept = match &known {
        Some(known) => Some(known.name.clone()),
        None => keep_original(entries, new)?,
    };
    let Some(kept) = kept else {
        // It is gone by now.
        return make(entries, cx, new).await.map_err(failed);
    };
    let found = host.0.root.stat(path).map_err(failed)?;
    let is_ours = || matches!(entries.found(path), Ok(Some(found)) if found == E::digest(new));
    let was_so_before = is_ours();
    let taken_over = async {
        let is_as_declared =
            || -> Result<bool, OpError> { Ok(entries.found(path).map_err(failed)? == Some(E::digest(new))) };
        let wrote = match &known {
            Some(KnownOriginal { wrote: Some(wrote), .. }) => Some(wrote.clone()),
            // What is as declared is not written.
            _ if is_as_declared()? => None,
            _ => Some(E::digest(new)),
        };
        host.adopt(cx, path, E::KIND, Some(kept.clone()), wrote).await?;
        if let Some(earlier) = earlier.filter(|earlier| *earlier != kept) {
            // What is there now was written since: the other one is nobody's any more.
            if let Ok(kept) = host.0.kept.retire(&earlier) {
                let (item, path) = (cx.item().clone(), path.clone());
                host.0.notices.add(Notice::Superseded { item, path, kept });
            }
        }
        if is_as_declared()? {
            return change_access(entries, cx, new).await.map_err(failed);
        }
        host.will_write(cx, E::digest(new)).await?;
        replace(entries, cx, new, None).await.map_err(failed)?;
        if found.is_some_and(|found| found.names > 1) {
            let (item, path) = (cx.item().clone(), path.clone());
            host.0.notices.add(Notice::OtherNames { item, path });
        }
        Ok(())
    };
    let taken_over = taken_over.await;
    // Where it was replaced all the same, it is to be put back.
    if taken_over.is_err() && known.is_none() && (was_so_before || !is_ours()) {
        host.leave_original(cx, Some(&kept)).await;
    }
    taken_over
}

/// An original that is kept of what is at the path of an item.
struct KnownOriginal {
    name: String,
    /// What is there instead, if it is known that Setpoint wrote it.
    wrote: Option<String>,
}

/// The original of what is at the path of an item, where that was taken over before, also where the state has forgotten that: what is
/// there is as declared, or Setpoint wrote it. Anything else is someone's new work.
fn known_original<E: Entries>(
    entries: &E,
    cx: &OpCx,
    new: &E::Item,
) -> Result<Option<KnownOriginal>, OpError> {
    let (host, path) = (entries.host(), E::path(new));
    let Some(there) = entries.found(path).map_err(|error| untouched(&error))? else { return Ok(None) };
    let is_as_declared = there == E::digest(new);
    let is_its = host.original(cx)?.is_some_and(|original| original.path() == Some(path));
    if let Some(name) = Host::original_name(cx).filter(|_| is_its && is_as_declared) {
        return Ok(Some(KnownOriginal { name, wrote: Some(there) }));
    }
    // Where the state has forgotten the item, what is as declared may be somebody's work that is declared by now.
    let Some(name) = host.0.kept.find(path, E::KIND) else { return Ok(None) };
    let original = host.0.kept.get(&name)?;
    let wrote = original.is_some_and(|original| original.wrote() == Some(&there)).then_some(there);
    Ok((is_as_declared || wrote.is_some()).then_some(KnownOriginal { name, wrote }))
}

/// Keeps what is at a path of an item whose original is not kept. What Setpoint wrote is none: the original is lost, and the
/// deletion of the item reports it.
async fn keep_unwritten<E: Entries>(entries: &E, cx: &OpCx, path: &RootPath) -> Result<(), OpError> {
    let host = entries.host();
    let there = entries.found(path).map_err(|error| untouched(&error))?;
    if there.is_some_and(|there| Host::has_written(cx, &there)) {
        return Ok(());
    }
    let Some(original) = entries.original(path, None)? else { return Ok(()) };
    host.note_original(cx, host.0.kept.put(&original)?).await
}

/// Keeps what somebody wrote in the place of an item that was taken over: what is there now, whatever was read before. It is at
/// its path, or was there until now.
fn keep_drift<E: Entries>(entries: &E, cx: &OpCx, path: &RootPath, at: &RootPath) -> Result<(), OpError> {
    let there = entries.found(at).map_err(|error| untouched(&error))?;
    // Most often it is what Setpoint wrote.
    if there.is_none_or(|there| Host::has_written(cx, &there)) {
        return Ok(());
    }
    let original = match entries.host().original(cx)? {
        Some(original) => E::restored(&original, path)?,
        // Somebody removed the copy. What is there is all the more worth keeping.
        None => None,
    };
    keep_change(entries, cx, path, at, original.map(|original| E::digest(&original.item)).as_deref())
}

/// Keeps what has come into the place of an item that was made here since this program began, and was not read as the item: nobody
/// has seen it in a plan.
fn keep_news<E: Entries>(entries: &E, cx: &OpCx, path: &RootPath, old: &E::Item) -> Result<(), OpError> {
    let host = entries.host();
    let found = host.0.root.stat(path).map_err(|error| untouched(&error))?;
    // Most often nobody has touched it for long.
    if !found.is_some_and(|found| host.is_news(&found)) {
        return Ok(());
    }
    keep_change(entries, cx, path, path, Some(&E::digest(old)))
}

/// Keeps what is at a path, or was there until now, if somebody wrote it: it is neither Setpoint's work nor the original, where
/// that is known.
fn keep_change<E: Entries>(
    entries: &E,
    cx: &OpCx,
    path: &RootPath,
    at: &RootPath,
    original: Option<&str>,
) -> Result<(), OpError> {
    let there = entries.found(at).map_err(|error| untouched(&error))?;
    if there.is_none_or(|there| is_known(cx, original, &there)) {
        return Ok(());
    }
    let Some(found) = entries.original(at, None)? else { return Ok(()) };
    let (host, item) = (entries.host(), cx.item().clone());
    let kept = host.0.kept.put_change(&found.moved_to(path))?;
    host.0.notices.add(Notice::Changed { item, path: path.clone(), kept });
    Ok(())
}

/// Says why something is not replaced, where what somebody wrote there can't be kept.
fn unkept(path: &RootPath, kept: Result<(), OpError>) -> Result<(), FsError> {
    kept.map_err(|why| FsError::Unkept { path: path.to_string(), why: why.to_string() })
}

/// Returns whether what is there is Setpoint's work, or the original.
fn is_known(cx: &OpCx, original: Option<&str>, there: &str) -> bool {
    original == Some(there) || Host::has_written(cx, there)
}

/// Puts back what was there before, if anything of it was changed.
async fn put_back<E: Entries>(entries: &E, cx: &OpCx, location: &Location) -> Result<(), OpError> {
    let failed = |error: FsError| untouched(&error);
    let (host, path) = (entries.host(), &location.path);
    let kept = host.original(cx)?;
    let (is_partial, restored) = match &kept {
        Some(original) => (original.is_partial(), E::restored(original, path)?),
        None => (false, None),
    };
    let Some(Restored { item: original, attached }) = restored else {
        return Err(kept::missing(path, &host.original_path(cx), cx.item()));
    };
    let was = E::digest(&original);
    let there = entries.found(path).map_err(failed)?;
    if PathNote::of(cx).adopting && there.as_ref().is_some_and(|there| !is_known(cx, Some(&was), there)) {
        // Nobody knows whether it was ever replaced: what is there is newer than the original.
        return host.leave_newer(cx, path).await;
    }
    let is_as_it_was = there.as_ref() == Some(&was);
    if is_as_it_was {
        change_access(entries, cx, &original).await.map_err(failed)?;
    } else if !is_partial {
        let replaces = Replaces::Within(location.within);
        let last_look = |at: &RootPath| unkept(path, keep_change(entries, cx, path, at, Some(&was)));
        write(entries, cx, &original, path, replaces, &attached, Some(&last_look)).await.map_err(failed)?;
    }
    host.release_original(cx, path).await
}
