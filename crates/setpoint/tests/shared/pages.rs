//! The pages of the documentation, and the commands that they show. The tests of the command line follow most of them; those
//! of `setpoint haproxy serve` follow what takes a HAProxy.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The pages whose `console` blocks a test runs, command by command. A page that has such a block is one of them.
pub(crate) const FOLLOWED: [&str; 6] = [
    "README.md",
    "docs/composite.md",
    "docs/dataplane-api.md",
    "docs/haproxy-sync.md",
    "docs/haproxy.md",
    "docs/host.md",
];

/// The folder of the workspace.
pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn page(path: &str) -> String {
    fs::read_to_string(workspace().join(path)).unwrap()
}

/// The code blocks of one language in a page.
pub(crate) fn blocks(page: &str, language: &str) -> Vec<String> {
    let opening = format!("```{language}\n");
    let block = |part: &str| Some(part.split_once(&opening)?.1.to_owned());
    format!("\n{page}").split("\n```\n").filter_map(block).collect()
}

/// Runs a line as a person at a shell would, with the command that is tested on the PATH. What it prints to both outputs
/// is returned.
pub(crate) fn shell(line: &str, dir: &Path) -> String {
    let own = Path::new(env!("CARGO_BIN_EXE_setpoint")).parent().unwrap().to_path_buf();
    let others = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([own].into_iter().chain(std::env::split_paths(&others))).unwrap();
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("exec 2>&1\n{line}"))
        .current_dir(dir)
        .env("PATH", path)
        .stdin(Stdio::null());
    for variable in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"] {
        command.env_remove(variable);
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// The commands in a `console` block, each with what it is shown to print. A line that ends with a backslash goes on, and so
/// does one whose input follows.
fn sessions(block: &str) -> Vec<(String, String)> {
    let (mut sessions, mut is_input) = (Vec::<(String, String)>::new(), false);
    for line in block.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            is_input = command.ends_with("<<'END'");
            sessions.push((format!("{command}\n"), String::new()));
            continue;
        }
        let (command, shown) = sessions.last_mut().unwrap();
        let goes_on = command.ends_with("\\\n") && shown.is_empty();
        let text = if is_input || goes_on { command } else { shown };
        text.extend([line, "\n"]);
        is_input &= line != "END";
    }
    sessions
}

/// Runs all that a page shows in its `console` blocks, and returns how many commands it shows. What they print is compared
/// without what is another each time.
pub(crate) fn follow(
    path: &str,
    mut run: impl FnMut(&str) -> String,
    comparable: impl Fn(&str) -> String,
) -> usize {
    assert!(FOLLOWED.contains(&path), "{path} is not in the list");
    let mut count = 0;
    for (command, shown) in blocks(&page(path), "console").iter().flat_map(|block| sessions(block)) {
        let printed = comparable(&run(&command));
        assert_eq!(printed.trim_end(), comparable(&shown).trim_end(), "{path}: {command}");
        count += 1;
    }
    count
}
