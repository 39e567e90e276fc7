//! Lines that have to stand below others: a condition below the ACLs that it names, what is experimental below the line that
//! allows it.

use rustc_hash::FxHashSet;

use super::operation::Operation;
use super::places;
use super::sections::Side;
use crate::edit::SectionKey;
use crate::model::{Context, section_model};
use crate::table::Name;
use crate::table::facts::facts;
use crate::table::resources::Resource;
use crate::text::{Document, Line, Section, SectionKind};

/// The sections in which operations put lines in another order than what is desired, and it matters.
pub(super) fn misplaced(
    result: &Document,
    desired: &Document,
    operations: &[Operation],
    cx: &Context,
) -> FxHashSet<SectionKey> {
    let (result, desired) = (Side::between(result, 0, 0), Side::between(desired, 0, 0));
    let model = |section: &Section| section_model(section, cx);
    let touched: FxHashSet<&SectionKey> = operations.iter().map(|operation| &operation.section).collect();
    let is_misplaced = |key: &&SectionKey| {
        let (Some(result), Some(desired)) = (result.get(key), desired.get(key)) else { return false };
        let (made, wanted) = (model(result.section), model(desired.section));
        let allowed = too_early(desired.section);
        too_early(result.section).iter().any(|line| !allowed.contains(line))
            || places::are_misplaced((result.section, &made), (desired.section, &wanted))
    };
    touched.into_iter().filter(is_misplaced).cloned().collect()
}

/// Returns whether the order of lines may have to be looked at after an operation: something in its section is named by its
/// other lines.
pub(super) fn may_misplace(section: &Section) -> bool {
    let needed = |line: Line<'_>| line.keyword().is_some_and(|word| is_needed(section, &word));
    section.lines().any(needed)
}

fn is_needed(section: &Section, keyword: &[u8]) -> bool {
    let facts = facts().section(section.kind());
    let keyword = String::from_utf8_lossy(keyword);
    match section.kind() {
        SectionKind::Global => facts.may_provide(&keyword, Resource::Experimental),
        _ => facts.named(&keyword).iter().any(|named| named.name == Name::Acl),
    }
}

/// Returns whether lines stand above one that they need in one of two sections, and not in the other.
pub(super) fn differ(old: &Section, new: &Section) -> bool {
    (may_misplace(old) || may_misplace(new)) && too_early(old) != too_early(new)
}

/// The lines that stand above one that they need, each by its words.
fn too_early(section: &Section) -> FxHashSet<Vec<String>> {
    let is_needed = |line: &Line<'_>| line.keyword().is_some_and(|word| is_needed(section, &word));
    if section.kind() == SectionKind::Global {
        let is_experimental = |words: &Vec<String>| words.iter().any(|word| facts().is_experimental(word));
        if !section.lines().any(|line| is_needed(&line)) {
            return FxHashSet::default();
        }
        let above = section.lines().take_while(|line| !is_needed(line));
        return above.map(|line| words_of(&line)).filter(is_experimental).collect();
    }
    let named = |line: &Line<'_>| line.words().nth(1).map(|word| word.to_str_lossy().into_owned());
    let acls = section.lines().filter(is_needed).filter_map(|line| named(&line));
    let mut below: FxHashSet<String> = acls.collect();
    let mut early = FxHashSet::default();
    for line in section.lines() {
        if is_needed(&line) {
            if let Some(name) = named(&line) {
                below.remove(&name);
            }
        } else if !below.is_empty() && has_condition(&line) {
            let words = words_of(&line);
            let condition = words.iter().position(|word| word == "if" || word == "unless");
            let names = words.get(condition.unwrap_or(words.len())..).unwrap_or_default();
            if names.iter().any(|name| below.contains(name.trim_start_matches('!'))) {
                early.insert(words);
            }
        }
    }
    early
}

fn words_of(line: &Line<'_>) -> Vec<String> {
    line.words().map(|word| word.to_str_lossy().into_owned()).collect()
}

/// Returns whether a line may have a condition; for most, that is decided without splitting them.
fn has_condition(line: &Line<'_>) -> bool {
    ["if", "unless"].iter().any(|word| memchr::memmem::find(line.raw(), word.as_bytes()).is_some())
}
