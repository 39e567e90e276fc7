//! Objects: sparse lists of fields with their values.

use std::fmt;

use smol_str::SmolStr;

use super::ObjectKind;
use crate::table;

/// Names a property of the API's schemas by its path from the object down, such as `balance.algorithm`.
///
/// It is a small number: paths are interned when the table of directives is read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Field(pub(crate) u16);

impl Field {
    /// Returns the path of the property, with dots between nested ones.
    pub fn path(self) -> &'static str {
        table::directives().field_path(self)
    }
}

impl fmt::Debug for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

/// Holds the value of a field.
///
/// It is kept small, as there are many: what is long is behind a pointer. Values compare by what they mean to HAProxy: times are milliseconds and sizes bytes whatever they were written as,
/// and a text is equal to the same text in quotes.
#[derive(Clone, Debug)]
pub enum Value {
    /// A flag.
    Bool(bool),
    /// A number; a time in milliseconds; a size in bytes.
    Int(i64),
    /// A text, as it is spelled in the configuration, with the quotes it has there.
    Text(SmolStr),
    /// Several values in order.
    List(Box<[Value]>),
    /// An object in a list, by its fields.
    Object(Box<Fields>),
    /// A free structure: the metadata of an object, or a map from names to values.
    Json(Box<serde_json::Value>),
}

impl Value {
    /// Returns the text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => a == b || super::spelling::same_words(a, b),
            (Self::List(a), Self::List(b)) => a == b,
            (Self::Object(a), Self::Object(b)) => a == b,
            (Self::Json(a), Self::Json(b)) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Value {
    /// Shows the value as a person wants to read it in a list of changes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(flag) => flag.fmt(f),
            Self::Int(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
            Self::List(values) => {
                for (position, value) in values.iter().enumerate() {
                    if position > 0 {
                        f.write_str(", ")?;
                    }
                    value.fmt(f)?;
                }
                Ok(())
            }
            Self::Object(fields) => {
                for (position, (field, value)) in fields.iter().enumerate() {
                    if position > 0 {
                        f.write_str(" ")?;
                    }
                    write!(f, "{field}={value}")?;
                }
                Ok(())
            }
            Self::Json(value) => value.fmt(f),
        }
    }
}

/// Holds the fields that are set, sorted by field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fields(Vec<(Field, Value)>);

impl Fields {
    /// Makes an empty list.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Makes an empty list with room for some fields.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// Returns the value of a field, if it is set.
    pub fn get(&self, field: Field) -> Option<&Value> {
        let position = self.0.iter().position(|(held, _)| *held >= field)?;
        self.0.get(position).filter(|(held, _)| *held == field).map(|(_, value)| value)
    }

    /// Sets a field, and returns what it held before.
    pub fn set(&mut self, field: Field, value: Value) -> Option<Value> {
        // Rows set their fields mostly in ascending order.
        if self.0.last().is_none_or(|(last, _)| *last < field) {
            self.0.push((field, value));
            return None;
        }
        match self.0.binary_search_by_key(&field, |(held, _)| *held) {
            Ok(position) => self.0.get_mut(position).map(|held| std::mem::replace(&mut held.1, value)),
            Err(position) => {
                self.0.insert(position, (field, value));
                None
            }
        }
    }

    /// Unsets a field, and returns what it held.
    pub fn remove(&mut self, field: Field) -> Option<Value> {
        let position = self.0.binary_search_by_key(&field, |(held, _)| *held).ok()?;
        Some(self.0.remove(position).1)
    }

    /// Appends to the list that a field holds.
    pub fn push(&mut self, field: Field, value: Value) {
        match self.0.binary_search_by_key(&field, |(held, _)| *held) {
            Ok(position) => {
                if let Some((_, Value::List(values))) = self.0.get_mut(position) {
                    let mut longer = std::mem::take(values).into_vec();
                    longer.push(value);
                    *values = longer.into_boxed_slice();
                }
            }
            Err(position) => self.0.insert(position, (field, Value::List(Box::new([value])))),
        }
    }

    /// Puts values behind those that are there: elements of a list behind the others, a text behind a separator.
    pub(crate) fn add(&mut self, more: Self, separator: &str) {
        for (field, second) in more {
            let value = match (self.remove(field), second) {
                (Some(Value::Text(first)), Value::Text(second)) => {
                    Value::Text(format!("{first}{separator}{second}").into())
                }
                (Some(Value::List(first)), Value::List(second)) => {
                    Value::List(first.into_vec().into_iter().chain(second).collect())
                }
                (_, second) => second,
            };
            self.set(field, value);
        }
    }

    /// Walks through the fields that are set, in ascending order.
    pub fn iter(&self) -> std::slice::Iter<'_, (Field, Value)> {
        self.0.iter()
    }

    /// Returns how many fields are set.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether no field is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets the fields after the first few that were there at an earlier time.
    pub(crate) fn restore(&mut self, saved: &Self) {
        self.0.clone_from(&saved.0);
    }
}

impl IntoIterator for Fields {
    type Item = (Field, Value);
    type IntoIter = std::vec::IntoIter<(Field, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Fields {
    type Item = &'a (Field, Value);
    type IntoIter = std::slice::Iter<'a, (Field, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Holds one object of the model: a section's own settings, or one of its children.
#[derive(Clone, Debug)]
pub struct Object {
    /// What it is.
    pub kind: ObjectKind,
    /// The fields that are set.
    pub fields: Fields,
    /// The line it stands on, by its number within the section; 0 where there is no text.
    pub line: u32,
}

impl Object {
    /// Makes an object in which nothing is set.
    pub const fn new(kind: ObjectKind) -> Self {
        Self { kind, fields: Fields::new(), line: 0 }
    }

    /// Returns the name, for a kind whose objects have one.
    pub fn name(&self) -> Option<&str> {
        let field = table::directives().name_field(self.kind)?;
        self.fields.get(field)?.as_str()
    }

    /// Returns the value at a path, such as `balance.algorithm`.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let field = table::directives().field(self.kind, path)?;
        self.fields.get(field)
    }
}

impl PartialEq for Object {
    /// Compares what objects say; where they stand does not matter.
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.fields == other.fields
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_takes_no_more_than_a_short_text() {
        assert_eq!(size_of::<Value>(), size_of::<SmolStr>());
    }
}
