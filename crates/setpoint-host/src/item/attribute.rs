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
    /// Whether the value is text of many lines, best compared line by line.
    pub multiline: bool,
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
        let text = long.filter(|(name, _)| *name == attribute.name).map(|(_, text)| text);
        WholeAttribute {
            name: attribute.name,
            value: text.map_or_else(|| attribute.value.clone(), ToOwned::to_owned),
            sensitive: attribute.sensitive,
            multiline: text.is_some(),
        }
    });
    attributes.collect()
}
