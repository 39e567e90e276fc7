//! `setpoint haproxy check`: all that is wrong with configurations, as compilers say it.

use std::fmt::Write;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use setpoint_haproxy::check::{Checks, FileKind, check_together, files, without_secrets};
use setpoint_haproxy::text::{Diagnostic, Document, Severity};

use super::args::HaproxyCheckArgs;
use super::{name, read, read_once};
use crate::error::CliError;
use crate::report::{Report, print, print_json};

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const BLUE: Style = AnsiColor::Blue.on_default();

/// How many errors of a file are shown, and how many warnings, unless all are asked for.
const MOST: usize = 100;

/// What was found in one file.
#[derive(Serialize)]
struct Verdict<'a> {
    file: &'a str,
    valid: bool,
    errors: usize,
    warnings: usize,
    sections: usize,
    diagnostics: &'a [&'a Diagnostic],
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    omitted: usize,
}

/// A file that can't be read.
#[derive(Serialize)]
struct Unread<'a> {
    file: &'a str,
    valid: bool,
    /// Why it can't be read.
    refused: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

pub(crate) fn run(args: &HaproxyCheckArgs, report: Report) -> Result<u8, CliError> {
    let checks = Checks { version: args.version, env: args.env.variables() };
    read_once(&args.files)?;
    let mut documents: Vec<Document> = Vec::with_capacity(args.files.len());
    for path in &args.files {
        match read(path, report) {
            Ok(document) => documents.push(document),
            Err(error) if args.json => {
                print_json(&Unread { file: &name(path), valid: false, refused: error.to_string() })?;
                return Err(error);
            }
            Err(error) => return Err(error),
        }
    }
    let together: Vec<&Document> = documents.iter().collect();
    let mut wrong = false;
    for ((path, document), mut found) in
        args.files.iter().zip(&documents).zip(check_together(&together, &checks))
    {
        found.extend(missing_files(document, path, &checks));
        found.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        let count = |severity| found.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        wrong |= errors > 0;
        let shown = if args.all { found.iter().collect() } else { first(&found) };
        let omitted = found.len() - shown.len();
        let (file, sections) = (name(path), sections(document));
        if args.json {
            let valid = errors == 0;
            print_json(&Verdict {
                file: &file,
                valid,
                errors,
                warnings,
                sections,
                diagnostics: &shown,
                omitted,
            })?;
        } else {
            let lines = Lines::of(document);
            let mut text = String::new();
            for diagnostic in shown {
                // Writing to a string can't fail.
                let _ = write(&mut text, &file, lines.get(diagnostic.line), diagnostic);
            }
            if omitted > 0 {
                let _ = writeln!(text, "{omitted} more are not shown; `--all` shows them.\n");
            }
            let _ = writeln!(text, "{file}: {}", counted(sections, errors, warnings));
            print(&text)?;
        }
    }
    Ok(u8::from(wrong))
}

/// The first errors and the first warnings, in the order of the file.
fn first(found: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut left = [MOST, MOST];
    let is_shown = |diagnostic: &&Diagnostic| {
        let left = match diagnostic.severity {
            Severity::Error => left.first_mut(),
            Severity::Warning => left.last_mut(),
        };
        left.is_some_and(|left| {
            let is_shown = *left > 0;
            *left = left.saturating_sub(1);
            is_shown
        })
    };
    found.iter().filter(is_shown).collect()
}

fn sections(document: &Document) -> usize {
    document.sections().iter().filter(|section| section.header().is_some()).count()
}

fn counted(sections: usize, errors: usize, warnings: usize) -> String {
    let many = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let found = match (errors, warnings) {
        (0, 0) => "nothing wrong".to_owned(),
        (0, warnings) => many(warnings, "warning"),
        (errors, 0) => many(errors, "error"),
        (errors, warnings) => format!("{}, {}", many(errors, "error"), many(warnings, "warning")),
    };
    format!("{}, {found}.", many(sections, "section"))
}

/// Maps and pattern files that are not there. Where HAProxy runs they may be, so this is a warning.
fn missing_files(document: &Document, path: &Path, checks: &Checks) -> Vec<Diagnostic> {
    let beside = path.parent().unwrap_or(Path::new(""));
    let mut missing = Vec::new();
    for file in files(document, checks) {
        if Path::new(&file.path).exists() || beside.join(&file.path).exists() {
            continue;
        }
        let noun = match file.kind {
            FileKind::Map => "map",
            FileKind::Patterns => "pattern file",
        };
        missing.push(Diagnostic {
            severity: Severity::Warning,
            problem: setpoint_haproxy::text::Problem::UnknownReference,
            line: file.line,
            column: file.column,
            message: format!("the {noun} {} is not on this machine", file.path),
            text: file.path,
            hint: None,
        });
    }
    missing
}

/// One finding with the line it is about.
fn write(out: &mut String, file: &str, line: &[u8], found: &Diagnostic) -> std::fmt::Result {
    let style = match found.severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
    };
    let margin = found.line.to_string().len();
    writeln!(out, "{style}{}{style:#}: {}", found.severity, found.message)?;
    writeln!(out, "{:margin$}{BLUE}-->{BLUE:#} {file}:{}:{}", "", found.line, found.column)?;
    writeln!(out, "{:margin$} {BLUE}|{BLUE:#}", "")?;
    let (line, column) = without_secrets(line, found.column);
    let place = usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX);
    let (excerpt, before) = excerpt(line.as_bytes(), place);
    // Tabs stay tabs, so that the caret is below what it points at.
    let before: String = excerpt.chars().take(before).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(found.text.chars().count().clamp(1, 60));
    writeln!(out, "{} {BLUE}|{BLUE:#} {excerpt}", found.line)?;
    writeln!(out, "{:margin$} {BLUE}|{BLUE:#} {before}{style}{carets}{style:#}", "")?;
    if let Some(hint) = &found.hint {
        writeln!(out, "{:margin$} {BLUE}={BLUE:#} hint: {hint}", "")?;
    }
    writeln!(out)
}

/// The lines of a file, found by their numbers.
struct Lines {
    text: Vec<u8>,
    starts: Vec<usize>,
}

impl Lines {
    fn of(document: &Document) -> Self {
        let text = document.print();
        let feeds = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(feeds).collect();
        Self { text, starts }
    }

    /// A line, counted from 1, without what ends it.
    fn get(&self, number: u32) -> &[u8] {
        let index = usize::try_from(number.saturating_sub(1)).unwrap_or(usize::MAX);
        let start = self.starts.get(index).copied().unwrap_or(self.text.len());
        let end = self.starts.get(index.saturating_add(1)).copied().unwrap_or(self.text.len());
        self.text.get(start..end).unwrap_or_default().trim_ascii_end()
    }
}

/// A line around one of its bytes, whole unless nobody would read it, and how many characters stand before that byte.
fn excerpt(line: &[u8], place: usize) -> (String, usize) {
    const MOST: usize = 160;
    const BEFORE: usize = 60;
    const CUT: char = '…';
    // A character has at most four bytes; what is further away is not looked at.
    let from = place.saturating_sub(4 * MOST).min(line.len());
    let near = line.get(from..line.len().min(place.saturating_add(4 * MOST))).unwrap_or_default();
    let before =
        String::from_utf8_lossy(near.get(..(place - from.min(place)).min(near.len())).unwrap_or_default());
    let before = before.chars().count();
    let near = String::from_utf8_lossy(near);
    let is_whole = line.len() == near.len() && near.chars().count() <= MOST;
    if is_whole {
        return (near.into_owned(), before);
    }
    let skipped = before.saturating_sub(BEFORE);
    let is_cut_before = skipped > 0 || from > 0;
    let shown: String = near.chars().skip(skipped).take(MOST).collect();
    let is_cut_after = near.chars().count() > skipped + MOST || from + near.len() < line.len();
    let excerpt = is_cut_before
        .then_some(CUT)
        .into_iter()
        .chain(shown.chars())
        .chain(is_cut_after.then_some(CUT))
        .collect();
    (excerpt, before - skipped + usize::from(is_cut_before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_around_what_is_wrong() {
        let line = format!("{}HERE{}", "a".repeat(1000), "b".repeat(1000));
        let (text, before) = excerpt(line.as_bytes(), 1000);
        assert_eq!(text.chars().count(), 162);
        assert_eq!(text.chars().skip(before).take(4).collect::<String>(), "HERE");
        assert!(text.starts_with('…') && text.ends_with('…'), "{text}");
        assert_eq!(excerpt(b"\tmaxcon 5", 1), ("\tmaxcon 5".to_owned(), 1));
        assert_eq!(excerpt(b"short", 99).0, "short");
    }
}
