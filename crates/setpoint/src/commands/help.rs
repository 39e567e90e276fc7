//! What comes with the command: completions and manual pages.

use std::fs;
use std::path::Path;

use clap::CommandFactory;

use crate::cli::Cli;
use crate::error::CliError;
use crate::report::print;

/// Prints completions for a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Result<u8, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "setpoint", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(0)
}

/// Writes a manual page for each command.
pub(crate) fn manual(dir: &Path) -> Result<u8, CliError> {
    let failed = |path: &Path| {
        let path = path.to_path_buf();
        move |source| CliError::Manual { path, source }
    };
    fs::create_dir_all(dir).map_err(failed(dir))?;
    let mut root = Cli::command();
    root.build();
    let mut todo = vec![root];
    while let Some(command) = todo.pop() {
        let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
        let path = dir.join(format!("{name}.1"));
        let mut page = Vec::new();
        let rendered = clap_mangen::Man::new(command.clone().display_name(&name)).render(&mut page);
        rendered.and_then(|()| fs::write(&path, page)).map_err(failed(&path))?;
        print(&format!("{}\n", path.display()))?;
        todo.extend(command.get_subcommands().filter(|sub| sub.get_name() != "help").cloned());
    }
    Ok(0)
}
