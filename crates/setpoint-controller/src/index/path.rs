//! Paths into a resource: the part of `JSONPath` that indexes need.
//!
//! `{.metadata.namespace}`, `$.metadata.namespace`, `.metadata.namespace` and `metadata.namespace` are the same path. A dot in a
//! name is escaped (`.metadata.labels.kubernetes\.io/name`) or stands in brackets (`.metadata.labels['kubernetes.io/name']`).
//! `[0]` is one of a list, `[*]` are all of it.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

/// A path into a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Step {
    Field(String),
    Element(usize),
    All,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` is no path: {why}")]
pub struct PathError {
    path: String,
    why: String,
}

impl Path {
    /// Returns everything that it leads to; nothing where something on the way is not there.
    ///
    /// ```
    /// use serde_json::json;
    /// use setpoint_controller::index::Path;
    ///
    /// let path: Path = "{.spec.tls[*].secretName}".parse()?;
    /// let ingress = json!({ "spec": { "tls": [{ "secretName": "a" }, { "hosts": ["b"] }, { "secretName": "c" }] } });
    /// assert_eq!(path.find(&ingress), [&json!("a"), &json!("c")]);
    /// # Ok::<(), setpoint_controller::index::PathError>(())
    /// ```
    pub fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.follow(value)).collect();
        }
        found
    }

    /// Removes everything that it leads to.
    pub(crate) fn remove(&self, value: &mut Value) {
        if let Some((last, before)) = self.steps.split_last() {
            remove(value, before, last);
        }
    }
}

fn remove(value: &mut Value, before: &[Step], last: &Step) {
    if let Some((first, rest)) = before.split_first() {
        match (first, value) {
            (Step::Field(name), Value::Object(map)) => {
                if let Some(value) = map.get_mut(name) {
                    remove(value, rest, last);
                }
            }
            (Step::Element(at), Value::Array(list)) => {
                if let Some(value) = list.get_mut(*at) {
                    remove(value, rest, last);
                }
            }
            (Step::All, Value::Array(list)) => {
                for value in list {
                    remove(value, rest, last);
                }
            }
            _ => {}
        }
        return;
    }
    match (last, value) {
        (Step::Field(name), Value::Object(map)) => drop(map.remove(name)),
        (Step::Element(at), Value::Array(list)) if *at < list.len() => drop(list.remove(*at)),
        (Step::All, Value::Array(list)) => list.clear(),
        _ => {}
    }
}

impl Step {
    fn follow<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Field(name), Value::Object(map)) => map.get(name).into_iter().collect(),
            (Self::Element(at), Value::Array(list)) => list.get(*at).into_iter().collect(),
            (Self::All, Value::Array(list)) => list.iter().collect(),
            _ => Vec::new(),
        }
    }
}

impl FromStr for Path {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = |why: &str| PathError { path: text.to_owned(), why: why.to_owned() };
        let trimmed = text.trim();
        let inner = match trimmed.strip_prefix('{') {
            Some(inner) => inner.strip_suffix('}').ok_or_else(|| wrong("the brace is not closed"))?,
            None => trimmed,
        };
        let inner = inner.strip_prefix('$').unwrap_or(inner);
        let (mut steps, mut rest) = (Vec::new(), inner);
        while !rest.is_empty() {
            let (step, left) = if let Some(bracket) = rest.strip_prefix('[') {
                in_brackets(bracket).map_err(|why| wrong(&why))?
            } else {
                let name = rest.strip_prefix('.').unwrap_or(rest);
                if name.len() == rest.len() && !steps.is_empty() {
                    return Err(wrong("a dot is missing between two names"));
                }
                field(name).map_err(|why| wrong(&why))?
            };
            steps.push(step);
            rest = left;
        }
        if steps.is_empty() { Err(wrong("it is empty")) } else { Ok(Self { steps }) }
    }
}

/// Reads a name up to the next dot or bracket.
fn field(text: &str) -> Result<(Step, &str), String> {
    let (mut name, mut escaped) = (String::new(), false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => {
                name.push(letter);
                escaped = false;
            }
            '\\' => escaped = true,
            '.' | '[' => return named(name).map(|step| (step, text.get(at..).unwrap_or_default())),
            '*' | '?' | '@' | '(' | ')' | '{' | '}' | ']' => {
                return Err(format!(
                    "`{letter}` is not understood here; names that have it stand in brackets: ['…']"
                ));
            }
            _ => name.push(letter),
        }
    }
    if escaped {
        return Err("a backslash is the last character".to_owned());
    }
    named(name).map(|step| (step, ""))
}

fn named(name: String) -> Result<Step, String> {
    if name.is_empty() { Err("a name is empty".to_owned()) } else { Ok(Step::Field(name)) }
}

/// Reads what follows an opening bracket.
fn in_brackets(text: &str) -> Result<(Step, &str), String> {
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'));
    if let Some(quote) = quote {
        let inner = text.get(1..).unwrap_or_default();
        let (name, rest) = inner.split_once(quote).ok_or("a quote is not closed")?;
        let rest = rest.strip_prefix(']').ok_or("a bracket is not closed")?;
        return named(name.to_owned()).map(|step| (step, rest));
    }
    let (inner, rest) = text.split_once(']').ok_or("a bracket is not closed")?;
    let step = if inner == "*" {
        Step::All
    } else {
        Step::Element(
            inner
                .parse()
                .map_err(|_| format!("`[{inner}]` is no place in a list, no `[*]` and no `['name']`"))?,
        )
    };
    Ok((step, rest))
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            match step {
                Step::Field(name)
                    if name.contains(['.', '[', ']', '*', '\\', '?', '@', '(', ')', '{', '}']) =>
                {
                    let quote = if name.contains('\'') { '"' } else { '\'' };
                    write!(f, "[{quote}{name}{quote}]")?;
                }
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Element(at) => write!(f, "[{at}]")?,
                Step::All => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> Path {
        text.parse().unwrap()
    }

    #[test]
    fn all_spellings_of_a_path_are_the_same_path() {
        let one = path("{.metadata.namespace}");
        for text in [
            "$.metadata.namespace",
            ".metadata.namespace",
            "metadata.namespace",
            "metadata['namespace']",
            "$['metadata'][\"namespace\"]",
        ] {
            assert_eq!(path(text), one, "{text}");
        }
        assert_eq!(one.to_string(), ".metadata.namespace");
    }

    #[test]
    fn a_dot_in_a_name_is_escaped_or_stands_in_brackets() {
        let resource = json!({ "metadata": { "labels": { "kubernetes.io/service-name": "web" } } });
        for text in [
            r"{.metadata.labels.kubernetes\.io/service-name}",
            "$.metadata.labels['kubernetes.io/service-name']",
        ] {
            assert_eq!(path(text).find(&resource), [&json!("web")], "{text}");
            assert_eq!(path(&path(text).to_string()), path(text));
        }
    }

    #[test]
    fn what_is_not_there_gives_nothing() {
        let resource = json!({ "a": [{ "b": 1 }, { "b": null }], "c": "text" });
        for text in ["x", "a.b", "a[2]", "c[*]", "c.d", "a[0].b.c"] {
            assert!(path(text).find(&resource).is_empty(), "{text}");
        }
        assert_eq!(path("a[*].b").find(&resource), [&json!(1), &json!(null)]);
    }

    #[test]
    fn what_is_no_path_says_why() {
        for (text, why) in [
            ("", "it is empty"),
            ("$", "it is empty"),
            ("{.a", "the brace is not closed"),
            (".a..b", "a name is empty"),
            ("a[", "a bracket is not closed"),
            ("a['b", "a quote is not closed"),
            ("a[b]", "`[b]` is no place in a list"),
            ("a[*]b", "a dot is missing"),
            ("a.*", "`*` is not understood here"),
            ("a[?(@.b)]", "is no place in a list"),
            ("a\\", "a backslash is the last character"),
        ] {
            let error = text.parse::<Path>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn a_path_removes_what_it_leads_to_and_nothing_else() {
        let mut resource = json!({ "a": { "b": 1, "c": 2 }, "list": [{ "x": 1, "y": 2 }, { "y": 3 }] });
        for text in ["a.b", "list[*].x", "nothing.here"] {
            path(text).remove(&mut resource);
        }
        assert_eq!(resource, json!({ "a": { "c": 2 }, "list": [{ "y": 2 }, { "y": 3 }] }));
    }
}
