//! Lines that have to stand below others: a condition below the ACLs that it names, what is experimental below the line that
//! allows it.

use rustc_hash::FxHashSet;

use super::operation::Operation;
use super::sections::Side;
use crate::edit::SectionKey;
use crate::table::Name;
use crate::table::facts::facts;
use crate::table::resources::Resource;
use crate::text::{Document, Section, SectionKind};

/// The sections in which operations put a line above one that it needs, although what is desired does not.
pub(super) fn misplaced(
    result: &Document,
    desired: &Document,
    operations: &[Operation],
) -> FxHashSet<SectionKey> {
    let (result, desired) = (Side::between(result, 0, 0), Side::between(desired, 0, 0));
    let touched: FxHashSet<&SectionKey> = operations.iter().map(|operation| &operation.section).collect();
    let is_misplaced = |key: &&SectionKey| {
        let (Some(result), Some(desired)) = (result.get(key), desired.get(key)) else { return false };
        let allowed = too_early(desired.section);
        too_early(result.section).iter().any(|line| !allowed.contains(line))
    };
    touched.into_iter().filter(is_misplaced).cloned().collect()
}

/// Returns whether the order of lines may have to be looked at after an operation: something in its section is named by its
/// other lines.
pub(super) fn may_misplace(section: &Section) -> bool {
    let needed = |line: crate::text::Line<'_>| line.keyword().is_some_and(|word| is_needed(section, &word));
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

/// The lines that stand above one that they may need, each by its words.
fn too_early(section: &Section) -> FxHashSet<Vec<String>> {
    let lines = section
        .lines()
        .map(|line| line.words().map(|word| word.to_str_lossy().into_owned()).collect::<Vec<_>>());
    let lines: Vec<Vec<String>> = lines.filter(|words: &Vec<String>| !words.is_empty()).collect();
    let mut early = FxHashSet::default();
    if section.kind() == SectionKind::Global {
        let allows =
            |words: &Vec<String>| words.first().is_some_and(|word| is_needed(section, word.as_bytes()));
        let count = lines.iter().position(allows).unwrap_or_default();
        early.extend(lines.into_iter().take(count));
        return early;
    }
    let acl = |words: &[String]| match words {
        [keyword, name, ..] if is_needed(section, keyword.as_bytes()) => Some(name.clone()),
        _ => None,
    };
    let all: FxHashSet<String> = lines.iter().filter_map(|words| acl(words)).collect();
    let mut above: FxHashSet<String> = FxHashSet::default();
    for words in lines {
        let condition = words.iter().position(|word| word == "if" || word == "unless");
        let named = words.get(condition.unwrap_or(words.len())..).unwrap_or_default();
        let mut named = named.iter().map(|word| word.trim_start_matches('!'));
        let is_early = named.any(|name| all.contains(name) && !above.contains(name));
        above.extend(acl(&words));
        if is_early {
            early.insert(words);
        }
    }
    early
}
