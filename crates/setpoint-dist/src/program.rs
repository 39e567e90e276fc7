//! Running other programs to their end.

use std::ffi::{OsStr, OsString};
use std::process::{Command, Output, Stdio};

use crate::error::DistError;

/// The folders in which Debian has its programs, those for root included.
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
    command.env("PATH", path());
    command
}

/// Where programs of the system are looked for.
pub(crate) fn path() -> OsString {
    with_those_of_root(std::env::var_os("PATH").as_deref())
}

/// The caller's PATH, and after it the folders of the system: `dpkg` refuses to work without programs that only root has in its
/// PATH. What a test may not start stands in its own, and so before them.
fn with_those_of_root(own: Option<&OsStr>) -> OsString {
    let mut path = own.filter(|own| !own.is_empty()).map(OsStr::to_owned).unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(SYSTEM_PATH);
    path
}

/// Returns whether this process may do all.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_the_callers_path_goes_before_what_the_system_has() {
        let path = |own: Option<&str>| with_those_of_root(own.map(OsStr::new));
        assert_eq!(
            path(Some("/tests/base:/tests/forbidden")),
            *"/tests/base:/tests/forbidden:/usr/sbin:/usr/bin:/sbin:/bin"
        );
        for none in [None, Some("")] {
            assert_eq!(path(none), *SYSTEM_PATH, "not the folder of the caller");
        }
    }
}
