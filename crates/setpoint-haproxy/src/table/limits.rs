//! What HAProxy accepts of a value beyond its type, so that what it would refuse is refused before it is written.
//!
//! A row says it in brackets after a type: `int[1..]` are numbers, `word[str|beg]` and `word[=none]` are words,
//! `word[severity]`, or just `severity`, is one of the [lists of words](super::words), and `word[octal]`, or just `octal`,
//! one of the [forms](super::forms). Values are held to it when they are written, and when a text is checked; they are
//! read whatever they are.

use rustc_hash::{FxHashMap, FxHashSet};

use super::forms::{Fits, Form, form};
use super::samples::SampleContext;
use super::words::Words;
use crate::keywords::{Place, in_place};
use crate::model::spelling::{one_word, split, words};
use crate::model::{Value, Version};
use crate::text::nearest;

/// Why HAProxy would refuse something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) why: String,
    /// The word it is about.
    pub(crate) word: Option<String>,
    /// What could be meant.
    pub(crate) hint: Option<String>,
    /// The words of which HAProxy wants one, if it wants one of some.
    pub(crate) known: Vec<&'static str>,
}

impl Complaint {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), word: None, hint: None, known: Vec::new() }
    }

    /// Reports that a word is none of those that are known.
    pub(crate) fn one_of(path: &str, word: &str, known: &[&'static str]) -> Self {
        let list = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        Self {
            why: format!("{} can't be `{word}`: HAProxy wants one of {list}", subject(path)),
            word: Some(word.to_owned()),
            hint: did_you_mean(word, known.iter().copied()),
            known: known.to_vec(),
        }
    }

    /// Adds words to those of which HAProxy wants one, and names what is to be one of them by a word of the line.
    pub(crate) fn with_known(self, more: &[&'static str], subject: &str) -> Self {
        let Some(word) = self.word.clone().filter(|_| !self.known.is_empty()) else { return self };
        let mut known = self.known;
        known.extend(more);
        let mut seen = FxHashSet::default();
        known.retain(|word| seen.insert(*word));
        Self::one_of(subject, &word, &known)
    }

    /// Reports that a version does not know a word.
    pub(crate) fn unknown(what: &str, word: &str, places: &[Place], version: Version) -> Self {
        let known = places.iter().flat_map(|place| in_place(*place, version));
        Self {
            why: format!("HAProxy {version} knows no {what} `{word}`"),
            word: Some(word.to_owned()),
            hint: did_you_mean(word, known),
            known: Vec::new(),
        }
    }
}

/// Returns what a word could be meant for, as a hint.
pub(crate) fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    nearest(word, known).map(|best| format!("did you mean `{best}`?"))
}

/// Returns what a value is called in messages: by its path, unless no property holds it.
fn subject(path: &str) -> &str {
    if path.rsplit('.').next() == Some("_") { "the value" } else { path }
}

/// The least and the greatest number that HAProxy accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    least: i64,
    most: i64,
}

impl Bounds {
    /// Reads `1..` or `0..2`.
    fn read(text: &str) -> Option<Self> {
        let (least, most) = text.split_once("..")?;
        let most = if most.is_empty() { i64::MAX } else { most.parse().ok()? };
        Some(Self { least: least.parse().ok()?, most })
    }

    fn contain(self, number: i64) -> bool {
        (self.least..=self.most).contains(&number)
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.most {
            i64::MAX => write!(f, "at least {}", self.least),
            most => write!(f, "from {} to {most}", self.least),
        }
    }
}

/// What HAProxy accepts of a value.
#[derive(Clone, Debug)]
pub(crate) enum Limit {
    /// Numbers between these.
    Between(Bounds),
    /// One of these words.
    Words(Words),
    /// What has a form.
    Form(&'static Form),
}

impl Limit {
    /// Reads what stands in brackets after a type; lists of words are known by their names.
    pub(super) fn read(text: &'static str, lists: &FxHashMap<&'static str, Words>) -> Option<Self> {
        if text.contains("..") {
            return Bounds::read(text).map(Self::Between);
        }
        match text.strip_prefix('=') {
            Some(word) => Some(Self::Words(std::iter::once(word).collect())),
            None if text.contains('|') => Some(Self::Words(text.split('|').collect())),
            None => Self::named(text, lists),
        }
    }

    /// Finds a list of words or a form by its name.
    pub(super) fn named(name: &str, lists: &FxHashMap<&'static str, Words>) -> Option<Self> {
        let list = lists.get(name).cloned().map(Self::Words);
        list.or_else(|| form(name).map(Self::Form))
    }

    /// Returns whether it is about sample expressions.
    pub(crate) fn is_of_samples(&self) -> bool {
        matches!(self, Self::Form(Form { name: "sample", .. }))
    }

    /// Returns what is wrong with the value of a field, if something is. `several` says that a text may be more than one word.
    pub(crate) fn complain(
        &self,
        path: &str,
        value: &Value,
        several: bool,
        sample_cx: SampleContext,
    ) -> Option<Complaint> {
        match value {
            Value::Int(number) => self.complain_of_number(path, *number, sample_cx),
            Value::Text(text) => {
                // What a variable stands for is not known.
                if text.contains('$') {
                    return None;
                }
                let spelled = if several { words(text) } else { one_word(text) };
                let decoded = split(&spelled)?;
                self.complain_of(path, &decoded, sample_cx)
            }
            Value::List(values) => {
                values.iter().find_map(|value| self.complain(path, value, several, sample_cx))
            }
            Value::Bool(_) | Value::Object(_) | Value::Json(_) => None,
        }
    }

    /// Returns what is wrong with the number of a field, if something is.
    pub(crate) fn complain_of_number(
        &self,
        path: &str,
        number: i64,
        sample_cx: SampleContext,
    ) -> Option<Complaint> {
        match self {
            Self::Between(bounds) if !bounds.contain(number) => {
                let why = format!("{} can't be {number}: HAProxy wants {bounds}", subject(path));
                Some(Complaint { word: Some(number.to_string()), ..Complaint::new(why) })
            }
            Self::Between(_) => None,
            _ => self.complain_of(path, &[number.to_string()], sample_cx),
        }
    }

    /// Returns what is wrong with the words of a field, if something is.
    pub(crate) fn complain_of(
        &self,
        path: &str,
        words: &[String],
        sample_cx: SampleContext,
    ) -> Option<Complaint> {
        match self {
            Self::Between(_) => None,
            Self::Words(known) => {
                let word = words.iter().find(|word| !known.has(word, sample_cx.version))?;
                Some(Complaint::one_of(path, word, &known.of(sample_cx.version)))
            }
            Self::Form(form) => match form.fits {
                Fits::Word(fits) => {
                    let word = words.iter().find(|word| !fits(word))?;
                    let why = format!("{} can't be `{word}`: HAProxy wants {}", subject(path), form.wants);
                    Some(Complaint { word: Some(word.clone()), ..Complaint::new(why) })
                }
                Fits::Words(complain) => complain(words, sample_cx),
            },
        }
    }
}
