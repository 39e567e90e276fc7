//! `setpoint schema`: what manifests may hold, for editors and for readers.

use super::args::SchemaArgs;
use crate::error::CliError;
use crate::report::print;

pub(super) fn run(args: &SchemaArgs) -> Result<u8, CliError> {
    if args.markdown {
        print(&setpoint_host::reference())?;
        return Ok(0);
    }
    let text = serde_json::to_string_pretty(&setpoint_host::schema());
    print(&(text.map_err(|error| CliError::Output(error.into()))? + "\n"))?;
    Ok(0)
}
