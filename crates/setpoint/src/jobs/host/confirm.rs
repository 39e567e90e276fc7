//! Asking before something is changed.

use std::io::{self, BufRead, IsTerminal, Write};

use super::error::Error;
use crate::error::CliError;

/// Asks a person, unless that was answered beforehand. Where nobody can be asked, that is an error.
pub(crate) fn confirm(question: &str, yes: bool) -> Result<bool, CliError> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(Error::NobodyToAsk.into());
    }
    let mut out = io::stdout().lock();
    write!(out, "\n{question} Only `yes` goes on: ").and_then(|()| out.flush()).map_err(CliError::Output)?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(CliError::Output)?;
    Ok(answer.trim() == "yes")
}
