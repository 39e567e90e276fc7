//! What is run, how long it may take, and which signal ends it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::quoted_list;

/// A program with its arguments, or a line for the shell.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Invocation {
    /// A line for `/bin/sh -c`.
    Shell(String),
    /// A program and its arguments, run as they are.
    Program(Vec<String>),
}

impl Invocation {
    /// The program and its arguments.
    pub fn argv(&self) -> Vec<&str> {
        match self {
            Self::Shell(line) => vec!["/bin/sh", "-c", line],
            Self::Program(argv) => argv.iter().map(String::as_str).collect(),
        }
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(line) => f.write_str(line),
            Self::Program(argv) => f.write_str(&quoted_list(argv)),
        }
    }
}

impl fmt::Debug for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell(line) => fmt::Debug::fmt(line, f),
            Self::Program(argv) => fmt::Debug::fmt(argv, f),
        }
    }
}

/// A length of time as manifests write it: `500ms`, `10s`, `2m`, `1h`, or a number of seconds.
///
/// ```
/// let wait: setpoint_host::Wait = "2m".parse()?;
/// assert_eq!(wait.duration().as_secs(), 120);
/// assert_eq!(wait.to_string(), "2m");
/// # Ok::<(), setpoint_host::WaitError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Wait(u64);

/// A text that is no length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    /// It is not written as one.
    #[error("a time is a whole number with ms, s, m or h behind it, such as \"10s\"")]
    NoTime,
    /// It is longer than anything should take.
    #[error("a time is at most a week (168h)")]
    TooLong,
}

impl Wait {
    /// A time in milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// The length of time.
    pub const fn duration(self) -> Duration {
        Duration::from_millis(self.0)
    }
}

impl FromStr for Wait {
    type Err = WaitError;

    fn from_str(text: &str) -> Result<Self, WaitError> {
        let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(unit);
        let factor = match unit {
            "ms" => 1,
            "" | "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(WaitError::NoTime),
        };
        if number.is_empty() {
            return Err(WaitError::NoTime);
        }
        // A week is more than anything should take, and keeps sums of times far from overflowing.
        let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        millis.filter(|&millis| millis <= 7 * 24 * 3_600_000).map(Self).ok_or(WaitError::TooLong)
    }
}

impl TryFrom<String> for Wait {
    type Error = WaitError;

    fn try_from(text: String) -> Result<Self, WaitError> {
        text.parse()
    }
}

impl From<Wait> for String {
    fn from(wait: Wait) -> Self {
        wait.to_string()
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            millis if millis % 1000 != 0 => write!(f, "{millis}ms"),
            millis if millis >= 3_600_000 && millis % 3_600_000 == 0 => write!(f, "{}h", millis / 3_600_000),
            millis if millis >= 60_000 && millis % 60_000 == 0 => write!(f, "{}m", millis / 60_000),
            millis => write!(f, "{}s", millis / 1000),
        }
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A signal that asks a process to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// Hang up.
    Hup,
    /// As Ctrl-C.
    Int,
    /// As Ctrl-\.
    Quit,
    /// The usual one.
    #[default]
    Term,
    /// For what the program says.
    Usr1,
    /// For what the program says.
    Usr2,
    /// A window changed its size: some servers stop gracefully on it.
    Winch,
    /// Ends it at once.
    Kill,
}

impl StopSignal {
    /// All of them, with their names in manifests.
    pub const ALL: [(&'static str, Self); 8] = [
        ("HUP", Self::Hup),
        ("INT", Self::Int),
        ("QUIT", Self::Quit),
        ("TERM", Self::Term),
        ("USR1", Self::Usr1),
        ("USR2", Self::Usr2),
        ("WINCH", Self::Winch),
        ("KILL", Self::Kill),
    ];

    /// The signal by its name, with or without `SIG`.
    pub fn by_name(name: &str) -> Option<Self> {
        let short = name.strip_prefix("SIG").unwrap_or(name);
        Self::ALL.iter().find(|(known, _)| *known == short).map(|&(_, signal)| signal)
    }

    /// The name in manifests.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, signal)| *signal == self).map_or("TERM", |&(name, _)| name)
    }

    pub(crate) fn signal(self) -> rustix::process::Signal {
        use rustix::process::Signal;
        match self {
            Self::Hup => Signal::HUP,
            Self::Int => Signal::INT,
            Self::Quit => Signal::QUIT,
            Self::Term => Signal::TERM,
            Self::Usr1 => Signal::USR1,
            Self::Usr2 => Signal::USR2,
            Self::Winch => Signal::WINCH,
            Self::Kill => Signal::KILL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_it_is_read() {
        for text in ["250ms", "1s", "90s", "2m", "1h", "0s"] {
            assert_eq!(text.parse::<Wait>().unwrap().to_string(), text);
        }
        assert_eq!("15".parse::<Wait>().unwrap().to_string(), "15s");
        for bad in ["", "s", "1d", "-1s", "1.5s", "1 s"] {
            assert_eq!(bad.parse::<Wait>(), Err(WaitError::NoTime), "{bad}");
        }
        for long in ["99999999999999999999s", "1000h", "604801"] {
            assert_eq!(long.parse::<Wait>(), Err(WaitError::TooLong), "{long}");
        }
        assert!("168h".parse::<Wait>().is_ok());
    }

    #[test]
    fn a_signal_is_known_with_and_without_its_prefix() {
        assert_eq!(StopSignal::by_name("SIGQUIT"), Some(StopSignal::Quit));
        assert_eq!(StopSignal::by_name("USR2"), Some(StopSignal::Usr2));
        assert_eq!(StopSignal::by_name("STOP"), None);
    }
}
