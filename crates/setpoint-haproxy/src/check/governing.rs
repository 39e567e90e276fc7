//! Which `defaults` each section takes its values from, and in which mode proxies are for that.

use rustc_hash::FxHashMap;

use super::configuration::{Configuration, Part};
use crate::table::resources::Resource;
use crate::text::SectionKind;

/// The `defaults` that each section takes its values from, by their places among all sections.
pub(super) fn governing(configuration: &Configuration<'_>) -> Vec<Option<usize>> {
    let mut by_name: FxHashMap<String, usize> = FxHashMap::default();
    let mut last = None;
    let mut governing = Vec::with_capacity(configuration.parts.len());
    for (index, part) in configuration.parts.iter().enumerate() {
        let from = part.from().map(|word| word.to_str_lossy().into_owned());
        let named = from.as_ref().map(|from| by_name.get(from).copied());
        match part.kind {
            SectionKind::Defaults => {
                governing.push(named.flatten());
                if let Some(name) = part.name() {
                    by_name.insert(name.into_owned(), index);
                }
                last = Some(index);
            }
            kind if kind.is_proxy() => governing.push(named.unwrap_or(last)),
            _ => governing.push(None),
        }
    }
    governing
}

/// What a proxy speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Tcp,
    Http,
    Spop,
    /// Another mode, or an unknown one.
    Other,
}

impl Mode {
    /// Returns whether a proxy of this mode may provide a mode that is required.
    pub(super) fn may_be(self, required: Resource) -> bool {
        match required {
            Resource::HttpMode => matches!(self, Self::Http | Self::Other),
            Resource::TcpMode => matches!(self, Self::Tcp | Self::Other),
            Resource::SpopMode => matches!(self, Self::Spop | Self::Other),
            _ => false,
        }
    }

    /// Returns whether a proxy of this mode can pass what it gets to one of another.
    pub(super) fn passes_to(self, other: Self) -> bool {
        let is_unknown = self == Self::Other || other == Self::Other;
        is_unknown || self == other || self == Self::Tcp && other == Self::Http
    }

    /// The word for it in a configuration.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Http => "http",
            Self::Spop => "spop",
            Self::Other => "",
        }
    }
}

/// The mode of each section; a line that can't be read makes it unknown.
pub(super) fn modes(configuration: &Configuration<'_>, governing: &[Option<usize>]) -> Vec<Mode> {
    let mut modes: Vec<Mode> = Vec::with_capacity(configuration.parts.len());
    for (part, governor) in configuration.parts.iter().zip(governing) {
        let is_proxy = part.kind.is_proxy() || part.kind == SectionKind::Defaults;
        let inherited = governor.map_or(Mode::Tcp, |index| modes.get(index).copied().unwrap_or(Mode::Other));
        let ambiguous =
            part.from().is_some_and(|word| word.variable) || governor.is_none() && part.from().is_some();
        modes.push(match own(part) {
            _ if !is_proxy => Mode::Other,
            Some(mode) => mode,
            None if ambiguous => Mode::Other,
            None => inherited,
        });
    }
    modes
}

/// The modes of the backends, by their names.
pub(super) fn modes_of_backends(
    configuration: &Configuration<'_>,
    modes: &[Mode],
) -> FxHashMap<String, Mode> {
    let mut found = FxHashMap::default();
    for (part, mode) in configuration.parts.iter().zip(modes) {
        if let Some(name) =
            part.name().filter(|_| matches!(part.kind, SectionKind::Backend | SectionKind::Listen))
        {
            found.entry(name.into_owned()).or_insert(if part.is_certain() { *mode } else { Mode::Other });
        }
    }
    found
}

/// The mode that a section states.
fn own(part: &Part<'_>) -> Option<Mode> {
    let mut stated = part
        .lines
        .iter()
        .filter(|line| line.words.first().is_some_and(|word| word.variable || word.is("mode")));
    if stated.clone().any(|line| !line.certain || line.is_open()) {
        return Some(Mode::Other);
    }
    let mode = stated.next_back()?.words.get(1)?.to_str_lossy();
    Some(match &*mode {
        "tcp" => Mode::Tcp,
        "http" => Mode::Http,
        "spop" => Mode::Spop,
        _ => Mode::Other,
    })
}
