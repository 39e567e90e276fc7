//! A request to a socket of HAProxy: one command, of which no word can become another command.

use std::fmt;

/// One command, with a payload if it has one.
///
/// Words are escaped, so that a blank, a semicolon or a backslash in a name stays where it is. What HAProxy has no escape
/// for is refused.
///
/// ```
/// use setpoint_instance::cli::Request;
///
/// let command = Request::new("set server").word("shop/s 1")?.word("weight")?.word("10")?;
/// assert_eq!(command.to_string(), r"set server shop/s\ 1 weight 10");
/// assert!(Request::new("add map").word("a\nshutdown").is_err());
/// # Ok::<(), setpoint_instance::cli::RequestError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The commands that are sent in one exchange: one, but for what [`and`](Self::and) adds.
    lines: Vec<String>,
    /// The words of them that are never shown, as they are sent.
    secrets: Vec<String>,
    payload: Option<String>,
}

/// A word or a payload that no command can carry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// A word is empty: HAProxy would take the next one for it.
    #[error("HAProxy's sockets take no empty words")]
    Empty,
    /// A word has a control character, which ends a command or has no escape.
    #[error("HAProxy's sockets take no control characters: {0:?}")]
    Control(String),
    /// A payload has an empty line, which ends a payload, or a NUL.
    #[error("HAProxy's sockets take no payload with an empty line or a NUL")]
    Payload,
}

impl Request {
    /// A command of these words, which are known and need no escape.
    pub fn new(words: &'static str) -> Self {
        Self { lines: vec![words.to_owned()], secrets: Vec::new(), payload: None }
    }

    /// Adds a further command to the same exchange. What HAProxy answers stands behind what it answers to this one.
    #[must_use]
    pub fn and(mut self, further: Self) -> Self {
        self.lines.extend(further.lines);
        self.secrets.extend(further.secrets);
        self.payload = further.payload;
        self
    }

    /// How many bytes the commands have.
    pub fn len(&self) -> usize {
        self.lines.iter().map(|line| line.len() + 1).sum()
    }

    /// How many commands there are.
    pub(crate) fn count(&self) -> usize {
        self.lines.len()
    }

    /// Returns whether one of its commands changes a server or a limit: what HAProxy says to these has a severity, always.
    pub(crate) fn is_of_servers(&self) -> bool {
        const WORDS: [&str; 4] = ["set server ", "add server ", "del server ", "set maxconn "];
        self.lines.iter().any(|line| WORDS.iter().any(|words| line.starts_with(words)))
    }

    /// How many bytes are sent, with the payload.
    #[cfg(test)]
    pub(crate) fn bytes_len(&self) -> usize {
        self.bytes("").len()
    }

    /// Returns whether it has a payload: no further command can follow it.
    pub(crate) fn has_payload(&self) -> bool {
        self.payload.is_some()
    }

    /// Returns whether there is no command.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Adds a word.
    pub fn word(mut self, word: &str) -> Result<Self, RequestError> {
        if word.is_empty() {
            return Err(RequestError::Empty);
        }
        if word.chars().any(char::is_control) {
            return Err(RequestError::Control(word.to_owned()));
        }
        if let Some(line) = self.lines.last_mut() {
            line.push(' ');
            for (at, letter) in word.char_indices() {
                // A last word that begins with `<<` would be taken for the beginning of a payload.
                if matches!(letter, ' ' | ';' | '\\') || at == 0 && letter == '<' {
                    line.push('\\');
                }
                line.push(letter);
            }
        }
        Ok(self)
    }

    /// Adds a word that is never shown.
    pub fn secret(self, word: &str) -> Result<Self, RequestError> {
        let before = self.lines.last().map_or(0, String::len);
        let mut request = self.word(word).map_err(|error| match error {
            RequestError::Control(_) => RequestError::Control(SECRET.to_owned()),
            error => error,
        })?;
        let spelled = request.lines.last().and_then(|line| line.get(before + 1..)).map(ToOwned::to_owned);
        request.secrets.extend(spelled);
        Ok(request)
    }

    /// Adds a payload: lines that belong to the command.
    ///
    /// An empty line ends a payload on every version of HAProxy, so that there may be none in it but the last.
    pub fn payload(mut self, text: &str) -> Result<Self, RequestError> {
        let text = text.strip_suffix('\n').unwrap_or(text);
        let is_bad = |line: &str| line.trim_end_matches('\r').is_empty() || line.contains('\0');
        if text.split('\n').any(is_bad) {
            return Err(RequestError::Payload);
        }
        self.payload = Some(text.to_owned());
        Ok(self)
    }

    /// The bytes that are sent, each command with what stands before it.
    pub(super) fn bytes(&self, prefix: &str) -> Vec<u8> {
        let mut text = String::new();
        for line in &self.lines {
            if !text.is_empty() {
                text.push(';');
            }
            text.push_str(prefix);
            text.push_str(line);
        }
        match &self.payload {
            None => text.push('\n'),
            // The closing pattern that all versions know is an empty line.
            Some(payload) => {
                text.push_str(" <<\n");
                text.push_str(payload);
                text.push_str("\n\n");
            }
        }
        text.into_bytes()
    }
}

/// What is shown instead of a secret.
const SECRET: &str = "(secret)";

/// The line without its secrets, and without its payload, which may hold some.
impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown =
            self.secrets.iter().fold(self.lines.join("; "), |text, secret| text.replace(secret, SECRET));
        formatter.write_str(&shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_semicolons_and_backslashes_stay_in_their_word() {
        let command = Request::new("add map").word(r"a b;c\d").unwrap();
        assert_eq!(command.bytes(""), b"add map a\\ b\\;c\\\\d\n");
    }

    #[test]
    fn a_word_is_not_taken_for_the_beginning_of_a_payload() {
        let command = Request::new("add map").word("m").unwrap().word("k").unwrap().word("<<").unwrap();
        assert_eq!(command.bytes(""), b"add map m k \\<<\n");
    }

    #[test]
    fn commands_of_one_exchange_each_have_their_prefix() {
        let both = Request::new("show info").and(Request::new("show stat"));
        assert_eq!(both.bytes("@1 "), b"@1 show info;@1 show stat\n");
        assert_eq!((both.to_string().as_str(), both.len()), ("show info; show stat", 20));
    }

    #[test]
    fn a_secret_is_sent_and_never_shown() {
        let command = Request::new("set server b/s agent-send").secret("a b").unwrap();
        assert_eq!(command.bytes(""), b"set server b/s agent-send a\\ b\n");
        assert_eq!(command.to_string(), "set server b/s agent-send (secret)");
        let both = Request::new("show info").and(command);
        assert_eq!(both.to_string(), "show info; set server b/s agent-send (secret)");
        let error = Request::new("set").secret("hidden\n").unwrap_err();
        assert!(!error.to_string().contains("hidden"), "{error}");
    }

    #[test]
    fn what_would_end_a_command_is_refused() {
        for word in ["", "a\nb", "a\rb", "a\0b", "a\tb"] {
            assert!(Request::new("show").word(word).is_err(), "{word:?}");
        }
    }

    #[test]
    fn a_payload_ends_with_an_empty_line_and_has_none_itself() {
        let command = |text: &str| Request::new("set ssl cert").word("a.pem").unwrap().payload(text);
        assert_eq!(command("a\nb\n").unwrap().bytes(""), b"set ssl cert a.pem <<\na\nb\n\n");
        for text in ["", "a\n\nb", "a\r\n\r\nb", "a\0b"] {
            assert_eq!(command(text), Err(RequestError::Payload), "{text:?}");
        }
        assert_eq!(command("secret").unwrap().to_string(), "set ssl cert a.pem");
    }
}
