//! How a printed value is written, by what is rendered.

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Output, Value};
use setpoint_haproxy::text::escape_word;

/// What an output is, and so what a printed value must not break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// A configuration of HAProxy, or what is read by its rules for words, such as a crt-list: a value never ends a word, a line or
    /// a quotation.
    Haproxy,
    /// A file of lines, such as a map: a value never ends a line.
    Lines,
    /// Any other file: a value is written as it is.
    Bytes,
}

impl Format {
    pub(super) const ALL: [Self; 3] = [Self::Haproxy, Self::Lines, Self::Bytes];

    /// Writes a value. What `raw` has marked, and what macros and blocks gave, is written as it is.
    pub(super) fn write(self, out: &mut Output<'_>, value: &Value) -> Result<(), Error> {
        if value.is_undefined() {
            // What is missing was refused before: this is an `if` without `else`.
            return Ok(());
        }
        match value.kind() {
            ValueKind::Bool => return Ok(out.write_str(if value.is_true() { "true" } else { "false" })?),
            ValueKind::Number => return Ok(write!(out, "{value}")?),
            ValueKind::String => {}
            ValueKind::None => return Err(refused("none has no text: give a `default`")),
            kind => return Err(refused(format!("a {kind} has no text: say which part of it, or `tojson`"))),
        }
        let text = value.as_str().unwrap_or_default();
        if value.is_safe() || self == Self::Bytes {
            return Ok(out.write_str(text)?);
        }
        match self {
            Self::Haproxy => {
                let escaped = escape_word(text).ok_or_else(|| refused(breaks(text)))?;
                Ok(out.write_str(&escaped)?)
            }
            Self::Lines if text.contains(['\n', '\r', '\0']) => Err(refused(breaks(text))),
            Self::Lines | Self::Bytes => Ok(out.write_str(text)?),
        }
    }
}

fn refused(why: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::BadEscape, why)
}

/// What is wrong with a text that ends lines.
fn breaks(text: &str) -> String {
    let what = if text.contains('\0') { "a NUL" } else { "the end of a line" };
    format!("a value holds {what}, which would let it write lines of its own: {text:.80?}")
}
