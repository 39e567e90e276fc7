//! What the scalars of values mean, and how values are set from outside.

use serde_json::{Map, Value};

use super::diagnostic::{Diagnostics, Span, did_you_mean};
use super::table::Section;
use super::yaml::{self, Data, Node, Style};

/// Something that is wrong with a value, or with a part of it.
pub(crate) struct WrongValue {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) hint: String,
}

/// A YAML node as the value it means.
pub(crate) fn value(node: &Node<'_>) -> Value {
    match &node.data {
        Data::List(nodes) => Value::Array(nodes.iter().map(value).collect()),
        Data::Map(pairs) => {
            let pairs = pairs.iter().filter_map(|(key, of)| Some((key.scalar()?.to_owned(), value(of))));
            Value::Object(pairs.collect())
        }
        Data::Scalar { .. } if node.is_null() => Value::Null,
        Data::Scalar { text, style: Style::Plain } => match (node.boolean(), number(text)) {
            (Some(boolean), _) => Value::Bool(boolean),
            (None, Ok(Some(number))) => number,
            // A number whatever it is, which is reported.
            (None, Err(TooLarge)) => Value::from(f64::MAX),
            (None, Ok(None)) => Value::String(text.clone().into_owned()),
        },
        Data::Scalar { text, .. } => Value::String(text.clone().into_owned()),
    }
}

/// All that does not surely mean what its writer meant.
pub(crate) fn wrong(node: &Node<'_>) -> Vec<WrongValue> {
    match &node.data {
        Data::List(nodes) => nodes.iter().flat_map(wrong).collect(),
        Data::Map(pairs) => pairs.iter().flat_map(|(_, of)| wrong(of)).collect(),
        Data::Scalar { text, .. } if reference(text).is_some() => {
            let reference = reference(text).unwrap_or_default();
            let message = format!("a value can't refer to another: `{reference}` would stay as it is");
            let hint = "write out what it means, or refer to both where they are used".to_owned();
            vec![WrongValue { span: node.span, message, hint }]
        }
        Data::Scalar { text, style: Style::Plain } => {
            let (message, hint) = match (boolean_elsewhere(text), number(text)) {
                (Some(boolean), _) => (
                    format!("`{text}` may be meant as text or as a boolean"),
                    format!("write {boolean}, or \"{text}\" with its quotes"),
                ),
                (None, Err(TooLarge)) => (
                    format!("the number {text} is too large to be kept exactly"),
                    "put it in quotes: it is text then".to_owned(),
                ),
                (None, Ok(_)) => match number_elsewhere(text) {
                    Some(number) => (
                        format!("`{text}` may be meant as text or as a number"),
                        format!("write {number}, or \"{text}\" with its quotes"),
                    ),
                    None => return Vec::new(),
                },
            };
            vec![WrongValue { span: node.span, message, hint }]
        }
        Data::Scalar { .. } => Vec::new(),
    }
}

/// The first reference in a text, as attributes of items may have it: to a value, or to an item.
fn reference(text: &str) -> Option<&str> {
    text.match_indices("${").find_map(|(at, _)| {
        let rest = text.get(at..)?;
        let whole = rest.get(..=rest.find('}')?)?;
        let (of, _) = whole.get(2..)?.split_once('.')?;
        let is_known = of == "values" || Section::all().any(|section| section.kind == of);
        is_known.then_some(whole)
    })
}

/// What a word means to those who read YAML as version 1.1 did.
fn boolean_elsewhere(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

/// What a number that is written to another base than ten means to those who read all of YAML.
fn number_elsewhere(text: &str) -> Option<u64> {
    let (prefix, digits) = text.split_at_checked(2)?;
    let base = match prefix {
        "0x" => 16,
        "0o" => 8,
        "0b" => 2,
        _ => return None,
    };
    // The first may not be a sign.
    let is_number = digits.starts_with(|first: char| first.is_digit(base));
    is_number.then(|| u64::from_str_radix(digits, base).ok()).flatten()
}

#[derive(Debug, PartialEq, Eq)]
struct TooLarge;

/// A number that is written as numbers are: `0755` is none, as nobody means 755 by it.
fn number(text: &str) -> Result<Option<Value>, TooLarge> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = digits.starts_with(|c: char| c.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0') || digits.starts_with("0."))
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    if !plain {
        return Ok(None);
    }
    if digits.bytes().all(|b| b.is_ascii_digit()) {
        let signed = text.parse::<i64>().map(Value::from);
        return signed.or_else(|_| text.parse::<u64>().map(Value::from)).map(Some).map_err(|_| TooLarge);
    }
    let Ok(number) = text.parse::<f64>() else { return Ok(None) };
    serde_json::Number::from_f64(number).map(|number| Some(number.into())).ok_or(TooLarge)
}

/// Sets a value that is declared to what a text means, which must be the same kind of value.
pub(crate) fn set(values: &mut Map<String, Value>, name: &str, text: &str, report: &mut Diagnostics<'_>) {
    let Some(declared) = values.get(name) else {
        let whole = name.split_once('.').and_then(|(whole, _)| Some((whole, values.get(whole)?)));
        let hint = match whole {
            Some((whole, of)) if of.is_array() || of.is_object() => {
                format!("`{whole}` is {}: set all of it; {}", words(of), how(whole, of))
            }
            _ => did_you_mean(name, values.keys().map(String::as_str))
                .unwrap_or_else(|| format!("declare `{name}` in the `values` of the set")),
        };
        return report.add_variable(format!("there is no value `{name}` to be set"), Some(hint));
    };
    // What is declared as text stays text: a version 1.10 is no number.
    if declared.is_string() {
        values.insert(name.to_owned(), text.into());
        return;
    }
    let parsed = yaml::parse(text);
    let (set, wrong) = match parsed.as_deref() {
        Ok([node]) => (value(node), wrong(node)),
        Err(_) if !declared.is_null() => {
            let message = format!("the value `{name}` is {}, and `{text}` is no YAML", words(declared));
            return report.add_variable(message, Some(how(name, declared)));
        }
        _ => (text.into(), Vec::new()),
    };
    if !declared.is_null() && words(declared) != words(&set) {
        let message = format!("the value `{name}` is {}, and `{text}` is {}", words(declared), words(&set));
        return report.add_variable(message, Some(how(name, declared)));
    }
    for WrongValue { message, hint, .. } in wrong {
        // In quotes it would be text, which is not what is declared.
        let hint = if declared.is_number() { "declare it as text, in quotes".to_owned() } else { hint };
        report.add_variable(format!("the value `{name}`: {message}"), Some(hint));
    }
    values.insert(name.to_owned(), set);
}

/// What a value is, in words.
fn words(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

/// How a value of this kind is set.
fn how(name: &str, declared: &Value) -> String {
    let example = match declared {
        Value::Bool(_) => "true",
        Value::Number(_) => "1",
        Value::Array(_) => "[1, 2]",
        Value::Object(_) => "{a: 1}",
        Value::String(_) | Value::Null => "VALUE",
    };
    format!("write it as in the manifest, such as --var '{name}={example}'")
}
