//! From rows to the table: which rows a section has, by which words they are found, and in which order they are written.

use rustc_hash::{FxHashMap, FxHashSet};

use super::grammar::{Direction, Item, Piece, Versions, cut, first_word};
use super::lookup::{Directives, FirstWord, Kind};
use super::shape::collect_shape;
use super::{Row, Slot, Zero, compile, secrets};
use crate::model::{Field, ObjectKind};
use crate::text::SectionKind;

impl Directives {
    /// Reads the text of a table.
    pub(super) fn of(sources: &[&'static str]) -> Self {
        let mut compiled = compile::compile(sources);
        let families = number_families(&mut compiled.rows);
        let mut kinds: Vec<Kind> = ObjectKind::ALL.iter().map(|_| Kind::default()).collect();
        for (position, row) in compiled.rows.iter().enumerate() {
            for owner in &row.owners {
                if let Some(kind) = kinds.get_mut(*owner as usize) {
                    if row.is_header { &mut kind.header } else { &mut kind.rows }.push(position);
                    collect_shape(row, &compiled.fields, &mut kind.shape);
                }
            }
        }
        for section in ObjectKind::ALL.iter().copied().filter(|kind| kind.is_section()) {
            let own: Vec<usize> =
                kinds.get(section as usize).map(|kind| kind.rows.clone()).unwrap_or_default();
            let mut by_word: FxHashMap<&'static str, FirstWord> = FxHashMap::default();
            for position in &own {
                let Some(row) = compiled.rows.get(*position) else { continue };
                match row.child {
                    None => index(&mut by_word, row, *position, Versions::ALL),
                    Some(child) => {
                        for position in
                            kinds.get(child as usize).map(|kind| kind.rows.as_slice()).unwrap_or_default()
                        {
                            if let Some(child) = compiled.rows.get(*position) {
                                index(&mut by_word, child, *position, row.versions);
                            }
                        }
                    }
                }
            }
            let order = order_of(section, &compiled.orders);
            let is_of_row = |entry: &&&'static str| {
                own.iter().filter_map(|at| compiled.rows.get(*at)).all(|row| place(row, &[**entry]) > 0)
            };
            let unknown = order.iter().filter(is_of_row);
            compiled.errors.extend(unknown.map(|entry| format!("an order names no row: {entry}")));
            let mut written = own;
            if !order.is_empty() {
                written.sort_by_key(|position| {
                    compiled.rows.get(*position).map_or(usize::MAX, |row| place(row, &order))
                });
            }
            if let Some(kind) = kinds.get_mut(section as usize) {
                kind.by_word = by_word;
                kind.written = written;
            }
        }
        let find = |path: &str| {
            let position =
                compiled.fields.iter().position(|info| info.path == path && info.zero == Zero::Dropped)?;
            u16::try_from(position).ok().map(Field)
        };
        let names = ObjectKind::ALL.iter().map(|kind| kind.name_path().and_then(&find)).collect();
        let (metadata, own) = (find("metadata"), find("."));
        if let Some(metadata) = metadata {
            for kind in &mut kinds {
                kind.shape.slots.insert("metadata", Slot::Json(metadata));
            }
        }
        let secrets = secrets::Secrets::of(&compiled.rows, metadata);
        let sections = sections(&compiled.rows);
        Self {
            secrets,
            fields: compiled.fields,
            rows: compiled.rows,
            kinds,
            sections,
            families,
            names,
            metadata,
            own,
            errors: compiled.errors,
            ends: compiled.ends,
            words: compiled.words,
            options: compiled.options,
        }
    }
}

/// Returns the order in which the lines of a section are written; a `listen` has that of a frontend, then that of a backend.
fn order_of(section: ObjectKind, orders: &[(ObjectKind, Vec<&'static str>)]) -> Vec<&'static str> {
    let kinds: &[ObjectKind] = match section {
        ObjectKind::Listen => &[ObjectKind::Frontend, ObjectKind::Backend],
        _ => &[section],
    };
    // What stands for all that no other entry names comes last.
    let mut order: Vec<&'static str> = kinds
        .iter()
        .flat_map(|kind| orders.iter().filter(move |(held, _)| held == kind))
        .flat_map(|(_, order)| order.iter().copied())
        .collect();
    if section == ObjectKind::Listen {
        order.sort_by_key(|entry| matches!(*entry, "option" | "timeout" | "stats" | "compression"));
    }
    order
}

/// Finds the object that each kind of section is, by the words that open them.
fn sections(rows: &[Row]) -> Vec<Option<ObjectKind>> {
    let mut sections = vec![None; SectionKind::Unknown as usize + 1];
    for row in rows.iter().filter(|row| row.is_header) {
        let keyword = row.items.first().and_then(first_word);
        let kind = keyword.and_then(|keyword| SectionKind::from_keyword(keyword.as_bytes()));
        if let Some(slot) = kind.and_then(|kind| sections.get_mut(kind as usize)) {
            *slot = row.owners.first().copied();
        }
    }
    sections
}

/// Numbers the families of rows, and returns the fields of each.
///
/// A family has the same fixed words at the start, and then the same field.
fn number_families(rows: &mut [Row]) -> Vec<Vec<Field>> {
    let mut numbers = FxHashMap::default();
    let mut families: Vec<FxHashSet<Field>> = Vec::new();
    for row in rows {
        let mut words = Vec::new();
        let mut first = None;
        for item in &row.items {
            match item {
                Item::Literal(word) => words.push(*word),
                Item::Constant { field, .. }
                | Item::Pattern { constant: Some((field, _)), .. }
                | Item::Value { field, .. }
                | Item::Address { address: field, .. } => {
                    first = Some(*field);
                    break;
                }
                _ => break,
            }
        }
        let next = families.len();
        let number = *numbers.entry((row.owners.clone(), words, first)).or_insert(next);
        if number == next {
            families.push(FxHashSet::default());
        }
        row.family = number;
        let mut fields = Vec::new();
        collect_fields(&row.items, &mut fields);
        if let Some(family) = families.get_mut(number) {
            family.extend(fields);
            family.extend(row.attributes.metadata);
        }
    }
    families.into_iter().map(|family| family.into_iter().collect()).collect()
}

/// Returns the fields that some items set.
pub(crate) fn fields_of(items: &[Item]) -> Vec<Field> {
    let mut fields = Vec::new();
    collect_fields(items, &mut fields);
    fields
}

/// Collects the fields that some items set.
pub(super) fn collect_fields(items: &[Item], into: &mut Vec<Field>) {
    for item in items {
        match item {
            Item::Literal(_) => {}
            Item::Constant { field, .. } | Item::Value { field, .. } | Item::Repeat { field, .. } => {
                into.push(*field);
            }
            Item::Pattern { constant, pieces } => {
                into.extend(constant.map(|(field, _)| field));
                into.extend(pieces.iter().filter_map(|piece| match piece {
                    Piece::Value { field, .. } => Some(*field),
                    Piece::Literal(_) => None,
                }));
            }
            Item::Address { address, port, range_end, .. } => {
                into.push(*address);
                into.extend(port);
                into.extend(range_end);
            }
            Item::Optional(items) => collect_fields(items, into),
            Item::Options(options) => {
                for entry in &options.entries {
                    match entry.attributes.list {
                        Some(list) => into.push(list),
                        None => collect_fields(&entry.items, into),
                    }
                }
            }
            Item::Condition { cond, test, .. } => into.extend([*cond, *test]),
        }
    }
}

/// Enters a row under the first words of its line.
fn index(by_word: &mut FxHashMap<&'static str, FirstWord>, row: &Row, position: usize, here: Versions) {
    let Some(first) =
        row.items.first().and_then(first_word).filter(|_| row.attributes.direction != Direction::Write)
    else {
        return;
    };
    let word = by_word.entry(cut(first)).or_default();
    let second = match row.items.get(1) {
        Some(item @ (Item::Literal(_) | Item::Constant { .. })) => first_word(item),
        // Only what ends at a parenthesis can be looked up: `lua.` and `track-sc` are the start of a longer word.
        Some(item @ Item::Pattern { .. }) => first_word(item).filter(|word| word.contains('(')),
        _ => None,
    };
    match second {
        Some(second) => word.by_second.entry(cut(second)).or_default().push((position, here)),
        None => word.others.push((position, here)),
    }
}

/// Returns where a row stands in the order of a section; what the order does not name comes last.
fn place(row: &Row, order: &[&'static str]) -> usize {
    let keyword = match row.child {
        Some(child) => format!("@{}", child.model()),
        None => row.keyword(),
    };
    let named = |entry: &&'static str| {
        keyword.strip_prefix(*entry).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    order.iter().position(named).unwrap_or(usize::MAX)
}
