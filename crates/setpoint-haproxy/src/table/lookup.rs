//! What is asked of the table.

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::attributes::{Distinct, Servers};
use super::build::collect_fields;
use super::grammar::{Direction, Entry, Item, Type, Versions, cut, first_word};
use super::names::Name;
use super::resources::{Resource, RuntimeRule};
use super::shape::mentions;
use super::units::{write_size, write_time};
use super::{FieldInfo, Repetition, Row, Shape, Slot, Words, Zero, read, secrets};
use crate::model::{Context, Field, Fields, Object, ObjectKind, Value, Version};
use crate::text::SectionKind;

/// The rows of a line's first word, each with the versions in which its kind of section may hold such a line.
#[derive(Debug, Default)]
pub(super) struct FirstWord {
    pub(super) by_second: FxHashMap<&'static str, Vec<(usize, Versions)>>,
    pub(super) others: Vec<(usize, Versions)>,
}

/// What is known of one kind of object.
#[derive(Debug, Default)]
pub(super) struct Kind {
    /// Its rows, as they stand in the table.
    pub(super) rows: Vec<usize>,
    pub(super) header: Vec<usize>,
    /// For a section: its own rows and its children, in the order in which they are written.
    pub(super) written: Vec<usize>,
    /// For a section: all rows of it and of its children by the first words of the line.
    pub(super) by_word: FxHashMap<&'static str, FirstWord>,
    pub(super) shape: Shape,
}

/// The table of directives, ready for use.
#[derive(Debug)]
pub struct Directives {
    pub(super) fields: Vec<FieldInfo>,
    pub(super) rows: Vec<Row>,
    pub(super) kinds: Vec<Kind>,
    /// The object that each kind of section is.
    pub(super) sections: Vec<Option<ObjectKind>>,
    /// The fields of each family: a line that is read again replaces all of them.
    pub(super) families: Vec<Vec<Field>>,
    pub(super) names: Vec<Option<Field>>,
    pub(super) metadata: Option<Field>,
    pub(super) own: Option<Field>,
    pub(super) secrets: secrets::Secrets,
    pub(super) errors: Vec<String>,
    /// How many rows there are up to the end of each text.
    pub(super) ends: Vec<usize>,
    /// The lists of words, by name.
    pub(super) words: FxHashMap<&'static str, Words>,
    /// The words that the options of a block of parameters begin with, by the block's name.
    pub(super) options: FxHashMap<&'static str, Words>,
}

impl Directives {
    /// Returns the kind of object that a section is, by the word that opens it.
    pub(crate) fn section_object(&self, section: SectionKind) -> Option<ObjectKind> {
        self.sections.get(section as usize).copied().flatten()
    }

    /// Returns the kind of section that an object is.
    pub(crate) fn section_kind(&self, object: ObjectKind) -> SectionKind {
        let mut kinds = SectionKind::all();
        kinds.find(|kind| self.section_object(*kind) == Some(object)).unwrap_or(SectionKind::Unknown)
    }

    /// Returns what an algorithm makes of the servers of a backend, if a row says.
    pub(crate) fn servers_of(&self, algorithm: &str) -> Option<Servers> {
        let is_it = |item: &Item| match item {
            Item::Constant { value, .. } | Item::Pattern { constant: Some((_, value)), .. } => {
                *value == algorithm
            }
            _ => false,
        };
        self.rows
            .iter()
            .find(|row| row.items.get(1).is_some_and(is_it) && row.attributes.servers.is_some())?
            .attributes
            .servers
    }

    /// Returns the options of servers, by their paths, with which the place of a server in a consistent hash does not follow from the
    /// order of servers, and the values that do so; none stand for all.
    pub(crate) fn hash_places(&self) -> Vec<(&'static str, &[&'static str])> {
        let mut found = Vec::new();
        for row in self.rows.iter().filter(|row| row.owners.contains(&ObjectKind::Server)) {
            for option in row.options() {
                let Some(values) = option.attributes.hash_place.as_deref() else { continue };
                let mut fields = Vec::new();
                collect_fields(&option.items, &mut fields);
                found.extend(fields.into_iter().map(|field| (self.field_path(field), values)));
            }
        }
        found
    }

    /// Lists the names of the lists of words that values are one of.
    pub fn lists(&self) -> Vec<&'static str> {
        self.words.keys().copied().collect()
    }

    /// Returns the words of a list that a version of HAProxy knows.
    pub fn list(&self, name: &str, version: Version) -> Vec<&'static str> {
        self.words.get(name).map(|words| words.of(version)).unwrap_or_default()
    }

    /// Returns whether a version knows a word of a list.
    pub(crate) fn has_word(&self, list: &str, word: &str, version: Version) -> bool {
        self.words.get(list).is_some_and(|words| words.has(word, version))
    }

    /// Returns whether a word begins an option of a block of parameters.
    pub(crate) fn begins_option(&self, block: &str, word: &str) -> bool {
        self.options.get(block).is_some_and(|words| words.has(word, Version::LATEST))
    }

    /// Lists what is wrong with the table. It is empty, as a test asserts.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Returns the path of a field.
    pub fn field_path(&self, field: Field) -> &'static str {
        self.fields.get(usize::from(field.0)).map_or("", |info| info.path)
    }

    /// Returns what a zero of this field means in JSON.
    pub(crate) fn zero(&self, field: Field) -> Zero {
        self.fields.get(usize::from(field.0)).map_or(Zero::Dropped, |info| info.zero)
    }

    /// Finds the field of a kind by its path.
    pub fn field(&self, kind: ObjectKind, path: &str) -> Option<Field> {
        match self.shape(kind)?.slots.get(path)? {
            Slot::Value(field, _) | Slot::Values(field, _) | Slot::Objects(field, _) | Slot::Json(field) => {
                Some(*field)
            }
        }
    }

    /// Returns the field that names objects of a kind.
    pub fn name_field(&self, kind: ObjectKind) -> Option<Field> {
        self.names.get(kind as usize).copied().flatten()
    }

    /// Returns whether a property of this name can hold several words.
    pub fn takes_words(&self, name: &str) -> bool {
        fn any(shape: &Shape, name: &str) -> bool {
            shape.slots.iter().any(|(path, slot)| {
                let named = path.rsplit('.').next() == Some(name);
                match slot {
                    Slot::Value(_, ty) => named && matches!(ty, Type::Rest | Type::Expr),
                    Slot::Objects(_, element) => any(element, name),
                    Slot::Values(..) | Slot::Json(_) => false,
                }
            })
        }
        name == "cond_test" || self.kinds.iter().any(|kind| any(&kind.shape, name))
    }

    /// Returns whether what follows a word of a line, such as an option of a server, is never shown.
    pub fn precedes_secret(&self, word: &str) -> bool {
        self.secrets.is_before_secret(word)
    }

    /// Returns what is never shown.
    pub(crate) fn secrets(&self) -> &secrets::Secrets {
        &self.secrets
    }

    /// Returns the field that keeps the comment of an object.
    pub(crate) fn metadata_field(&self) -> Option<Field> {
        self.metadata
    }

    /// Returns the field of an element that is a bare value.
    pub(crate) fn own_field(&self) -> Option<Field> {
        self.own
    }

    pub(crate) fn shape(&self, kind: ObjectKind) -> Option<&Shape> {
        self.kinds.get(kind as usize).map(|kind| &kind.shape)
    }

    /// Returns the rows of a kind that a version knows, without those that open it.
    pub(crate) fn rows(&self, kind: ObjectKind, version: Version) -> impl Iterator<Item = &Row> {
        let rows = self.kinds.get(kind as usize).map(|kind| kind.rows.as_slice()).unwrap_or_default();
        rows.iter().filter_map(|row| self.rows.get(*row)).filter(move |row| row.versions.contains(version))
    }

    /// Returns whether a row is the form of a directive that a version of HAProxy has, among those of a version of the schema.
    /// Where no form is said to be that version's, all are.
    pub(crate) fn is_form_of(&self, row: &Row, kind: ObjectKind, cx: &Context) -> bool {
        row.attributes.is_of(cx.haproxy)
            || !self
                .rows(kind, cx.api)
                .any(|other| other.family == row.family && other.attributes.is_of(cx.haproxy))
    }

    /// Returns the rows that open a section.
    pub(crate) fn headers(&self, kind: ObjectKind, version: Version) -> impl Iterator<Item = &Row> {
        let rows = self.kinds.get(kind as usize).map(|kind| kind.header.as_slice()).unwrap_or_default();
        rows.iter().filter_map(|row| self.rows.get(*row)).filter(move |row| row.versions.contains(version))
    }

    /// Returns the rows of a section and the places of its children, in the order in which they are written.
    pub(crate) fn written(&self, kind: ObjectKind, version: Version) -> impl Iterator<Item = &Row> {
        let rows = self.kinds.get(kind as usize).map(|kind| kind.written.as_slice()).unwrap_or_default();
        rows.iter().filter_map(|row| self.rows.get(*row)).filter(move |row| row.versions.contains(version))
    }

    /// Returns the rows of all versions that may describe a line of a section, by its first two words, each with the versions in
    /// which the section may hold such a line.
    pub(super) fn by_words(
        &self,
        section: ObjectKind,
        first: &str,
        second: Option<&str>,
    ) -> impl Iterator<Item = (&Row, Versions)> {
        let by_word = self.kinds.get(section as usize).and_then(|kind| kind.by_word.get(first));
        let by_second = by_word.zip(second).and_then(|(word, second)| word.by_second.get(cut(second)));
        let others = by_word.map(|word| word.others.as_slice()).unwrap_or_default();
        let rows = by_second.map(Vec::as_slice).unwrap_or_default().iter().chain(others);
        rows.filter_map(|(row, here)| Some((self.rows.get(*row)?, *here)))
    }

    /// Returns the rows that may describe a line of a section in a version, by its first two words.
    pub(crate) fn candidates(
        &self,
        section: ObjectKind,
        first: &str,
        second: Option<&str>,
        version: Version,
    ) -> impl Iterator<Item = &Row> {
        let rows = self.by_words(section, first, second);
        rows.filter(move |(row, here)| here.contains(version) && row.versions.contains(version))
            .map(|(row, _)| row)
    }

    /// Returns whether some row describes lines of a section that begin with a word.
    pub(crate) fn knows(&self, section: ObjectKind, word: &str, version: Version) -> bool {
        let by_word = self.kinds.get(section as usize).and_then(|kind| kind.by_word.get(word));
        let rows = by_word.into_iter().flat_map(|word| word.by_second.values().flatten().chain(&word.others));
        rows.filter(|(_, here)| here.contains(version))
            .filter_map(|(row, _)| self.rows.get(*row))
            .any(|row| row.versions.contains(version))
    }

    /// Returns the fields of a family.
    pub(crate) fn family(&self, family: usize) -> &[Field] {
        self.families.get(family).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns whether HAProxy has a word that switches a field on, and none that switches it off.
    pub(crate) fn is_only_switched_on(&self, kind: Option<ObjectKind>, field: Field) -> bool {
        let slot =
            kind.and_then(|kind| self.shape(kind)).and_then(|shape| shape.slots.get(self.field_path(field)));
        matches!(slot, Some(Slot::Value(_, Type::On | Type::Always(_) | Type::Otherwise(_))))
    }

    /// Returns whether HAProxy can change this field of such an object without a reload.
    pub fn is_runtime(&self, kind: ObjectKind, field: Field) -> bool {
        self.runtime_rule(kind, field).is_some()
    }

    /// Returns where HAProxy can change this field of such an object without a reload, if anywhere.
    pub(crate) fn runtime_rule(&self, kind: ObjectKind, field: Field) -> Option<RuntimeRule> {
        let rows = self.kinds.get(kind as usize).map(|kind| kind.rows.as_slice()).unwrap_or_default();
        rows.iter().filter_map(|row| self.rows.get(*row)).find_map(|row| {
            // What a row says of itself counts for its own values; each option says it for its own.
            let own = row.items.iter().filter(|item| !matches!(item, Item::Options(_)));
            let is_own = own.into_iter().any(|item| mentions(std::slice::from_ref(item), field));
            let mut options = row.options();
            let option =
                options.find_map(|entry| entry.attributes.runtime.filter(|_| mentions(&entry.items, field)));
            row.attributes.runtime.filter(|_| is_own).or(option)
        })
    }

    /// Returns the fields of such an object that hold files which HAProxy loads when it starts.
    pub(crate) fn loaded_files(&self, kind: ObjectKind) -> FxHashSet<Field> {
        let mut fields = Vec::new();
        for row in self.rows.iter().filter(|row| row.owners.contains(&kind)) {
            for entry in row.options().filter(|entry| entry.attributes.loads) {
                collect_fields(&entry.items, &mut fields);
            }
        }
        fields.into_iter().collect()
    }

    /// Finds the setting with which no servers can be added to a running HAProxy, among those of a section and of its
    /// `defaults`, of which the nearest come first.
    pub(crate) fn static_servers(&self, governing: &[&Object], version: Version) -> Option<String> {
        self.rows.iter().find_map(|row| {
            let rule = row.attributes.static_servers.as_ref()?;
            let is_balanced = || governing.iter().any(|object| object.get("balance.algorithm").is_some());
            if !rule.versions.contains(version) || rule.unless_balance && is_balanced() {
                return None;
            }
            let governing = governing.iter().filter(|object| row.owners.contains(&object.kind));
            let mut stated = governing.flat_map(|object| &object.fields);
            let (_, value) = stated.find(|(field, _)| mentions(&row.items, *field))?;
            let text = value.as_str()?;
            let is_static = rule.values.is_empty() || rule.values.contains(&text);
            // A value that does not decide is not shown: it may be a secret.
            is_static.then(|| match text {
                "enabled" => row.start(),
                _ if rule.values.is_empty() => row.start(),
                text => format!("{} {text}", row.start()),
            })
        })
    }

    /// Returns the options that the fields of an object state.
    pub(crate) fn stated_options(&self, kind: ObjectKind, fields: &Fields, version: Version) -> Vec<&Entry> {
        let options = self.rows(kind, version).flat_map(Row::options);
        options
            .filter(|option| option.versions.contains(version) && is_stated(&option.items, fields))
            .collect()
    }

    /// Returns whether a section, or something in it, provides a resource to its servers.
    pub(crate) fn is_provided(&self, resource: Resource, objects: &[&Object]) -> bool {
        let provides = |row: &Row, object: &Object| {
            let mut provisions = row.attributes.provides.iter();
            row.owners.contains(&object.kind)
                && provisions
                    .any(|provision| provision.resource == resource && provision.holds(&object.fields))
                && is_stated(&row.items, &object.fields)
        };
        self.rows.iter().any(|row| objects.iter().any(|object| provides(row, object)))
    }

    /// Returns the fields of such an object whose values no other may have.
    pub(crate) fn distinct(&self, kind: ObjectKind) -> Vec<(Field, Distinct)> {
        let mut found = Vec::new();
        for row in self.rows.iter().filter(|row| row.owners.contains(&kind)) {
            let options = row.options().map(|option| (option.attributes.distinct, &option.items));
            for (distinct, items) in std::iter::once((row.attributes.distinct, &row.items)).chain(options) {
                let Some(distinct) = distinct else { continue };
                let mut fields = Vec::new();
                collect_fields(items, &mut fields);
                found.extend(fields.into_iter().map(|field| (field, distinct)));
            }
        }
        found
    }

    /// Returns the fields of such an object that refer to something.
    pub(crate) fn references(&self, kind: ObjectKind, name: Name) -> Vec<Field> {
        let options = self.rows.iter().filter(|row| row.owners.contains(&kind)).flat_map(Row::options);
        let references = options.flat_map(|option| &option.attributes.references);
        references.filter(|reference| reference.name == name).map(|reference| reference.field).collect()
    }

    /// Returns whether a section says that it is on; none if it says nothing of that. What says both counts as off.
    pub(crate) fn is_on(&self, object: &Object) -> Option<bool> {
        let rows = self.rows.iter().filter(|row| row.owners.contains(&object.kind));
        let stated = |row: &&Row| object.fields.iter().any(|(field, _)| mentions(&row.items, *field));
        rows.filter(stated).filter_map(|row| row.attributes.state).min()
    }

    /// Finds the directive of a section's own that a line is, by a number that says nothing else; lines of several forms may
    /// be the same directive.
    pub fn directive(&self, section: ObjectKind, line: &str, version: Version) -> Option<usize> {
        let words = crate::model::spelling::split(line)?;
        let is_negated = words.first().is_some_and(|word| word == "no");
        let words = words.get(usize::from(is_negated)..)?;
        let tokens: Vec<read::Token<'_>> = words
            .iter()
            .map(|word| read::Token { raw: word.as_str().into(), text: word.as_str().into() })
            .collect();
        let (first, second) = (words.first()?, words.get(1).map(String::as_str));
        let mut rows = self.candidates(section, first, second, version);
        let row = rows.find(|row| {
            row.owners.contains(&section) && read::read_row(row, &tokens, is_negated, version).is_some()
        })?;
        Some(row.family)
    }

    /// Lists the directives of a section's own that a version has: its kind, their numbers, and the fixed words that their
    /// lines begin with.
    pub fn own_directives(&self, section: ObjectKind, version: Version) -> Vec<(usize, String)> {
        let rows = self.rows(section, version).filter(|row| row.child.is_none() && !row.attributes.refused);
        let mut found: Vec<(usize, String)> = rows.map(|row| (row.family, row.start())).collect();
        found.sort_unstable();
        found.dedup_by_key(|(family, _)| *family);
        found
    }

    /// Returns what a second line of a directive does to the first.
    pub fn repetition(&self, directive: usize) -> Repetition {
        let row = self.rows.iter().find(|row| row.family == directive);
        row.map_or(Repetition::Replaces, |row| row.attributes.repetition())
    }

    /// Lists the options of a version that say what one more of them in a line does: the name of their block, their word, and what
    /// it does to the first.
    pub fn repeated_options(&self, version: Version) -> BTreeMap<(&'static str, &'static str), Repetition> {
        let sets = self.rows.iter().flat_map(|row| row.items.iter().filter_map(Item::as_options));
        let mut found = BTreeMap::new();
        for options in sets {
            let Some(block) = options.block else { continue };
            let is_read = |entry: &&Entry| {
                let attributes = &entry.attributes;
                entry.versions.contains(version)
                    && !attributes.refused
                    && attributes.direction != Direction::Write
            };
            for entry in options.entries.iter().filter(is_read) {
                let Some(word) = entry.items.first().and_then(first_word) else { continue };
                found.insert((block, cut(word)), entry.attributes.repetition());
            }
        }
        found
    }

    /// Lists the words of the options that lines of a kind have in a version, each with whether a running HAProxy accepts it
    /// of an object that is added to it.
    pub fn options(&self, kind: ObjectKind, version: Version) -> Vec<(&'static str, bool)> {
        let sets = self.rows(kind, version).flat_map(|row| &row.items).filter_map(|item| match item {
            Item::Options(options) => Some(&options.entries),
            _ => None,
        });
        let entries =
            sets.flatten().filter(|entry| entry.versions.contains(version) && !entry.attributes.refused);
        let mut words: Vec<(&'static str, bool)> = entries
            .filter_map(|entry| {
                let word = cut(entry.items.first().and_then(first_word)?);
                Some((word, entry.attributes.is_dynamic(version)))
            })
            .collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Returns whether a section that is added to a running HAProxy can have a field.
    pub(crate) fn is_dynamic(&self, kind: ObjectKind, field: Field, version: Version) -> bool {
        let header = self.headers(kind, version).any(|row| mentions(&row.items, field));
        let dynamic = |row: &&Row| row.attributes.is_dynamic(version);
        header || self.rows(kind, version).filter(dynamic).any(|row| mentions(&row.items, field))
    }

    /// Returns the values that a field may have in a section that is added to a running HAProxy; none where it may have any.
    pub(crate) fn dynamic_values(&self, kind: ObjectKind, field: Field, version: Version) -> &[&'static str] {
        let mut rows = self.rows(kind, version).filter(|row| row.attributes.is_dynamic(version));
        rows.find(|row| mentions(&row.items, field))
            .map(|row| row.attributes.dynamic_values.as_slice())
            .unwrap_or_default()
    }

    /// Returns the fixed words that lines begin with which set a field.
    pub(crate) fn starts_of(&self, kind: ObjectKind, field: Field, version: Version) -> Vec<String> {
        let sets = |row: &&Row| row.attributes.list == Some(field) || mentions(&row.items, field);
        self.rows(kind, version).filter(sets).map(Row::start).collect()
    }

    /// Returns a value of such an object as people read it: a time or a size with its unit.
    pub(crate) fn spelled(&self, kind: ObjectKind, field: Field, value: &Value) -> Value {
        let slot = self.shape(kind).and_then(|shape| shape.slots.get(self.field_path(field)));
        match (slot, value) {
            (Some(Slot::Value(_, Type::Time(_))), Value::Int(time)) => Value::Text(write_time(*time).into()),
            (Some(Slot::Value(_, Type::Size)), Value::Int(size)) => Value::Text(write_size(*size).into()),
            _ => value.clone(),
        }
    }

    /// Returns whether a field of such an object is an address.
    pub(crate) fn is_address(&self, kind: ObjectKind, field: Field) -> bool {
        let is_it = |item: &Item| matches!(item, Item::Address { address, .. } if *address == field);
        let mut rows = self.rows.iter().filter(|row| row.owners.contains(&kind));
        rows.any(|row| row.items.iter().any(is_it))
    }
}

/// Returns whether fields state what some items stand for.
pub(super) fn is_stated(items: &[Item], fields: &Fields) -> bool {
    let is = |field: Field, expected: &str| fields.get(field).and_then(Value::as_str) == Some(expected);
    let mut states = items.iter().filter_map(|item| match item {
        Item::Constant { field, value, .. } | Item::Value { field, ty: Type::Always(value), .. } => {
            Some(is(*field, value))
        }
        Item::Value { field, ty: Type::Toggle | Type::On, .. } => Some(is(*field, "enabled")),
        Item::Value { field, .. } => Some(fields.get(*field).is_some()),
        _ => None,
    });
    states.next().is_some_and(|first| first && states.all(|stated| stated))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::directives;

    fn field(kind: ObjectKind, path: &str) -> Field {
        directives().field(kind, path).unwrap_or_else(|| panic!("{kind} has no {path}"))
    }

    #[test]
    fn some_settings_of_a_server_are_changed_without_a_reload() {
        let server = ObjectKind::Server;
        let runtime = |path| directives().is_runtime(server, field(server, path));
        for path in ["address", "port", "weight", "maintenance", "maxconn", "health_check_port", "agent-send"]
        {
            assert!(runtime(path), "{path}");
        }
        for path in ["check", "id", "cookie", "ssl", "inter", "backup", "minconn", "track", "agent-check"] {
            assert!(!runtime(path), "{path}");
        }
    }
}
