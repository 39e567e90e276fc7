//! Lines that speak to the reader of the file and not to a section: `.if` and its like.

/// A line that begins with a dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Directive {
    /// `.if CONDITION`
    If,
    /// `.elif CONDITION`
    Elif,
    /// `.else`
    Else,
    /// `.endif`
    Endif,
    /// `.diag`, `.notice`, `.warning` or `.alert`: says something when the file is read.
    Message,
    /// Another word after a dot, which HAProxy refuses.
    Unknown,
}

impl Directive {
    /// The directive that a decoded first word is, if it is one.
    pub fn from_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b".if" => Self::If,
            b".elif" => Self::Elif,
            b".else" => Self::Else,
            b".endif" => Self::Endif,
            b".diag" | b".notice" | b".warning" | b".alert" => Self::Message,
            [b'.', ..] => Self::Unknown,
            _ => return None,
        })
    }

    /// Returns whether it decides which lines count.
    pub fn is_conditional(self) -> bool {
        matches!(self, Self::If | Self::Elif | Self::Else | Self::Endif)
    }
}
