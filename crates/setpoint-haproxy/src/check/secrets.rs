//! Diagnostics without the secrets of the lines that they are about.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::Checks;
use crate::table::accepted;
use crate::table::secrets::{SECRET, hidden, masked};
use crate::text::{Diagnostic, Document, Line};

/// Hides the secrets of the lines that something was found in.
pub(super) fn hide(document: &Document, checks: &Checks, found: &mut [Diagnostic]) {
    let wanted: FxHashSet<u32> = found.iter().map(|diagnostic| diagnostic.line).collect();
    let mut found = found.iter_mut().peekable();
    let all = document.sections().iter().flat_map(|section| section.all_lines());
    for (number, line) in (1..).zip(all) {
        if !wanted.contains(&number) {
            continue;
        }
        let secrets = accepted().secrets().in_wrong_line(&line);
        let words = if secrets.is_empty() { Vec::new() } else { spelled(&line, &secrets, checks) };
        while let Some(diagnostic) = found.next_if(|diagnostic| diagnostic.line <= number) {
            if words.is_empty() || diagnostic.line < number {
                continue;
            }
            let place = usize::try_from(diagnostic.column.saturating_sub(1)).unwrap_or(usize::MAX);
            diagnostic.text = if secrets.iter().any(|secret| secret.contains(&place)) {
                SECRET.to_owned()
            } else {
                hidden(&diagnostic.text, &words)
            };
            diagnostic.message = hidden(&diagnostic.message, &words);
            diagnostic.hint = diagnostic.hint.take().map(|hint| hidden(&hint, &words).into());
        }
    }
}

/// Returns the secrets of a line, as they are written and as HAProxy reads them.
fn spelled(line: &Line<'_>, secrets: &[Range<usize>], checks: &Checks) -> Vec<String> {
    let raw = line.raw();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut words: Vec<String> =
        secrets.iter().filter_map(|secret| raw.get(secret.clone())).map(text).collect();
    let environment =
        |name: &[u8]| checks.env.get(&*String::from_utf8_lossy(name)).map(|value| value.clone().into());
    for word in line.expanded(&environment) {
        let start = usize::try_from(word.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let end = start.saturating_add(word.raw.len());
        let Some(secret) = secrets.iter().find(|secret| secret.start < end && start < secret.end) else {
            continue;
        };
        let meant = word.to_str_lossy();
        // Of a login, the name is none.
        let after_colon = meant.split_once(':').filter(|_| secret.start > start);
        words.push(after_colon.map_or_else(|| meant.clone().into_owned(), |(_, secret)| secret.to_owned()));
    }
    words
}

/// Shows a line of a file without the secrets in it, and where a column of it stands then.
///
/// ```
/// use setpoint_haproxy::check::without_secrets;
///
/// let (line, column) = without_secrets(b"  user ann password s3cret junk", 28);
/// assert_eq!((line.as_str(), column), ("  user ann password (secret) junk", 30));
/// ```
pub fn without_secrets(line: &[u8], column: u32) -> (String, u32) {
    let secrets = accepted().secrets().in_wrong_line(&Line::of(line));
    let place = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    let mut shown = place;
    for secret in &secrets {
        if secret.end <= place {
            shown = shown.saturating_sub(secret.len()).saturating_add(SECRET.len());
        } else if secret.start < place {
            shown = shown.saturating_sub(place - secret.start);
        }
    }
    (masked(line, &secrets), u32::try_from(shown).unwrap_or(u32::MAX).saturating_add(1))
}
