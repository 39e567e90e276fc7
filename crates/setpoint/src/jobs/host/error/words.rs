//! The words of errors: what is listed in them, what somebody probably meant, and what can be done.

use std::io;
use std::path::Path;

use serde::Serialize;
use setpoint_engine::Operation;
use setpoint_graph::{Item as _, ItemRef};
use setpoint_host::{Diagnostic, Directory};

/// One error of a manifest as data.
#[derive(Debug, Serialize)]
pub(in super::super) struct DiagnosticView<'a> {
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
pub(in super::super) fn nearest<'a>(
    item: &ItemRef,
    known: impl IntoIterator<Item = &'a ItemRef>,
) -> Option<ItemRef> {
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

pub(super) fn meant(item: Option<&ItemRef>) -> String {
    item.map_or_else(String::new, |item| format!("; did you mean {}?", written(item)))
}

/// An item as a command line and a manifest have it.
fn written(item: &ItemRef) -> String {
    format!("{}.{}", item.kind(), item.name())
}

/// What to do after a run that did not do all.
pub(super) fn mend(command: &str, failed: &[(ItemRef, Operation)]) -> String {
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
pub(super) fn unprotect(items: &[(ItemRef, bool)]) -> String {
    let (declared, remembered): (Vec<_>, Vec<_>) = items.iter().partition(|(_, is_declared)| *is_declared);
    let names = |items: Vec<&(ItemRef, bool)>| {
        items.into_iter().map(|(item, _)| written(item)).collect::<Vec<_>>().join(" ")
    };
    let mut ways = Vec::new();
    if !declared.is_empty() {
        ways.push(format!("declare {} without `prevent_destroy` first", names(declared)));
    }
    if !remembered.is_empty() {
        ways.push(format!(
            "say `setpoint state unprotect {0}`, or declare {0} without `prevent_destroy` until a run has seen it",
            names(remembered)
        ));
    }
    format!("if they may go, {}", ways.join(", and "))
}

/// What to do about a state that can't be read or written, by what the system says.
pub(super) fn state_hint(system: Option<io::ErrorKind>) -> &'static str {
    match system {
        Some(io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists) => {
            "what is remembered is kept in a directory: name another one with `--state`, or move what is there away"
        }
        Some(io::ErrorKind::NotFound) => {
            "put the directory back, and run it again: what it held is what is remembered"
        }
        Some(io::ErrorKind::PermissionDenied) => {
            "run it as the user whose state that is, or name another directory with `--state`; nothing that was remembered is lost"
        }
        Some(io::ErrorKind::ReadOnlyFilesystem) => {
            "mount the file system so that it can be written to, or name a directory in another one with `--state`"
        }
        _ => "see that the disk has room and that you may write there; nothing that was remembered is lost",
    }
}

/// What to do about a plan that can't be kept, by what the system says.
pub(super) fn keeping_hint(system: Option<io::ErrorKind>) -> &'static str {
    match system {
        Some(io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
            "free some space, or name a file on another disk"
        }
        Some(_) => "name a file in a directory that you may write to",
        None => "name a file that is not there yet, in a directory that is",
    }
}

/// What to do about a file that is no plan.
pub(super) fn no_plan(path: &Path) -> String {
    let is_yaml = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if is_yaml || path.is_dir() {
        return format!("manifests are named with `-f`: `setpoint apply -f {}`", path.display());
    }
    "a plan is what `setpoint plan --out FILE` wrote; manifests are named with `-f FILE`".to_owned()
}

/// What manifests declare of what is there.
pub(super) fn nothing_of(declared: usize) -> &'static str {
    if declared == 0 {
        "the manifests declare nothing any more"
    } else {
        "the manifests declare nothing of what is there"
    }
}

pub(super) fn were(items: usize) -> String {
    if items == 1 { "is 1 item".to_owned() } else { format!("are {items} items") }
}

pub(super) fn running(items: &[ItemRef]) -> String {
    format!("{} {} running", listed(items), if items.len() == 1 { "is" } else { "are" })
}

pub(super) fn listed<'a>(items: impl IntoIterator<Item = &'a ItemRef>) -> String {
    items.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Diagnostics one after the other, and how many there are.
pub(super) fn diagnostics(diagnostics: &[Diagnostic]) -> String {
    let mut text: Vec<String> = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
    text.push(format!("error: {}", errors(diagnostics.len())));
    text.join("\n")
}

/// How many errors manifests have, in a sentence.
pub(super) fn errors(count: usize) -> String {
    match count {
        1 => "the manifest has 1 error, and nothing was changed".to_owned(),
        count => format!("the manifests have {count} errors, and nothing was changed"),
    }
}
