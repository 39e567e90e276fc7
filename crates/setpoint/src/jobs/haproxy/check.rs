//! `setpoint haproxy check`: all that is wrong with configurations, as compilers say it.

use std::fmt::Write;
use std::path::Path;

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use setpoint_haproxy::check::{Checks, FileKind, check, files};
use setpoint_haproxy::text::{Diagnostic, Document, Severity};

use super::args::HaproxyCheckArgs;
use super::{name, read};
use crate::error::CliError;
use crate::report::{Report, print, print_json};

const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const BLUE: Style = AnsiColor::Blue.on_default();

/// What was found in one file.
#[derive(Serialize)]
struct Verdict<'a> {
    file: &'a str,
    valid: bool,
    errors: usize,
    warnings: usize,
    sections: usize,
    diagnostics: &'a [Diagnostic],
}

pub(crate) fn run(args: &HaproxyCheckArgs, report: Report) -> Result<u8, CliError> {
    let checks = Checks { version: args.version };
    let mut wrong = false;
    for path in &args.files {
        let document = read(path, report)?;
        let mut found = check(&document, &checks);
        found.extend(missing_files(&document, path));
        found.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        let count = |severity| found.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        wrong |= errors > 0;
        let (file, sections) = (name(path), sections(&document));
        if args.json {
            let valid = errors == 0;
            print_json(&Verdict { file: &file, valid, errors, warnings, sections, diagnostics: &found })?;
        } else {
            let mut text = String::new();
            for diagnostic in &found {
                // Writing to a string can't fail.
                let _ = write(&mut text, &file, &document, diagnostic);
            }
            let _ = writeln!(text, "{file}: {}", counted(sections, errors, warnings));
            print(&text)?;
        }
    }
    Ok(u8::from(wrong))
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
fn missing_files(document: &Document, path: &Path) -> Vec<Diagnostic> {
    let beside = path.parent().unwrap_or(Path::new(""));
    let mut missing = Vec::new();
    for file in files(document) {
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
fn write(out: &mut String, file: &str, document: &Document, found: &Diagnostic) -> std::fmt::Result {
    let style = match found.severity {
        Severity::Error => RED,
        Severity::Warning => YELLOW,
    };
    let margin = found.line.to_string().len();
    writeln!(out, "{style}{}{style:#}: {}", found.severity, found.message)?;
    writeln!(out, "{:margin$}{BLUE}-->{BLUE:#} {file}:{}:{}", "", found.line, found.column)?;
    writeln!(out, "{:margin$} {BLUE}|{BLUE:#}", "")?;
    let line = line_of(document, found.line);
    let line = String::from_utf8_lossy(&line).into_owned();
    let place = usize::try_from(found.column.saturating_sub(1)).unwrap_or(usize::MAX);
    let before = line.char_indices().take_while(|(at, _)| *at < place);
    // Tabs stay tabs, so that the caret is below what it points at.
    let before: String = before.map(|(_, c)| if c == '\t' { '\t' } else { ' ' }).collect();
    let carets = "^".repeat(found.text.chars().count().clamp(1, 60));
    writeln!(out, "{} {BLUE}|{BLUE:#} {}", found.line, shortened(&line))?;
    writeln!(out, "{:margin$} {BLUE}|{BLUE:#} {before}{style}{carets}{style:#}", "")?;
    if let Some(hint) = &found.hint {
        writeln!(out, "{:margin$} {BLUE}={BLUE:#} hint: {hint}", "")?;
    }
    writeln!(out)
}

/// A line of the file, counted from 1.
fn line_of(document: &Document, number: u32) -> Vec<u8> {
    let mut before = 0;
    for section in document.sections() {
        let lines = section.line_count();
        if number <= before + lines {
            let line = section.all_lines().find(|line| before + line.number() + 1 == number);
            return line.map(|line| line.raw().to_vec()).unwrap_or_default();
        }
        before += lines;
    }
    Vec::new()
}

/// A line is shown whole unless nobody would read it.
fn shortened(line: &str) -> String {
    const MOST: usize = 160;
    if line.chars().count() <= MOST {
        line.to_owned()
    } else {
        line.chars().take(MOST).chain(['…']).collect()
    }
}
