//! `setpoint validate`: checks the manifests, all errors at once.

use serde::Serialize;
use setpoint_host::Diagnostic;

use super::args::{PathArgs, ValidateArgs};
use super::error::{DiagnosticView, Error};
use super::print::counted;
use super::set::{apart_from_state, passed_over};
use crate::error::{CliError, Reportable as _};
use crate::report::{Report, print, print_json};

#[derive(Debug, Serialize)]
struct Verdict<'a> {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<usize>,
    errors: Vec<DiagnosticView<'a>>,
}

pub(crate) fn run(args: &ValidateArgs, report: Report) -> Result<u8, CliError> {
    let paths = PathArgs { file: args.file.clone(), state: None };
    let loaded = setpoint_host::load_with(&args.file, &args.var);
    match loaded.and_then(|manifest| apart_from_state(manifest, &paths)) {
        Ok(manifest) => {
            for (item, account) in manifest.unknown_accounts() {
                report.warn(&format!("{item}: {account} on this host"));
            }
            passed_over(&manifest).for_each(|warning| report.warn(&warning));
            let (set, items) = (manifest.name().as_str(), manifest.len());
            if args.json {
                print_json(&Verdict { valid: true, set: Some(set), items: Some(items), errors: Vec::new() })?;
            } else {
                print(&format!("{set}: {} declared, nothing wrong.\n", counted(items)))?;
            }
            Ok(0)
        }
        Err(errors) => refuse(errors, args.json),
    }
}

fn refuse(errors: Vec<Diagnostic>, json: bool) -> Result<u8, CliError> {
    if json {
        let errors = errors.iter().map(DiagnosticView::from).collect();
        print_json(&Verdict { valid: false, set: None, items: None, errors })?;
    }
    let error = Error::Manifest(errors);
    if json { Ok(error.exit_code()) } else { Err(error.into()) }
}
