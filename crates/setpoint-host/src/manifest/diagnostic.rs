//! What is wrong with a manifest, and where.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// One error of a manifest, with its place and the text that is wrong.
///
/// ```text
/// error: `files` have no attribute `mod`
///  --> site/app.yaml:4:5
///   |
/// 4 |     mod: "0644"
///   |     ^^^
///   = hint: did you mean `mode`?
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Diagnostic {
    /// The file it is in.
    pub file: PathBuf,
    /// The line, from 1; 0 if the file as a whole is meant.
    pub line: usize,
    /// The column in characters, from 1; 0 if the file as a whole is meant.
    pub column: usize,
    /// How many characters from there are wrong.
    pub length: usize,
    /// The source line.
    pub text: String,
    /// What is wrong.
    pub message: String,
    /// What can be done about it.
    pub hint: Option<String>,
    /// Who has to change something.
    pub origin: Origin,
}

/// Where an error comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The manifest says something wrong.
    #[default]
    Manifest,
    /// Whoever loads it sets a value that no manifest declares, or to something that it can't be.
    Variable,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.message)?;
        let margin = self.line.to_string().len();
        if self.line == 0 {
            write!(f, "{:margin$}--> {}", "", self.file.display())?;
        } else {
            writeln!(f, "{:margin$}--> {}:{}:{}", "", self.file.display(), self.line, self.column)?;
            writeln!(f, "{:margin$} |", "")?;
            writeln!(f, "{} | {}", self.line, self.text)?;
            // Tabs stay tabs, so that the caret is below what it points at.
            let before = self.text.chars().take(self.column.saturating_sub(1));
            let before: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "{:margin$} | {before}{}", "", "^".repeat(self.length.max(1)))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n{:margin$} = hint: {hint}", ""),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}

/// A file of a manifest with its text.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    /// The path, as the person named it.
    pub(crate) path: Arc<std::path::Path>,
    pub(crate) text: String,
    /// Where each line begins; found out when somebody asks for one.
    lines: OnceLock<Vec<usize>>,
}

impl ManifestFile {
    pub(crate) fn new(path: impl Into<Arc<std::path::Path>>, text: String) -> Self {
        Self { path: path.into(), text, lines: OnceLock::new() }
    }

    /// The lines from one on, which is counted from 0.
    pub(crate) fn lines_from(&self, line: usize) -> std::str::Lines<'_> {
        let begin = || {
            let ends = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
            std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect()
        };
        let begin = self.lines.get_or_init(begin).get(line).copied().unwrap_or(self.text.len());
        self.text.get(begin..).unwrap_or_default().lines()
    }
}

/// A range of characters, usually within one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// From 1.
    pub(crate) line: u32,
    /// From 1.
    pub(crate) column: u32,
    pub(crate) length: u32,
}

/// A place in one of the files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceLocation {
    pub(crate) source: usize,
    pub(crate) span: Span,
}

impl SourceLocation {
    /// A line of the file that is named there.
    pub(crate) fn within(self, file: &std::path::Path, line: usize) -> Place<'_> {
        Place { location: self, within: Some((file, line)) }
    }
}

/// A place in one of the files, or a line of another file that is named there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'p> {
    location: SourceLocation,
    within: Option<(&'p std::path::Path, usize)>,
}

impl From<SourceLocation> for Place<'_> {
    fn from(location: SourceLocation) -> Self {
        Self { location, within: None }
    }
}

/// The number of errors of which it is looked for what was probably meant.
const MOST_SUGGESTIONS: usize = 100;

/// Collects all that is wrong.
#[derive(Debug)]
pub(crate) struct Diagnostics<'a> {
    sources: &'a [ManifestFile],
    found: Vec<Diagnostic>,
}

impl<'a> Diagnostics<'a> {
    pub(crate) fn new(sources: &'a [ManifestFile]) -> Self {
        Self { sources, found: Vec::new() }
    }

    pub(crate) fn add<'p>(
        &mut self,
        place: impl Into<Place<'p>>,
        message: impl Into<String>,
        hint: Option<String>,
    ) {
        let Place { location, within } = place.into();
        let message = message.into();
        let message = match within {
            Some((file, line)) => format!("{}:{line}: {message}", file.display()),
            None => message,
        };
        let Some(source) = self.sources.get(location.source) else { return };
        let Span { line, column, length } = location.span;
        let line_number = line as usize;
        let text = line_number.checked_sub(1).and_then(|line| source.lines_from(line).next());
        let text = text.unwrap_or_default();
        let room = text.chars().count().saturating_sub((column as usize).saturating_sub(1));
        self.found.push(Diagnostic {
            file: source.path.to_path_buf(),
            line: line_number,
            column: column as usize,
            length: (length as usize).clamp(1, room.max(1)),
            text: text.to_owned(),
            message,
            hint,
            origin: Origin::Manifest,
        });
    }

    /// Adds what is wrong with a value that is set from outside.
    pub(crate) fn add_variable(&mut self, message: impl Into<String>, hint: Option<String>) {
        let Some(source) = self.sources.first() else { return };
        let (file, message) = (source.path.to_path_buf(), message.into());
        self.found.push(Diagnostic {
            file,
            line: 0,
            column: 0,
            length: 0,
            text: String::new(),
            message,
            hint,
            origin: Origin::Variable,
        });
    }

    /// Where something is, in words.
    pub(crate) fn words(&self, location: SourceLocation) -> String {
        let file = self.sources.get(location.source).map(|source| source.path.display().to_string());
        format!("{}:{}", file.unwrap_or_default(), location.span.line)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Returns whether it is still worth while to look for what was probably meant: that takes its time, and a mistake that is made
    /// again and again is understood by then.
    pub(crate) fn suggests(&self) -> bool {
        self.found.len() < MOST_SUGGESTIONS
    }

    /// All that was found, by file and line.
    pub(crate) fn finish(mut self) -> Vec<Diagnostic> {
        self.found.sort();
        self.found.dedup();
        self.found
    }
}

/// A hint that names the known word most like the one written.
pub(crate) fn did_you_mean<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(written, known).map(|word| format!("did you mean `{word}`?"))
}

/// The known word most like the one written, if it is near enough to be meant: two thirds of it are as they were written.
pub(crate) fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|word| (strsim::damerau_levenshtein(written, word), word));
    let (distance, word) = scored.min()?;
    (distance <= written.chars().count() / 3).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_where_it_begins() {
        for text in ["", "\n", "a", "a\nb", "a\r\n\nb\n", "é\n\n"] {
            let file = ManifestFile::new(std::path::Path::new("m.yaml"), text.to_owned());
            for line in 0..5 {
                let rest: Vec<&str> = file.lines_from(line).collect();
                assert_eq!(rest, text.lines().skip(line).collect::<Vec<&str>>(), "{text:?} from {line}");
            }
        }
    }
}
