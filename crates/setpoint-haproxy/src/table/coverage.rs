//! How much of HAProxy's language the table covers.

use super::directives;
use crate::keywords;
use crate::model::{ObjectKind, Version};
use crate::text::SectionKind;

/// How many of the words that may begin a line of a section begin a row of the table.
///
/// ```
/// use setpoint_haproxy::model::Version;
/// use setpoint_haproxy::table::coverage;
/// use setpoint_haproxy::text::SectionKind;
///
/// let resolvers = coverage(SectionKind::Resolvers, Version::V3_4);
/// assert_eq!(resolvers.modelled + resolvers.missing.len(), resolvers.known);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The kind of section.
    pub section: SectionKind,
    /// The version of HAProxy.
    pub version: Version,
    /// How many words HAProxy knows there.
    pub known: usize,
    /// How many of them the table has a row for.
    pub modelled: usize,
    /// The others, sorted: lines that begin with them are kept as text.
    pub missing: Vec<&'static str>,
}

/// Says how much of what a version of HAProxy knows in a section the table covers.
pub fn coverage(section: SectionKind, version: Version) -> Coverage {
    let object = crate::model::section_object(section);
    let is_modelled = |word: &str| object.is_some_and(|object| begins_a_row(object, word, version));
    let (modelled, missing): (Vec<_>, Vec<_>) =
        keywords::of(section, version).partition(|word| is_modelled(word));
    Coverage { section, version, known: modelled.len() + missing.len(), modelled: modelled.len(), missing }
}

/// Says whether some row for a section begins with a word.
fn begins_a_row(section: ObjectKind, word: &str, version: Version) -> bool {
    directives().first_words(section, version).any(|first| first == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_model_is_not_covered() {
        let listen = coverage(SectionKind::Listen, Version::V3_4);
        assert_eq!(listen.modelled, 0);
        assert!(listen.known > 0);
    }

    #[test]
    fn most_of_what_proxies_and_the_global_section_know_is_covered() {
        for version in [Version::V2_6, Version::V3_0, Version::V3_2, Version::V3_4] {
            for section in
                [SectionKind::Global, SectionKind::Defaults, SectionKind::Frontend, SectionKind::Backend]
            {
                let Coverage { known, modelled, missing, .. } = coverage(section, version);
                assert!(
                    modelled * 4 > known * 3,
                    "{section} {version}: {modelled} of {known}, missing {missing:?}"
                );
            }
        }
    }
}
