//! Items as they were written: fields checked against the table, nothing resolved yet.

use base64::Engine as _;
use setpoint_graph::Name;

use super::diagnostic::{Diagnostics, SourceLocation, Span, did_you_mean, nearest};
use super::table::{Field, READY, READY_ONE_OF, Section, TOP, Type};
use super::values::{self, WrongValue};
use super::yaml::{Data, Node, Style};
use crate::item::{Address, Mode, StopSignal, Wait, quoted};
use crate::process::{COMMAND_TAG, TAG};

/// One item as it was written.
#[derive(Debug)]
pub(crate) struct Spec<'a> {
    pub(crate) section: &'static Section,
    pub(crate) name: Name,
    /// Where its name is.
    pub(crate) location: SourceLocation,
    /// Its fields, of which those with a wrong value are left out.
    fields: Vec<(&'static str, &'a Node<'a>)>,
}

impl<'a> Spec<'a> {
    pub(crate) fn node(&self, field: &str) -> Option<&'a Node<'a>> {
        self.fields.iter().find(|(name, _)| *name == field).map(|&(_, node)| node)
    }

    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        self.node(field)?.scalar()
    }

    pub(crate) fn is_set(&self, field: &str) -> bool {
        self.node(field).and_then(Node::boolean) == Some(true)
    }

    /// A place within this item's file.
    pub(crate) fn at(&self, span: Span) -> SourceLocation {
        SourceLocation { source: self.location.source, span }
    }

    /// Where a field's value is, or the item's name where it has no such field.
    pub(crate) fn location_of(&self, field: &str) -> SourceLocation {
        self.node(field).map_or(self.location, |node| self.at(node.span))
    }
}

/// All that was written in all files.
#[derive(Debug, Default)]
pub(crate) struct Declarations<'a> {
    pub(crate) name: Option<(&'a str, SourceLocation)>,
    pub(crate) root: Option<(&'a str, SourceLocation)>,
    pub(crate) values: Vec<(&'a Node<'a>, usize)>,
    pub(crate) specs: Vec<Spec<'a>>,
}

impl<'a> Declarations<'a> {
    /// Takes in a document.
    pub(crate) fn document(&mut self, source: usize, document: &'a Node<'a>, report: &mut Diagnostics<'_>) {
        let location = |span| SourceLocation { source, span };
        if document.is_null() {
            return;
        }
        let Data::Map(pairs) = &document.data else {
            let message = format!("a manifest is a map, and this is {}", document.words());
            let hint = "begin with `files:` or another section".to_owned();
            return report.add(location(document.span), message, Some(hint));
        };
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in pairs {
            let Some(name) = field_name(key, &mut seen, source, report) else { continue };
            if let Some(section) = Section::all().find(|section| section.key == name) {
                self.section(section, source, value, report);
            } else if let Some(field) = TOP.iter().find(|field| field.name == name) {
                if check(field, value, source, report) {
                    self.top(field, source, value, report);
                }
            } else {
                let known = TOP.iter().map(|field| field.name).chain(Section::all().map(|s| s.key));
                let hint = Section::all().find(|section| section.kind == name);
                let hint = hint.map(|section| format!("did you mean `{}`?", section.key));
                let all: Vec<&str> = known.clone().collect();
                let hint = hint
                    .or_else(|| did_you_mean(name, known))
                    .unwrap_or_else(|| format!("there are {}", all.join(", ")));
                report.add(location(key.span), format!("a manifest has no field `{name}`"), Some(hint));
            }
        }
    }

    fn top(&mut self, field: &Field, source: usize, value: &'a Node<'a>, report: &mut Diagnostics<'_>) {
        if field.kind == Type::Values {
            return self.values.push((value, source));
        }
        let Some(text) = value.scalar() else { return };
        let location = SourceLocation { source, span: value.span };
        let slot = if field.name == "name" { &mut self.name } else { &mut self.root };
        if let Some((_, first)) = slot {
            let message = format!("`{}` is said twice, first in {}", field.name, report.words(*first));
            report.add(location, message, Some("a set of manifests says it once".to_owned()));
        } else if text.is_empty() {
            let hint = "leave it out for the default".to_owned();
            report.add(location, format!("`{}` is empty", field.name), Some(hint));
        } else if field.name == "name" && text.contains(char::is_control) {
            let message = "`name` holds a character that can't be shown, or the end of a line".to_owned();
            report.add(location, message, None);
        } else {
            *slot = Some((text, location));
        }
    }

    fn section(
        &mut self,
        section: &'static Section,
        source: usize,
        value: &'a Node<'a>,
        report: &mut Diagnostics<'_>,
    ) {
        if value.is_null() {
            return;
        }
        let location = |span| SourceLocation { source, span };
        let Data::Map(pairs) = &value.data else {
            let message =
                format!("`{}` is a map of items by name, and this is {}", section.key, value.words());
            return report.add(location(value.span), message, None);
        };
        self.specs.reserve(pairs.len());
        for (key, value) in pairs {
            let Some(name) = key.scalar() else {
                report.add(location(key.span), format!("a name is text, and this is {}", key.words()), None);
                continue;
            };
            if let Some(why) = bad_name(name) {
                report.add(location(key.span), format!("{} is no name: {why}", quoted(name)), None);
                continue;
            }
            let fields = item(section, name, key.span, source, value, report);
            self.specs.push(Spec { section, name: Name::new(name), location: location(key.span), fields });
        }
    }
}

/// The fields of an item, those with a wrong value left out.
fn item<'a>(
    section: &'static Section,
    name: &str,
    at: Span,
    source: usize,
    value: &'a Node<'a>,
    report: &mut Diagnostics<'_>,
) -> Vec<(&'static str, &'a Node<'a>)> {
    let mut fields = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    // What a misspelt field was probably meant to be is not missing as well.
    let mut meant: Vec<&str> = Vec::new();
    let location = |span| SourceLocation { source, span };
    match &value.data {
        Data::Map(pairs) => {
            fields.reserve_exact(pairs.len());
            for (key, value) in pairs {
                let Some(written) = field_name(key, &mut seen, source, report) else { continue };
                let Some(field) = section.field(written) else {
                    let known = section.fields.iter().map(|field| field.name);
                    meant.extend(nearest(written, known.clone()));
                    let all: Vec<&str> = known.clone().collect();
                    let hint = if written == "<<" {
                        "merge keys are not understood; use an alias for a whole value".to_owned()
                    } else {
                        did_you_mean(written, known)
                            .unwrap_or_else(|| format!("there are {}", all.join(", ")))
                    };
                    let message = format!("a {} has no attribute `{written}`", section.kind);
                    report.add(location(key.span), message, Some(hint));
                    continue;
                };
                if check(field, value, source, report) {
                    fields.push((field.name, value));
                }
            }
        }
        _ if value.is_null() => {}
        _ => {
            let message =
                format!("the attributes of a {} are a map, and this is {}", section.kind, value.words());
            report.add(location(value.span), message, None);
            return fields;
        }
    }
    let reference = format_args!("{}.{name}", section.kind);
    for required in section.required {
        if !seen.contains(required) && !meant.contains(required) {
            let hint = section.field(required).map(|field| format!("say `{required}`: {}", field.about));
            report.add(location(at), format!("{reference} has no `{required}`"), hint);
        }
    }
    let given: Vec<&str> = seen.iter().copied().filter(|name| section.one_of.contains(name)).collect();
    let all = section.one_of.join("`, `");
    match given.as_slice() {
        [] if !section.one_of.is_empty() && !meant.iter().any(|name| section.one_of.contains(name)) => {
            let hint = "an empty file has `content: \"\"`".to_owned();
            report.add(location(at), format!("{reference} has none of `{all}`"), Some(hint));
        }
        [_, second, ..] => {
            let at = fields.iter().find(|(name, _)| name == second).map_or(at, |(_, node)| node.span);
            let message = format!("{reference} has both `{}`", given.join("` and `"));
            report.add(location(at), message, Some(format!("keep one of `{all}`")));
        }
        _ => {}
    }
    if seen.contains(&"values") && !given.iter().any(|name| name.starts_with("template")) {
        let at = fields.iter().find(|(name, _)| *name == "values").map_or(at, |(_, node)| node.span);
        report.add(location(at), format!("{reference} has `values` and no template to use them"), None);
    }
    fields
}

/// The name of a field; complains about what is no name, and about a field that is there twice.
fn field_name<'a>(
    key: &'a Node<'a>,
    seen: &mut Vec<&'a str>,
    source: usize,
    report: &mut Diagnostics<'_>,
) -> Option<&'a str> {
    let location = SourceLocation { source, span: key.span };
    let Some(name) = key.scalar() else {
        report.add(location, format!("the name of a field is text, and this is {}", key.words()), None);
        return None;
    };
    if seen.contains(&name) {
        report.add(location, format!("`{name}` is there twice"), Some("keep one of the two".to_owned()));
        return None;
    }
    seen.push(name);
    Some(name)
}

/// Says why no item may be called so, in words; none if one may.
pub fn bad_name(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it is empty");
    }
    if name.ends_with('/') {
        return Some("it ends with a slash");
    }
    if name.len() > 200 {
        return Some("it is longer than 200 bytes");
    }
    let allowed = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '+' | ':' | '~');
    (!name.chars().all(allowed)).then_some("only letters, digits and _ - . / @ + : ~ may be in it")
}

/// Checks a value against the type of its field.
fn check(field: &Field, value: &Node<'_>, source: usize, report: &mut Diagnostics<'_>) -> bool {
    let mut wrong = |span, message: String, hint: Option<&str>| {
        report.add(SourceLocation { source, span }, message, hint.map(ToOwned::to_owned));
        false
    };
    let name = field.name;
    let words = value.words();
    let scalar = value.scalar();
    let mut expected =
        |what: &str, hint| wrong(value.span, format!("`{name}` is {what}, and this is {words}"), hint);
    match field.kind {
        Type::Text | Type::Content => match (&value.data, words) {
            (Data::Scalar { text, style: Style::Binary }, _) if field.kind == Type::Content => {
                decode(text).is_some() || wrong(value.span, "this is no base64".to_owned(), None)
            }
            (Data::Scalar { style: Style::Binary, .. }, _) => expected("text", None),
            (_, "text") => true,
            (_, "number" | "a number" | "a boolean") => expected("text", Some("put it in quotes")),
            (_, "nothing") if matches!(name, "content" | "template") => {
                expected("text", Some("write \"\" for an empty text"))
            }
            (_, "nothing") => expected("text", Some("give it a value, or leave it out")),
            _ => expected("text", None),
        },
        Type::Boolean => words == "a boolean" || expected("true or false", None),
        Type::Mode => match scalar.map(str::parse::<Mode>) {
            Some(Ok(_)) => true,
            Some(Err(error)) => wrong(value.span, error.to_string(), None),
            None => expected("an octal number", Some("such as \"0644\"")),
        },
        Type::Account => match scalar {
            Some(text) if !text.is_empty() && words != "a boolean" => true,
            _ => expected("a name or a number", None),
        },
        Type::Wait | Type::Grace => match scalar.map(str::parse::<Wait>) {
            Some(Ok(wait)) if field.kind == Type::Wait && wait.duration().is_zero() => {
                let hint = "leave it out for the default";
                wrong(value.span, format!("`{name}` must be longer than 0"), Some(hint))
            }
            Some(Ok(_)) => true,
            Some(Err(error)) => wrong(value.span, error.to_string(), None),
            None => expected("a time", Some("such as 10s")),
        },
        Type::Signal => match scalar {
            Some(text) if StopSignal::by_name(text).is_some() => true,
            Some(text) => {
                let names: Vec<&str> = StopSignal::ALL.iter().map(|(name, _)| *name).collect();
                let hint = format!("there are {}", names.join(", "));
                wrong(value.span, format!("there is no signal {} to stop with", quoted(text)), Some(&hint))
            }
            None => expected("the name of a signal", None),
        },
        Type::Run => match &value.data {
            Data::List(nodes) if nodes.is_empty() => wrong(value.span, format!("`{name}` is empty"), None),
            Data::List(nodes) => match nodes.iter().find(|node| node.scalar().is_none()) {
                Some(node) => {
                    wrong(node.span, format!("an argument is text, and this is {}", node.words()), None)
                }
                None => match nodes.first() {
                    Some(program) if is_blank(program) => {
                        wrong(program.span, format!("the program of `{name}` is empty"), None)
                    }
                    _ => true,
                },
            },
            _ if is_blank(value) => wrong(value.span, format!("`{name}` is empty"), None),
            _ if words == "text" => true,
            _ => {
                let hint = matches!(words, "a boolean" | "a number").then_some("put it in quotes");
                expected("a program with its arguments as a list, or a line for the shell", hint)
            }
        },
        Type::References => match &value.data {
            Data::List(nodes) => match nodes.iter().find(|node| node.scalar().is_none()) {
                Some(node) => {
                    wrong(node.span, format!("an item is `kind.name`, and this is {}", node.words()), None)
                }
                None => true,
            },
            _ => expected("a list of items", Some("such as [file.config]")),
        },
        Type::Environment => match &value.data {
            Data::Map(pairs) => {
                let mut good = true;
                for (key, value) in pairs {
                    let bad_name = match key.scalar() {
                        None => Some(format!("the name of a variable is text, and this is {}", key.words())),
                        Some("") => Some("the name of a variable is empty".to_owned()),
                        Some(name) if name.contains('=') => {
                            Some("the name of a variable must not contain `=`".to_owned())
                        }
                        Some(name) if name.contains('\0') => {
                            Some("the name of a variable has no NUL character in it".to_owned())
                        }
                        Some(TAG | COMMAND_TAG) => Some("Setpoint sets this variable itself".to_owned()),
                        Some(_) => None,
                    };
                    if let Some(message) = bad_name {
                        good = wrong(key.span, message, None);
                    } else if !matches!(value.data, Data::Scalar { .. }) || value.is_null() {
                        let message = format!("a variable is text, and this is {}", value.words());
                        good = wrong(value.span, message, None);
                    }
                }
                good
            }
            _ => expected("a map of variables", None),
        },
        Type::Values => match &value.data {
            Data::Map(_) => {
                for WrongValue { span, message, hint } in values::wrong(value) {
                    wrong(span, message, Some(&hint));
                }
                // They are there, whatever they mean.
                true
            }
            _ => expected("a map of values", None),
        },
        Type::Port => match scalar {
            // A reference may stand for it: what it comes to is checked later.
            Some(text) if text.contains("${") => true,
            Some(text) if !text.is_empty() && words != "a boolean" => match text.parse::<Address>() {
                Ok(_) => true,
                Err(error) => wrong(value.span, format!("{}: {error}", quoted(text)), None),
            },
            _ => expected("the number of a port, or a host with one", Some("such as 8080 or db:5432")),
        },
        Type::Ready => match &value.data {
            Data::Map(pairs) => check_ready(value.span, pairs, source, report),
            _ => expected("a map", Some("such as {port: 8080}")),
        },
    }
}

fn is_blank(node: &Node<'_>) -> bool {
    node.scalar().is_some_and(|text| text.trim().is_empty())
}

/// Checks what `ready` holds.
fn check_ready<'a>(
    at: Span,
    pairs: &'a [(Node<'a>, Node<'a>)],
    source: usize,
    report: &mut Diagnostics<'_>,
) -> bool {
    let location = |span| SourceLocation { source, span };
    let mut seen: Vec<&str> = Vec::new();
    let (mut good, mut given) = (true, Vec::new());
    for (key, value) in pairs {
        let Some(name) = field_name(key, &mut seen, source, report) else {
            good = false;
            continue;
        };
        let Some(field) = READY.iter().find(|field| field.name == name) else {
            let known = READY.iter().map(|field| field.name);
            let all: Vec<&str> = known.clone().collect();
            let hint = did_you_mean(name, known).unwrap_or_else(|| format!("there are {}", all.join(", ")));
            report.add(location(key.span), format!("`ready` has no attribute `{name}`"), Some(hint));
            return false;
        };
        if READY_ONE_OF.contains(&name) {
            given.push((name, key.span));
        }
        if !check(field, value, source, report) {
            good = false;
        } else if field.kind == Type::Text && value.scalar() == Some("") {
            report.add(location(value.span), format!("`{name}` is empty"), None);
            good = false;
        }
    }
    let all = READY_ONE_OF.join("`, `");
    match given.as_slice() {
        [_] => good,
        [] => {
            report.add(
                location(at),
                format!("`ready` has none of `{all}`"),
                Some("such as {port: 8080}".to_owned()),
            );
            false
        }
        [(first, _), (second, at), ..] => {
            let message = format!("`ready` has both `{first}` and `{second}`");
            report.add(location(*at), message, Some(format!("keep one of `{all}`")));
            false
        }
    }
}

/// Decodes base64, white space ignored.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let packed: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    base64::engine::general_purpose::STANDARD.decode(packed).ok()
}
