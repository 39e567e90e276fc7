//! Running other programs to their end.

use std::process::{Command, Output, Stdio};

use crate::error::DistError;

/// The folders in which Debian has its programs, those for root included. Tests don't narrow it as their own PATH is: `dpkg`
/// refuses to work without programs that it only looks for, such as `ldconfig` and `start-stop-daemon`.
pub(crate) const SYSTEM_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs a command and returns the text that it printed on its standard output.
pub(crate) fn run(command: &mut Command) -> Result<String, DistError> {
    Ok(String::from_utf8_lossy(&bytes(command)?).into_owned())
}

/// Runs a command and returns what it wrote to its standard output.
pub(crate) fn bytes(command: &mut Command) -> Result<Vec<u8>, DistError> {
    let output = output(command)?;
    if !output.status.success() {
        return Err(DistError::Program { command: line(command), output: printed(&output) });
    }
    Ok(output.stdout)
}

/// Runs a command to its end, however it ends.
pub(crate) fn output(command: &mut Command) -> Result<Output, DistError> {
    command.stdin(Stdio::null()).output().map_err(|source| {
        let program = command.get_program().to_string_lossy().into_owned();
        DistError::Start { program, source }
    })
}

/// What a command printed, and how it ended.
pub(crate) fn printed(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    format!("{}: {}", output.status, String::from_utf8_lossy(&text).trim())
}

/// A command of the system that has to be run as root; where we are not, as the root of a user namespace.
pub(crate) fn as_root(program: &str) -> Command {
    let mut command = if is_root() {
        Command::new(program)
    } else {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", program]);
        command
    };
    command.env("PATH", SYSTEM_PATH);
    command
}

/// Returns whether this process may do all.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}
