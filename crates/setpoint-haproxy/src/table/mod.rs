//! The one table of directives: what HAProxy's lines say in terms of the Dataplane API's models.
//!
//! The table is text, in `rows/*.txt`, one row for each form of a line:
//!
//! ```text
//! [defaults frontend backend]
//! dfb *      mode <mode>                                  ; default=tcp
//! d-b 3.2+   option http-drop-request-trailers <http-drop-request-trailers:toggle>
//!
//! sections   versions   the grammar of the line           ; attributes
//! ```
//!
//! Adding a keyword is adding a row. The columns:
//!
//! - **sections**, where the block is for several: their first letters, `-` for those that don't know the line.
//! - **versions**: `*`, `3.1+`, `-3.2`, `3.1-3.3`, `3.2`. The oldest schema is 3.0, so `-3.1` means 3.0 and 3.1.
//! - **grammar**: words, values and options; the `grammar` module says what each means. The path of a field is that of the schema.
//!   A `0` after a type says that a zero is kept in JSON, `0@3.0` that it is up to a version; elsewhere zero means «not there».
//!   `= …` is the line that opens the section, and `@server` the place of a section's children of that kind.
//! - **attributes**: `list=path` for lines that repeat, each an element of that list, whose paths are relative to it;
//!   `default=value`, or `default@3.1+=value`; `runtime` where HAProxy can change the value without a reload;
//!   `meta=path` where the comment of the line is kept in that field; `read` for a form that is read but written as another,
//!   `write` for one that is read as another; `mirror=prefix.` where the API shows the first element of a list a second time;
//!   `repeat=…` where a second line does something else to the first than take its place (`first`, `refused`, `add`, `merge`,
//!   `beside`); `sequence=name` for
//!   lines of which the order counts among all lines of that name, `sequence=name:1` where it does only among those that have
//!   the same second word; `dynamic`, or `dynamic@3.0+`, for what a running HAProxy accepts when something is added to it, with
//!   `dynamic-yes` and `dynamic-no` where it accepts only one of `word` and `no-word`;
//!   `secret=path`, and of an option `secret`, for what is never shown;
//!   `default-unless=path:value` where a default does not hold: where the section, or with `global:path` the `global` section,
//!   has that value, or where no value is given, any;
//!   `implied=value` for what the API adds to what it is sent where nothing is said of it; `refused` for what the schema has
//!   and no HAProxy: it is an error to write it, and it is not read; `in=frontend,defaults` for what HAProxy accepts only in
//!   some of the sections that could hold it: it is an error to write it elsewhere; `if=rule` for what has to hold between the
//!   values of a line, by the name of a rule in the `rules` module. Of children, `single` says that HAProxy accepts just one
//!   in its section, `unique` that it accepts none twice.
//!
//! Blocks `[params name]` hold options that several lines share, and `[order section]` the order in which a section's lines
//! are written.

pub(crate) mod accept;
mod accepted;
mod address;
mod compile;
mod forms;
pub(crate) mod grammar;
pub(crate) mod limits;
pub(crate) mod read;
mod rules;
pub(crate) mod samples;
mod secrets;
mod shape;
mod source;
pub mod units;
pub(crate) mod write;

use std::sync::LazyLock;

use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use accepted::{Text, accepted};
pub(crate) use shape::{Shape, Slot};

use crate::model::{Field, ObjectKind, Version};
use grammar::{Direction, Item, Piece, Type, Versions, cut, first_word};
use shape::{collect_shape, mentions, path_of};

/// Returns the table; it is read once.
pub fn directives() -> &'static Directives {
    static DIRECTIVES: LazyLock<Directives> = LazyLock::new(|| Directives::of(&source::schema()));
    &DIRECTIVES
}

/// What is known of a field apart from any object.
#[derive(Debug)]
pub(crate) struct FieldInfo {
    path: &'static str,
    zero: Zero,
}

/// What a zero means in JSON, or a flag that is not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Zero {
    /// That the field is not there.
    Dropped,
    /// Just that.
    Kept,
    /// Just that up to a version, and then that the field is not there.
    KeptUntil(Version),
}

impl Zero {
    /// Says whether a version keeps a zero that it is sent.
    pub(crate) fn is_kept(self, version: Version) -> bool {
        match self {
            Self::Dropped => false,
            Self::Kept => true,
            Self::KeptUntil(last) => version <= last,
        }
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Whose line this is.
    pub(crate) owners: Vec<ObjectKind>,
    pub(crate) versions: Versions,
    /// Whether it opens the section.
    pub(crate) is_header: bool,
    /// A row that only says where children of a kind stand.
    pub(crate) child: Option<ObjectKind>,
    pub(crate) items: Vec<Item>,
    /// The list of which each such line is an element.
    pub(crate) list: Option<Field>,
    /// The field that keeps the comment of the line.
    pub(crate) metadata: Option<Field>,
    pub(crate) direction: Direction,
    /// What a second such line does.
    pub(crate) repeat: Repeat,
    /// For a list whose first element the API shows a second time: the fields of an element, and of its double.
    pub(crate) mirror: Vec<(Field, Field)>,
    /// What the API adds to what it is sent where nothing is said of a field, but of what it belongs to.
    pub(crate) implied: Option<(Field, crate::model::Value)>,
    pub(crate) runtime: bool,
    /// The versions that accept it of something that is added to a running HAProxy.
    pub(crate) dynamic: Option<Versions>,
    /// The field that is never shown.
    pub(crate) secret: Option<Field>,
    /// The lines among which its place matters.
    pub(crate) sequence: Option<Sequence>,
    /// Where its default does not hold.
    pub(crate) default_unless: Vec<Unless>,
    /// Whether no HAProxy has such a line here, although the schema has a property for it.
    pub(crate) refused: bool,
    /// The sections in which HAProxy accepts such a line, if not in all that can hold it.
    pub(crate) places: Vec<ObjectKind>,
    /// What has to hold between its values.
    pub(crate) rule: Option<&'static rules::Rule>,
    /// For the place of children: whether there can be several.
    pub(crate) several: Several,
    pub(crate) defaults: Vec<(Versions, &'static str)>,
    /// Rows of one family are forms of the same directive: the last one that is read wins, one is written.
    pub(crate) family: usize,
    /// What it is beside the schema, if it is not of the schema.
    pub(crate) text: Option<Text>,
}

/// Whether a section can have several children of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Several {
    /// As many as one likes.
    Any,
    /// As many as have names of their own.
    Different,
    /// Just one.
    No,
}

/// What a second line of a directive does to the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It takes its place.
    Last,
    /// `repeat=first`: HAProxy ignores it, with a warning.
    First,
    /// `repeat=refused`: HAProxy refuses it.
    Refused,
    /// `repeat=add`: its words come after those of the first, as if all stood in one line.
    Add,
    /// `repeat=merge`: its options come beside those of the first, and win over the same ones: `default-server`.
    Merge,
    /// `repeat=beside`: both hold, which the schema can't say: from the second on, such lines are not modelled.
    Beside,
}

impl Repeat {
    /// Finds what a row calls by a name.
    pub(crate) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "first" => Self::First,
            "refused" => Self::Refused,
            "add" => Self::Add,
            "merge" => Self::Merge,
            "beside" => Self::Beside,
            _ => return None,
        })
    }
}

/// What becomes of a second line of a directive, as a caller may want to know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Repetition {
    /// It takes the place of the first.
    Replaces,
    /// HAProxy ignores it.
    Ignored,
    /// HAProxy refuses it.
    Refused,
    /// It counts beside the first.
    Counts,
}

/// Lines of which the order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) name: &'static str,
    /// The word of the line that has to be the same for the order to count.
    pub(crate) key: Option<usize>,
}

/// Where a default does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unless {
    /// Whether the `global` section is meant, not the section itself.
    pub(crate) is_global: bool,
    pub(crate) path: &'static str,
    /// The value that the field has there; any, if there is none.
    pub(crate) value: Option<&'static str>,
}

impl Row {
    fn new(owners: Vec<ObjectKind>, versions: Versions) -> Self {
        Self {
            owners,
            versions,
            is_header: false,
            child: None,
            items: Vec::new(),
            list: None,
            metadata: None,
            direction: Direction::Both,
            repeat: Repeat::Last,
            mirror: Vec::new(),
            implied: None,
            runtime: false,
            dynamic: None,
            secret: None,
            sequence: None,
            default_unless: Vec::new(),
            refused: false,
            places: Vec::new(),
            rule: None,
            several: Several::Any,
            defaults: Vec::new(),
            family: 0,
            text: None,
        }
    }

    /// Says whether it is nothing but fixed words.
    pub(crate) fn is_bare(&self) -> bool {
        self.items.iter().all(|item| matches!(item, Item::Literal(_)))
    }

    /// Returns the fixed words it starts with.
    pub(crate) fn start(&self) -> String {
        let words: Vec<&str> = self.items.iter().map_while(first_word).map(cut).collect();
        words.join(" ")
    }

    /// Returns the fixed words it starts with, at most two.
    pub(crate) fn keyword(&self) -> String {
        let words: Vec<&str> = self
            .items
            .iter()
            .map_while(first_word)
            .map(|word| cut(word).trim_end_matches('.'))
            .take(2)
            .collect();
        words.join(" ")
    }
}

/// The rows of a line's first word, each with the versions in which its kind of section may hold such a line.
#[derive(Debug, Default)]
struct FirstWord {
    by_second: FxHashMap<&'static str, Vec<(usize, Versions)>>,
    others: Vec<(usize, Versions)>,
}

/// What is known of one kind of object.
#[derive(Debug, Default)]
struct Kind {
    /// Its rows, as they stand in the table.
    rows: Vec<usize>,
    header: Vec<usize>,
    /// For a section: its own rows and its children, in the order in which they are written.
    written: Vec<usize>,
    /// For a section: all rows of it and of its children by the first words of the line.
    by_word: FxHashMap<&'static str, FirstWord>,
    shape: Shape,
}

/// The table of directives, ready for use.
#[derive(Debug)]
pub struct Directives {
    fields: Vec<FieldInfo>,
    rows: Vec<Row>,
    kinds: Vec<Kind>,
    /// The fields of each family: a line that is read again replaces all of them.
    families: Vec<Vec<Field>>,
    names: Vec<Option<Field>>,
    metadata: Option<Field>,
    own: Option<Field>,
    secrets: secrets::Secrets,
    errors: Vec<String>,
    /// How many rows there are up to the end of each text.
    ends: Vec<usize>,
}

impl Directives {
    /// Reads the text of a table.
    fn of(sources: &[&'static str]) -> Self {
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
            let order =
                compiled.orders.iter().find(|(kind, _)| *kind == section).map(|(_, order)| order.as_slice());
            let mut written = own;
            if let Some(order) = order {
                written.sort_by_key(|position| {
                    compiled.rows.get(*position).map_or(usize::MAX, |row| place(row, order))
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
        let secrets = secrets::Secrets::of(&compiled.rows);
        Self {
            secrets,
            fields: compiled.fields,
            rows: compiled.rows,
            kinds,
            families,
            names,
            metadata,
            own,
            errors: compiled.errors,
            ends: compiled.ends,
        }
    }

    /// Lists what is wrong with the table. It is empty, as a test asserts.
    pub fn errors(&self) -> &[String] {
        &self.errors
    }

    /// Returns the path of a field.
    pub fn field_path(&self, field: Field) -> &'static str {
        self.fields.get(usize::from(field.0)).map_or("", |info| info.path)
    }

    /// Says what a zero of this field means in JSON.
    pub(crate) fn zero(&self, field: Field) -> Zero {
        self.fields.get(usize::from(field.0)).map_or(Zero::Dropped, |info| info.zero)
    }

    /// Finds the field of a kind by its path.
    pub fn field(&self, kind: ObjectKind, path: &str) -> Option<Field> {
        match self.shape(kind)?.slots.get(path)? {
            Slot::Value(field, _) | Slot::Values(field) | Slot::Objects(field, _) | Slot::Json(field) => {
                Some(*field)
            }
        }
    }

    /// Returns the field that names objects of a kind.
    pub fn name_field(&self, kind: ObjectKind) -> Option<Field> {
        self.names.get(kind as usize).copied().flatten()
    }

    /// Says whether a property of this name can hold several words.
    pub fn takes_words(&self, name: &str) -> bool {
        fn any(shape: &Shape, name: &str) -> bool {
            shape.slots.iter().any(|(path, slot)| {
                let named = path.rsplit('.').next() == Some(name);
                match slot {
                    Slot::Value(_, ty) => named && matches!(ty, Type::Rest | Type::Expr),
                    Slot::Objects(_, element) => any(element, name),
                    Slot::Values(_) | Slot::Json(_) => false,
                }
            })
        }
        name == "cond_test" || self.kinds.iter().any(|kind| any(&kind.shape, name))
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

    /// Returns the rows that may describe a line of a section, by its first two words.
    pub(crate) fn candidates(
        &self,
        section: ObjectKind,
        first: &str,
        second: Option<&str>,
        version: Version,
    ) -> impl Iterator<Item = &Row> {
        let by_word = self.kinds.get(section as usize).and_then(|kind| kind.by_word.get(first));
        let by_second = by_word.zip(second).and_then(|(word, second)| word.by_second.get(cut(second)));
        let others = by_word.map(|word| word.others.as_slice()).unwrap_or_default();
        let rows = by_second.map(Vec::as_slice).unwrap_or_default().iter().chain(others);
        rows.filter(move |(_, here)| here.contains(version))
            .filter_map(|(row, _)| self.rows.get(*row))
            .filter(move |row| row.versions.contains(version))
    }

    /// Says whether some row describes lines of a section that begin with a word.
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

    /// Says whether HAProxy has a word that switches a field on, and none that switches it off.
    pub(crate) fn is_only_switched_on(&self, kind: Option<ObjectKind>, field: Field) -> bool {
        let slot =
            kind.and_then(|kind| self.shape(kind)).and_then(|shape| shape.slots.get(self.field_path(field)));
        matches!(slot, Some(Slot::Value(_, Type::On | Type::Always(_) | Type::Otherwise(_))))
    }

    /// Says whether HAProxy can change this field of such an object without a reload.
    pub fn is_runtime(&self, kind: ObjectKind, field: Field) -> bool {
        let rows = self.kinds.get(kind as usize).map(|kind| kind.rows.as_slice()).unwrap_or_default();
        rows.iter().filter_map(|row| self.rows.get(*row)).any(|row| {
            // What a row says of itself counts for its own values; each option says it for its own.
            let own = row.items.iter().filter(|item| !matches!(item, Item::Options(_)));
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            (row.runtime && own.into_iter().any(|item| mentions(std::slice::from_ref(item), field)))
                || options.flatten().any(|entry| entry.runtime && mentions(&entry.items, field))
        })
    }

    /// Finds the directive of a section's own that a line is, by a number that says nothing else; lines of several forms may
    /// be the same directive.
    pub fn directive(&self, section: ObjectKind, line: &str, version: Version) -> Option<usize> {
        let words = crate::model::spelling::split(line)?;
        let tokens: Vec<read::Token<'_>> = words
            .iter()
            .map(|word| read::Token { raw: word.as_str().into(), text: word.as_str().into() })
            .collect();
        let (first, second) = (words.first()?, words.get(1).map(String::as_str));
        let mut rows = self.candidates(section, first, second, version);
        let row = rows.find(|row| {
            row.owners.contains(&section) && read::read_row(row, &tokens, false, version).is_some()
        })?;
        Some(row.family)
    }

    /// Says what a second line of a directive does to the first.
    pub fn repetition(&self, directive: usize) -> Repetition {
        let row = self.rows.iter().find(|row| row.family == directive);
        match row.map(|row| (row.list.is_some(), row.repeat)) {
            Some((true, _) | (false, Repeat::Add | Repeat::Merge | Repeat::Beside)) => Repetition::Counts,
            Some((false, Repeat::First)) => Repetition::Ignored,
            Some((false, Repeat::Refused)) => Repetition::Refused,
            Some((false, Repeat::Last)) | None => Repetition::Replaces,
        }
    }

    /// Lists the words of the options that lines of a kind have in a version, each with whether a running HAProxy accepts it
    /// of an object that is added to it.
    pub fn options(&self, kind: ObjectKind, version: Version) -> Vec<(&'static str, bool)> {
        let sets = self.rows(kind, version).flat_map(|row| &row.items).filter_map(|item| match item {
            Item::Options(options) => Some(&options.entries),
            _ => None,
        });
        let entries = sets.flatten().filter(|entry| entry.versions.contains(version) && !entry.refused);
        let mut words: Vec<(&'static str, bool)> = entries
            .filter_map(|entry| {
                let word = cut(entry.items.first().and_then(first_word)?);
                Some((word, entry.dynamic.is_some_and(|dynamic| dynamic.contains(version))))
            })
            .collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Says whether a section that is added to a running HAProxy can have a field.
    pub(crate) fn is_dynamic(&self, kind: ObjectKind, field: Field, version: Version) -> bool {
        let header = self.headers(kind, version).any(|row| mentions(&row.items, field));
        let dynamic = |row: &&Row| row.dynamic.is_some_and(|dynamic| dynamic.contains(version));
        header || self.rows(kind, version).filter(dynamic).any(|row| mentions(&row.items, field))
    }

    /// Returns where the default of a field does not hold.
    pub(crate) fn default_unless(&self, kind: ObjectKind, field: Field, version: Version) -> &[Unless] {
        let found = self.rows(kind, version).find_map(|row| {
            if !row.default_unless.is_empty() && mentions(&row.items, field) {
                return Some(row.default_unless.as_slice());
            }
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            let mut options = options.flatten().filter(|entry| entry.versions.contains(version));
            let entry =
                options.find(|entry| !entry.default_unless.is_empty() && mentions(&entry.items, field))?;
            Some(entry.default_unless.as_slice())
        });
        found.unwrap_or_default()
    }

    /// Returns the value that a field has in a version where no line sets it, if the table says.
    pub fn default(&self, kind: ObjectKind, field: Field, version: Version) -> Option<crate::model::Value> {
        let mut implied = self.rows(kind, version).filter_map(|row| row.implied.as_ref());
        if let Some((_, value)) = implied.find(|(held, _)| *held == field) {
            return Some(value.clone());
        }
        let defaults = self.rows(kind, version).find_map(|row| {
            let options = row.items.iter().filter_map(|item| match item {
                Item::Options(options) => Some(&options.entries),
                _ => None,
            });
            let options = options.flatten().filter(|entry| entry.versions.contains(version));
            let options = options.map(|entry| (&entry.defaults, entry.items.as_slice()));
            let mut all = std::iter::once((&row.defaults, row.items.as_slice())).chain(options);
            all.find(|(defaults, items)| !defaults.is_empty() && mentions(items, field))
                .map(|(defaults, _)| defaults)
        })?;
        let (_, text) = defaults.iter().find(|(versions, _)| versions.contains(version))?;
        let Some(Slot::Value(_, ty)) = self.shape(kind)?.slots.get(self.field_path(field)) else {
            return None;
        };
        read::default_value(ty, text)
    }
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
            family.extend(row.metadata);
        }
    }
    families.into_iter().map(|family| family.into_iter().collect()).collect()
}

/// Collects the fields that some items set.
fn collect_fields(items: &[Item], into: &mut Vec<Field>) {
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
                    match entry.list {
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
    let Some(first) = row.items.first().and_then(first_word).filter(|_| row.direction != Direction::Write)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Value;

    fn field(kind: ObjectKind, path: &str) -> Field {
        directives().field(kind, path).unwrap_or_else(|| panic!("{kind} has no {path}"))
    }

    #[test]
    fn of_a_server_haproxy_changes_address_port_weight_and_state_without_a_reload() {
        let server = ObjectKind::Server;
        let runtime = |path| directives().is_runtime(server, field(server, path));
        assert!(["address", "port", "weight", "maintenance"].into_iter().all(runtime));
        assert!(!["check", "ssl", "cookie", "maxconn"].into_iter().any(runtime));
    }

    #[test]
    fn a_default_may_depend_on_the_version() {
        let backend = ObjectKind::Backend;
        let default = |path, version| directives().default(backend, field(backend, path), version);
        assert_eq!(default("mode", Version::V3_0), Some(Value::Text("tcp".into())));
        assert_eq!(default("retries", Version::V3_0), Some(Value::Int(3)));
        assert_ne!(default("balance.algorithm", Version::V3_2), default("balance.algorithm", Version::V3_4));
        assert_eq!(default("fullconn", Version::V3_4), None);
    }
}
