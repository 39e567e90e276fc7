//! What a row says about the words of a line: a small grammar, as data.
//!
//! The same items are interpreted in both directions: [`read`](super::read) walks along the words of a line and sets
//! fields, [`write`](super::write) walks along the fields and writes words.
//!
//! | in a row | means |
//! |---|---|
//! | `word` | that word |
//! | `type=deny` | that word, kept in the field `type` |
//! | `type=a~b` | the word `b`, for which the field `type` holds `a` |
//! | `<path>`, `<path:int>` | a value of a type, kept in a field |
//! | `<path:int[1..]>`, `<path:word[a\|b]>` | a value of which HAProxy accepts only these |
//! | `<path:word[severity]>`, `<path:severity>` | a value that is one of a list, which a block `[words severity]` holds |
//! | `<path:word[octal]>`, `<path:octal>` | a value that has a form; the `forms` module lists them |
//! | `set-var(<scope>.<name>)` | one word that holds several values |
//! | `<address,port:address>` | an address with its port; `address6` puts IPv6 in brackets, and a `!` says that HAProxy wants the port |
//! | `<path:=value>`, `<path:~value>` | no word: the field holds this value, or nothing that contradicts it |
//! | `<path:flag>` | no word: the field is set because the line (or the option) is there |
//! | `[ … ]` | may be left out |
//! | `[ … ]*path` | may repeat; each is an element of the list in the field |
//! | `{ … / … }` | options in any order, written in this one |
//! | `%name`, `%name:prefix.` | the options of a `[params name]` block, their paths prefixed |
//! | `?if`, `!if`, `?if:prefix_` | a condition, optional or not, in `cond` and `cond_test` |

use rustc_hash::FxHashMap;

use super::attributes::{Attributes, Repeat};
use super::build::fields_of;
use super::limits::Limit;
use crate::model::{Field, Version};

/// The type of a value, and so how it is read and spelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// One word, kept as it is spelled.
    Word,
    /// One word, kept as it is meant.
    Name,
    /// A number.
    Int,
    /// A number that is written even if it is zero, which JSON leaves out.
    Count,
    /// A time; a bare number counts that many milliseconds.
    Time(i64),
    /// A time that JSON holds in seconds, written without unit.
    Seconds,
    /// A size in bytes.
    Size,
    /// A size in bytes, written without unit.
    Bytes,
    /// A size in kilobytes, written in bytes.
    Kilobytes,
    /// All words that are left.
    Rest,
    /// A sample expression: one or more words.
    Expr,
    /// All words that are left, as a list.
    Words,
    /// All words that are left, as a list of numbers.
    Ints,
    /// One word with commas, as a list.
    Commas,
    /// One word with commas that hold `name=value`, as a map.
    Pairs,
    /// `on` and `off` for `enabled` and `disabled`; other words are kept.
    OnOff,
    /// `on` and `off` for a flag.
    Switch,
    /// One of some words.
    OneOf(Vec<&'static str>),
    /// No word: a flag that the line sets, and that `no` before it clears.
    Flag,
    /// No word: a flag that is set.
    Set,
    /// No word: a flag that is not set.
    Unset,
    /// No word: this value, which need not be written.
    Otherwise(&'static str),
    /// No word: `enabled`, or `disabled` with `no` before the line or `no-` before the option.
    Toggle,
    /// No word: `enabled`. HAProxy has no word for `disabled`: where nothing is written it is that.
    On,
    /// No word: this value.
    Always(&'static str),
}

impl Type {
    /// Returns whether a value of this type takes no word.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(
            self,
            Self::Flag
                | Self::Set
                | Self::Unset
                | Self::Otherwise(_)
                | Self::Toggle
                | Self::On
                | Self::Always(_)
        )
    }
}

/// A range of versions; all of them by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) since: Version,
    pub(crate) until: Version,
}

impl Default for Versions {
    fn default() -> Self {
        Self::ALL
    }
}

impl Versions {
    pub(crate) const ALL: Self = Self { since: Version::V2_6, until: Version::LATEST };

    pub(crate) fn contains(self, version: Version) -> bool {
        self.since <= version && version <= self.until
    }
}

/// A part of one word.
#[derive(Clone, Debug)]
pub(crate) enum Piece {
    Literal(&'static str),
    Value { field: Field, ty: Type, limit: Option<Limit> },
}

/// An item of a row.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    /// A fixed word.
    Literal(&'static str),
    /// A fixed word that is the value of a field.
    Constant { field: Field, value: &'static str, word: &'static str },
    /// One word made of pieces. A constant at its start is the value of a field.
    Pattern { constant: Option<(Field, &'static str)>, pieces: Vec<Piece> },
    /// A value. `stops` are the words at which an expression ends, `limit` is what HAProxy accepts of it.
    Value { field: Field, ty: Type, stops: Vec<&'static str>, limit: Option<Limit> },
    /// An address, perhaps with a port or a range of ports; an IPv6 one may be in brackets that are not part of it.
    /// `ported` says that HAProxy wants a port.
    Address { address: Field, port: Option<Field>, range_end: Option<Field>, brackets: bool, ported: bool },
    /// What may be left out.
    Optional(Vec<Item>),
    /// Options in any order.
    Options(Options),
    /// What may repeat.
    Repeat { field: Field, items: Vec<Item> },
    /// `if …` or `unless …`.
    Condition { cond: Field, test: Field, required: bool },
}

impl Item {
    /// Returns its options, if it holds some.
    pub(crate) fn as_options(&self) -> Option<&Options> {
        match self {
            Self::Options(options) => Some(options),
            _ => None,
        }
    }
}

/// Options that stand in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    /// The `[params name]` block that they come from, if they come from one.
    pub(crate) block: Option<&'static str>,
    pub(crate) entries: Vec<Entry>,
    /// The entries by their first word, cut at a parenthesis.
    pub(crate) by_word: FxHashMap<&'static str, Vec<usize>>,
}

/// One option.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    /// Its place among the options, in which they are written.
    pub(crate) place: usize,
    pub(crate) versions: Versions,
    pub(crate) items: Vec<Item>,
    pub(crate) attributes: Attributes,
}

impl Entry {
    /// Returns whether it matters beside which options it stands.
    pub(crate) fn is_placed(&self) -> bool {
        let attributes = &self.attributes;
        attributes.repeat == Repeat::Beside || !attributes.sets.is_empty() || !attributes.adds_to.is_empty()
    }

    /// Returns whether the model can say what it means after another option of the line: fields hold one value, and are written
    /// in the order of the table.
    pub(crate) fn may_follow(&self, earlier: &Self) -> bool {
        let word = |entry: &Self| entry.items.first().and_then(first_word);
        if word(self) == word(earlier) {
            return self.attributes.repeat != Repeat::Beside;
        }
        let (own, other) = (&self.attributes, &earlier.attributes);
        let is_replaced = own.sets.iter().any(|set| other.sets.contains(set));
        let is_cleared = (own.takes_away || other.takes_away)
            && own.adds_to.iter().any(|name| other.adds_to.contains(name));
        if !(is_replaced || is_cleared) {
            return true;
        }
        let held = fields_of(&earlier.items);
        earlier.place < self.place && !fields_of(&self.items).iter().any(|field| held.contains(field))
    }
}

/// In which directions a row counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Direction {
    /// It is read and written.
    #[default]
    Both,
    /// It is only read: another row writes the same.
    Read,
    /// It is only written: another row reads the same.
    Write,
}

impl Options {
    /// Adds an option.
    pub(crate) fn add(&mut self, entry: Entry) {
        let position = self.entries.len();
        let entry = Entry { place: position, ..entry };
        if entry.attributes.direction != Direction::Write
            && let Some(word) = entry.items.first().and_then(first_word)
        {
            self.by_word.entry(cut(word)).or_default().push(position);
        }
        self.entries.push(entry);
    }
}

/// Cuts a word at its first parenthesis.
pub(crate) fn cut(word: &str) -> &str {
    memchr::memchr(b'(', word.as_bytes()).and_then(|at| word.get(..at)).unwrap_or(word)
}

/// Returns the literal that an item starts with.
pub(crate) fn first_word(item: &Item) -> Option<&'static str> {
    match item {
        Item::Literal(word) | Item::Constant { word, .. } => Some(word),
        Item::Pattern { pieces, .. } => match pieces.first() {
            Some(Piece::Literal(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Collects the words that can follow at the start of some items.
fn starts(items: &[Item], into: &mut Vec<&'static str>) -> bool {
    for item in items {
        match item {
            Item::Literal(_) | Item::Constant { .. } | Item::Pattern { .. } => {
                into.extend(first_word(item));
                return true;
            }
            Item::Value { ty, .. } if ty.is_silent() => {}
            Item::Value { .. } | Item::Address { .. } => return true,
            Item::Optional(items) | Item::Repeat { items, .. } => {
                starts(items, into);
            }
            Item::Options(options) => {
                for entry in &options.entries {
                    starts(&entry.items, into);
                }
            }
            Item::Condition { required, .. } => {
                into.extend(["if", "unless"]);
                if *required {
                    return true;
                }
            }
        }
    }
    false
}

/// Tells each expression at which words it ends: those that can follow it.
pub(crate) fn resolve_stops(items: &mut [Item], after: &[&'static str]) {
    for position in 0..items.len() {
        let (done, following) = items.split_at_mut(position + 1);
        let mut stop = Vec::new();
        if !starts(following, &mut stop) {
            stop.extend_from_slice(after);
        }
        match done.last_mut() {
            Some(Item::Value { ty: Type::Expr, stops, .. }) => *stops = stop,
            Some(Item::Optional(items)) => resolve_stops(items, &stop),
            Some(Item::Repeat { items, .. }) => {
                starts(items, &mut stop);
                resolve_stops(items, &stop);
            }
            Some(Item::Options(options)) => {
                for entry in &options.entries {
                    starts(&entry.items, &mut stop);
                }
                for entry in &mut options.entries {
                    resolve_stops(&mut entry.items, &stop);
                }
            }
            _ => {}
        }
    }
}
