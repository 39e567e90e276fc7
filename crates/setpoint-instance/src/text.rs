//! A configuration file as text: what it says, and the line in it that holds its version.
//!
//! The version stands in a comment at the beginning of the first file, `# _version=N`, so that one rename moves the text and
//! its version together. A file without that line has version 1, and gets the line with its first change.

/// What stands before the number.
const VERSION: &str = "# _version=";
/// A line of the original API that is false after any change that it does not make itself.
const DIGEST: &str = "# _md5hash=";

/// The version line of a file: where it stands, and what it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionLine {
    /// How many bytes of the other text stand before it.
    at: usize,
    /// How it is written now, with all that goes with a change.
    written: Vec<u8>,
    /// Whether lines of the file end with a carriage return and a line feed.
    carriage_return: bool,
}

/// Takes the version line out of a text. Returns the rest, the line, and the version, if the line is there.
pub(crate) fn split(bytes: &[u8]) -> (Vec<u8>, VersionLine, Option<u64>) {
    let mut line =
        VersionLine { carriage_return: ends_with_carriage_return(bytes), ..VersionLine::default() };
    let (mut rest, mut version, mut seen) = (Vec::with_capacity(bytes.len()), None, 0);
    for text in bytes.split_inclusive(|&byte| byte == b'\n') {
        let trimmed = std::str::from_utf8(text).map(str::trim).unwrap_or_default();
        let number = trimmed.strip_prefix(VERSION).and_then(|number| number.trim().parse().ok());
        let is_ours = number.is_some() || trimmed.starts_with(DIGEST);
        if is_ours && (line.written.is_empty() || line.at == rest.len()) {
            line.at = rest.len();
            line.written.extend_from_slice(text);
            version = version.or(number);
        } else if trimmed.is_empty() && text.trim_ascii().is_empty() || trimmed.starts_with('#') {
            rest.extend_from_slice(text);
        } else {
            break;
        }
        seen += text.len();
    }
    rest.extend_from_slice(bytes.get(seen..).unwrap_or_default());
    if line.written.is_empty() {
        line.at = 0;
    }
    (rest, line, version)
}

/// Makes messages about the lines of a file say the lines of the text that was sent for it: the file has a version line more, or
/// one less.
pub(crate) fn renumbered(messages: &str, file: &str, sent: &[u8]) -> String {
    let (rest, line, _) = split(sent);
    let count = |bytes: &[u8]| bytes.split_inclusive(|&byte| byte == b'\n').count();
    let (before, own) = (count(rest.get(..line.at).unwrap_or_default()), count(&line.written));
    let name = format!("{file}:");
    let mut pieces = messages.split(name.as_str());
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(piece.len());
        let (number, after) = piece.split_at(end);
        text.push_str(&name);
        match number.parse::<usize>() {
            Ok(number) if number > before + 1 => text.push_str(&(number + own - 1).to_string()),
            _ => text.push_str(number),
        }
        text.push_str(after);
    }
    text
}

fn ends_with_carriage_return(bytes: &[u8]) -> bool {
    let end = bytes.iter().position(|&byte| byte == b'\n').unwrap_or(0);
    end > 0 && bytes.get(end - 1) == Some(&b'\r')
}

impl VersionLine {
    /// Puts the line back into the text as it was.
    pub(crate) fn put_back(&self, mut text: Vec<u8>) -> Vec<u8> {
        let at = if self.at <= text.len() { self.at } else { 0 };
        // A text may be large, and twice its size is not needed.
        text.reserve_exact(self.written.len());
        text.splice(at..at, self.written.iter().copied());
        text
    }

    /// Makes the line say another version.
    pub(crate) fn set(&mut self, version: u64) {
        let end = if self.carriage_return { "\r\n" } else { "\n" };
        self.written = format!("{VERSION}{version}{end}").into_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, Option<u64>) {
        let (rest, line, version) = split(text.as_bytes());
        assert_eq!(line.put_back(rest.clone()), text.as_bytes(), "nothing is lost");
        (String::from_utf8(rest).unwrap(), version)
    }

    fn with(text: &str, version: u64) -> String {
        let (rest, mut line, _) = split(text.as_bytes());
        line.set(version);
        String::from_utf8(line.put_back(rest)).unwrap()
    }

    #[test]
    fn the_version_is_read_from_the_comments_at_the_beginning() {
        assert_eq!(read("# mine\n# _version=7\nglobal\n"), ("# mine\nglobal\n".into(), Some(7)));
        assert_eq!(read("global\n# _version=7\n"), ("global\n# _version=7\n".into(), None));
        assert_eq!(read("# _version=x\nglobal\n").1, None);
        assert_eq!(read(""), (String::new(), None));
    }

    #[test]
    fn a_new_version_stands_where_the_old_one_stood() {
        assert_eq!(with("# mine\n# _version=7\nglobal\n", 8), "# mine\n# _version=8\nglobal\n");
        assert_eq!(with("# _md5hash=aa\n# _version=7\n\nglobal\n", 8), "# _version=8\n\nglobal\n");
        assert_eq!(with("# _version=7\r\nglobal\r\n", 8), "# _version=8\r\nglobal\r\n");
    }

    #[test]
    fn messages_say_the_lines_of_the_text_that_was_sent() {
        let renumbered_for = |sent: &str, message: &str| renumbered(message, "/h.cfg", sent.as_bytes());
        assert_eq!(
            renumbered_for("global\n  bad\n", "[/h.cfg:3] : 'bad', see /h.cfg:2)"),
            "[/h.cfg:2] : 'bad', see /h.cfg:1)"
        );
        assert_eq!(renumbered_for("# _version=1\nglobal\n  bad\n", "[/h.cfg:3] : bad"), "[/h.cfg:3] : bad");
        assert_eq!(
            renumbered_for("# _md5hash=a\n# _version=1\nglobal\n  bad\n", "[/h.cfg:3] : bad"),
            "[/h.cfg:4] : bad"
        );
        assert_eq!(
            renumbered_for("# mine\n# _version=1\nglobal\n", "[/h.cfg:1] [/i.cfg:3] /h.cfg:"),
            "[/h.cfg:1] [/i.cfg:3] /h.cfg:"
        );
    }

    #[test]
    fn a_file_without_a_version_gets_one_as_its_first_line() {
        assert_eq!(with("global\n  daemon\n", 2), "# _version=2\nglobal\n  daemon\n");
        assert_eq!(with("\n# mine\nglobal\n", 2), "# _version=2\n\n# mine\nglobal\n");
    }
}
