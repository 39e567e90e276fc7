//! `setpoint haproxy fmt`: writes configurations in one style.

use serde::Serialize;
use setpoint_haproxy::text::{Document, Severity};

use super::args::HaproxyFmtArgs;
use super::error::Error;
use super::{is_stdin, name, read};
use crate::error::CliError;
use crate::report::{Report, print, print_json};

/// What became of one file.
#[derive(Serialize)]
struct Formatted<'a> {
    file: &'a str,
    changed: bool,
}

pub(crate) fn run(args: &HaproxyFmtArgs, report: Report) -> Result<u8, CliError> {
    let mut differs = false;
    for path in &args.files {
        let document = read(path, report)?;
        let file = name(path);
        refuse_broken(&file, &document)?;
        let formatted = document.formatted().print();
        let changed = formatted != document.print();
        differs |= changed;
        if is_stdin(path) && !args.check {
            print(&String::from_utf8_lossy(&formatted))?;
            continue;
        }
        if changed && !args.check {
            std::fs::write(path, &formatted).map_err(|source| Error::Write { path: path.clone(), source })?;
        }
        if args.json {
            print_json(&Formatted { file: &file, changed })?;
        } else if changed {
            let what = if args.check { "would be written anew" } else { "written anew" };
            print(&format!("{file}: {what}\n"))?;
        }
    }
    Ok(u8::from(args.check && differs))
}

/// What can't be read is not touched.
fn refuse_broken(file: &str, document: &Document) -> Result<(), CliError> {
    let errors = document.diagnostics();
    match errors.iter().find(|diagnostic| diagnostic.severity == Severity::Error) {
        Some(first) => Err(Error::Broken { file: file.to_owned(), first: first.to_string() }.into()),
        None => Ok(()),
    }
}
