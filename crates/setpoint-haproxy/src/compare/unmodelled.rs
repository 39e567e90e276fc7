//! The lines of sections that the model does not cover.

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_plan::AttributeChange;

use crate::model::{SectionModel, Version};
use crate::table::directives;
use crate::table::facts::facts;
use crate::text::{Line, Section};

/// The words of the lines that the model does not cover, each with how many of its family stand before it: among
/// rules, that matters.
pub(super) fn lines(section: &Section, model: &SectionModel) -> Vec<(usize, Vec<Vec<u8>>)> {
    if model.unmodelled.is_empty() {
        return Vec::new();
    }
    let listed = model.children.iter().filter(|child| child.kind.is_ordered()).map(|child| child.line);
    let listed: FxHashSet<u32> = listed.collect();
    let unmodelled: FxHashSet<u32> = model.unmodelled.iter().copied().collect();
    let mut families: FxHashMap<Vec<u8>, usize> = FxHashMap::default();
    let mut modelled: FxHashMap<Vec<Vec<u8>>, usize> = FxHashMap::default();
    let mut groups: FxHashMap<String, usize> = FxHashMap::default();
    let section_facts = facts().section(section.kind());
    let mut found = Vec::new();
    for line in section.lines() {
        let words: Vec<Vec<u8>> = line.words().map(|word| word.raw.to_vec()).collect();
        let Some(first) = words.first() else { continue };
        let before = families.entry(first.clone()).or_default();
        let texts: Vec<String> = line.words().map(|word| word.to_str_lossy().into_owned()).collect();
        // Lines of several directives may count as one list, as captures do.
        let group = section_facts.order_group(&texts);
        if unmodelled.contains(&line.number()) {
            let same = modelled.get(subject(&words)).copied().unwrap_or_default();
            let in_group = group.and_then(|group| groups.get(&group).copied()).unwrap_or_default();
            found.push((*before + same + in_group, words));
            continue;
        }
        if listed.contains(&line.number()) {
            *before += 1;
        } else {
            *modelled.entry(subject(&words).to_vec()).or_default() += 1;
        }
        if let Some(group) = group {
            *groups.entry(group).or_default() += 1;
        }
    }
    // Lines about different things may stand in any order.
    found.sort_by(|(_, a), (_, b)| a.first().cmp(&b.first()));
    found
}

/// What a line switches on or off: of two such lines the last one holds. `transparent` is `option transparent`.
fn subject(words: &[Vec<u8>]) -> &[Vec<u8>] {
    let is_prefix = |word: &&Vec<u8>| matches!(word.as_slice(), b"no" | b"default" | b"option");
    words.get(words.iter().take_while(is_prefix).count()..).unwrap_or_default()
}

/// Returns whether a line that the model does not cover says something of an attribute that changes: their places decide then
/// which of both lines holds.
pub(super) fn states_one_of(
    changes: &[AttributeChange],
    section: &Section,
    model: &SectionModel,
    version: Version,
) -> bool {
    let Some(object) = model.object.as_ref().filter(|_| !model.unmodelled.is_empty() && !changes.is_empty())
    else {
        return false;
    };
    let starts: FxHashSet<String> = changes
        .iter()
        .filter_map(|change| directives().field(object.kind, &change.attribute))
        .flat_map(|field| directives().starts_of(object.kind, field, version))
        .collect();
    of(section, model).any(|line| {
        let words: Vec<_> = line.words().map(|word| word.to_str_lossy().into_owned()).collect();
        (1..=words.len())
            .any(|count| words.get(..count).is_some_and(|words| starts.contains(&words.join(" "))))
    })
}

/// Returns whether a variable that is not known decides over a line.
pub(super) fn has_variables(section: &Section, model: &SectionModel) -> bool {
    of(section, model).any(|line| line.words().any(|word| word.variable))
}

fn of<'s>(section: &'s Section, model: &'s SectionModel) -> impl Iterator<Item = Line<'s>> {
    let lines = (!model.unmodelled.is_empty()).then(|| section.lines());
    let unmodelled: FxHashSet<u32> = model.unmodelled.iter().copied().collect();
    lines.into_iter().flatten().filter(move |line| unmodelled.contains(&line.number()))
}
