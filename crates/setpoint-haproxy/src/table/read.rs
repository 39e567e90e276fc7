//! From words to fields: walks along the items of a row and the words of a line.

use std::borrow::Cow;

use smol_str::SmolStr;

use super::address::is_portless;
use super::grammar::{Entry, Item, Options, Piece, Type, cut, first_word};
use super::units::{read_size, read_time};
use super::{Repeat, Row};
use crate::model::spelling::is_plain;
use crate::model::{Field, Fields, Value, Version};

/// One word of a line: as it is spelled, and as it is meant.
#[derive(Clone, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) raw: Cow<'a, str>,
    pub(crate) text: Cow<'a, str>,
}

/// Reads a line by a row; `None` if the row does not describe it.
pub(crate) fn read_row(row: &Row, words: &[Token<'_>], negated: bool, version: Version) -> Option<Fields> {
    if row.attributes.refused {
        return None;
    }
    let mut reader = Reader {
        words,
        position: 0,
        negated,
        negation_used: false,
        version,
        fields: Fields::with_capacity(words.len()),
        options: Vec::new(),
    };
    let complete =
        reader.items(&row.items) && reader.position == words.len() && (!negated || reader.negation_used);
    complete.then_some(reader.fields)
}

struct Reader<'w, 't> {
    words: &'w [Token<'w>],
    position: usize,
    negated: bool,
    /// Whether something was read that knows what `no` before the line means.
    negation_used: bool,
    version: Version,
    fields: Fields,
    /// The options so far that say what a second one does, or what they set.
    options: Vec<&'t Entry>,
}

impl<'w, 't> Reader<'w, 't> {
    fn peek(&self) -> Option<&'w Token<'w>> {
        self.words.get(self.position)
    }

    fn take(&mut self) -> Option<&'w Token<'w>> {
        let word = self.words.get(self.position)?;
        self.position += 1;
        Some(word)
    }

    fn take_literal(&mut self, literal: &str) -> bool {
        let found = self.peek().is_some_and(|word| word.text == literal);
        self.position += usize::from(found);
        found
    }

    fn items(&mut self, items: &'t [Item]) -> bool {
        let mut rest = items;
        while let Some((item, after)) = rest.split_first() {
            if matches!(item, Item::Options(_)) {
                // Options that follow each other mix.
                let count = rest.iter().take_while(|item| matches!(item, Item::Options(_))).count();
                let (options, after) = rest.split_at(count);
                self.mixed(options);
                rest = after;
                continue;
            }
            if !self.item(item) {
                return false;
            }
            rest = after;
        }
        true
    }

    /// Reads options of several sets in any order, as long as there are any.
    fn mixed(&mut self, sets: &'t [Item]) {
        loop {
            let position = self.position;
            for set in sets {
                if let Item::Options(options) = set {
                    self.options(options);
                }
            }
            if sets.len() == 1 || self.position == position {
                return;
            }
        }
    }

    fn item(&mut self, item: &'t Item) -> bool {
        match item {
            Item::Literal(word) => self.take_literal(word),
            Item::Constant { field, value, word } => {
                // Two of them in one line are more than one field can hold.
                let free = self.fields.get(*field).is_none_or(|held| held.as_str() == Some(value));
                let found = free && self.take_literal(word);
                if found {
                    self.fields.set(*field, Value::Text(SmolStr::new_static(value)));
                }
                found
            }
            Item::Pattern { constant, pieces } => {
                let Some(word) = self.take() else { return false };
                if let Some((field, value)) = constant {
                    self.fields.set(*field, Value::Text(SmolStr::new_static(value)));
                }
                // Quotes around the whole word are no part of its pieces.
                self.pieces(pieces, &word.raw)
                    || word.raw.starts_with(['"', '\'']) && self.pieces(pieces, &word.text)
            }
            Item::Value { field, ty, stops, .. } => self.value(*field, ty, stops).is_some(),
            Item::Address { address, port, range_end, brackets, ported } => {
                let found = self.address(*address, *port, *range_end, *brackets).is_some();
                // A port that has to be there and is 0 would be left out of JSON.
                let port = port.and_then(|port| self.fields.get(port)).and_then(Value::as_int);
                found && !(*ported && port == Some(0))
            }
            Item::Optional(items) => self.optional(items),
            Item::Options(options) => {
                self.options(options);
                true
            }
            Item::Repeat { field, items } => self.repeat(*field, items),
            Item::Condition { cond, test, required } => {
                match self.peek() {
                    Some(word) if word.text == "if" || word.text == "unless" => {
                        self.fields.set(*cond, Value::Text(SmolStr::new(&word.text)));
                    }
                    _ => return !required,
                }
                self.position += 1;
                self.value(*test, &Type::Rest, &[]).is_some()
            }
        }
    }

    /// Splits one word along its pieces: a value reaches to the literal after it, the last one as far as it can.
    fn pieces(&mut self, pieces: &[Piece], word: &str) -> bool {
        let mut rest = word;
        for (position, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Literal(literal) => match rest.strip_prefix(literal) {
                    Some(after) => rest = after,
                    None => return false,
                },
                Piece::Value { field, ty, .. } => {
                    let end = match pieces.get(position + 1) {
                        Some(Piece::Literal(literal)) if position + 2 == pieces.len() => {
                            rest.strip_suffix(literal).map(str::len)
                        }
                        Some(Piece::Literal(literal)) => rest.find(literal),
                        _ => Some(rest.len()),
                    };
                    let Some((value, after)) = end.and_then(|end| rest.split_at_checked(end)) else {
                        return false;
                    };
                    let Some(value) = (!value.is_empty()).then(|| scalar(ty, value, value)).flatten() else {
                        return false;
                    };
                    self.fields.set(*field, value);
                    rest = after;
                }
            }
        }
        rest.is_empty()
    }

    fn value(&mut self, field: Field, ty: &Type, stops: &[&'static str]) -> Option<()> {
        let value = match ty {
            Type::Flag => {
                self.negation_used = true;
                Value::Bool(!self.negated)
            }
            Type::Toggle => {
                self.negation_used = true;
                Value::Text(SmolStr::new_static(if self.negated { "disabled" } else { "enabled" }))
            }
            Type::On if self.negated => return None,
            Type::On => Value::Text(SmolStr::new_static("enabled")),
            Type::Set => Value::Bool(true),
            Type::Unset => Value::Bool(false),
            Type::Always(value) | Type::Otherwise(value) => Value::Text(SmolStr::new_static(value)),
            Type::Rest => {
                let words = self.words.get(self.position..).filter(|words| !words.is_empty())?;
                self.position = self.words.len();
                Value::Text(join(words))
            }
            Type::Expr => {
                let words = self.words.get(self.position..)?;
                if words.first().is_some_and(|word| stops.contains(&word.text.as_ref())) {
                    return None;
                }
                let more =
                    words.get(1..)?.iter().take_while(|word| !stops.contains(&word.text.as_ref())).count();
                self.position += 1 + more;
                Value::Text(join(words.get(..=more)?))
            }
            Type::Words => {
                let words = self.words.get(self.position..).filter(|words| !words.is_empty())?;
                self.position = self.words.len();
                Value::List(words.iter().map(|word| Value::Text(SmolStr::new(&word.raw))).collect())
            }
            Type::Ints => {
                let words = self.words.get(self.position..).filter(|words| !words.is_empty())?;
                let numbers: Option<Vec<Value>> =
                    words.iter().map(|word| integer(&word.text).map(Value::Int)).collect();
                self.position = self.words.len();
                Value::List(numbers?.into_boxed_slice())
            }
            ty => {
                let word = self.peek()?;
                let value = scalar(ty, &word.raw, &word.text)?;
                self.position += 1;
                value
            }
        };
        self.fields.set(field, value);
        Some(())
    }

    /// Reads `address`, `address:port`, `address:first-last`, `:port`; a path has no port, and neither has what is after
    /// a colon and not a number.
    fn address(
        &mut self,
        address: Field,
        port: Option<Field>,
        range_end: Option<Field>,
        brackets: bool,
    ) -> Option<()> {
        let word = self.take()?;
        let raw: &str = &word.text;
        let whole = |reader: &mut Self| {
            // Without a port the brackets are only there so that no part of the address is taken for one.
            let text = if brackets { without_brackets(raw) } else { Cow::Borrowed(raw) };
            reader.fields.set(address, Value::Text(SmolStr::new(text)));
            Some(())
        };
        let Some(port) = port.filter(|_| !(brackets && is_portless(raw))) else { return whole(self) };
        let Some((before, after)) = raw.rsplit_once(':') else { return whole(self) };
        let (first, last) = match (range_end, after.split_once('-')) {
            (Some(_), Some((first, last))) if !first.is_empty() => (first, Some(last)),
            _ => (after, None),
        };
        let number = |text: &str| -> Option<i64> {
            if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
        };
        let Some(first) = number(first) else { return whole(self) };
        if !before.is_empty() {
            let text = if brackets { without_brackets(before) } else { Cow::Borrowed(before) };
            self.fields.set(address, Value::Text(SmolStr::new(text)));
        }
        self.fields.set(port, Value::Int(first));
        if let (Some(field), Some(last)) = (range_end, last) {
            self.fields.set(field, Value::Int(number(last)?));
        }
        Some(())
    }

    fn optional(&mut self, items: &'t [Item]) -> bool {
        let Some(word) = self.peek() else { return true };
        if let Some(literal) = items.first().and_then(first_word) {
            let starts = match items.first() {
                Some(Item::Pattern { .. }) => word.text.starts_with(literal),
                _ => word.text == literal,
            };
            // What has begun must end: nothing else starts with this word.
            return !starts || self.items(items);
        }
        let (saved, position, options) = (self.fields.clone(), self.position, self.options.len());
        if !self.items(items) {
            self.fields.restore(&saved);
            self.position = position;
            self.options.truncate(options);
        }
        true
    }

    fn options(&mut self, options: &'t Options) {
        while let Some(word) = self.peek() {
            let Some(candidates) = options.by_word.get(cut(&word.text)) else { return };
            let version = self.version;
            let mut fitting = candidates
                .iter()
                .filter_map(|entry| options.entries.get(*entry))
                .filter(|entry| entry.versions.contains(version) && !entry.attributes.refused);
            let Some(first) = fitting.next() else { return };
            let position = self.position;
            let mut found = if fitting.clone().next().is_none() {
                // What has begun must end where there is no other way to read it.
                self.entry(first)
            } else {
                let saved = self.fields.clone();
                std::iter::once(first).chain(fitting).any(|entry| {
                    let found = self.entry(entry);
                    if !found {
                        self.fields.restore(&saved);
                        self.position = position;
                    }
                    found
                })
            };
            found &= self.position > position;
            if !found {
                self.position = position;
                return;
            }
        }
    }

    /// Reads one option. Where the model can't say what it means beside those before it, it is not understood.
    fn entry(&mut self, entry: &'t Entry) -> bool {
        let beside = &entry.attributes.read_beside;
        if !beside.is_empty() && !self.words.iter().any(|word| beside.contains(&word.text.as_ref())) {
            return false;
        }
        if !self.options.iter().all(|earlier| entry.may_follow(earlier)) {
            return false;
        }
        let found = match (entry.attributes.list, entry.attributes.repeat) {
            (Some(list), _) => {
                self.apart(entry).map(|element| self.fields.push(list, element_value(element)))
            }
            (None, Repeat::Add) => self.apart(entry).map(|more| self.fields.add(more, ",")),
            (None, _) => self.items(&entry.items).then_some(()),
        };
        if found.is_some() && entry.is_placed() {
            self.options.push(entry);
        }
        found.is_some()
    }

    /// Reads an option into fields of its own.
    fn apart(&mut self, entry: &'t Entry) -> Option<Fields> {
        let outer = std::mem::take(&mut self.fields);
        let found = self.items(&entry.items);
        let own = std::mem::replace(&mut self.fields, outer);
        found.then_some(own)
    }

    fn repeat(&mut self, field: Field, items: &'t [Item]) -> bool {
        let Some(literal) = items.first().and_then(first_word) else { return false };
        while self.peek().is_some_and(|word| word.text == literal) {
            let outer = std::mem::take(&mut self.fields);
            let found = self.items(items);
            let element = std::mem::replace(&mut self.fields, outer);
            if !found {
                return false;
            }
            self.fields.push(field, element_value(element));
        }
        true
    }
}

/// Turns the fields of an element into its value: an object, or the value itself where the element has no name for it.
pub(crate) fn element_value(mut fields: Fields) -> Value {
    match super::directives().own_field().and_then(|own| fields.remove(own)) {
        Some(value) => value,
        None => Value::Object(Box::new(fields)),
    }
}

/// Takes an IPv6 address out of its brackets, also after a prefix such as `ipv6@`.
fn without_brackets(address: &str) -> Cow<'_, str> {
    let (prefix, bare) = address.split_at(address.find('@').map_or(0, |at| at + 1));
    match bare.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) if prefix.is_empty() => Cow::Borrowed(inner),
        Some(inner) => Cow::Owned(format!("{prefix}{inner}")),
        None => Cow::Borrowed(address),
    }
}

/// Joins words with one blank between them, as they are spelled.
fn join(words: &[Token<'_>]) -> SmolStr {
    match words {
        [word] => SmolStr::new(&word.raw),
        words => {
            let mut joined = String::with_capacity(words.iter().map(|word| word.raw.len() + 1).sum());
            for (position, word) in words.iter().enumerate() {
                if position > 0 {
                    joined.push(' ');
                }
                joined.push_str(&word.raw);
            }
            SmolStr::new(joined)
        }
    }
}

/// Reads a default as the table spells it.
pub(crate) fn default_value(ty: &Type, text: &'static str) -> Option<Value> {
    match ty {
        Type::Flag => text.parse().ok().map(Value::Bool),
        Type::Toggle | Type::On | Type::Always(_) => Some(Value::Text(SmolStr::new_static(text))),
        ty => scalar(ty, text, text),
    }
}

/// Reads a value that is one word, or a part of one.
fn scalar(ty: &Type, raw: &str, text: &str) -> Option<Value> {
    Some(match ty {
        // Quotes that nothing needs are not part of the value: an enumeration knows no `"http"`.
        Type::Word if raw.len() != text.len() && is_plain(text) => Value::Text(SmolStr::new(text)),
        Type::Word | Type::Rest | Type::Expr => Value::Text(SmolStr::new(raw)),
        Type::Name => Value::Text(SmolStr::new(text)),
        Type::Int | Type::Count => Value::Int(integer(text)?),
        Type::Time(default) => Value::Int(read_time(text, *default)?),
        Type::Seconds => Value::Int(read_time(text, 1000)? / 1000),
        Type::Size | Type::Bytes => Value::Int(read_size(text)?),
        Type::Kilobytes => Value::Int(read_size(text)? / 1024),
        Type::Commas => Value::List(text.split(',').map(|part| Value::Text(SmolStr::new(part))).collect()),
        Type::Pairs => {
            let pair = |part: &str| {
                part.split_once('=').map(|(name, value)| (name.to_owned(), serde_json::Value::from(value)))
            };
            let pairs: Option<serde_json::Map<String, serde_json::Value>> =
                text.split(',').map(pair).collect();
            Value::Json(Box::new(serde_json::Value::Object(pairs?)))
        }
        Type::OnOff => match text {
            "on" => Value::Text(SmolStr::new_static("enabled")),
            "off" => Value::Text(SmolStr::new_static("disabled")),
            text => Value::Text(SmolStr::new(text)),
        },
        Type::Switch => match text {
            "on" => Value::Bool(true),
            "off" => Value::Bool(false),
            _ => return None,
        },
        Type::OneOf(words) => Value::Text(SmolStr::new_static(words.iter().find(|word| **word == text)?)),
        Type::Words
        | Type::Ints
        | Type::Flag
        | Type::Set
        | Type::Unset
        | Type::Otherwise(_)
        | Type::Toggle
        | Type::On
        | Type::Always(_) => return None,
    })
}

/// Reads a whole number.
pub(super) fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}
