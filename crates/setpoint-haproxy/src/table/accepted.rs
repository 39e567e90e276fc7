//! The table with all that HAProxy accepts, for `check`: the rows of the schema, and those beside them.

use std::sync::LazyLock;

use super::grammar::{cut, first_word};
use super::{Directives, Row, source};
use crate::model::{ObjectKind, Version};

/// Returns the table with all that HAProxy accepts beside what the schema has a place for; it is read once.
pub(crate) fn accepted() -> &'static Directives {
    static ACCEPTED: LazyLock<Directives> = LazyLock::new(|| {
        let mut sources = source::schema();
        let last_of_schema = sources.len() - 1;
        sources.extend(source::beside());
        let mut table = Directives::of(&sources);
        let of_schema = table.ends.get(last_of_schema).copied().unwrap_or_default();
        let (schema, text) = table.rows.split_at_mut(of_schema);
        for row in text {
            row.attributes.text = row.attributes.text.or(Some(Text::Further));
            let start = row.start();
            let is_form = |other: &str| {
                other.strip_prefix(&start).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
            };
            let replaced = schema.iter_mut().filter(|other| {
                row.attributes.text == Some(Text::Instead)
                    && other.owners.iter().any(|owner| row.owners.contains(owner))
                    && is_form(&other.start())
            });
            for other in replaced {
                other.owners.retain(|owner| !row.owners.contains(owner));
                if other.owners.is_empty() {
                    other.attributes.text = Some(Text::Gone);
                }
            }
        }
        table
    });
    &ACCEPTED
}

/// What a row is that only says what HAProxy accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Text {
    /// A further form of a line.
    Further,
    /// The form that counts instead of those of the schema that begin with the same words.
    Instead,
    /// A form of the schema that another counts instead of.
    Gone,
}

impl Directives {
    /// Returns all rows.
    pub(crate) fn all_rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the rows by which HAProxy may accept a line of a section, by its first two words. Which version knows a line
    /// of the schema is not the row's to say: it counts in all.
    pub(crate) fn forms(
        &self,
        section: ObjectKind,
        first: &str,
        second: Option<&str>,
        version: Version,
    ) -> impl Iterator<Item = &Row> {
        self.by_words(section, first, second).map(|(row, _)| row).filter(move |row| {
            let counts =
                row.attributes.text.is_none_or(|text| text != Text::Gone && row.versions.contains(version));
            counts
                && row.attributes.is_of(version)
                && (row.owners.contains(&section) || row.owners.iter().any(|owner| !owner.is_section()))
        })
    }

    /// Returns the words that can follow the first one in lines of a section.
    pub(crate) fn second_words(
        &self,
        section: ObjectKind,
        first: &str,
        version: Version,
    ) -> Vec<&'static str> {
        let by_word = self.kinds.get(section as usize).and_then(|kind| kind.by_word.get(first));
        let seconds = by_word.into_iter().flat_map(|word| word.by_second.keys().copied());
        let is_known = |second: &&'static str| {
            let mut forms = self.forms(section, first, Some(second), version);
            forms.any(|row| {
                let is_it = row.items.get(1).and_then(first_word).is_some_and(|word| cut(word) == *second);
                is_it && !row.attributes.refused && !row.attributes.ignored
            })
        };
        let mut seconds: Vec<&'static str> = seconds.filter(is_known).collect();
        seconds.sort_unstable();
        seconds
    }

    /// Returns whether some row of some version describes lines of a section that begin with a word.
    pub(crate) fn has_forms(&self, section: ObjectKind, first: &str) -> bool {
        self.kinds.get(section as usize).is_some_and(|kind| kind.by_word.contains_key(first))
    }
}
