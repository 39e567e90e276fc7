//! `setpoint validate`: checks the manifests, all errors at once.

use serde::Serialize;
use setpoint_host::Diagnostic;

use super::args::{PlaceArgs, ValidateArgs};
use super::error::Error;
use super::print::counted;
use super::set::state_of;
use crate::error::CliError;
use crate::report::{Report, print, print_json};

/// One error as data.
#[derive(Debug, Serialize)]
struct Wrong<'a> {
    file: String,
    line: usize,
    column: usize,
    text: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl<'a> From<&'a Diagnostic> for Wrong<'a> {
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

#[derive(Debug, Serialize)]
struct Verdict<'a> {
    valid: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    set: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<usize>,
    errors: Vec<Wrong<'a>>,
}

pub(crate) fn run(args: &ValidateArgs, report: Report) -> Result<u8, CliError> {
    match setpoint_host::load_with(&args.file, &args.var) {
        Ok(manifest) => {
            let state = state_of(&PlaceArgs { file: args.file.clone(), state: None });
            let wrong = manifest.inside(state.path(), "the state");
            if !wrong.is_empty() {
                return refuse(&wrong, args.json);
            }
            for file in manifest.foreign() {
                report.warn(&format!("{} is no manifest of Setpoint, and is passed over", file.display()));
            }
            let (set, items) = (manifest.name().as_str(), manifest.len());
            if args.json {
                print_json(&Verdict { valid: true, set: Some(set), items: Some(items), errors: Vec::new() })?;
            } else {
                print(&format!("{set}: {} declared, nothing wrong.\n", counted(items)))?;
            }
            Ok(0)
        }
        Err(errors) => refuse(&errors, args.json),
    }
}

fn refuse(errors: &[Diagnostic], json: bool) -> Result<u8, CliError> {
    if !json {
        return Err(Error::Manifest(errors.to_vec()).into());
    }
    let errors = errors.iter().map(Wrong::from).collect();
    print_json(&Verdict { valid: false, set: None, items: None, errors })?;
    Ok(1)
}
