//! One row of the table: a form of a line.

use super::attributes::{Attributes, Repeat};
use super::grammar::{Entry, Item, Versions, cut, first_word};
use super::lookup::is_stated;
use crate::model::{Fields, ObjectKind, Value};

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Whose line this is.
    pub(crate) owners: Vec<ObjectKind>,
    pub(crate) versions: Versions,
    /// Whether it opens the section.
    pub(crate) is_header: bool,
    /// A row that only says where children of a kind stand.
    pub(crate) child: Option<ObjectKind>,
    pub(crate) items: Vec<Item>,
    pub(crate) attributes: Attributes,
    /// Rows of one family are forms of the same directive: the last one that is read wins, one is written.
    pub(crate) family: usize,
}

impl Row {
    pub(super) fn new(owners: Vec<ObjectKind>, versions: Versions) -> Self {
        Self {
            owners,
            versions,
            is_header: false,
            child: None,
            items: Vec::new(),
            attributes: Attributes::default(),
            family: 0,
        }
    }

    /// Returns the options that its lines may have.
    pub(crate) fn options(&self) -> impl Iterator<Item = &Entry> {
        self.items.iter().filter_map(Item::as_options).flat_map(|options| &options.entries)
    }

    /// Returns whether an option of two lines adds up, or means something else in their order, so that values which replace each
    /// other do not say what both lines do.
    pub(crate) fn adds_options(&self, first: &Fields, second: &Fields) -> bool {
        let is_stated = |entry: &Entry, fields: &Fields| match entry.attributes.list {
            Some(list) => fields.get(list).is_some(),
            None => is_stated(&entry.items, fields),
        };
        let adds = |entry: &&Entry| matches!(entry.attributes.repeat, Repeat::Add | Repeat::Beside);
        let mut both = self.options().filter(adds);
        let added = both.any(|entry| is_stated(entry, first) && is_stated(entry, second));
        added || {
            let placed = || self.options().filter(|entry| entry.is_placed());
            let mut earlier = placed().filter(|entry| is_stated(entry, first));
            earlier
                .any(|earlier| placed().any(|entry| is_stated(entry, second) && !entry.may_follow(earlier)))
        }
    }

    /// Returns whether the values of an object are those that its lines always have, such as an action.
    pub(crate) fn is_of(&self, fields: &Fields) -> bool {
        self.items.iter().all(|item| match item {
            Item::Constant { field, value, .. } => fields.get(*field).and_then(Value::as_str) == Some(value),
            _ => true,
        })
    }

    /// Returns whether it is nothing but fixed words.
    pub(crate) fn is_bare(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Literal(_)))
    }

    /// Returns the fixed words it starts with.
    pub(crate) fn start(&self) -> String {
        let words: Vec<&str> = self.items.iter().map_while(first_word).map(cut).collect();
        words.join(" ")
    }

    /// Returns how many fixed words it starts with, one at least: the last of them says what the line does.
    pub(crate) fn keyword_count(&self) -> usize {
        self.items.iter().map_while(first_word).count().max(1)
    }

    /// Returns the fixed words it starts with, at most two.
    pub(crate) fn keyword(&self) -> String {
        let words: Vec<&str> = self
            .items
            .iter()
            .map_while(first_word)
            .map(|word| cut(word).trim_end_matches('.'))
            .take(2)
            .collect();
        words.join(" ")
    }
}
