//! `setpoint schema`: the JSON Schema of manifests.

use crate::error::CliError;
use crate::report::print;

pub(super) fn run() -> Result<u8, CliError> {
    let text = serde_json::to_string_pretty(&setpoint_host::schema());
    print(&(text.map_err(|error| CliError::Output(error.into()))? + "\n"))?;
    Ok(0)
}
