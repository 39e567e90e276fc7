//! Cases of a recording, and how one is replayed.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde_json::Value as Json;

use setpoint_haproxy::check::{Checks, check};
use setpoint_haproxy::model::{
    Context, ModelError, Object, ObjectKind, SectionModel, Version, section_model,
};
use setpoint_haproxy::text::{Document, SectionKind, Severity};

use crate::{Outcome, REASONS, Reason, Verdict};

/// Tells the two kinds of recordings apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// JSON that was sent, and the text that the original made of it.
    Model,
    /// Text that was pushed, and the JSON that the original made of it.
    Text,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Text => "text",
        })
    }
}

/// A case of what was sent as JSON.
#[derive(Debug, Deserialize)]
pub struct ModelCase {
    /// Its name.
    pub case: String,
    /// The kind of section.
    pub section: String,
    /// The collection below it, for a child.
    pub child: Option<String>,
    /// Whether the section was sent with its children.
    #[serde(default)]
    pub full_section: bool,
    /// What was sent.
    pub sent: Json,
    /// The status of the answer.
    pub status: u16,
    /// The lines that were written.
    pub text: Option<Vec<String>>,
    /// What was read back.
    pub read: Option<Json>,
    /// Whether HAProxy accepted the text.
    pub haproxy_ok: Option<bool>,
    /// Another version of HAProxy that accepts it.
    pub haproxy_ok_other: Option<Json>,
    /// The first thing that HAProxy had to say against it.
    pub haproxy_error: Option<String>,
}

/// A case of what was pushed as text.
#[derive(Debug, Deserialize)]
pub struct TextCase {
    /// Its name.
    pub case: String,
    /// The text.
    pub config: String,
    /// The status of the answer.
    pub status: u16,
    /// What was read back, by collection.
    #[serde(default)]
    pub read: serde_json::Map<String, Json>,
    /// Whether HAProxy accepted the text.
    pub haproxy_ok: Option<bool>,
}

/// The lines that the model writes, or why it refuses to.
pub type Written = Result<Vec<String>, ModelError>;

/// What differs in a case.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Whether JSON was sent or text pushed.
    pub kind: Kind,
    /// The version of the API.
    pub version: Version,
    /// The name of the case.
    pub case: String,
    /// The kind of section.
    pub section: String,
    /// The collection below it, for a child.
    pub child: Option<String>,
    /// Whether HAProxy accepted the recorded text, if that is known.
    pub accepted: Option<bool>,
    /// What was sent, or an empty object where that is not known.
    pub sent: Json,
    /// The recorded text and ours, where they differ.
    pub text: Option<(Vec<String>, Written)>,
    /// The recorded text.
    pub recorded: Vec<String>,
    /// What was recorded as read and what we read, where they differ.
    pub read: Option<(Json, Json)>,
    /// What the model reads from the recorded text, of a case that was sent as JSON.
    pub reread: Json,
    /// The lines of the recorded text that the model keeps as text.
    pub unmodelled: Vec<String>,
    /// Those of them in which `check` finds an error.
    pub blamed: Vec<String>,
    /// Whether a line can't be cut into words, so that nothing is known of its section.
    pub unreadable: bool,
    /// Whether the original reads back something else than what was sent, and the model just that.
    pub lost: bool,
    /// What becomes of an object that HAProxy refuses.
    pub verdict: Option<Verdict>,
}

impl Difference {
    fn outcome(self) -> Outcome {
        if self.text.is_none() && self.read.is_none() {
            return Outcome::Agrees;
        }
        match self.reason() {
            Some(reason) => Outcome::Reasoned(reason, Box::new(self)),
            None => Outcome::Differs(Box::new(self)),
        }
    }

    /// Finds the reason of all that differs; where the text and what is read differ for two reasons, that of the text.
    fn reason(&self) -> Option<&'static Reason> {
        let find = |difference: &Self| REASONS.iter().find(|reason| reason.explains(difference));
        find(self).or_else(|| {
            let text = Self { read: None, ..self.clone() };
            let read = Self { text: None, ..self.clone() };
            let has_both = self.text.is_some() && self.read.is_some();
            find(&text).filter(|_| has_both && find(&read).is_some())
        })
    }
}

/// Lines that are in the `global` and the `defaults` section of the configuration in which objects were recorded: where
/// these were changed and not made, such lines were there already.
const BASE: [&str; 7] = [
    "external-check",
    "insecure-fork-wanted",
    "lua-load /rec/files/x.lua",
    "mode http",
    "timeout connect 5s",
    "timeout client 5s",
    "timeout server 5s",
];

/// The keywords of children that have names.
const NAMED: [&str; 11] = [
    "bind",
    "dgram-bind",
    "group",
    "load",
    "mailer",
    "nameserver",
    "peer",
    "server",
    "server-template",
    "table",
    "user",
];

/// Finds the kind of a section by its name in the recordings.
fn section_by_name(name: &str) -> Option<ObjectKind> {
    Some(match name {
        "peers" => ObjectKind::Peers,
        "mailers" => ObjectKind::Mailers,
        "resolvers" => ObjectKind::Resolvers,
        "http_errors" => ObjectKind::HttpErrors,
        "acme" => ObjectKind::Acme,
        name => ObjectKind::by_model(name).filter(|kind| kind.is_section())?,
    })
}

/// Finds the kind of a child by the name of its collection.
fn child_by_name(name: &str) -> Option<ObjectKind> {
    let listed = ObjectKind::ALL.iter().copied().find(|kind| !kind.is_section() && kind.collection() == name);
    let singular = || match name {
        "force_be_switches" => Some(ObjectKind::ForceBeSwitch),
        name => ObjectKind::by_model(name.strip_suffix('s')?).filter(|kind| !kind.is_section()),
    };
    listed.or_else(singular)
}

impl ModelCase {
    /// Returns the kind of object that was sent; `None` where there is no model for it.
    pub fn kind(&self) -> Option<ObjectKind> {
        match self.child.as_deref() {
            Some("entries") => None,
            Some(child) => child_by_name(child),
            None => section_by_name(&self.section),
        }
    }

    /// Returns whether HAProxy accepts what was written.
    pub fn is_accepted(&self) -> bool {
        self.haproxy_ok == Some(true) || self.haproxy_ok_other.is_some()
    }

    /// Writes what was sent, as the recordings show it: children are indented. `None` where there is no model for it.
    pub fn write(&self, version: Version) -> Option<Written> {
        let cx = Context::new(version);
        match self.child.as_deref() {
            // It is an element of its section's own list.
            Some("entries") => None,
            Some(child) => {
                Some(write_child(section_by_name(&self.section)?, child_by_name(child)?, &self.sent, &cx))
            }
            None => Some(write_section(section_by_name(&self.section)?, &self.sent, &cx)),
        }
    }

    /// Writes what was sent as the recorded text has it: without the line that opens a section that was there already, and
    /// without the lines that this had.
    pub fn write_as_recorded(&self, version: Version) -> Option<Written> {
        let recorded = self.text.as_ref()?;
        let written = self.write(version)?;
        Some(match written {
            Ok(lines) if self.is_changed(recorded) => {
                Ok(without_base(lines.get(1..).unwrap_or_default(), recorded))
            }
            other => other,
        })
    }

    /// Returns whether a section that was there already is changed, so that what is recorded are its new lines.
    fn is_changed(&self, recorded: &[String]) -> bool {
        self.child.is_none() && recorded.first().is_none_or(|line| line.starts_with(' '))
    }

    /// Returns the keyword that opens the section that the case is about.
    pub fn section_keyword(&self) -> Option<&'static str> {
        section_by_name(&self.section).map(section_keyword)
    }

    /// Returns whether the recorded text means what was sent, as the model reads it.
    fn reads_as_sent(&self, version: Version) -> bool {
        let (Some(section), Some(lines)) = (section_by_name(&self.section), &self.text) else { return false };
        let cx = Context::new(version);
        let read = match self.child.as_deref() {
            Some(child) => read_child(section, child_by_name(child), lines, &cx),
            None => read_section(section, lines, self.full_section, &cx),
        };
        read.is_some_and(|read| without_zeros(&read) == without_zeros(&self.sent))
    }

    /// Replays the case; `None` where the original refused it, or where there is no model for it.
    pub fn replay(&self, version: Version) -> Option<Outcome> {
        let recorded = self.text.clone().filter(|_| self.status < 300)?;
        let cx = Context::new(version);
        let section = section_by_name(&self.section)?;
        let written = self.write(version)?;
        let changed = self.is_changed(&recorded);
        let ours = self.write_as_recorded(version)?;
        let text_differs = match &ours {
            Ok(lines) => !same_lines(lines, &recorded),
            Err(_) => true,
        };
        let own = written.as_deref().unwrap_or_default();
        let header = own.first().filter(|_| changed).cloned();
        let all: Vec<String> = header.into_iter().chain(recorded.iter().cloned()).collect();
        let lines = if changed && !text_differs { own } else { all.as_slice() };
        let reread = match self.child.as_deref() {
            Some(child) => read_child(section, child_by_name(child), lines, &cx),
            None => read_section(section, lines, self.full_section, &cx),
        };
        let reread = reread.as_ref().map_or(Json::Null, tidied);
        let read = self.read.as_ref().map(|read| (tidied(read), reread.clone()));
        let kept =
            |json: Option<Json>| json.is_some_and(|json| without_zeros(&json) == without_zeros(&self.sent));
        let lines = if text_differs || changed { own } else { recorded.as_slice() };
        let own = match self.child.as_deref() {
            Some(child) => read_child(section, child_by_name(child), lines, &cx),
            None => read_section(section, lines, self.full_section, &cx),
        };
        let difference = Difference {
            kind: Kind::Model,
            version,
            case: self.case.clone(),
            section: self.section.clone(),
            child: self.child.clone(),
            accepted: Some(self.is_accepted()),
            sent: self.sent.clone(),
            text: text_differs.then(|| (recorded.clone(), ours)),
            recorded,
            read: read.filter(|(theirs, ours)| theirs != ours),
            reread,
            unmodelled: Vec::new(),
            blamed: Vec::new(),
            unreadable: false,
            lost: kept(own) && !kept(self.read.clone()),
            verdict: self.verdict(version),
        };
        Some(difference.outcome())
    }
}

/// Writes a child as the recordings show it: indented.
fn write_child(section: ObjectKind, kind: ObjectKind, sent: &Json, cx: &Context) -> Written {
    let (object, _) = Object::from_json(kind, sent, cx)?;
    let mut text = Vec::new();
    object.write_in(section, cx, &mut text)?;
    Ok(String::from_utf8_lossy(&text).lines().map(|line| format!("  {line}")).collect())
}

/// Writes a section.
fn write_section(kind: ObjectKind, sent: &Json, cx: &Context) -> Written {
    let (section, _) = SectionModel::from_json(kind, sent, cx)?;
    let mut text = Vec::new();
    section.write(cx, &mut text)?;
    Ok(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect())
}

/// Leaves out the lines that were there before.
fn without_base(lines: &[String], recorded: &[String]) -> Vec<String> {
    lines.iter().filter(|line| recorded.contains(line) || !BASE.contains(&line.trim())).cloned().collect()
}

/// Returns whether lines are the same but for blanks: the original leaves some where a value is missing.
pub(crate) fn same_lines(ours: &[String], recorded: &[String]) -> bool {
    // Children with names come in an order that differs from run to run.
    let is_named = |words: &Vec<String>| words.first().is_some_and(|word| NAMED.contains(&word.as_str()));
    let split = |lines: &[String]| {
        let words = lines.iter().map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let (mut named, others): (Vec<_>, Vec<_>) = words.partition(is_named);
        named.sort();
        (named, others)
    };
    ours == recorded || split(ours) == split(recorded)
}

/// Reads a child from its line.
fn read_child(
    section: ObjectKind,
    child: Option<ObjectKind>,
    lines: &[String],
    cx: &Context,
) -> Option<Json> {
    let name = if section.name_path().is_some() { " x" } else { "" };
    let text = format!("{}{name}\n{}\n", section_keyword(section), lines.join("\n"));
    let document = Document::parse(text.as_bytes());
    let model = section_model(
        document.sections().iter().find(|section| section.kind() != SectionKind::Preamble)?,
        cx,
    );
    let found = model.children.iter().find(|object| Some(object.kind) == child)?;
    Some(found.to_json())
}

/// Reads a section from its lines.
fn read_section(kind: ObjectKind, lines: &[String], full: bool, cx: &Context) -> Option<Json> {
    let text = format!("{}\n", lines.join("\n"));
    let document = Document::parse(text.as_bytes());
    let model = section_model(
        document.sections().iter().find(|section| section.kind() != SectionKind::Preamble)?,
        cx,
    );
    // Up to 3.1 a store holds what it loads, full or not.
    let full = full || (kind == ObjectKind::CrtStore && cx.api <= Version::V3_1);
    if full { Some(model.to_json(cx)) } else { model.object.as_ref().map(Object::to_json) }
}

/// Returns the keyword that opens a section.
fn section_keyword(kind: ObjectKind) -> &'static str {
    match kind {
        ObjectKind::Peers => "peers",
        ObjectKind::Mailers => "mailers",
        ObjectKind::Resolvers => "resolvers",
        ObjectKind::HttpErrors => "http-errors",
        ObjectKind::LogForward => "log-forward",
        ObjectKind::LogProfile => "log-profile",
        ObjectKind::CrtStore => "crt-store",
        ObjectKind::FcgiApp => "fcgi-app",
        ObjectKind::Acme => "acme",
        kind => kind.model(),
    }
}

/// Leaves out what says nothing: nulls, empty texts, lists and structures.
fn tidied(json: &Json) -> Json {
    let says_something = |json: &Json| match json {
        Json::Null => false,
        Json::String(text) => !text.is_empty(),
        Json::Array(values) => !values.is_empty(),
        Json::Object(properties) => !properties.is_empty(),
        Json::Bool(_) | Json::Number(_) => true,
    };
    match json {
        Json::Array(values) => Json::Array(values.iter().map(tidied).collect()),
        Json::Object(properties) => Json::Object(
            properties
                .iter()
                .map(|(name, value)| (name.clone(), tidied(value)))
                .filter(|(_, value)| says_something(value))
                .collect(),
        ),
        json => json.clone(),
    }
}

/// Leaves out zeros and flags that are not set, too: mostly they mean «not there».
pub(crate) fn without_zeros(json: &Json) -> Json {
    let dropped = match json {
        Json::Array(values) => Json::Array(values.iter().map(without_zeros).collect()),
        Json::Object(properties) => {
            let says_something = |value: &Json| *value != Json::Bool(false) && value.as_i64() != Some(0);
            let properties = properties.iter().filter(|(_, value)| says_something(value));
            Json::Object(properties.map(|(name, value)| (name.clone(), without_zeros(value))).collect())
        }
        json => json.clone(),
    };
    tidied(&dropped)
}

impl TextCase {
    /// Replays the case; `None` where the original did not take it. Returns the section it is about, too.
    ///
    /// `written` is the case that wrote this text, if it is known.
    pub fn replay(&self, version: Version, written: Option<&ModelCase>) -> Option<(String, Outcome)> {
        if self.status == 0 || self.status >= 300 {
            return None;
        }
        let cx = Context::new(version);
        let document = Document::parse(self.config.as_bytes());
        let models: Vec<std::sync::Arc<SectionModel>> =
            document.sections().iter().map(|section| section_model(section, &cx)).collect();
        let mut theirs = serde_json::Map::new();
        let mut ours = serde_json::Map::new();
        for (collection, read) in &self.read {
            let of_kind: Vec<&SectionModel> = models
                .iter()
                .filter(|model| {
                    model.object.as_ref().is_some_and(|object| object.kind.collection() == collection)
                })
                .map(|model| &**model)
                .collect();
            let read_by_us = match read {
                Json::Array(_) => {
                    Json::Array(of_kind.iter().map(|model| tidied(&model.to_json(&cx))).collect())
                }
                _ => of_kind.first().map_or_else(
                    || Json::Object(serde_json::Map::new()),
                    |model| tidied(&model.to_json(&cx)),
                ),
            };
            theirs.insert(collection.clone(), by_name(tidied(read)));
            ours.insert(collection.clone(), by_name(read_by_us));
        }
        let checks = Checks { version: Some(cx.haproxy), ..Checks::default() };
        let errors: BTreeSet<u32> = check(&document, &checks)
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| diagnostic.line)
            .collect();
        let (mut unmodelled, mut blamed, mut unreadable, mut first_line) = (Vec::new(), Vec::new(), false, 0);
        for (section, model) in document.sections().iter().zip(&models) {
            for line in section.all_lines() {
                unreadable |= line.error().is_some();
                if model.unmodelled.contains(&line.number()) {
                    let text = String::from_utf8_lossy(line.raw()).trim().to_owned();
                    if errors.contains(&(first_line + line.number() + 1)) {
                        blamed.push(text.clone());
                    }
                    unmodelled.push(text);
                }
            }
            first_line += section.line_count();
        }
        let section = self.read.keys().next().map_or("none", String::as_str).to_owned();
        let read = (theirs != ours).then_some((Json::Object(theirs), Json::Object(ours)));
        let difference = Difference {
            kind: Kind::Text,
            version,
            case: self.case.clone(),
            section: section.clone(),
            child: None,
            accepted: self.haproxy_ok.or(written.map(ModelCase::is_accepted)),
            sent: written
                .map_or_else(|| Json::Object(serde_json::Map::new()), |written| written.sent.clone()),
            text: None,
            recorded: self.config.lines().map(str::to_owned).collect(),
            reread: Json::Null,
            unmodelled,
            blamed,
            unreadable,
            lost: written.is_some_and(|written| written.reads_as_sent(version)),
            verdict: None,
            read,
        };
        Some((section, difference.outcome()))
    }
}

/// Sorts sections by name: the original groups them.
fn by_name(json: Json) -> Json {
    match json {
        Json::Array(mut values) => {
            values.sort_by_key(|value| value.get("name").map(Json::to_string));
            Json::Array(values)
        }
        json => json,
    }
}
