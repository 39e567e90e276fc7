//! Output: results go to the standard output, messages to the standard error output.

use std::borrow::Cow;
use std::fmt::Write as _;
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
    not(any(feature = "host", feature = "dataplane", feature = "sync")),
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
            LogFormat::Text => safe(text).into_owned(),
            LogFormat::Json => serde_json::to_string(&MessageLine { at: Timestamp::now(), level, message })
                .unwrap_or_default(),
        };
        // Nobody would learn of an error here.
        let _ = writeln!(io::stderr().lock(), "{line}");
    }
}

/// Writes to the standard output; colours are kept only where a terminal wants them.
pub(crate) fn print(text: &str) -> Result<(), CliError> {
    write_out(&safe(text))
}

/// Passes over that nobody reads any more what came of something: it was done all the same, and that is how the command ends.
#[cfg(feature = "host")]
pub(crate) fn read_or_not(written: Result<(), CliError>) -> Result<(), CliError> {
    match written {
        Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

fn write_out(text: &str) -> Result<(), CliError> {
    let mut out = AutoStream::auto(io::stdout().lock());
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)
}

/// Writes bytes to the standard output as they are.
#[cfg(any(feature = "haproxy", feature = "host"))]
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
    write_out(&safe_json(&(text.map_err(|error| CliError::Output(error.into()))? + "\n")))
}

/// A text of JSON that does nothing to a terminal but to be shown: the characters that [`safe`] escapes stand in strings alone, and
/// have escapes there that every parser reads.
fn safe_json(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_plain(character) {
            safe.push(character);
        } else {
            // Writing to a string never fails. All of them have four digits.
            let _ = write!(safe, "\\u{:04x}", u32::from(character));
        }
    }
    Cow::Owned(safe)
}

/// Returns whether a character does nothing to a terminal but to be shown.
fn is_plain(character: char) -> bool {
    let turns = matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    matches!(character, '\n' | '\t') || !(character.is_control() || turns)
}

/// A text that does nothing to a terminal but to be shown: of control characters, whoever they come from, only the ends of
/// lines, tabs and the colours of this program are passed on. Others are shown as an escape, as are those that turn the
/// direction of what follows.
pub(crate) fn safe(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let length = colour(rest).unwrap_or(character.len_utf8());
        let (part, after) = rest.split_at(length);
        rest = after;
        if is_plain(character) || part.len() > character.len_utf8() {
            safe.push_str(part);
        } else {
            // Writing to a string never fails.
            let _ = write!(safe, "{}", character.escape_default());
        }
    }
    Cow::Owned(safe)
}

/// The length of a sequence that sets a colour or a weight as this program does, if a text begins with one.
fn colour(text: &str) -> Option<usize> {
    let (number, _) = text.strip_prefix("\u{1b}[")?.split_once('m')?;
    let is_used = number.is_empty() || matches!(number.parse(), Ok(0_u8..=4 | 30..=37 | 90..=97));
    is_used.then_some(number.len() + 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_character_that_does_something_to_a_terminal_and_is_read_back() {
        let text = "plain é\n\u{202e}\u{2069}\u{7f}\u{9b}\u{1b}[31m";
        let json = serde_json::to_string(text).unwrap();
        let safe = safe_json(&json);
        assert!(safe.chars().all(is_plain), "{safe}");
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), text);
        assert!(matches!(safe_json("{\"a\": 1}\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn control_characters_do_nothing_to_a_terminal() {
        assert!(matches!(safe("a\tb\nc é"), Cow::Borrowed(_)));
        assert_eq!(
            safe("\u{1b}[1mbold\u{1b}[0m \u{1b}[31mred\u{1b}[0m"),
            "\u{1b}[1mbold\u{1b}[0m \u{1b}[31mred\u{1b}[0m"
        );
        assert_eq!(safe("\u{1b}]0;title\u{7}"), "\\u{1b}]0;title\\u{7}");
        assert_eq!(safe("\u{1b}[2J\u{1b}[8mhidden\r"), "\\u{1b}[2J\\u{1b}[8mhidden\\r");
        assert_eq!(safe("\u{9b}2J\u{202e}txt"), "\\u{9b}2J\\u{202e}txt");
    }
}
