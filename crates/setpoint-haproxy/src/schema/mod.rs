//! What the API's schema asks of the properties of an object: required, enumerated, patterned and bounded ones.
//!
//! The constraints are data, written by `cargo xtask schema` from the API's own specifications, with the versions that ask for
//! them. All violations are reported at once, each in the API's own words.
//!
//! ```
//! use setpoint_haproxy::model::{ObjectKind, Version};
//! use setpoint_haproxy::schema::validate;
//!
//! let json = serde_json::json!({ "name": "s1", "port": 70000, "check": "bogus" });
//! let found: Vec<String> =
//!     validate(ObjectKind::Server, &json, Version::V3_4).iter().map(ToString::to_string).collect();
//! assert_eq!(
//!     found,
//!     [
//!         "address in body is required",
//!         "check in body should be one of [enabled disabled]",
//!         "port in body should be less than or equal to 65535",
//!     ],
//! );
//! ```

mod definition;
mod pattern;

use std::fmt;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use crate::model::{ObjectKind, Version};
pub use definition::{children, definition};
use pattern::Pattern;

/// The text of the constraints.
const SOURCE: &str = include_str!("constraints.txt");

/// What is wrong with a property, in the API's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the property; elements of lists by their number.
    pub field: String,
    /// What is asked of it.
    pub asked: Asked,
}

/// What the schema asks of a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It has to be there.
    Required,
    /// It has to be one of these.
    OneOf(Vec<&'static str>),
    /// It has to match a pattern.
    Pattern(&'static str),
    /// It has to be at least this.
    AtLeast(i64),
    /// It has to be at most this.
    AtMost(i64),
}

impl Violation {
    /// Returns the number that the API gives to such errors.
    pub fn code(&self) -> u16 {
        match self.asked {
            Asked::Required => 602,
            Asked::OneOf(_) => 606,
            Asked::Pattern(_) => 605,
            Asked::AtLeast(_) => 609,
            Asked::AtMost(_) => 608,
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in body ", self.field)?;
        match &self.asked {
            Asked::Required => f.write_str("is required"),
            Asked::OneOf(values) => write!(f, "should be one of [{}]", values.join(" ")),
            Asked::Pattern(pattern) => write!(f, "should match '{pattern}'"),
            Asked::AtLeast(bound) => write!(f, "should be greater than or equal to {bound}"),
            Asked::AtMost(bound) => write!(f, "should be less than or equal to {bound}"),
        }
    }
}

/// Lists all that the schema of a version does not allow of an object, by the paths of its properties.
pub fn validate(kind: ObjectKind, json: &Json, api: Version) -> Vec<Violation> {
    let mut found = Vec::new();
    for constraint in constraints().get(&kind).into_iter().flatten() {
        if constraint.versions.iter().any(|(first, last)| (*first..=*last).contains(&api.schema())) {
            constraint.check(json, &constraint.path, String::new(), &mut found);
        }
    }
    found.sort_by(|a, b| a.field.cmp(&b.field));
    found
}

/// Lists what is wrong with the table of constraints. It is empty, as a test asserts.
pub fn errors() -> Vec<String> {
    SOURCE.lines().filter(|line| is_row(line) && read(line).is_none()).map(str::to_owned).collect()
}

/// A row of the table.
#[derive(Debug)]
struct Constraint {
    versions: Vec<(Version, Version)>,
    kind: ObjectKind,
    /// The names of properties down to it; `[]` stands for the elements of a list.
    path: Vec<&'static str>,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// Whether it may be empty.
    Required {
        may_be_empty: bool,
    },
    /// These, and whether a zero is looked at.
    OneOf(Vec<&'static str>, bool),
    Pattern(&'static str, Pattern),
    /// A bound, whether it is the least, and whether a zero is looked at.
    Bound {
        bound: i64,
        is_least: bool,
        with_zero: bool,
    },
}

fn constraints() -> &'static FxHashMap<ObjectKind, Vec<Constraint>> {
    static CONSTRAINTS: LazyLock<FxHashMap<ObjectKind, Vec<Constraint>>> = LazyLock::new(|| {
        let mut by_kind: FxHashMap<ObjectKind, Vec<Constraint>> = FxHashMap::default();
        for constraint in SOURCE.lines().filter(|line| is_row(line)).filter_map(read) {
            by_kind.entry(constraint.kind).or_default().push(constraint);
        }
        by_kind
    });
    &CONSTRAINTS
}

fn is_row(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#')
}

/// Reads a row: versions, kind, path, and the constraint.
fn read(line: &'static str) -> Option<Constraint> {
    let mut parts = line.splitn(4, ' ');
    let versions = parts.next()?.split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse().ok()?, last.parse().ok()?))
    });
    let versions = versions.collect::<Option<Vec<_>>>()?;
    let kind = ObjectKind::by_model(parts.next()?)?;
    let path = parts.next()?.split('.').flat_map(segments).collect();
    let (word, value) = parts.next().map(|rest| rest.split_once(' ').unwrap_or((rest, "")))?;
    let bound = |is_least, with_zero| Some(Rule::Bound { bound: value.parse().ok()?, is_least, with_zero });
    let rule = match word {
        "required" => Rule::Required { may_be_empty: true },
        "required!" => Rule::Required { may_be_empty: false },
        "enum" => Rule::OneOf(value.split('|').collect(), false),
        "enum!" => Rule::OneOf(value.split('|').collect(), true),
        "pattern" => Rule::Pattern(value, Pattern::read(value)?),
        "min" => bound(true, false)?,
        "min!" => bound(true, true)?,
        "max" => bound(false, false)?,
        "max!" => bound(false, true)?,
        _ => return None,
    };
    Some(Constraint { versions, kind, path, rule })
}

/// Splits `name[]` into `name` and `[]`.
fn segments(part: &'static str) -> impl Iterator<Item = &'static str> {
    let (name, lists) = part.split_at(part.find('[').unwrap_or(part.len()));
    std::iter::once(name).chain((0..lists.len() / 2).map(|_| "[]"))
}

impl Constraint {
    /// Checks the property at a path below some JSON, which itself is at `field`.
    fn check(&self, json: &Json, path: &[&'static str], field: String, found: &mut Vec<Violation>) {
        let Some((name, rest)) = path.split_first() else {
            if let Some(asked) = self.violated(json) {
                found.push(Violation { field, asked });
            }
            return;
        };
        let inner = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        if *name == "[]" {
            for (index, element) in json.as_array().into_iter().flatten().enumerate() {
                self.check(element, rest, inner(&index.to_string()), found);
            }
            return;
        }
        let Some(properties) = json.as_object() else { return };
        match properties.get(*name).filter(|value| !value.is_null()) {
            Some(value) => self.check(value, rest, inner(name), found),
            None if rest.is_empty() && matches!(self.rule, Rule::Required { .. }) => {
                found.push(Violation { field: inner(name), asked: Asked::Required });
            }
            None => {}
        }
    }

    /// Returns what is asked of a value that is there, if it is not so.
    fn violated(&self, json: &Json) -> Option<Asked> {
        match (&self.rule, json) {
            (Rule::Required { may_be_empty: false }, Json::String(text)) => {
                text.is_empty().then_some(Asked::Required)
            }
            // An empty text is as good as none.
            (Rule::OneOf(values, _), Json::String(text)) => {
                (!text.is_empty() && !values.contains(&text.as_str())).then(|| Asked::OneOf(values.clone()))
            }
            (Rule::OneOf(values, with_zero), Json::Number(number)) => {
                let is_looked_at = *with_zero || number.as_i64() != Some(0);
                let is_known = values.contains(&number.to_string().as_str());
                (is_looked_at && !is_known).then(|| Asked::OneOf(values.clone()))
            }
            (Rule::Required { may_be_empty: false }, Json::Number(number)) => {
                (number.as_i64() == Some(0)).then_some(Asked::Required)
            }
            (Rule::Pattern(source, pattern), Json::String(text)) => {
                (!text.is_empty() && !pattern.matches(text)).then_some(Asked::Pattern(source))
            }
            (Rule::Bound { bound, is_least, with_zero }, Json::Number(number)) => {
                let number = number.as_i64().filter(|number| *number != 0 || *with_zero)?;
                match is_least {
                    true => (number < *bound).then_some(Asked::AtLeast(*bound)),
                    false => (number > *bound).then_some(Asked::AtMost(*bound)),
                }
            }
            _ => None,
        }
    }
}
