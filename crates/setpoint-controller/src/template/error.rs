//! Why a template gives nothing.

use std::error::Error as _;
use std::fmt;

use minijinja::ErrorKind;

use super::Sources;
use super::functions::Requested;
use super::limits::Exceeded;

/// Why a template gives nothing, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The template, which may be one that the rendered one includes.
    pub template: String,
    /// The line in it, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// The line as it is written.
    pub excerpt: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether a template itself asked for it, with `fail`.
    pub is_requested: bool,
}

impl TemplateError {
    pub(super) fn new(error: &minijinja::Error, rendered: &str, sources: &Sources) -> Self {
        // What happens in a template that is included is the cause of what happens where it is.
        let innermost = std::iter::successors(Some(error), |error| cause(error)).last().unwrap_or(error);
        let named = innermost.name().filter(|name| sources.contains_key(*name));
        let template = named.unwrap_or(rendered).to_owned();
        let line = innermost.line().filter(|line| *line > 0);
        let excerpt = line.and_then(|line| sources.get(&template)?.lines().nth(line - 1)).map(str::to_owned);
        let message = innermost.detail().map_or_else(|| innermost.kind().to_string(), str::to_owned);
        let hint = match innermost.kind() {
            ErrorKind::OutOfFuel => Some("does it loop over something very large?"),
            ErrorKind::UndefinedError => Some("say `default(…)`, or ask whether it `is defined`"),
            ErrorKind::TemplateNotFound => Some("a template can include those of `templateSnippets`"),
            ErrorKind::BadEscape => {
                Some("`|raw` writes a value as it is; nobody else may then decide about it")
            }
            _ => None,
        };
        let is_requested = innermost.source().is_some_and(<dyn std::error::Error>::is::<Requested>);
        Self { template, line, message, excerpt, hint: hint.map(str::to_owned), is_requested }
    }

    pub(super) fn exceeded(template: &str, exceeded: Exceeded) -> Self {
        let hint = Some("does it loop over something very large?".to_owned());
        Self { hint, ..Self::of(template, exceeded.to_string()) }
    }

    pub(super) fn unknown(template: &str) -> Self {
        Self::of(template, "there is no such template".to_owned())
    }

    pub(super) fn no_text(template: &str) -> Self {
        Self::of(template, "what it gives is no UTF-8".to_owned())
    }

    fn of(template: &str, message: String) -> Self {
        let template = template.to_owned();
        Self { template, line: None, message, excerpt: None, hint: None, is_requested: false }
    }
}

fn cause(error: &minijinja::Error) -> Option<&minijinja::Error> {
    error.source()?.downcast_ref()
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "template {}", self.template)?;
        if let Some(line) = self.line {
            write!(f, ", line {line}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(excerpt) = &self.excerpt {
            write!(f, "\n    | {}", excerpt.trim_end())?;
        }
        Ok(())
    }
}

impl std::error::Error for TemplateError {}
