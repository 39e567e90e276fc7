//! Manifests that are copies of others in the same directory.

use std::collections::{BTreeMap, BTreeSet};

use super::diagnostic::{Diagnostics, ManifestFile, SourceLocation, Span};
use super::table::Section;
use super::yaml::{Data, Node};

/// The items that each manifest declares, by section and name.
type Items<'a> = BTreeMap<usize, BTreeSet<(&'static str, &'a str)>>;

/// Reports each manifest all of whose items another one declares as well, once for all of them, and returns which they are.
pub(crate) fn report(
    documents: &[(usize, Node<'_>)],
    sources: &[ManifestFile],
    report: &mut Diagnostics<'_>,
) -> Vec<usize> {
    let items = items(documents);
    let mut copies = Vec::new();
    for (&source, mine) in &items {
        // One name that two have may be a mistake in either.
        let is_copied = |&(&other, theirs): &(&usize, &BTreeSet<_>)| {
            let is_smaller = mine.len() < theirs.len() || (mine.len() == theirs.len() && source > other);
            is_smaller && mine.len() > 1 && mine.is_subset(theirs)
        };
        let Some((&of, _)) = items.iter().find(is_copied) else { continue };
        let of = sources.get(of).map(|source| source.path.display().to_string()).unwrap_or_default();
        let message = format!(
            "all {} items of this manifest are declared in {of} too: is one a copy of the other?",
            mine.len()
        );
        let hint = "move one of them away, or name the other with `--file`".to_owned();
        report.add(SourceLocation { source, span: Span::default() }, message, Some(hint));
        copies.push(source);
    }
    copies
}

fn items<'a>(documents: &'a [(usize, Node<'a>)]) -> Items<'a> {
    let mut items = Items::new();
    for (source, document) in documents {
        let Data::Map(pairs) = &document.data else { continue };
        for (key, of) in pairs {
            let section = Section::all().find(|section| key.scalar() == Some(section.key));
            let (Some(section), Data::Map(named)) = (section, &of.data) else { continue };
            let names = named.iter().filter_map(|(name, _)| Some((section.key, name.scalar()?)));
            items.entry(*source).or_default().extend(names);
        }
    }
    items
}
