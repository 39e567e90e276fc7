//! What is wrong with a manifest, and where.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

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

    pub(crate) fn add(&mut self, location: SourceLocation, message: impl Into<String>, hint: Option<String>) {
        let Some(source) = self.sources.get(location.source) else { return };
        let Span { line, column, length } = location.span;
        let line_number = line as usize;
        let text = line_number.checked_sub(1).and_then(|line| source.text.lines().nth(line));
        let text = text.unwrap_or_default();
        let room = text.chars().count().saturating_sub((column as usize).saturating_sub(1));
        self.found.push(Diagnostic {
            file: source.path.to_path_buf(),
            line: line_number,
            column: column as usize,
            length: (length as usize).clamp(1, room.max(1)),
            text: text.to_owned(),
            message: message.into(),
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
