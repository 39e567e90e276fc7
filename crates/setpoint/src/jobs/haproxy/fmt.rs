//! `setpoint haproxy fmt`: writes configurations in one style.

use std::path::Path;

use serde::Serialize;
use setpoint_haproxy::text::{Document, Problem, Severity};

use super::args::HaproxyFmtArgs;
use super::error::Error;
use super::{is_stdin, name, read};
use crate::error::CliError;
use crate::report::{Report, print, print_bytes, print_json};

/// What became of one file.
#[derive(Serialize)]
struct Formatted<'a> {
    file: &'a str,
    changed: bool,
    /// Why it was left as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    /// The text in the style, of what was read from the standard input.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

pub(crate) fn run(args: &HaproxyFmtArgs, report: Report) -> Result<u8, CliError> {
    let mut differs = false;
    let mut refused: Vec<CliError> = Vec::new();
    for path in &args.files {
        match one(path, args, report) {
            Ok(changed) => differs |= changed,
            // Nobody reads what is printed: the others would be no use.
            Err(error @ CliError::Output(_)) => return Err(error),
            Err(error) => {
                if args.json {
                    let why = Some(error.to_string());
                    print_json(&Formatted { file: &name(path), changed: false, refused: why, text: None })?;
                }
                refused.push(error);
            }
        }
    }
    // The caller reports the last one.
    let last = refused.pop();
    for error in refused {
        report.warn(&error.to_string());
    }
    match last {
        Some(error) => Err(error),
        None => Ok(u8::from(args.check && differs)),
    }
}

/// Writes one file anew; says whether that changes it.
fn one(path: &Path, args: &HaproxyFmtArgs, report: Report) -> Result<bool, CliError> {
    let document = read(path, report)?;
    let file = name(path);
    refuse_broken(&file, &document)?;
    let formatted = document.formatted().print();
    let changed = formatted != document.print();
    if is_stdin(path) && !args.check {
        if args.json {
            let text = Some(String::from_utf8_lossy(&formatted).into_owned());
            print_json(&Formatted { file: &file, changed, refused: None, text })?;
        } else {
            print_bytes(&formatted)?;
        }
        return Ok(changed);
    }
    if changed && !args.check {
        setpoint_files::replace(path, &formatted).map_err(Error::Write)?;
    }
    if args.json {
        print_json(&Formatted { file: &file, changed, refused: None, text: None })?;
    } else if changed {
        let what = if args.check { "would be written anew" } else { "written anew" };
        print(&format!("{file}: {what}\n"))?;
    }
    Ok(changed)
}

/// What can't be read is not touched. A line feed that is missing at the end is no reason: it is added.
fn refuse_broken(file: &str, document: &Document) -> Result<(), CliError> {
    let errors = document.diagnostics();
    let is_error =
        |problem: Problem, severity| severity == Severity::Error && problem != Problem::MissingLineFeed;
    match errors.iter().find(|diagnostic| is_error(diagnostic.problem, diagnostic.severity)) {
        Some(first) => Err(Error::Broken { file: file.to_owned(), first: first.to_string() }.into()),
        None => Ok(()),
    }
}
