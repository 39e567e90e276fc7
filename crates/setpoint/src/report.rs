//! Output: what was asked for goes to the standard output, what is said along the way to the standard error.

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

/// Says what is going on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    /// How messages are written.
    pub(crate) format: LogFormat,
    /// How much is said: 0 is what everybody wants to know.
    pub(crate) verbosity: u8,
}

#[derive(Serialize)]
struct Spoken<'a> {
    at: Timestamp,
    level: &'a str,
    message: &'a str,
}

#[cfg_attr(not(feature = "host"), expect(dead_code, reason = "only the job of a host says all of this"))]
impl Report {
    pub(crate) fn new(format: LogFormat, verbosity: u8) -> Self {
        Self { format, verbosity }
    }

    /// Something that a person should know.
    pub(crate) fn warn(self, message: &str) {
        self.say("warning", &format!("warning: {message}"), message);
    }

    /// Something that happens.
    pub(crate) fn info(self, message: &str) {
        self.say("info", message, message);
    }

    /// Something for whoever wants to know more.
    pub(crate) fn detail(self, message: impl FnOnce() -> String) {
        if self.verbosity > 0 {
            let message = message();
            self.say("debug", &message, &message);
        }
    }

    fn say(self, level: &str, text: &str, message: &str) {
        let line = match self.format {
            LogFormat::Text => text.to_owned(),
            LogFormat::Json => {
                serde_json::to_string(&Spoken { at: Timestamp::now(), level, message }).unwrap_or_default()
            }
        };
        // There is nobody to tell if this fails.
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
