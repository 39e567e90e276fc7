//! The filters, functions and tests that templates have beside those of Jinja.
//!
//! | name | does |
//! |---|---|
//! | `raw` | marks a text as one that is printed as it is |
//! | `fail(message)` | ends the rendering with a message of the template's own |
//! | `b64decode`, `b64encode` | text to and from base64 |
//! | `sha256` | the digest of a text, in hexadecimal digits |
//! | `regex_search(pattern, group=0)` | what a pattern finds first; none where it finds nothing |
//! | `regex_replace(pattern, with)`, `regex_escape` | text with all finds replaced; a text as the pattern that finds it |
//! | `logformat` | text that means itself in a log format of HAProxy: `%` is doubled |
//! | `basename` | the last part of a path |
//! | `dig(names…, default=…)` | what a path of names leads to in nested maps |
//! | `merge(other)` | a map with the values of another over its own |
//! | `keys` | the names in a map, sorted |
//! | `group_by(path)`, `unique_by(path)`, `order_by(paths…)` | lists by what stands at a path: see each |
//! | `shard(number, count)` | one of so many parts of a list, of equal length |
//! | `coalesce(values…)` | the first that is there and not empty |
//! | is `matching(pattern)`, is `glob(pattern)`, is `digits` | whether a text is like that |

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use minijinja::value::{Kwargs, Rest, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use regex::{Regex, RegexBuilder};
use sha2::{Digest, Sha256};

/// The largest compiled pattern.
const LARGEST_PATTERN: usize = 1024 * 1024;
/// How many patterns are kept compiled.
const PATTERNS: usize = 256;

/// The cause of an error that a template asked for.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the template says so")]
pub(super) struct Requested;

/// Adds all of them.
pub(super) fn add(environment: &mut Environment<'static>) {
    // `raw` is the one word for it.
    for other in ["safe", "escape", "e"] {
        environment.remove_filter(other);
    }
    environment.add_filter("raw", raw);
    environment.add_filter("b64decode", decode);
    environment.add_filter("b64encode", |text: String| STANDARD.encode(text));
    environment.add_filter("sha256", sha256);
    let patterns = Arc::new(Patterns::default());
    let kept = Arc::clone(&patterns);
    environment.add_filter("regex_search", move |text: &str, pattern: &str, group: Option<usize>| {
        let found = kept.get(pattern)?;
        let group = found
            .captures(text)
            .and_then(|captures| captures.get(group.unwrap_or(0)).map(|group| group.as_str().to_owned()));
        Ok::<_, Error>(group.map_or(Value::from(()), Value::from))
    });
    let kept = Arc::clone(&patterns);
    environment.add_filter("regex_replace", move |text: &str, pattern: &str, with: &str| {
        Ok::<_, Error>(kept.get(pattern)?.replace_all(text, with).into_owned())
    });
    environment.add_filter("regex_escape", |text: &str| regex::escape(text));
    let kept = Arc::clone(&patterns);
    environment.add_test("matching", move |text: &str, pattern: &str| {
        Ok::<_, Error>(kept.get(pattern)?.is_match(text))
    });
    environment.add_test("glob", |text: &str, pattern: &str| is_like(text.as_bytes(), pattern.as_bytes()));
    environment
        .add_test("digits", |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()));
    environment.add_filter("logformat", |text: &str| text.replace('%', "%%"));
    environment.add_filter("basename", |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned());
    environment.add_filter("dig", dig);
    environment.add_filter("merge", merge);
    environment.add_filter("keys", keys);
    environment.add_filter("group_by", group_by);
    environment.add_filter("unique_by", unique_by);
    environment.add_filter("order_by", order_by);
    environment.add_filter("shard", shard);
    environment.add_function("coalesce", coalesce);
    environment.add_function("fail", |message: String| {
        Err::<Value, _>(Error::new(ErrorKind::InvalidOperation, message).with_source(Requested))
    });
}

fn wrong(why: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, why)
}

fn raw(value: &Value) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Number | ValueKind::Bool => {
            Ok(Value::from_safe_string(value.to_string()))
        }
        kind => Err(wrong(format!("a {kind} has no text"))),
    }
}

fn decode(text: &str) -> Result<String, Error> {
    let bytes = STANDARD.decode(text.trim()).map_err(|error| wrong(format!("it is no base64: {error}")))?;
    String::from_utf8(bytes).map_err(|_| wrong("what it encodes is no UTF-8"))
}

fn sha256(text: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(text.as_bytes()).iter().fold(String::new(), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// What a path of names leads to; `default`, or none, where a name is not there.
#[expect(clippy::needless_pass_by_value, reason = "this is how named arguments are handed over")]
fn dig(value: &Value, names: Rest<Value>, options: Kwargs) -> Result<Value, Error> {
    let default: Option<Value> = options.get("default")?;
    options.assert_all_used()?;
    let mut found = value.clone();
    for name in names.0 {
        found = found.get_item(&name).unwrap_or(Value::UNDEFINED);
        if found.is_undefined() || found.is_none() {
            return Ok(default.unwrap_or(Value::from(())));
        }
    }
    Ok(found)
}

fn pairs(map: &Value) -> Result<BTreeMap<Value, Value>, Error> {
    if map.kind() != ValueKind::Map {
        return Err(wrong(format!("a {} is no map", map.kind())));
    }
    map.try_iter()?.map(|name| Ok((name.clone(), map.get_item(&name)?))).collect()
}

fn merge(one: &Value, other: &Value) -> Result<Value, Error> {
    let mut all = pairs(one)?;
    all.extend(pairs(other)?);
    Ok(Value::from_pairs(all))
}

fn keys(map: &Value) -> Result<Vec<Value>, Error> {
    Ok(pairs(map)?.into_keys().collect())
}

/// What stands at a path such as `metadata.name`; none where there is nothing.
fn at(value: &Value, path: &str) -> Value {
    let found = path.split('.').try_fold(value.clone(), |value, name| {
        let found =
            name.parse().map_or_else(|_| value.get_attr(name), |place: usize| value.get_item_by_index(place));
        found.ok().filter(|found| !found.is_undefined())
    });
    found.unwrap_or(Value::from(()))
}

/// Pairs of what stands at a path and the list of all for which it does, sorted by it.
fn group_by(list: &Value, path: &str) -> Result<Vec<Value>, Error> {
    let mut groups: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
    for value in list.try_iter()? {
        groups.entry(at(&value, path)).or_default().push(value);
    }
    Ok(groups.into_iter().map(|(key, group)| Value::from(vec![key, Value::from(group)])).collect())
}

/// The first of all for which the same stands at a path, in their order.
fn unique_by(list: &Value, path: &str) -> Result<Vec<Value>, Error> {
    let mut seen = std::collections::BTreeSet::new();
    Ok(list.try_iter()?.filter(|value| seen.insert(at(value, path))).collect())
}

/// A list sorted by what stands at some paths; `path:desc` is from the greatest, `path:exists` has first those that have something
/// there, and `path:length` is by how long it is.
fn order_by(list: &Value, paths: Rest<String>) -> Result<Vec<Value>, Error> {
    type Compare = Box<dyn Fn(&Value, &Value) -> Ordering>;
    let mut by: Vec<Compare> = Vec::new();
    for path in paths.0 {
        let mut parts = path.split(':');
        let path = parts.next().unwrap_or_default().to_owned();
        let (mut descending, mut exists, mut length) = (false, false, false);
        for modifier in parts {
            match modifier {
                "desc" => descending = true,
                "exists" => exists = true,
                "length" => length = true,
                other => {
                    return Err(wrong(format!("`{other}` is no way to sort: `desc`, `exists` or `length`")));
                }
            }
        }
        let key = move |value: &Value| {
            let found = at(value, &path);
            match (exists, length) {
                (true, _) => Value::from(found.is_none()),
                (_, true) => Value::from(found.len().unwrap_or(0)),
                _ => found,
            }
        };
        by.push(Box::new(move |one, other| {
            let order = key(one).cmp(&key(other));
            if descending { order.reverse() } else { order }
        }));
    }
    let mut all: Vec<Value> = list.try_iter()?.collect();
    all.sort_by(|one, other| {
        by.iter().map(|compare| compare(one, other)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    });
    Ok(all)
}

/// One of so many parts of a list; they differ in length by one at most.
fn shard(list: &Value, number: usize, count: usize) -> Result<Vec<Value>, Error> {
    let count = NonZeroUsize::new(count).ok_or_else(|| wrong("a list has at least one part"))?;
    if number >= count.get() {
        return Err(wrong(format!("there are parts 0 to {}", count.get() - 1)));
    }
    let all: Vec<Value> = list.try_iter()?.collect();
    let edge = |part: usize| part * all.len() / count.get();
    Ok(all.get(edge(number)..edge(number + 1)).unwrap_or_default().to_vec())
}

fn coalesce(values: Rest<Value>) -> Value {
    let is_something =
        |value: &Value| !value.is_undefined() && !value.is_none() && value.as_str() != Some("");
    values.0.into_iter().find(is_something).unwrap_or(Value::from(()))
}

/// Returns whether a text is like a pattern, in which `*` stands for any text and `?` for any byte.
fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    // Where the last `*` stands, and how much of the text it stands for: on a difference, it takes one byte more.
    let (mut at, mut in_pattern, mut star) = (0, 0, None);
    while at < text.len() {
        match pattern.get(in_pattern) {
            Some(b'*') => {
                star = Some((in_pattern, at));
                in_pattern += 1;
            }
            Some(&byte) if byte == b'?' || Some(&byte) == text.get(at) => {
                at += 1;
                in_pattern += 1;
            }
            _ => {
                let Some((place, taken)) = star else { return false };
                star = Some((place, taken + 1));
                (at, in_pattern) = (taken + 1, place + 1);
            }
        }
    }
    pattern.iter().skip(in_pattern).all(|byte| *byte == b'*')
}

/// Patterns that were compiled.
#[derive(Debug, Default)]
struct Patterns {
    kept: Mutex<BTreeMap<String, Regex>>,
}

impl Patterns {
    fn get(&self, pattern: &str) -> Result<Regex, Error> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kept.get(pattern) {
            return Ok(found.clone());
        }
        let compiled = RegexBuilder::new(pattern).size_limit(LARGEST_PATTERN).build();
        let compiled = compiled.map_err(|error| wrong(format!("`{pattern:.80}` is no pattern: {error}")))?;
        if kept.len() >= PATTERNS {
            kept.clear();
        }
        kept.insert(pattern.to_owned(), compiled.clone());
        Ok(compiled)
    }
}
