//! What a template may take.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

/// What rendering one template may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many instructions.
    pub fuel: u64,
    /// How long.
    pub time: Duration,
    /// How many bytes it may give.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { fuel: 200_000_000, time: Duration::from_secs(30), bytes: 64 * 1024 * 1024 }
    }
}

/// Which limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exceeded {
    Time(Duration),
    Bytes(usize),
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(limit) => write!(f, "it takes longer than {limit:?}"),
            Self::Bytes(limit) => write!(f, "it gives more than {limit} bytes"),
        }
    }
}

impl Limits {
    pub(super) fn writer(&self) -> Writer {
        Writer {
            bytes: Vec::new(),
            most: self.bytes,
            time: self.time,
            until: Instant::now() + self.time,
            exceeded: None,
        }
    }
}

/// Takes what a template gives, as far as that is within its limits.
#[derive(Debug)]
pub(super) struct Writer {
    bytes: Vec<u8>,
    most: usize,
    time: Duration,
    until: Instant,
    exceeded: Option<Exceeded>,
}

impl Writer {
    pub(super) fn exceeded(&self) -> Option<Exceeded> {
        self.exceeded
    }

    pub(super) fn into_text(self) -> Option<String> {
        String::from_utf8(self.bytes).ok()
    }
}

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.most {
            self.exceeded = Some(Exceeded::Bytes(self.most));
        } else if Instant::now() >= self.until {
            self.exceeded = Some(Exceeded::Time(self.time));
        } else {
            self.bytes.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        Err(io::Error::other("a limit of the template is exceeded"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
