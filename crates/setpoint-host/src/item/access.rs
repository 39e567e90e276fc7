//! Who may do what with a path: mode, owner and group.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The permission bits of a file or directory.
///
/// ```
/// let mode: setpoint_host::Mode = "0640".parse()?;
/// assert_eq!((mode.bits(), mode.to_string()), (0o640, "0640".to_owned()));
/// # Ok::<(), setpoint_host::ModeError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Mode(u32);

/// A text that is no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a mode is three or four octal digits, such as \"0644\", with or without a 0 before them")]
pub struct ModeError;

impl Mode {
    /// Takes the permission bits; all others are left out.
    pub const fn new(bits: u32) -> Self {
        Self(bits & 0o7777)
    }

    /// The permission bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl FromStr for Mode {
    type Err = ModeError;

    fn from_str(text: &str) -> Result<Self, ModeError> {
        let digits = text.strip_prefix("0o").unwrap_or(text);
        if !(3..=5).contains(&digits.len()) || digits.len() == 5 && !digits.starts_with('0') {
            return Err(ModeError);
        }
        match u32::from_str_radix(digits, 8) {
            Ok(bits) if bits <= 0o7777 && !digits.starts_with('+') => Ok(Self(bits)),
            _ => Err(ModeError),
        }
    }
}

impl TryFrom<String> for Mode {
    type Error = ModeError;

    fn try_from(text: String) -> Result<Self, ModeError> {
        text.parse()
    }
}

impl From<Mode> for String {
    fn from(mode: Mode) -> Self {
        mode.to_string()
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The mode, owner and group of a path; what is none is not managed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// The permission bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The user it belongs to, by name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// The group it belongs to, by name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
}

impl Access {
    /// Returns whether nothing of it is managed.
    pub fn is_unmanaged(&self) -> bool {
        self.mode.is_none() && self.owner.is_none() && self.group.is_none()
    }

    pub(crate) fn attributes(&self, attributes: &mut setpoint_graph::Attributes) {
        if let Some(mode) = self.mode {
            attributes.add("mode", mode);
        }
        if let Some(owner) = &self.owner {
            attributes.add("owner", owner);
        }
        if let Some(group) = &self.group {
            attributes.add("group", group);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_octal_however_it_is_written() {
        for (text, bits) in [("644", 0o644), ("0644", 0o644), ("0o1755", 0o1755), ("07777", 0o7777)] {
            assert_eq!(text.parse(), Ok(Mode(bits)), "{text}");
        }
        for bad in ["", "7", "rw-", "0888", "+644", "17777", "-644", "0o", "010000"] {
            assert_eq!(bad.parse::<Mode>(), Err(ModeError), "{bad}");
        }
    }
}
