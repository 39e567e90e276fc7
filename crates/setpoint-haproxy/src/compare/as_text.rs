//! Why a difference between sections is one of their text.

use super::sections::Entry;
use super::{content, places, unmodelled};
use crate::model::{SectionModel, TextOnly};
use crate::text::{Section, SectionKind};

/// Why a section is compared as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AsText {
    /// By itself.
    Own(TextOnly),
    Unmodelled,
    DefaultServer,
    Sequence,
    ServerOrder,
    InheritedDefaults,
    Repeated,
    SectionRepeated,
    Anonymous,
}

impl AsText {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::Own(why) => why.reason(),
            Self::Unmodelled => "lines that the model does not cover differ",
            Self::DefaultServer => "the places of its `default-server` lines among its servers count",
            Self::Sequence => "lines whose order matters are in a different order",
            Self::ServerOrder => "its servers are in a different order, which matters for this algorithm",
            Self::InheritedDefaults => "another `defaults` section governs it by its place",
            Self::Repeated => "a name in it is used more than once",
            Self::SectionRepeated => "several sections share its kind and name",
            Self::Anonymous => "a `defaults` section without a name comes or goes",
        }
    }
}

/// Why a difference between two sections that have models is one of text all the same.
pub(super) fn only_as_text(
    old: (&Entry<'_>, &SectionModel),
    new: (&Entry<'_>, &SectionModel),
    inherits_other_defaults: bool,
) -> Option<AsText> {
    if inherits_other_defaults {
        return Some(AsText::InheritedDefaults);
    }
    if unmodelled::lines(old.0.section, old.1) != unmodelled::lines(new.0.section, new.1) {
        return Some(AsText::Unmodelled);
    }
    if content::repeats_a_name(old.1) || content::repeats_a_name(new.1) {
        let differ = old.1.children != new.1.children || old.1.object != new.1.object;
        return differ.then_some(AsText::Repeated);
    }
    None
}

/// Why a section is text only by itself.
pub(super) fn text_only(model: &SectionModel, entry: &Entry<'_>) -> Option<AsText> {
    match model.text_only {
        Some(why) => Some(AsText::Own(why)),
        None if entry.key.kind == SectionKind::Defaults && entry.key.name.is_none() => {
            Some(AsText::Anonymous)
        }
        None => None,
    }
}

/// Why a section can't be made from its model alone.
pub(super) fn unlike_the_model(section: &Section, model: &SectionModel) -> Option<AsText> {
    if !model.unmodelled.is_empty() {
        Some(AsText::Unmodelled)
    } else if content::repeats_a_name(model) {
        Some(AsText::Repeated)
    } else {
        places::unlike_the_model(section, model)
    }
}
