//! A run that is interrupted: the closing line is printed, and nothing is left behind.

use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// When a signal asks this process to end: removes a folder, if there is one to be removed, prints the closing line, and ends.
/// What runs in process groups of its own is ended by their watchers, which notice that this process is gone.
pub(super) fn on_signal(folder: Option<&Path>, closing_line: &Arc<Mutex<String>>) -> Result<()> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM]).context("can't listen to signals")?;
    let (folder, line) = (folder.map(Path::to_owned), Arc::clone(closing_line));
    std::thread::spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        crate::parts::cancel();
        let _ = folder.map(std::fs::remove_dir_all);
        let line = line.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let _ = writeln!(std::io::stdout(), "\nfailed: the run was interrupted by {name}\n{line}");
        std::process::exit(128 + signal);
    });
    Ok(())
}
