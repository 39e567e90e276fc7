//! Why a command of a host failed.

use std::io;
use std::path::PathBuf;

use serde::Serialize;
use setpoint_engine::{EngineError, Operation, ReconcileError};
use setpoint_graph::{GraphError, Item as _, ItemRef};
use setpoint_host::{Diagnostic, Directory, HostError, Origin};
use setpoint_state::StateError;

use super::moves::MoveConflict;
use crate::error::{ErrorData, Reportable, reported_as};

/// Why a command of a host failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The manifests are wrong.
    #[error("{}", diagnostics(.0))]
    Manifest(Vec<Diagnostic>),
    /// The state could not be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The host could not be opened.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A run was cut off, and has to be finished first.
    #[error("a run was cut off, and what it was doing is not finished")]
    CutOff,
    /// A run was cut off in another root than the manifests say now.
    #[error(
        "a run was cut off in the root where everything was before, and what it was doing is not finished"
    )]
    CutOffElsewhere,
    /// A run was cut off, and what it left can't be looked for: the root is not there.
    #[error("a run was cut off, and what it left lying about can't be looked for, as the root is not there")]
    NotSwept,
    /// Something of an item is set aside, and would be forgotten with it.
    #[error("{item} has made room for another item, and is set aside{}; only the state knows that", .path.as_ref().map_or_else(String::new, |path| format!(" at {}", path.display())))]
    SetAside {
        /// The item.
        item: ItemRef,
        /// Where it is; none if the root is not there to be looked at.
        path: Option<PathBuf>,
    },
    /// No item has the name that was given.
    #[error("{item} is neither declared nor remembered{meant}", item = .0, meant = meant(.1.as_ref()))]
    NoSuchItem(ItemRef, Option<ItemRef>),
    /// An item is not remembered.
    #[error("{item} is not in the state{meant}", item = .0, meant = meant(.1.as_ref()))]
    NotRemembered(ItemRef, Option<ItemRef>),
    /// An item is not declared.
    #[error("{item} is not declared{meant}", item = .0, meant = meant(.1.as_ref()))]
    NotDeclared(ItemRef, Option<ItemRef>),
    /// An item is looked after already.
    #[error("{0} is in the state already")]
    Remembered(ItemRef),
    /// An item has its new name already.
    #[error("{to} is in the state, and {from} is not: it has its new name already")]
    RenamedAlready {
        /// Its old name.
        from: ItemRef,
        /// Its new name.
        to: ItemRef,
    },
    /// An item can't have the name of another one.
    #[error("{from} can't be called {to}: both are in the state")]
    NameTaken {
        /// The item.
        from: ItemRef,
        /// The other one.
        to: ItemRef,
    },
    /// An item is not on the host.
    #[error("{0} is not on the host")]
    NotThere(ItemRef),
    /// An item can't become one of another kind.
    #[error("{from} can't become {to}: that is another kind of thing")]
    OtherKind {
        /// What it is.
        from: ItemRef,
        /// What it was to become.
        to: ItemRef,
    },
    /// Some items could not be read.
    #[error("some items can't be read, and are left as they are:\n  {}", .0.join("\n  "))]
    Unreadable(Vec<String>),
    /// What runs that were cut off have left could not be removed.
    #[error(
        "what a run that was cut off may have left is not removed, and the next run tries again:\n  {}",
        .0.join("\n  ")
    )]
    LeftOver(Vec<String>),
    /// The manifests protect an item.
    #[error(
        "{item} is declared with `prevent_destroy` in {declared_in}, which protects it again with the next run"
    )]
    ProtectedByManifest {
        /// The item.
        item: ItemRef,
        /// Where it is declared.
        declared_in: String,
    },
    /// What is to be imported is remembered under another name.
    #[error("what {item} declares is looked after already, as {other}")]
    RememberedAs {
        /// The item.
        item: ItemRef,
        /// What is remembered in its place.
        other: ItemRef,
    },
    /// The plan deletes what must not be: each item, and whether the manifests declare it.
    #[error("the plan deletes what is protected by `prevent_destroy`: {}", listed(.0.iter().map(|(item, _)| item)))]
    Protected(Vec<(ItemRef, bool)>),
    /// Moves that can't be made at once.
    #[error("this can't be done at once: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    MoveConflicts(Vec<MoveConflict>),
    /// A move that would take the state away.
    #[error("{item} leads to the state, {}, which would be somewhere else while it is written", .state.display())]
    MovesState {
        /// The directory or link that the state is in, or behind.
        item: ItemRef,
        /// The state.
        state: PathBuf,
    },
    /// Manifests that declare nothing of what is there.
    #[error("{}, and there {}", nothing_of(*.declared), were(*.there))]
    NothingLeft {
        /// How many items they declare.
        declared: usize,
        /// How many items are there.
        there: usize,
    },
    /// A file that declared something, and does not any more.
    #[error("{} declares nothing any more, and what it declared would be deleted", .0.display())]
    Emptied(PathBuf),
    /// A file that declared something, and is not among the manifests that were asked for.
    #[error("{} declared some of what is there, and is not read; what it declared would be deleted", .0.display())]
    LeftOut(PathBuf),
    /// Manifests that are about something else than they were.
    #[error("the set has another name or another root now; stop and start `setpoint watch`")]
    OtherSetNow,
    /// The file system that everything is in is not there.
    #[error("the file system at {} is not mounted, and what is remembered of {} is in it", .mount.display(), .root.display())]
    NotMounted {
        /// Where it was mounted.
        mount: PathBuf,
        /// The root.
        root: PathBuf,
    },
    /// Everything that is remembered is in another root.
    #[error("what is remembered is in {}, and the manifests say {} now", .was.display(), .now.display())]
    OtherRoot {
        /// Where everything is.
        was: PathBuf,
        /// What the manifests say.
        now: PathBuf,
    },
    /// Another directory is in the place of the root.
    #[error("{} is another directory than the one in which everything was that is remembered", .0.display())]
    ReplacedRoot(PathBuf),
    /// What is remembered is not in the new root.
    #[error("{} {} not in the new root as {} in the old one", listed(.0), if .0.len() == 1 { "is" } else { "are" }, if .0.len() == 1 { "it was" } else { "they were" })]
    NotMoved(Vec<ItemRef>),
    /// Processes of another root.
    #[error("{} in the root that everything was moved from", running(.0))]
    Running(Vec<ItemRef>),
    /// What is kept can't be read.
    #[error("what is kept can't be read: {0}")]
    KeptList(io::Error),
    /// Something that is kept can't be read.
    #[error("{name}: {why}")]
    DamagedKept {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// Nothing is kept under a name.
    #[error("nothing is kept as {0}")]
    NotKept(String),
    /// Nobody can be asked.
    #[error("there is no terminal to ask on, and nothing was changed")]
    NobodyToAsk,
    /// A person did not agree.
    #[error("nothing was changed")]
    Declined,
    /// A plan in a file can't be used.
    #[error("can't use the plan {}: {why}", .path.display())]
    PlanFile {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A plan can't be kept in a file.
    #[error("can't keep the plan in {}: {why}", .path.display())]
    PlanNotKept {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// An item that is to be made anew is none of those that a command is about.
    #[error("{0} is to be made anew, and is not among what `--target` names and what that needs")]
    NotTargeted(ItemRef),
    /// The host changed between the plan that was shown and the answer.
    #[error("the host has changed since this was shown, and nothing was done: {}", .0.join("; "))]
    ChangedMeanwhile(Vec<String>),
    /// A plan in a file is not what would be done now.
    #[error("the plan has gone stale: {0}")]
    Stale(String),
    /// A run that is not in the history.
    #[error("there is no run {0} in the history")]
    NoSuchRun(u64),
    /// Nothing was ever done.
    #[error("there was no run yet")]
    NoRun,
    /// A run did not do all that was planned; the errors have been reported.
    #[error("not all was done: {why}")]
    Incomplete {
        /// Why.
        why: String,
        /// The command that made the run.
        command: String,
        /// What failed.
        failed: Vec<(ItemRef, Operation)>,
    },
    /// What is about to be done could not be noted, so that it was not.
    #[error("not all was done: the journal could not be written: {0}")]
    Journal(String),
    /// Files can't be followed.
    #[error("can't follow the files: {}", why_unfollowed(.0))]
    Watch(#[from] notify::Error),
    /// The directory to keep already holds something.
    #[error("{} is not empty", .0.display())]
    NotEmpty(PathBuf),
    /// The directory to keep can't be made or read.
    #[error("can't use {} as a directory: {source}", .dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The temporary directory could not be made.
    #[error("can't make a temporary directory: {0}")]
    Temporary(#[source] io::Error),
    /// The temporary directory could not be removed.
    #[error("can't remove the temporary directory: {0}")]
    Cleanup(#[source] io::Error),
    /// The real state could not be read.
    #[error("can't read {what}: {why}")]
    Read {
        /// Of what.
        what: String,
        /// Why.
        why: String,
    },
    /// The demonstration could not make the change that it shows the repair of.
    #[error("the demonstration can't change {what}: {source}")]
    DemoChange {
        /// What was to be changed.
        what: String,
        /// Why not.
        source: io::Error,
    },
    /// An intended graph was refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// A run was refused.
    #[error(transparent)]
    Refused(#[from] EngineError),
    /// A run did not reach the intended state.
    #[error("the intended state was not reached: {0}")]
    Reconcile(#[from] ReconcileError),
}

reported_as!(Error: StateError, HostError, notify::Error, GraphError, EngineError, ReconcileError);

/// Why something can't be followed, in words: notify's own show paths as a program would.
pub(crate) fn why_unfollowed(error: &notify::Error) -> String {
    use notify::ErrorKind;
    match &error.kind {
        ErrorKind::Io(error) => error.to_string(),
        ErrorKind::Generic(why) => why.clone(),
        ErrorKind::PathNotFound => "it is not there".to_owned(),
        ErrorKind::MaxFilesWatch => {
            "the system follows no more of them (fs.inotify.max_user_watches)".to_owned()
        }
        ErrorKind::WatchNotFound | ErrorKind::InvalidConfig(_) => "the system does not follow it".to_owned(),
    }
}

impl Reportable for Error {
    fn kind(&self) -> &'static str {
        match self {
            Self::Manifest(_) => "manifest",
            Self::State(StateError::Locked { .. } | StateError::Busy { .. }) => "locked",
            Self::State(StateError::OtherSet { .. }) => "other-set",
            Self::State(_) | Self::Journal(_) => "state",
            Self::Unreadable(_) | Self::LeftOver(_) | Self::Host(_) | Self::NotThere(_) => "host",
            Self::NoSuchItem(..)
            | Self::NotRemembered(..)
            | Self::NotDeclared(..)
            | Self::Remembered(_)
            | Self::RenamedAlready { .. }
            | Self::NameTaken { .. }
            | Self::SetAside { .. }
            | Self::OtherKind { .. } => "item",
            Self::Protected(_) | Self::ProtectedByManifest { .. } => "protected",
            Self::NothingLeft { .. } | Self::Emptied(_) | Self::LeftOut(_) => "nothing-left",
            Self::MoveConflicts(_) | Self::MovesState { .. } => "moves",
            Self::OtherRoot { .. }
            | Self::ReplacedRoot(_)
            | Self::NotMounted { .. }
            | Self::Running(_)
            | Self::NotMoved(_) => "root",
            Self::NobodyToAsk | Self::Declined => "declined",
            Self::PlanFile { .. } | Self::PlanNotKept { .. } => "plan-file",
            Self::Stale(_) | Self::ChangedMeanwhile(_) => "stale",
            Self::NoSuchRun(_) | Self::NoRun => "history",
            Self::Incomplete { .. } | Self::Reconcile(_) => "incomplete",
            _ => "failed",
        }
    }

    fn is_passing(&self) -> bool {
        use setpoint_state::StateError::{Busy, Database, File};
        matches!(self, Self::State(Busy { .. } | Database { .. } | File { .. }) | Self::Journal(_))
    }

    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::State(StateError::Locked { .. }) => {
                Some("wait for it to end, or let this command wait with `--lock-timeout 1m`")
            }
            Self::State(StateError::OtherSet { .. }) => {
                Some("name another directory with `--state`, or give the manifests their old `name` back")
            }
            Self::State(StateError::File { source, .. })
                if matches!(source.kind(), io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists) =>
            {
                Some(
                    "what is remembered is kept in a directory: name another one with `--state`, or move what is there away",
                )
            }
            Self::State(StateError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                Some("put the directory back, and run it again: what it held is what is remembered")
            }
            Self::State(StateError::Database { .. } | StateError::File { .. }) | Self::Journal(_) => Some(
                "see that the disk has room and that you may write there; nothing that was remembered is lost",
            ),
            Self::State(StateError::Unreadable { .. }) => Some(
                "this is a mistake in Setpoint: nothing was changed; `setpoint apply` goes on from what is remembered",
            ),
            Self::State(
                StateError::Broken { .. } | StateError::BrokenItem { .. } | StateError::Damaged { .. },
            ) => Some(
                "put back `state.redb` from a backup; without one, move it and `state.last` away, leave the rest of the directory, and take over what is on the host with `adopt: true`",
            ),
            Self::NoSuchItem(..) | Self::NotDeclared(..) => Some(
                "items are written kind.name, for instance file.motd; `setpoint graph` shows all of them",
            ),
            Self::NotRemembered(..) => Some("`setpoint state list` shows what is"),
            Self::SetAside { .. } => Some(
                "`setpoint apply` brings it back; say `--force` to forget it, and to leave it where it is",
            ),
            Self::CutOff => Some("`setpoint apply` finishes it; then say this again"),
            Self::CutOffElsewhere => Some(
                "bring everything back to where it was, also in the manifests, and `setpoint apply` finishes it; then move it, and say this again",
            ),
            Self::NotSwept => Some(
                "mount the root, or bring it back, and say this again; where it is gone for good, `setpoint state rm --force` forgets an item all the same",
            ),
            Self::RememberedAs { .. } => Some(
                "there is nothing to import: `setpoint apply` finds it by its place, and gives it its new name",
            ),
            Self::Remembered(_) => Some("it is looked after already, and there is nothing to import"),
            Self::RenamedAlready { .. } => Some("there is nothing left to do"),
            Self::NameTaken { .. } => Some(
                "let one of them be deleted, or forgotten with `setpoint state rm ITEM`, which leaves it on the host",
            ),
            Self::LeftOver(_) => Some("mend what keeps it from being removed, and run it again"),
            Self::Unreadable(_) => Some("mend what keeps them from being read, and run it again"),
            Self::MoveConflicts(_) => Some(
                "nothing was changed; do it in two steps: first the directories with all that is in them, then the rest; declare what is behind a link by the directory that it is in",
            ),
            Self::MovesState { .. } => Some(
                "nothing was changed; move the state out of it by hand first, and name its directory with `--state`",
            ),
            Self::ProtectedByManifest { .. } => {
                Some("take `prevent_destroy` away there: a declaration without it ends the protection")
            }
            Self::NothingLeft { declared: 0, .. } => {
                Some("say `--allow-empty` if all of it is to be deleted, or use `setpoint destroy`")
            }
            Self::NothingLeft { .. } => Some(
                "say `--allow-empty` if what is there is to be deleted; what only has another name now is renamed with `setpoint state mv OLD NEW` while no `watch` runs",
            ),
            Self::Emptied(_) => Some(
                "mend it; if what it declared is to be deleted, remove the file, say `setpoint apply`, or say `--allow-empty`",
            ),
            Self::LeftOut(_) => Some(
                "name the directory of the manifests with `-f`; if what the file declared is to be deleted, say `setpoint apply`, or say `--allow-empty`",
            ),
            Self::OtherRoot { .. } => Some(
                "nothing was changed; say `setpoint destroy` with the old root first, or move everything by hand and say `setpoint state relocate`",
            ),
            Self::NotMounted { .. } => Some(
                "nothing was changed; mount it, or, if everything was moved to this file system, say `setpoint state relocate`",
            ),
            Self::ReplacedRoot(_) => Some(
                "nothing was changed; put the old one back, or, if this one is a copy of it or is to be filled anew, say `setpoint state relocate`",
            ),
            Self::NotMoved(_) => Some(
                "nothing was changed; move what is in the old root there first, or say `--partly` to have the rest made anew",
            ),
            Self::Running(_) => Some("end them, and let `setpoint state rm ITEM` forget them, first"),
            Self::NobodyToAsk => Some("say `--yes` to go on without being asked"),
            Self::Stale(_) => Some("make a new one with `setpoint plan --out FILE`"),
            Self::ChangedMeanwhile(_) => Some("start it again, and look at what it shows then"),
            Self::NotTargeted(_) => Some("name it with `--target` as well"),
            Self::NoSuchRun(_) => Some("`setpoint history` lists the runs"),
            Self::PlanFile { .. } => {
                Some("a plan is what `setpoint plan --out FILE` wrote; manifests are named with `-f FILE`")
            }
            Self::PlanNotKept { .. } => {
                Some("name a file that is not there yet, in a directory that is and that you may write to")
            }
            Self::NotKept(_) => Some("`setpoint state kept` lists the names of what is kept"),
            Self::NotEmpty(_) => Some("name a directory that does not exist yet, or an empty one"),
            Self::Directory { .. } => Some("name a directory that you may write to"),
            Self::Temporary(_) => {
                Some("set TMPDIR to a directory that you may write to, or use `--keep DIR`")
            }
            Self::Cleanup(_) => Some("something else uses it; remove it by hand"),
            Self::Read { .. } | Self::DemoChange { .. } | Self::Reconcile(_) => {
                Some("something else may be at work in the same directory; run it again")
            }
            _ => None,
        }
    }

    fn named_hint(&self) -> Option<String> {
        match self {
            Self::Incomplete { command, failed, .. } => Some(mend(command, failed)),
            Self::Protected(items) => Some(unprotect(items)),
            _ => None,
        }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::NotEmpty(_)
            | Self::Directory { .. }
            | Self::NoSuchItem(..)
            | Self::NotRemembered(..)
            | Self::NotDeclared(..)
            | Self::NotKept(_)
            | Self::NoSuchRun(_) => crate::error::USAGE,
            // The manifests are fine: a value was set that they do not have.
            Self::Manifest(wrong) if wrong.iter().all(|wrong| wrong.origin == Origin::Variable) => {
                crate::error::USAGE
            }
            _ => 1,
        }
    }

    fn has_own_heading(&self) -> bool {
        // Diagnostics say themselves that they are errors.
        matches!(self, Self::Manifest(_))
    }

    fn data(&self) -> Option<ErrorData> {
        let Self::Manifest(wrong) = self else { return None };
        let diagnostics = wrong.iter().map(|wrong| serde_json::json!(DiagnosticView::from(wrong)));
        Some(ErrorData { message: errors(wrong.len()), diagnostics: diagnostics.collect() })
    }
}

/// One error of a manifest as data.
#[derive(Debug, Serialize)]
pub(super) struct DiagnosticView<'a> {
    file: String,
    line: usize,
    column: usize,
    text: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> From<&'a Diagnostic> for DiagnosticView<'a> {
    fn from(diagnostic: &'a Diagnostic) -> Self {
        Self {
            file: diagnostic.file.display().to_string(),
            line: diagnostic.line,
            column: diagnostic.column,
            text: &diagnostic.text,
            message: &diagnostic.message,
            hint: diagnostic.hint.as_deref(),
        }
    }
}

/// What someone who named an unknown item probably meant.
pub(super) fn nearest<'a>(item: &ItemRef, known: impl IntoIterator<Item = &'a ItemRef>) -> Option<ItemRef> {
    let written = item.to_string();
    let scored = known.into_iter().map(|known| {
        let known_text = known.to_string();
        // A plural, or no kind at all, is a usual slip.
        let same_name = known.name() == item.name() || known.name().as_str() == written;
        let distance = strsim::damerau_levenshtein(&written, &known_text);
        (if same_name { distance.min(1) } else { distance }, known)
    });
    let (distance, nearest) = scored.min()?;
    (distance <= 1 + written.chars().count() / 4).then(|| nearest.clone())
}

fn meant(item: Option<&ItemRef>) -> String {
    item.map_or_else(String::new, |item| format!("; did you mean {}?", written(item)))
}

/// An item as a command line and a manifest have it.
fn written(item: &ItemRef) -> String {
    format!("{}.{}", item.kind(), item.name())
}

/// What to do after a run that did not do all.
fn mend(command: &str, failed: &[(ItemRef, Operation)]) -> String {
    let again = if command == "destroy" { command } else { "apply" };
    let Some((item, _)) = failed.first() else { return format!("run `setpoint {again}` again to go on") };
    let item = written(item);
    let kept = failed
        .iter()
        .filter(|(item, operation)| *operation == Operation::Delete && *item.kind() == Directory::KIND);
    let kept: Vec<String> = kept.map(|(item, _)| written(item)).collect();
    let stays = if kept.is_empty() {
        String::new()
    } else {
        format!(
            "; a directory that is to stay with what it holds is forgotten with `setpoint state rm {}`",
            kept.join(" ")
        )
    };
    format!(
        "`setpoint explain {item}` says why an item is as it is; mend what failed and run `setpoint {again}` again{stays}"
    )
}

/// How protected items can go: each by its declaration, or, without one, in the state.
fn unprotect(items: &[(ItemRef, bool)]) -> String {
    let (declared, remembered): (Vec<_>, Vec<_>) = items.iter().partition(|(_, is_declared)| *is_declared);
    let names = |items: Vec<&(ItemRef, bool)>| {
        items.into_iter().map(|(item, _)| written(item)).collect::<Vec<_>>().join(" ")
    };
    let mut ways = Vec::new();
    if !declared.is_empty() {
        ways.push(format!("declare {} without `prevent_destroy` first", names(declared)));
    }
    if !remembered.is_empty() {
        ways.push(format!("say `setpoint state unprotect {}`", names(remembered)));
    }
    format!("if they may go, {}", ways.join(", and "))
}

/// What manifests declare of what is there.
fn nothing_of(declared: usize) -> &'static str {
    if declared == 0 {
        "the manifests declare nothing any more"
    } else {
        "the manifests declare nothing of what is there"
    }
}

fn were(items: usize) -> String {
    if items == 1 { "is 1 item".to_owned() } else { format!("are {items} items") }
}

fn running(items: &[ItemRef]) -> String {
    format!("{} {} running", listed(items), if items.len() == 1 { "is" } else { "are" })
}

fn listed<'a>(items: impl IntoIterator<Item = &'a ItemRef>) -> String {
    items.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Diagnostics one after the other, and how many there are.
fn diagnostics(diagnostics: &[Diagnostic]) -> String {
    let mut text: Vec<String> = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
    text.push(format!("error: {}", errors(diagnostics.len())));
    text.join("\n")
}

/// How many errors manifests have, in a sentence.
fn errors(count: usize) -> String {
    match count {
        1 => "the manifest has 1 error, and nothing was changed".to_owned(),
        count => format!("the manifests have {count} errors, and nothing was changed"),
    }
}
