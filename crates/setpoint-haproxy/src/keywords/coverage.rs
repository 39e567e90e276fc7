//! How much of HAProxy's language the typed model covers.

use serde::Serialize;

use crate::model::Version;
use crate::table::directives;
use crate::text::SectionKind;

/// How many of the words that may begin a line of a section the model reads.
///
/// A word counts as modelled if a row of the table of directives describes lines that begin with it. What a line says
/// beyond its row is kept as text: how much of a given file that is, its own
/// [`unmodelled`](crate::model::SectionModel::unmodelled) lines tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Coverage {
    /// The section.
    pub section: SectionKind,
    /// The version of HAProxy.
    #[serde(serialize_with = "as_text")]
    pub version: Version,
    /// How many words HAProxy knows there.
    pub keywords: usize,
    /// How many of these the model reads.
    pub modelled: usize,
    /// Those that it does not.
    pub missing: Vec<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn as_text<S: serde::Serializer>(version: &Version, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(version.as_str())
}

/// The coverage of every section that a version of HAProxy knows.
///
/// ```
/// use setpoint_haproxy::keywords::coverage;
/// use setpoint_haproxy::model::Version;
/// use setpoint_haproxy::text::SectionKind;
///
/// let all = coverage(Version::V3_4);
/// let mailers = all.iter().find(|row| row.section == SectionKind::Mailers).unwrap();
/// assert_eq!(mailers.missing, [""; 0]);
/// ```
pub fn coverage(version: Version) -> Vec<Coverage> {
    let sections = SectionKind::all().filter(|kind| !kind.is_enterprise());
    let row = |section: SectionKind| {
        let words: Vec<&'static str> = super::of(section, version).collect();
        let object = directives().section_object(section);
        let modelled = |word: &&str| object.is_some_and(|object| directives().knows(object, word, version));
        let missing: Vec<&'static str> = words.iter().copied().filter(|word| !modelled(word)).collect();
        Coverage { section, version, keywords: words.len(), modelled: words.len() - missing.len(), missing }
    };
    sections.map(row).filter(|row| row.keywords > 0).collect()
}
