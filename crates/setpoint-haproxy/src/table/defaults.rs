//! What holds where nothing is stated.

use super::build::fields_of;
use super::grammar::{Entry, Item, Type};
use super::shape::mentions;
use super::{Directives, Row, Slot, Unless, read};
use crate::model::{Field, Object, ObjectKind, Value, Version};

impl Directives {
    /// Returns where the default of a field does not hold.
    pub(crate) fn default_unless(&self, kind: ObjectKind, field: Field, version: Version) -> &[Unless] {
        let found = self.rows(kind, version).find_map(|row| {
            if !row.attributes.default_unless.is_empty() && mentions(&row.items, field) {
                return Some(row.attributes.default_unless.as_slice());
            }
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            let mut options = options.flatten().filter(|entry| entry.versions.contains(version));
            let entry = options
                .find(|entry| !entry.attributes.default_unless.is_empty() && mentions(&entry.items, field))?;
            Some(entry.attributes.default_unless.as_slice())
        });
        found.unwrap_or_default()
    }

    /// Returns the value that a field has in a version where no line sets it, if the table says.
    pub fn default(&self, kind: ObjectKind, field: Field, version: Version) -> Option<Value> {
        let mut implied = self.rows(kind, version).filter_map(|row| row.attributes.implied.as_ref());
        if let Some((_, value)) = implied.find(|(held, _)| *held == field) {
            return Some(value.clone());
        }
        let mut given = self.rows(kind, version).filter_map(|row| row.attributes.default_of);
        if let Some((_, text)) = given.find(|(held, _)| *held == field) {
            return self.default_of(kind, field, text);
        }
        let defaults = self.rows(kind, version).find_map(|row| {
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            let options = options.flatten().filter(|entry| entry.versions.contains(version));
            let options = options.map(|entry| (&entry.attributes.defaults, entry.items.as_slice()));
            let mut all = std::iter::once((&row.attributes.defaults, row.items.as_slice())).chain(options);
            all.find(|(defaults, items)| !defaults.is_empty() && mentions(items, field))
                .map(|(defaults, _)| defaults)
        })?;
        let (_, text) = defaults.iter().find(|(versions, _)| versions.contains(version))?;
        self.default_of(kind, field, text)
    }

    /// Reads what the table says that a field is where nothing sets it.
    fn default_of(&self, kind: ObjectKind, field: Field, text: &'static str) -> Option<Value> {
        match self.shape(kind)?.slots.get(self.field_path(field)) {
            Some(Slot::Value(_, ty)) => read::default_value(ty, text),
            _ => None,
        }
    }

    /// Returns what options of lines of a kind are where they are not stated, as far as the table says, each with its row.
    pub(crate) fn option_defaults(&self, kind: ObjectKind, version: Version) -> Vec<(&Row, Field, Value)> {
        let mut found = Vec::new();
        for row in self.rows(kind, version) {
            for option in row.options().filter(|option| option.versions.contains(version)) {
                let defaults = &option.attributes.defaults;
                let text = defaults.iter().find(|(versions, _)| versions.contains(version));
                let Some((_, text)) = text else { continue };
                for field in fields_of(&option.items) {
                    found.extend(self.default_of(kind, field, text).map(|value| (row, field, value)));
                }
            }
        }
        found
    }

    /// States of an object that is added to a running HAProxy what others of its options switch on where a file has it.
    pub(crate) fn follow(&self, object: &mut Object, version: Version) {
        let kind = object.kind;
        let follows =
            |option: &&Entry| option.versions.contains(version) && !option.attributes.follows.is_empty();
        for option in self.rows(kind, version).flat_map(Row::options).filter(follows) {
            let attributes = &option.attributes;
            let is_on =
                |path: &&str| object.get(path).is_some_and(|value| value.as_str() != Some("disabled"));
            let is_stated = |path: &&str| object.get(path).is_some_and(|value| value.as_int() != Some(0));
            let holds = attributes.follows.iter().any(is_on)
                && attributes.follows_beside.is_none_or(|path| is_on(&path))
                && !attributes.follows_unless.iter().any(is_stated);
            for field in fields_of(&option.items).into_iter().filter(|_| holds) {
                let stated = object.fields.get(field);
                if stated.is_none() || stated == self.default(kind, field, version).as_ref() {
                    object.fields.set(field, Value::Text("enabled".into()));
                }
            }
        }
    }

    /// Returns whether HAProxy ignores a value of such an object in what others start from, such as `default-server`.
    pub(crate) fn is_ignored_default(&self, kind: ObjectKind, field: Field, value: &Value) -> bool {
        let is_it = |item: &Item| match item {
            Item::Value { field: held, ty: Type::Always(text), .. } => {
                *held == field && value.as_str() == Some(text)
            }
            Item::Value { field: held, .. } => *held == field,
            _ => false,
        };
        let rows = self.rows.iter().filter(|row| row.owners.contains(&kind));
        let mut options = rows.flat_map(Row::options).filter(|option| option.attributes.no_default);
        options.any(|option| option.items.iter().any(is_it))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::directives;

    fn field(kind: ObjectKind, path: &str) -> Field {
        directives().field(kind, path).unwrap_or_else(|| panic!("{kind} has no {path}"))
    }

    #[test]
    fn a_default_may_depend_on_the_version() {
        let backend = ObjectKind::Backend;
        let default = |path, version| directives().default(backend, field(backend, path), version);
        assert_eq!(default("mode", Version::V3_0), Some(Value::Text("tcp".into())));
        assert_eq!(default("retries", Version::V3_0), Some(Value::Int(3)));
        assert_ne!(default("balance.algorithm", Version::V3_2), default("balance.algorithm", Version::V3_4));
        assert_eq!(default("fullconn", Version::V3_4), None);
    }
}
