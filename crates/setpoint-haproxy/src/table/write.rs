//! From fields to words: walks along the items of a row and writes what the fields say, in canonical spelling.

use super::grammar::{Direction, Entry, Item, Piece, Type, first_word};
use super::limits::{Complaint, Limit};
use super::rules::RuleContext;
use super::samples::{SampleContext, criterion, stages};
use super::units::{write_size, write_time};
use super::{Company, Repeat, Row};
use crate::keywords::ALL_STAGES;
use crate::model::spelling::{one_word, split, words};
use crate::model::{Context, Edition, Field, Fields, ObjectKind, Value, Version};

/// Writes the line that a row makes of some fields; `None` if something is missing that the row needs.
///
/// # Errors
///
/// What HAProxy would refuse.
pub(crate) fn write_row(
    row: &Row,
    fields: &Fields,
    site: WriteContext,
) -> Result<Option<Written>, Complaint> {
    let Some(line) = write_values(row, fields, site)? else { return Ok(None) };
    let rule_cx = RuleContext { section: site.section, version: site.haproxy };
    match row.attributes.rule.filter(|_| site.judges).and_then(|rule| rule.complain(fields, rule_cx)) {
        Some(complaint) => Err(complaint),
        None => Ok(Some(line)),
    }
}

/// Returns the first option of what a row writes that a running HAProxy does not accept of an object that is added to it.
pub(crate) fn static_option(row: &Row, fields: &Fields, site: WriteContext) -> Option<&'static str> {
    let mut writer = Writer::new(fields, site);
    writer.items(&row.items);
    writer.static_option
}

/// A line, and the fields that are in it.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) line: String,
    pub(crate) used: Vec<Field>,
    /// The fields of elements of its lists that are not in it, by path and value.
    pub(crate) lost: Vec<(String, String)>,
}

/// Lists the fields that say something and are not among those that are written, by path and value.
pub(crate) fn unwritten(kind: Option<ObjectKind>, fields: &Fields, used: &[Field]) -> Vec<(String, String)> {
    let table = super::directives();
    let says_nothing = |field: Field, value: &Value| match value {
        // What is not set, and what HAProxy has no word for.
        Value::Bool(false) | Value::Int(0) => true,
        Value::Text(text) => {
            text.is_empty() || (text == "disabled" && table.is_only_switched_on(kind, field))
        }
        Value::List(values) => values.is_empty(),
        Value::Json(_) | Value::Bool(_) | Value::Int(_) | Value::Object(_) => false,
    };
    let is_lost = |(field, value): &&(Field, Value)| {
        !used.contains(field) && Some(*field) != table.metadata_field() && !says_nothing(*field, value)
    };
    let shown = |(field, value): &(Field, Value)| {
        (field.path().to_owned(), table.secrets().value(*field, value, fields))
    };
    fields.iter().filter(is_lost).map(shown).collect()
}

/// Writes a line whose values HAProxy accepts, each by itself.
fn write_values(row: &Row, fields: &Fields, site: WriteContext) -> Result<Option<Written>, Complaint> {
    let mut writer = Writer::new(fields, site);
    writer.is_default = row.attributes.repeat == Repeat::Merge;
    writer.sample_cx.stages = stages(row, site.section);
    // A line of which nothing is said is not there: `default-server` without options.
    if !writer.items(&row.items) || (writer.stated == 0 && !row.is_bare()) {
        return Ok(None);
    }
    let line = if writer.negated { format!("no {}", writer.out) } else { writer.out };
    let written = Written { line, used: writer.used, lost: writer.lost };
    if row.attributes.refused {
        return Err(Complaint::new(format!("HAProxy has no `{}` here", written.line)));
    }
    if !site.judges {
        return Ok(Some(written));
    }
    if let Some(section) = site.section.filter(|_| row.attributes.is_outside(site.section)) {
        return Err(Complaint::new(format!("HAProxy accepts no `{}` in a {section}", row.start())));
    }
    match writer.refused.or_else(|| writer.options.complain(&row.start(), &row.attributes.company)) {
        Some(complaint) => Err(complaint),
        None => Ok(Some(written)),
    }
}

/// The options of a line, and what HAProxy wants and refuses beside them.
#[derive(Debug, Default)]
struct Options {
    /// The words that they begin with.
    words: Vec<&'static str>,
    /// Those that want or exclude others.
    particular: Vec<(&'static str, Company)>,
}

impl Options {
    fn add(&mut self, word: &'static str, company: &Company) {
        self.words.push(word);
        if *company != Company::default() {
            self.particular.push((word, company.clone()));
        }
    }

    fn truncate(&mut self, (words, particular): (usize, usize)) {
        self.words.truncate(words);
        self.particular.truncate(particular);
    }

    fn len(&self) -> (usize, usize) {
        (self.words.len(), self.particular.len())
    }

    /// Returns which option HAProxy misses, or does not accept beside another one, in a line that begins so.
    fn complain(&self, start: &str, line: &Company) -> Option<Complaint> {
        let own = self.particular.iter().map(|(word, company)| (*word, company));
        let why = std::iter::once((start, line)).chain(own).find_map(|(name, company)| {
            let excluded = company.excluded(|other| self.words.contains(&other));
            company
                .misses(|other| self.words.contains(&other))
                .then(|| company.missing(name))
                .or_else(|| excluded.map(|other| Company::refused(name, other)))
        })?;
        Some(Complaint::new(why))
    }
}

/// What something is written for: a version, and the section it will stand in where that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteContext {
    /// The version of the API's schema.
    pub(crate) version: Version,
    pub(crate) haproxy: Version,
    pub(crate) edition: Edition,
    pub(crate) section: Option<ObjectKind>,
    /// Whether what HAProxy would refuse is refused.
    pub(crate) judges: bool,
}

impl WriteContext {
    pub(crate) fn new(cx: &Context, section: Option<ObjectKind>) -> Self {
        Self { version: cx.api, haproxy: cx.haproxy, edition: cx.edition, section, judges: true }
    }
}

struct Writer<'f> {
    fields: &'f Fields,
    site: WriteContext,
    /// When its expressions are evaluated.
    sample_cx: SampleContext,
    /// Whether this is what holds for others: their expressions are looked at when something uses them.
    is_default: bool,
    negated: bool,
    /// How many fields are in what is written so far.
    stated: usize,
    /// What HAProxy would refuse of what is written so far.
    refused: Option<Complaint>,
    /// The fields that are in what is written so far.
    used: Vec<Field>,
    /// The fields of elements of lists that are not in it.
    lost: Vec<(String, String)>,
    /// The first option so far that can't be given to a running HAProxy.
    static_option: Option<&'static str>,
    /// The options that are in what is written so far.
    options: Options,
    out: String,
}

impl<'f> Writer<'f> {
    fn new(fields: &'f Fields, site: WriteContext) -> Self {
        let sample_cx = SampleContext { version: site.haproxy, edition: site.edition, stages: ALL_STAGES };
        Self {
            fields,
            site,
            sample_cx,
            is_default: false,
            negated: false,
            stated: 0,
            refused: None,
            used: Vec::new(),
            lost: Vec::new(),
            static_option: None,
            options: Options::default(),
            out: String::new(),
        }
    }

    fn word(&mut self, word: &str) {
        if !self.out.is_empty() {
            self.out.push(' ');
        }
        self.out.push_str(word);
    }

    fn items(&mut self, items: &[Item]) -> bool {
        items.iter().all(|item| self.item(item))
    }

    fn has(&self, field: Field, value: &str) -> bool {
        self.fields.get(field).and_then(Value::as_str) == Some(value)
    }

    fn item(&mut self, item: &Item) -> bool {
        match item {
            Item::Literal(word) => {
                self.word(word);
                true
            }
            Item::Constant { field, value, word } => {
                self.used.push(*field);
                self.stated += 1;
                self.word(word);
                self.has(*field, value)
            }
            Item::Pattern { constant, pieces } => {
                if let Some((field, value)) = constant
                    && !self.has(*field, value)
                {
                    return false;
                }
                let Some(word) = self.pieces(pieces) else { return false };
                self.used.extend(constant.map(|(field, _)| field));
                for piece in pieces {
                    let Piece::Value { field, limit, .. } = piece else { continue };
                    self.used.push(*field);
                    if let Some(limit) = limit {
                        self.hold(*field, limit, false);
                    }
                }
                self.stated += 1;
                self.word(&one_word(&word));
                true
            }
            Item::Value { field, ty, limit, .. } => {
                let written = self.value(*field, ty);
                self.used.push(*field);
                if written && let Some(limit) = limit {
                    self.hold(*field, limit, matches!(ty, Type::Rest | Type::Expr));
                }
                written
            }
            Item::Address { address, port, range_end, brackets, ported } => {
                self.refuse(self.bad_port(*address, *port, *range_end, *ported));
                self.used.push(*address);
                self.used.extend(port);
                self.used.extend(range_end);
                self.address(*address, *port, *range_end, *brackets)
            }
            Item::Optional(items) => {
                self.attempt(items);
                true
            }
            Item::Options(options) => {
                // Several entries of one word are several ways to say it: the first that can is enough.
                let mut written = None;
                for entry in &options.entries {
                    let word = entry.items.first().and_then(first_word);
                    let is_known = !self.site.judges || entry.attributes.is_of(self.site.haproxy);
                    let counts = entry.versions.contains(self.site.version)
                        && entry.attributes.direction != Direction::Read
                        && is_known;
                    if counts && word.is_some() && word == written {
                        // The word is there: what else it stands for is said with it.
                        let (length, stated, refused) = (self.out.len(), self.stated, self.refused.clone());
                        self.entry(entry);
                        self.out.truncate(length);
                        (self.stated, self.refused) = (stated, refused);
                    } else if counts && self.entry(entry) {
                        if entry.attributes.refused || entry.attributes.is_outside(self.site.section) {
                            let why = |word: &str| Complaint {
                                word: Some(word.to_owned()),
                                ..Complaint::new(format!("HAProxy has no option `{word}` here"))
                            };
                            self.refused = word.map(why);
                        }
                        if !entry.attributes.is_dynamic(self.site.haproxy) {
                            self.static_option = self.static_option.or(word);
                        }
                        if let Some(word) = word {
                            self.options.add(word, &entry.attributes.company);
                        }
                        written = word;
                    }
                }
                true
            }
            Item::Repeat { field, items } => self.elements(*field, items).is_some(),
            Item::Condition { cond: cond_field, test: test_field, required } => {
                let (Some(cond), Some(test)) = (
                    self.fields.get(*cond_field).and_then(Value::as_str),
                    self.fields.get(*test_field).and_then(Value::as_str),
                ) else {
                    return !required;
                };
                // A condition that is not made of whole words can't be quoted: it would be another one.
                self.used.extend([*cond_field, *test_field]);
                self.stated += 1;
                let whole = split(test).is_some_and(|words| !words.is_empty());
                let (cond, test) = (cond.to_owned(), test.to_owned());
                self.refuse(condition(&cond, &test, self.sample_cx));
                self.word(&cond);
                self.word(&test);
                whole
            }
        }
    }

    /// Notes what HAProxy would refuse; the first of it counts.
    fn refuse(&mut self, complaint: Option<Complaint>) {
        self.refused = self.refused.take().or(complaint);
    }

    /// Holds the value of a field to what HAProxy accepts of it.
    fn hold(&mut self, field: Field, limit: &Limit, several: bool) {
        if self.is_default && limit.is_of_samples() {
            return;
        }
        let complaint = self
            .fields
            .get(field)
            .and_then(|value| limit.complain(field.path(), value, several, self.sample_cx));
        self.refuse(complaint);
    }

    /// Writes items that may be left out: all of them or none.
    fn attempt(&mut self, items: &[Item]) -> bool {
        let (length, negated, stated, refused) =
            (self.out.len(), self.negated, self.stated, self.refused.clone());
        let (used, lost, options) = (self.used.len(), self.lost.len(), self.options.len());
        let written = self.items(items);
        if !written {
            self.out.truncate(length);
            self.used.truncate(used);
            self.lost.truncate(lost);
            self.options.truncate(options);
            (self.negated, self.stated, self.refused) = (negated, stated, refused);
        }
        written
    }

    /// Writes one option, and says whether there was something to write.
    fn entry(&mut self, entry: &Entry) -> bool {
        match entry.attributes.list {
            Some(list) => self.elements(list, &entry.items).is_some_and(|count| count > 0),
            None => self.attempt(&entry.items),
        }
    }

    /// Writes the elements of a list one after the other, and says how many; `None` if one of them is incomplete.
    fn elements(&mut self, list: Field, items: &[Item]) -> Option<usize> {
        let Some(Value::List(values)) = self.fields.get(list) else { return Some(0) };
        self.used.push(list);
        for value in values {
            let text = with_element(value, |element| {
                let mut writer = Writer { sample_cx: self.sample_cx, ..Writer::new(element, self.site) };
                writer.items(items).then(|| {
                    let lost = unwritten(None, element, &writer.used);
                    (writer.out, writer.refused, lost.into_iter().chain(writer.lost).collect::<Vec<_>>())
                })
            })?;
            let (text, refused, lost) = text;
            self.lost
                .extend(lost.into_iter().map(|(path, value)| (format!("{}.{path}", list.path()), value)));
            self.refuse(refused);
            self.stated += 1;
            self.word(&text);
        }
        Some(values.len())
    }

    fn pieces(&self, pieces: &[Piece]) -> Option<String> {
        let mut word = String::new();
        for piece in pieces {
            match piece {
                Piece::Literal(literal) => word.push_str(literal),
                Piece::Value { ty: Type::Count, field, .. } if self.fields.get(*field).is_none() => {
                    word.push('0');
                }
                Piece::Value { field, ty, .. } => word.push_str(&spell(ty, self.fields.get(*field)?)?),
            }
        }
        Some(word)
    }

    fn value(&mut self, field: Field, ty: &Type) -> bool {
        match (ty, self.fields.get(field)) {
            (Type::Unset, value) => return !matches!(value, Some(Value::Bool(true))),
            (Type::Otherwise(expected), value) => {
                return value.is_none_or(|value| value.as_str() == Some(expected));
            }
            _ => {}
        }
        self.stated += 1;
        let zero = Value::Int(0);
        let absent = (*ty == Type::Count).then_some(&zero);
        let Some(value) = self.fields.get(field).or(absent) else { return false };
        match (ty, value) {
            (Type::Flag, Value::Bool(flag)) => self.negated |= !flag,
            (Type::Set, Value::Bool(true)) => {}
            (Type::Toggle | Type::On, Value::Text(text)) if text == "enabled" => {}
            (Type::Toggle, Value::Text(text)) if text == "disabled" => self.negated = true,
            (Type::Always(expected), Value::Text(text)) => return text == expected,
            (Type::Always(_) | Type::Flag | Type::Set | Type::Toggle | Type::On, _) => return false,
            (Type::Ints, Value::List(values)) => {
                let numbers: Vec<String> =
                    values.iter().filter_map(Value::as_int).map(|number| number.to_string()).collect();
                for number in &numbers {
                    self.word(number);
                }
                return !numbers.is_empty();
            }
            (Type::Rest | Type::Expr, Value::Text(text)) => {
                let spelled = words(text).into_owned();
                self.word(&spelled);
            }
            (Type::Words, Value::List(values)) => {
                let texts: Vec<String> =
                    values.iter().filter_map(Value::as_str).map(|text| one_word(text).into_owned()).collect();
                for text in &texts {
                    self.word(text);
                }
                return !texts.is_empty();
            }
            (ty, value) => {
                let Some(text) = spell(ty, value) else { return false };
                self.word(&one_word(&text));
            }
        }
        true
    }

    /// Returns what is wrong with the port of an address, if something is. What is no plain address may hold ports itself.
    fn bad_port(
        &self,
        address: Field,
        port: Option<Field>,
        range_end: Option<Field>,
        ported: bool,
    ) -> Option<Complaint> {
        let number = |field: Field| self.fields.get(field).and_then(Value::as_int);
        let ports = port.into_iter().chain(range_end).filter_map(number);
        if let Some(port) = ports.clone().find(|port| !(0..=65535).contains(port)) {
            let why = format!("a port can't be {port}: HAProxy wants from 0 to 65535");
            return Some(Complaint { word: Some(port.to_string()), ..Complaint::new(why) });
        }
        let address = self.fields.get(address).and_then(Value::as_str).filter(|_| ported)?;
        let is_plain =
            address.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'*'));
        let lacks_port = (is_plain && !address.is_empty() || is_ipv6(address)) && ports.count() == 0;
        lacks_port.then(|| Complaint {
            word: Some(address.to_owned()),
            hint: Some(format!("write `{address}:` and a port")),
            ..Complaint::new(format!("the address `{address}` has no port"))
        })
    }

    fn address(
        &mut self,
        address: Field,
        port: Option<Field>,
        range_end: Option<Field>,
        brackets: bool,
    ) -> bool {
        let has_port = port.is_some();
        let number =
            |field: Option<Field>| field.and_then(|field| self.fields.get(field)).and_then(Value::as_int);
        let (address, port, range_end) =
            (self.fields.get(address).and_then(Value::as_str), number(port), number(range_end));
        let word = match (address, port, range_end) {
            (None, None, _) => return false,
            (Some(address), Some(port), range_end) if brackets && is_ipv6(address) => {
                let (prefix, bare) = address.split_at(address.find('@').map_or(0, |at| at + 1));
                let range = range_end.map(|end| format!("-{end}")).unwrap_or_default();
                format!("{prefix}[{bare}]:{port}{range}")
            }
            // What is after a colon would be taken for a port.
            (Some(address), None, _) if has_port && is_ipv6(address) => {
                let (prefix, bare) = address.split_at(address.find('@').map_or(0, |at| at + 1));
                format!("{prefix}[{bare}]")
            }
            (address, None, _) => address.unwrap_or_default().to_owned(),
            (address, Some(port), None) => format!("{}:{port}", address.unwrap_or_default()),
            (address, Some(port), Some(end)) => format!("{}:{port}-{end}", address.unwrap_or_default()),
        };
        if let (Some(first), Some(last)) = (port, range_end)
            && last < first
        {
            self.refuse(Some(Complaint::new(format!("a range of ports can't go from {first} to {last}"))));
        }
        self.stated += 1;
        self.word(&one_word(&word));
        true
    }
}

/// Returns what is wrong with a condition, if something is: `if` or `unless`, and what stands in braces. Names outside of
/// them are those of ACLs.
fn condition(cond: &str, test: &str, sample_cx: SampleContext) -> Option<Complaint> {
    if !matches!(cond, "if" | "unless") {
        return Some(Complaint {
            word: Some(cond.to_owned()),
            ..Complaint::new(format!("a condition starts with `if` or `unless`, not with `{cond}`"))
        });
    }
    if test.contains('$') {
        return None;
    }
    let words = split(test)?;
    let braces = words.iter().enumerate().filter(|(_, word)| matches!(word.as_str(), "{" | "!{"));
    braces.into_iter().find_map(|(at, _)| criterion(words.get(at + 1..)?, sample_cx))
}

/// Returns whether an address is an IPv6 one, perhaps after a prefix such as `ipv6@`.
fn is_ipv6(address: &str) -> bool {
    let bare = address.split_once('@').map_or(address, |(_, bare)| bare);
    bare.parse::<std::net::Ipv6Addr>().is_ok()
}

/// Hands out the fields of an element of a list; a value without a name is at the path `.`.
pub(crate) fn with_element<R>(value: &Value, then: impl FnOnce(&Fields) -> R) -> R {
    match value {
        Value::Object(fields) => then(fields),
        value => {
            let mut fields = Fields::new();
            if let Some(own) = super::directives().own_field() {
                fields.set(own, value.clone());
            }
            then(&fields)
        }
    }
}

/// Spells a value that is one word, or a part of one.
fn spell(ty: &Type, value: &Value) -> Option<String> {
    Some(match (ty, value) {
        (Type::Time(_), Value::Int(number)) => write_time(*number),
        (Type::Size, Value::Int(number)) => write_size(*number),
        (Type::Kilobytes, Value::Int(number)) => write_size(number.checked_mul(1024)?),
        (_, Value::Int(number)) => number.to_string(),
        (Type::OnOff, Value::Text(text)) => match text.as_str() {
            "enabled" => "on".to_owned(),
            "disabled" => "off".to_owned(),
            text => text.to_owned(),
        },
        (Type::Switch, Value::Bool(flag)) => if *flag { "on" } else { "off" }.to_owned(),
        (Type::OneOf(words), Value::Text(text)) => {
            words.contains(&text.as_str()).then(|| text.to_string())?
        }
        (_, Value::Text(text)) => text.to_string(),
        (Type::Commas, Value::List(values)) if !values.is_empty() => {
            values.iter().map(Value::as_str).collect::<Option<Vec<_>>>()?.join(",")
        }
        (Type::Pairs, Value::Json(json)) => {
            let pairs = json.as_object().filter(|pairs| !pairs.is_empty())?;
            let pair = |(name, value): (&String, &serde_json::Value)| {
                value.as_str().map(|value| format!("{name}={value}"))
            };
            pairs.iter().map(pair).collect::<Option<Vec<_>>>()?.join(",")
        }
        _ => return None,
    })
}
