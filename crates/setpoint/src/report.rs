//! Output: results go to the standard output, messages to the standard error output.

use std::io::{self, IsTerminal, Write};

use anstream::AutoStream;
use clap::ValueEnum;
use jiff::Timestamp;
use serde::Serialize;

use crate::error::CliError;

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Writes messages about what is going on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// How messages are written.
    pub(crate) format: LogFormat,
    /// How many messages are written: 0 for those that everybody wants to know.
    pub(crate) verbosity: u8,
}

#[derive(Serialize)]
struct MessageLine<'a> {
    at: Timestamp,
    level: &'a str,
    message: &'a str,
}

#[cfg_attr(
    not(any(feature = "host", feature = "dataplane")),
    expect(dead_code, reason = "only the job of a host says all of this")
)]
impl Report {
    pub(crate) fn new(format: LogFormat, verbosity: u8) -> Self {
        Self { format, verbosity }
    }

    /// Something that a person should know.
    pub(crate) fn warn(self, message: &str) {
        self.write("warning", &format!("warning: {message}"), message);
    }

    /// Something that happens.
    pub(crate) fn info(self, message: &str) {
        self.write("info", message, message);
    }

    /// Something for whoever wants to know more.
    pub(crate) fn detail(self, message: impl FnOnce() -> String) {
        if self.verbosity > 0 {
            let message = message();
            self.write("debug", &message, &message);
        }
    }

    fn write(self, level: &str, text: &str, message: &str) {
        let line = match self.format {
            LogFormat::Text => text.to_owned(),
            LogFormat::Json => serde_json::to_string(&MessageLine { at: Timestamp::now(), level, message })
                .unwrap_or_default(),
        };
        // Nobody would learn of an error here.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// Writes to the standard output; colours are kept only where a terminal wants them.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    let mut out = AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

/// Writes bytes to the standard output as they are.
#[cfg(feature = "haproxy")]
pub(crate) fn print_bytes(bytes: &[u8]) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    out.write_all(bytes).and_then(|()| out.flush()).map_err(CliError::Output)
}

/// Writes one value as JSON on several lines, as people like to read it, if a terminal reads it.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), CliError> {
    let text = if io::stdout().is_terminal() {
        serde_json::to_string_pretty(value)
    } else {
        serde_json::to_string(value)
    };
    print(&(text.map_err(|error| CliError::Output(error.into()))? + "\n"))
}
