//! `setpoint validate`: checks the manifests, all errors at once.

use serde::Serialize;
use setpoint_host::Diagnostic;

use super::args::ValidateArgs;
use super::error::Error;
use super::print::counted;
use crate::error::CliError;
use crate::report::{print, print_json};

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

pub(crate) fn run(args: &ValidateArgs) -> Result<u8, CliError> {
    match setpoint_host::load(&args.file) {
        Ok(manifest) => {
            let (set, items) = (manifest.name().as_str(), manifest.graph().len());
            if args.json {
                print_json(&Verdict { valid: true, set: Some(set), items: Some(items), errors: Vec::new() })?;
            } else {
                print(&format!("{set}: {} declared, nothing wrong.\n", counted(items)))?;
            }
            Ok(0)
        }
        Err(errors) if args.json => {
            let errors = errors.iter().map(Wrong::from).collect();
            print_json(&Verdict { valid: false, set: None, items: None, errors })?;
            Ok(1)
        }
        Err(errors) => Err(Error::Manifest(errors).into()),
    }
}
