//! Where sections stand, by kind and name.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smol_str::SmolStr;

use super::key::SectionKey;
use crate::text::{Document, SectionKind};

/// After so many sections that were inserted or removed, the index is made anew.
const LOG: usize = 1024;

/// The places of sections, made when one is first asked for.
///
/// A section that comes or goes moves all after it. That is noted, and counted when a place is asked for. Copies share what is
/// known until one of them changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    places: Option<Arc<Places>>,
    /// From which place on sections moved, and how far.
    moves: Vec<(usize, isize)>,
}

/// The places of sections that share kind and name, in their order: moves keep it.
type Places = FxHashMap<(SectionKind, Option<SmolStr>), Vec<Place>>;

#[derive(Clone, Copy, Debug)]
struct Place {
    index: usize,
    /// How many moves there had been when it was noted.
    since: usize,
}

impl Place {
    /// Where the section stands after some moves.
    fn after(&self, moves: &[(usize, isize)]) -> usize {
        let moves = moves.get(self.since..).unwrap_or_default().iter();
        moves.fold(
            self.index,
            |index, (from, by)| if index >= *from { index.saturating_add_signed(*by) } else { index },
        )
    }
}

impl Index {
    /// Finds a section.
    pub(super) fn find(&mut self, document: &Document, key: &SectionKey) -> Option<usize> {
        let places = self.places.get_or_insert_with(|| Arc::new(places(document)));
        let found = places.get(&(key.kind, key.name.clone()))?;
        found.get(usize::try_from(key.nth).ok()?).map(|place| place.after(&self.moves))
    }

    /// Notes that a section was inserted at a place.
    pub(super) fn inserted(&mut self, document: &Document, index: usize) {
        self.moved(index, 1);
        let (moves, since) = (&self.moves, self.moves.len());
        if let (Some(places), Some(section)) = (&mut self.places, document.sections().get(index)) {
            let key = (section.kind(), section.key_name().cloned());
            let found = Arc::make_mut(places).entry(key).or_default();
            let at = found.partition_point(|place| place.after(moves) < index);
            found.insert(at, Place { index, since });
        }
    }

    /// Notes that the section at a place was removed.
    pub(super) fn removed(&mut self, key: &SectionKey, index: usize) {
        let moves = &self.moves;
        if let Some(places) = &mut self.places
            && let Some(found) = Arc::make_mut(places).get_mut(&(key.kind, key.name.clone()))
        {
            let is_it = |at: usize| found.get(at).is_some_and(|place| place.after(moves) == index);
            // Mostly it is the one that the key counts to.
            let counted = usize::try_from(key.nth).ok().filter(|at| is_it(*at));
            let searched = || found.partition_point(|place| place.after(moves) < index);
            let at = counted.unwrap_or_else(searched);
            if is_it(at) {
                found.remove(at);
            }
        }
        self.moved(index, -1);
    }

    /// Notes that the section at a place has another name.
    pub(super) fn renamed(&mut self, document: &Document, key: &SectionKey, index: usize) {
        self.removed(key, index);
        self.inserted(document, index);
    }

    /// Forgets all places: the document was parsed anew.
    pub(super) fn forget(&mut self) {
        self.places = None;
        self.moves.clear();
    }

    fn moved(&mut self, from: usize, by: isize) {
        if self.moves.len() >= LOG {
            self.forget();
        } else if self.places.is_some() {
            // Places that are made later are counted after this move already.
            self.moves.push((from, by));
        }
    }
}

fn places(document: &Document) -> Places {
    let mut places = Places::default();
    for (index, section) in document.sections().iter().enumerate() {
        let key = (section.kind(), section.key_name().cloned());
        places.entry(key).or_default().push(Place { index, since: 0 });
    }
    places
}

/// The place of a section in a document, without an index.
pub(crate) fn find(document: &Document, key: &SectionKey) -> Option<usize> {
    let fits = |section: &crate::text::Section| {
        section.kind() == key.kind && section.key_name() == key.name.as_ref()
    };
    let sections = document.sections().iter().enumerate().filter(|(_, section)| fits(section));
    sections.map(|(index, _)| index).nth(usize::try_from(key.nth).ok()?)
}
