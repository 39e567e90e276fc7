//! One row of the table: a form of a line.

use super::attributes::Attributes;
use super::grammar::{Item, Versions, cut, first_word};
use crate::model::ObjectKind;

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

    /// Returns whether it is nothing but fixed words.
    pub(crate) fn is_bare(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Literal(_)))
    }

    /// Returns the fixed words it starts with.
    pub(crate) fn start(&self) -> String {
        let words: Vec<&str> = self.items.iter().map_while(first_word).map(cut).collect();
        words.join(" ")
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
