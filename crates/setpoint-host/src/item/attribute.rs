//! The attributes of any host item, whole, for whoever compares old and new.

use setpoint_graph::{Comparable, ItemHandle};

use crate::kinds;

/// One attribute of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WholeAttribute {
    /// What it is called.
    pub name: &'static str,
    /// Its value as text, whole.
    pub value: String,
    /// Whether the value must not be shown.
    pub sensitive: bool,
    /// The value in a line, where it is a text of many lines that is best compared with another one line by line.
    pub line: Option<String>,
}

impl Comparable for WholeAttribute {
    fn name(&self) -> &'static str {
        self.name
    }

    fn value(&self) -> &str {
        &self.value
    }

    fn is_sensitive(&self) -> bool {
        self.sensitive
    }

    fn into_sensitive(self) -> Self {
        Self { sensitive: true, ..self }
    }
}

/// The attributes of an item in the order people want to read them.
///
/// Unlike [`ItemHandle::attributes`], the content of a text file is whole and not on one line.
pub fn attributes(item: &ItemHandle) -> Vec<WholeAttribute> {
    let long = kinds::long_text(item);
    let plain = item.attributes();
    let attributes = plain.iter().map(|attribute| {
        let (name, line, sensitive) = (attribute.name, attribute.value.clone(), attribute.sensitive);
        match long.filter(|(long, _)| *long == name) {
            Some((_, text)) => WholeAttribute { name, value: text.to_owned(), sensitive, line: Some(line) },
            None => WholeAttribute { name, value: line, sensitive, line: None },
        }
    });
    attributes.collect()
}
