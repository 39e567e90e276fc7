//! What comes with the command: completions and manual pages.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::error::CliError;
use crate::manual;
use crate::report::print;

/// Prints completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "setpoint", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// Writes a manual page for each command.
pub(crate) fn write_manual(dir: &Path) -> Result<u8, CliError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| CliError::Manual { path, source }
    };
    fs::create_dir_all(dir).map_err(failed(dir))?;
    // `help` has no page of its own, so the others do not name one.
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut todo = vec![(String::new(), root)];
    while let Some((words, command)) = todo.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let path = dir.join(format!("{name}.1"));
        let page = manual::page(&command.clone().display_name(&name), &words);
        page.and_then(|page| write_page(&path, &page)).map_err(failed(&path))?;
        print(&format!("{}\n", path.display()))?;
        for sub in command.get_subcommands() {
            todo.push((format!("{words} {}", sub.get_name()).trim().to_owned(), sub.clone()));
        }
    }
    Ok(0)
}

/// Writes a page, also in the place of an earlier one. Anything else that is there stays.
fn write_page(path: &Path, page: &[u8]) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && manual::is_page(&fs::read(path)?) => fs::remove_file(path)?,
        Ok(_) => {
            let why = "there is something else, which is not replaced";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // A name of its own, whatever other names the earlier one had.
    File::create_new(path)?.write_all(page)
}
