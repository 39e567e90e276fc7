//! What is wrong with a file, as compilers report it.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use super::directive::Directive;
use super::document::Document;
use super::kind::SectionKind;
use super::lex::{LexErrorKind, MAX_WORDS};
use super::line::Line;
use super::section::Section;
use crate::table::facts::facts;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// HAProxy refuses the file.
    Error,
    /// HAProxy accepts it, and it is not what someone wanted.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// What is wrong, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "each is named as what is wrong, and its message says more")]
pub enum Problem {
    UnmatchedQuote,
    BadHex,
    BadVariable,
    UnmatchedBrace,
    BadExpansion,
    Nul,
    TooManyWords,
    EmptyWord,
    MissingLineFeed,
    UnknownSection,
    OutOfSection,
    MissingName,
    DuplicateSection,
    DuplicateName,
    LoneConditional,
    UnterminatedConditional,
    BadCondition,
    UnknownDirective,
    BadPrefix,
    UnknownKeyword,
    UnknownReference,
    Removed,
    Deprecated,
    TooNew,
    NoEffect,
    NotExpanded,
    Needs,
    Refused,
}

impl Problem {
    /// Returns whether HAProxy finds it while it splits a line into words, which it does before it looks at any `.if`.
    pub fn is_of_words(self) -> bool {
        matches!(
            self,
            Self::UnmatchedQuote
                | Self::BadHex
                | Self::BadVariable
                | Self::UnmatchedBrace
                | Self::BadExpansion
                | Self::Nul
                | Self::TooManyWords
                | Self::MissingLineFeed
                | Self::LoneConditional
                | Self::UnterminatedConditional
        )
    }
}

/// Cuts a message to a length that someone reads, whatever word it is about.
fn shortened(message: String) -> String {
    const MOST: usize = 300;
    if message.len() <= MOST { message } else { message.chars().take(MOST).chain(['…']).collect() }
}

/// One thing that is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one word.
    pub problem: Problem,
    /// The line of the file, counted from 1.
    pub line: u32,
    /// The place in the line, in bytes, counted from 1.
    pub column: u32,
    /// What stands there.
    pub text: String,
    /// What is wrong, in words.
    pub message: String,
    /// What can be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<Cow<'static, str>>,
}

impl Diagnostic {
    /// Returns what is wrong with some text of a line; `first_line` is the line of the file its section begins with.
    pub fn new(
        problem: Problem,
        first_line: u32,
        line: &Line<'_>,
        at: (u32, &[u8]),
        message: impl Into<String>,
    ) -> Self {
        Self::at(problem, first_line.saturating_add(line.number()), at, message)
    }

    /// Returns what is wrong with some text of a line of the file.
    pub(crate) fn at(problem: Problem, line: u32, at: (u32, &[u8]), message: impl Into<String>) -> Self {
        let (column, text) = at;
        let (text, cut) = match text.get(..MOST_TEXT) {
            Some(start) if text.len() > MOST_TEXT => (start, "…"),
            _ => (text, ""),
        };
        Self {
            severity: Severity::Error,
            problem,
            line,
            column,
            text: String::from_utf8_lossy(text).into_owned() + cut,
            message: shortened(message.into()),
            hint: None,
        }
    }

    /// Adds what can be done.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes it a warning.
    #[must_use]
    pub fn warning(mut self) -> Self {
        self.severity = Severity::Warning;
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// How many bytes of what is wrong are kept.
const MOST_TEXT: usize = 200;

/// All that is wrong with the text of a document, in its order.
pub(super) fn of(document: &Document) -> Vec<Diagnostic> {
    let mut reader = Reader::default();
    for section in document.sections() {
        reader.section(section);
    }
    for &(line, column) in &reader.open {
        let text = ".if".to_owned();
        let message = "`.if` without its `.endif`".to_owned();
        let hint = Some(Cow::Borrowed("a line `.endif` ends the block"));
        reader.found.push(Diagnostic {
            severity: Severity::Error,
            problem: Problem::UnterminatedConditional,
            line,
            column,
            text,
            message,
            hint,
        });
    }
    reader.found.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
    reader.found
}

#[derive(Default)]
struct Reader {
    found: Vec<Diagnostic>,
    /// The line of the file that the section begins with, less one.
    before: u32,
    /// The `.if` that are open.
    open: Vec<(u32, u32)>,
    /// For each of them, whether its `.else` has been read.
    elses: Vec<bool>,
}

impl Reader {
    /// Returns what is wrong with some text of a line, and what can be done.
    fn say(
        &mut self,
        problem: Problem,
        line: &Line<'_>,
        at: (u32, &[u8]),
        message: impl Into<String>,
        hint: impl Into<Option<Cow<'static, str>>>,
    ) {
        let diagnostic = Diagnostic::new(problem, self.before.saturating_add(1), line, at, message);
        self.found.push(Diagnostic { hint: hint.into(), ..diagnostic });
    }

    fn section(&mut self, section: &Section) {
        let header = section.header().map(|line| line.number());
        for line in section.all_lines() {
            let readable = self.words(&line);
            if !readable {
                continue;
            }
            let Some(first) = line.words().next() else { continue };
            if let Some(directive) = line.directive() {
                self.directive(directive, &line, first.column, &first.text);
            } else if Some(line.number()) == header {
                self.header(section, &line);
            } else if section.kind() == SectionKind::Preamble && first.raw.first() != Some(&b'[') {
                let name = first.to_str_lossy();
                let message = format!("`{name}` stands before the first section");
                let sections = SectionKind::all().map(SectionKind::keyword).filter(|word| !word.is_empty());
                let hint = match nearest(&name, sections) {
                    Some(best) => Cow::Owned(format!("did you mean `{best}`?")),
                    None => Cow::Borrowed("a line such as `global` or `backend NAME` opens a section"),
                };
                self.say(Problem::OutOfSection, &line, (first.column, first.raw), message, hint);
            } else if first.is("no") || first.is("default") {
                self.prefix(&line);
            }
        }
        self.before = self.before.saturating_add(section.line_count());
    }

    /// What is wrong with the words of a line; whether it can be read on.
    fn words(&mut self, line: &Line<'_>) -> bool {
        let raw = line.raw();
        if !line.is_ended() {
            let column = u32::try_from(raw.len()).unwrap_or(u32::MAX).saturating_add(1);
            let message = "the last line does not end with a line feed";
            let hint = Cow::Borrowed("the file may have been cut off");
            self.say(Problem::MissingLineFeed, line, (column, b""), message, hint);
        }
        if let Some(error) = line.error() {
            let column = u32::try_from(error.at).unwrap_or(u32::MAX).saturating_add(1);
            let (problem, message, hint) = lexical(error.kind);
            let text = raw.get(error.at..).unwrap_or_default();
            self.say(problem, line, (column, text), message, hint.map(Cow::Borrowed));
            return false;
        }
        if let Some(word) = line.words().nth(MAX_WORDS) {
            let message = format!("more than {MAX_WORDS} words in one line");
            let hint = Cow::Borrowed("divide the line: many keywords may be repeated");
            self.say(Problem::TooManyWords, line, (word.column, word.raw), message, hint);
        }
        if let Some(word) = line.empty_word() {
            let message = "an empty word ends the line for HAProxy; newer versions refuse it";
            let (first_line, place) = (self.before.saturating_add(1), (word.column, word.raw));
            self.found.push(Diagnostic::new(Problem::EmptyWord, first_line, line, place, message).warning());
        }
        true
    }

    fn header(&mut self, section: &Section, line: &Line<'_>) {
        let kind = section.kind();
        let mut words = line.words();
        let Some(keyword) = words.next() else { return };
        let place = (keyword.column, keyword.raw);
        match (kind, section.name()) {
            (SectionKind::Unknown, _) => {
                let name = keyword.to_str_lossy();
                let hint = nearest(&name, SectionKind::all().map(SectionKind::keyword))
                    .map_or("it is kept as it is, up to the next section".into(), |best| {
                        format!("did you mean `{best}`?").into()
                    });
                let message = format!("unknown section `{name}`");
                let found = Diagnostic::new(
                    Problem::UnknownSection,
                    self.before.saturating_add(1),
                    line,
                    place,
                    message,
                );
                // Whether HAProxy reads it is for the condition to say.
                let found = if section.is_conditional() { found.warning() } else { found };
                self.found.push(Diagnostic { hint: Some(hint), ..found });
            }
            (_, None) if kind.needs_name() => {
                let message = format!("`{kind}` without a name");
                self.say(
                    Problem::MissingName,
                    line,
                    place,
                    message,
                    Cow::from(format!("write `{kind} NAME`")),
                );
            }
            _ => {}
        }
    }

    fn directive(&mut self, directive: Directive, line: &Line<'_>, column: u32, word: &[u8]) {
        let text = String::from_utf8_lossy(word).into_owned();
        let place = (column, word);
        let problem = match directive {
            Directive::If => {
                self.open.push((self.before.saturating_add(1).saturating_add(line.number()), column));
                self.elses.push(false);
                None
            }
            Directive::Message => None,
            Directive::Unknown => {
                let hint =
                    Cow::Borrowed("there are .if, .elif, .else, .endif, .diag, .notice, .warning and .alert");
                self.say(Problem::UnknownDirective, line, place, format!("unknown directive `{text}`"), hint);
                None
            }
            _ if self.open.is_empty() => Some(format!("`{text}` without its `.if`")),
            Directive::Endif => {
                self.open.pop();
                self.elses.pop();
                None
            }
            Directive::Elif | Directive::Else => {
                let after_else = self.elses.last().copied().unwrap_or_default();
                if directive == Directive::Else
                    && let Some(seen) = self.elses.last_mut()
                {
                    *seen = true;
                }
                after_else.then(|| format!("`{text}` after `.else`"))
            }
        };
        if let Some(message) = problem {
            self.say(Problem::LoneConditional, line, place, message, None);
        }
    }

    fn prefix(&mut self, line: &Line<'_>) {
        let mut words = line.words();
        let (Some(prefix), Some(word)) = (words.next(), words.next()) else { return };
        if !word.variable && !facts().is_negatable(&word.to_str_lossy()) {
            let message = format!("`{}` can't stand before `{}`", prefix.to_str_lossy(), word.to_str_lossy());
            let hint = Cow::Borrowed(
                "`no` and `default` stand before `option`, `log` and a few keywords of `global`",
            );
            self.say(Problem::BadPrefix, line, (prefix.column, prefix.raw), message, hint);
        }
    }
}

fn lexical(kind: LexErrorKind) -> (Problem, &'static str, Option<&'static str>) {
    match kind {
        LexErrorKind::UnmatchedQuote => (
            Problem::UnmatchedQuote,
            "a quote that is not closed",
            Some("close it in the same line, or write `\\'` or `\\\"` for the character itself"),
        ),
        LexErrorKind::BadHex => (
            Problem::BadHex,
            "`\\x` without two hexadecimal digits",
            Some("write `\\\\x` for a backslash and an x"),
        ),
        LexErrorKind::BadVariable => (
            Problem::BadVariable,
            "no name of a variable after `$`",
            Some("inside double quotes, `\\$` is a dollar"),
        ),
        LexErrorKind::UnmatchedBrace => {
            (Problem::UnmatchedBrace, "`${` without its `}`", Some("inside double quotes, `\\$` is a dollar"))
        }
        LexErrorKind::BadExpansion => {
            (Problem::BadExpansion, "only `[*]` may follow the name of a variable", None)
        }
        LexErrorKind::Nul => (Problem::Nul, "NUL byte", Some("HAProxy takes the file to end here")),
    }
}

/// The candidate that is most like a word, if one is like it.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The distance takes as long as both are: nobody reads a hint about a longer one.
    const MOST: usize = 100;
    let is_short = |text: &str| text.len() <= MOST;
    candidates
        .into_iter()
        .filter(|candidate| is_short(word) && is_short(candidate))
        .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
        .filter(|&(distance, candidate)| distance <= candidate.len().min(word.len()) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}
