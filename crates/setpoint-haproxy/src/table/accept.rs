//! Whether HAProxy accepts the words of a line by a row, and if not, which word it stops at and why.
//!
//! [`read`](super::read) asks whether the model has a place for a line; here the question is HAProxy's own. So a row
//! counts in all versions (what a version knows is asked of HAProxy and listed by [`keywords`](crate::keywords)), a word
//! may come twice, and a value that does not fit is named.

use std::borrow::Cow;
use std::ops::Range;

use super::address::{Accepted, Reached, complaint, reached};
use super::forms::Holds;
use super::grammar::{Entry, Item, Options, Piece, Type, Versions, cut, first_word};
use super::limits::{Complaint, Limit};
use super::read::{Token, integer, read_row};
use super::rules::RuleContext;
use super::samples::SampleContext;
use super::units::{LONGEST_TIME, has_more_than_time, read_size, read_time};
use super::{Repeat, Row};
use crate::model::{Field, ObjectKind};

/// What a row made of the words of a line.
#[derive(Debug, Default)]
pub(crate) struct Match<'w> {
    /// The first word of its condition, after `if` or `unless`.
    pub(crate) condition: Option<usize>,
    /// The fields that were given, with the word and the text of each; of several words, the first.
    pub(crate) values: Vec<(Field, usize, &'w str)>,
    /// The words that hold sample expressions.
    pub(crate) expressions: Vec<(Range<usize>, Holds)>,
    /// The options that were given, each with its first word.
    pub(crate) options: Vec<(&'static Entry, usize)>,
    /// The words of which HAProxy ignores a part.
    pub(crate) ignored: Vec<usize>,
}

impl Match<'_> {
    /// Returns whether a field was given.
    pub(crate) fn has(&self, field: Field) -> bool {
        self.values.iter().any(|(given, ..)| *given == field)
    }
}

/// Why HAProxy does not accept some words by a row.
#[derive(Debug)]
pub(crate) struct Misfit {
    /// The word at which it stops; one more than there are where something is missing.
    pub(crate) at: usize,
    /// What is wrong with the value there; none where the word has no place there, or is missing.
    pub(crate) complaint: Option<Box<Complaint>>,
    /// The words that could stand there.
    pub(crate) expected: Vec<&'static str>,
}

impl Misfit {
    /// Makes one of a word that HAProxy does not accept.
    pub(crate) fn new(at: usize, complaint: Option<Complaint>) -> Self {
        Self { at, complaint: complaint.map(Box::new), expected: Vec::new() }
    }

    /// The one that says more: what came further; what stops at the same word says together what could stand there.
    pub(crate) fn or(mut self, mut other: Self) -> Self {
        if other.at != self.at {
            return if other.at > self.at { other } else { self };
        }
        self.expected.append(&mut other.expected);
        self.complaint = match (self.complaint.take(), other.complaint) {
            (Some(mut own), Some(mut other)) => {
                if !own.known.is_empty() {
                    own.known.append(&mut other.known);
                }
                Some(own)
            }
            (own, other) => own.or(other),
        };
        self
    }
}

/// Where a line stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineContext {
    pub(crate) sample_cx: SampleContext,
    /// The section, where it is one; a `listen` is two in one.
    pub(crate) section: Option<ObjectKind>,
    /// Whether `no` stood before the line.
    pub(crate) negated: bool,
}

/// Holds the words of a line to a row.
pub(crate) fn accept<'w>(
    row: &'static Row,
    words: &'w [Cow<'w, str>],
    line_cx: LineContext,
) -> Result<Match<'w>, Misfit> {
    if row.attributes.refused {
        return Err(Misfit::new(0, None));
    }
    let is_refused =
        |versions: Option<Versions>| versions.is_some_and(|it| it.contains(line_cx.sample_cx.version));
    let refused = [(row.attributes.no_quic, Reached::Quic), (row.attributes.no_datagrams, Reached::Datagram)];
    let mut walk = Walk {
        words,
        at: 0,
        line_cx,
        is_default: row.attributes.repeat == Repeat::Merge,
        refused: refused.map(|(versions, reached)| is_refused(versions).then_some(reached)),
        negation_used: false,
        found: Match::default(),
        misfit: None,
    };
    let through = walk.items(&row.items);
    if through && walk.at < words.len() {
        walk.fail(None);
    }
    if line_cx.negated && !walk.negation_used {
        return Err(Misfit::new(0, None));
    }
    match walk.misfit.take_if(|_| !through || walk.at < words.len()) {
        Some(misfit) => Err(misfit),
        None => match line_cx.section.filter(|_| row.attributes.is_outside(line_cx.section)) {
            Some(section) => {
                let why = format!("HAProxy accepts no `{}` in a {section}", row.start());
                Err(Misfit::new(words.len(), Some(Complaint::new(why))))
            }
            None => Ok(walk.found),
        },
    }
}

/// A walk along the items of a row and the words of a line.
struct Walk<'w> {
    words: &'w [Cow<'w, str>],
    at: usize,
    line_cx: LineContext,
    /// Whether this is what holds for others: their expressions are looked at when something uses them.
    is_default: bool,
    /// What addresses the version does not accept in such lines.
    refused: [Option<Reached>; 2],
    negation_used: bool,
    found: Match<'w>,
    /// The misfit that came furthest.
    misfit: Option<Misfit>,
}

impl<'w> Walk<'w> {
    fn peek(&self) -> Option<&'w str> {
        self.words.get(self.at).map(|word| &**word)
    }

    /// Notes that the word at hand does not fit; always false.
    fn fail(&mut self, complaint: Option<Complaint>) -> bool {
        self.note(Misfit::new(self.at, complaint));
        false
    }

    fn note(&mut self, misfit: Misfit) {
        self.misfit = Some(match self.misfit.take() {
            Some(before) => before.or(misfit),
            None => misfit,
        });
    }

    /// Notes words that could stand where the word at hand does.
    fn expect(&mut self, expected: Vec<&'static str>) {
        self.note(Misfit { at: self.at, complaint: None, expected });
    }

    fn literal(&mut self, literal: &'static str) -> bool {
        if self.peek() == Some(literal) {
            self.at += 1;
            return true;
        }
        if self.peek().is_some() {
            self.expect(vec![literal]);
        } else {
            self.fail(None);
        }
        false
    }

    fn items(&mut self, items: &'static [Item]) -> bool {
        let mut rest = items;
        while let Some((item, after)) = rest.split_first() {
            if matches!(item, Item::Options(_)) {
                let count = rest.iter().take_while(|item| matches!(item, Item::Options(_))).count();
                let (sets, after) = rest.split_at(count);
                if !self.options(sets) {
                    return false;
                }
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

    fn item(&mut self, item: &'static Item) -> bool {
        match item {
            Item::Literal(word) | Item::Constant { word, .. } => self.literal(word),
            Item::Pattern { pieces, .. } => match self.peek() {
                Some(word) => {
                    let fits = self.pieces(pieces, word);
                    self.at += usize::from(fits);
                    fits
                }
                None => self.fail(None),
            },
            Item::Value { field, ty, stops, limit } => self.value(*field, ty, stops, limit.as_ref()),
            Item::Address { address, ported, range_end, .. } => {
                let accepted = Accepted { ported: *ported, ranged: range_end.is_some() };
                self.address(*address, accepted)
            }
            Item::Optional(items) => self.optional(items),
            Item::Options(_) => self.options(std::slice::from_ref(item)),
            Item::Repeat { items, .. } => {
                let Some(literal) = items.first().and_then(first_word) else { return false };
                while self.peek() == Some(literal) {
                    if !self.items(items) {
                        return false;
                    }
                }
                true
            }
            Item::Condition { required, .. } => match self.peek() {
                // A condition of no words is one, and always true.
                Some("if" | "unless") => {
                    self.at += 1;
                    self.found.condition = Some(self.at);
                    self.at = self.words.len();
                    true
                }
                _ => !*required || self.fail(None),
            },
        }
    }

    /// Reads what may be left out. What has begun with its word must go on.
    fn optional(&mut self, items: &'static [Item]) -> bool {
        let Some(word) = self.peek() else { return true };
        if let Some(literal) = items.first().and_then(first_word) {
            let begins = match items.first() {
                Some(Item::Pattern { .. }) => word.starts_with(literal),
                _ => word == literal,
            };
            if !begins {
                self.expect(vec![literal]);
            }
            return !begins || self.items(items);
        }
        let at = self.at;
        if !self.items(items) {
            self.at = at;
        }
        true
    }

    /// Reads options of several sets in any order. What has begun with its word must go on.
    fn options(&mut self, sets: &'static [Item]) -> bool {
        'words: while let Some(word) = self.peek() {
            let (at, mut begun) = (self.at, false);
            for set in sets {
                let Item::Options(options) = set else { continue };
                let version = self.line_cx.sample_cx.version;
                for entry in entries(options, word).filter(|entry| entry.attributes.is_of(version)) {
                    begun = true;
                    self.at = at;
                    if self.items(&entry.items) && self.at > at {
                        if entry.attributes.is_outside(self.line_cx.section) {
                            self.at = at;
                            let why = format!("HAProxy has no option `{word}` here");
                            return self.fail(Some(Complaint {
                                word: Some(word.to_owned()),
                                ..Complaint::new(why)
                            }));
                        }
                        self.found.options.push((entry, at));
                        continue 'words;
                    }
                }
            }
            self.at = at;
            if !begun {
                let entries = sets.iter().filter_map(Item::as_options).flat_map(|options| &options.entries);
                let version = self.line_cx.sample_cx.version;
                let entries =
                    entries.filter(|entry| entry.attributes.is_of(version) && !entry.attributes.refused);
                let words = entries.filter_map(|entry| entry.items.first().and_then(first_word));
                self.expect(words.filter(|word| !word.contains('(')).collect());
            }
            return !begun;
        }
        true
    }

    /// Splits one word along its pieces, as they are read.
    fn pieces(&mut self, pieces: &[Piece], word: &'w str) -> bool {
        let mut rest = word;
        for (position, piece) in pieces.iter().enumerate() {
            match piece {
                Piece::Literal(literal) => match rest.strip_prefix(literal) {
                    Some(after) => rest = after,
                    None => return self.fail(None),
                },
                Piece::Value { field, ty, limit } => {
                    let end = match pieces.get(position + 1) {
                        Some(Piece::Literal(literal)) if position + 2 == pieces.len() => {
                            rest.strip_suffix(literal).map(str::len)
                        }
                        Some(Piece::Literal(literal)) => rest.find(literal),
                        _ => Some(rest.len()),
                    };
                    let Some((value, after)) = end.and_then(|end| rest.split_at_checked(end)) else {
                        return self.fail(None);
                    };
                    if value.is_empty() {
                        return self.fail(None);
                    }
                    if let Some(complaint) = scalar(*field, ty, limit.as_ref(), value, self.line_cx.sample_cx)
                    {
                        return self.fail(Some(complaint));
                    }
                    self.found.values.push((*field, self.at, value));
                    rest = after;
                }
            }
        }
        rest.is_empty() || self.fail(None)
    }

    fn value(&mut self, field: Field, ty: &Type, stops: &[&'static str], limit: Option<&Limit>) -> bool {
        if ty.is_silent() {
            if matches!(ty, Type::Flag | Type::Toggle) {
                self.negation_used = true;
            }
            return !(self.line_cx.negated && matches!(ty, Type::On)) || self.fail(None);
        }
        let rest = self.words.get(self.at..).unwrap_or_default();
        let count = match ty {
            Type::Rest | Type::Words | Type::Ints => rest.len(),
            Type::Expr => {
                let stops = |word: &&Cow<'_, str>| stops.contains(&&***word);
                match rest.first() {
                    Some(first) if stops(&first) => 0,
                    Some(_) => 1 + rest.iter().skip(1).take_while(|word| !stops(word)).count(),
                    None => 0,
                }
            }
            _ => rest.len().min(1),
        };
        let taken = rest.get(..count).unwrap_or_default();
        let Some(first) = taken.first() else { return self.fail(None) };
        let limit = limit.filter(|limit| !(self.is_default && limit.is_of_samples()));
        if matches!(ty, Type::Time(_)) && has_more_than_time(first) {
            self.found.ignored.push(self.at);
            self.found.values.push((field, self.at, first));
            self.at += 1;
            return true;
        }
        let complaint = match ty {
            Type::Rest | Type::Words | Type::Expr => limit.and_then(|limit| {
                let words: Vec<String> = taken.iter().map(|word| word.clone().into_owned()).collect();
                limit.complain_of(path_of(field), &words, self.line_cx.sample_cx)
            }),
            Type::Ints => {
                taken.iter().find_map(|word| scalar(field, &Type::Int, limit, word, self.line_cx.sample_cx))
            }
            ty => scalar(field, ty, limit, first, self.line_cx.sample_cx),
        };
        if let Some(complaint) = complaint {
            return self.fail(Some(complaint));
        }
        if let Some(Limit::Form(form)) = limit
            && let Some(holds) = form.holds()
        {
            self.found.expressions.push((self.at..self.at + count, holds));
        }
        self.found.values.push((field, self.at, first));
        self.at += count;
        true
    }

    /// Reads an address.
    fn address(&mut self, field: Field, accepted: Accepted) -> bool {
        let Some(word) = self.peek() else { return self.fail(None) };
        if let Some(complaint) = complaint(word, accepted, self.line_cx.sample_cx.version) {
            return self.fail(Some(complaint));
        }
        let refused = self.refused.into_iter().flatten().find(|refused| reached(word) == *refused);
        if let Some(refused) = refused {
            let why = match refused {
                Reached::Quic => "this version has no QUIC to servers",
                _ => "HAProxy listens for no datagrams here",
            };
            return self.fail(Some(Complaint { word: Some(word.to_owned()), ..Complaint::new(why) }));
        }
        self.found.values.push((field, self.at, word));
        self.at += 1;
        true
    }
}

/// Returns what has to hold between the values of a line and does not, as a row of the schema tells.
pub(crate) fn broken_rule(
    words: &[Cow<'_, str>],
    kind: ObjectKind,
    line_cx: LineContext,
) -> Option<Complaint> {
    let (first, second) = (words.first()?, words.get(1).map(|word| &**word));
    let mut rows =
        super::directives().forms(kind, first, second, line_cx.sample_cx.version).filter_map(|row| {
            // What a section says of itself is spread over lines.
            let is_whole =
                row.attributes.list.is_some() || row.owners.iter().all(|owner| !owner.is_section());
            Some((row, row.attributes.rule.filter(|_| is_whole)?))
        });
    rows.find_map(|(row, rule)| {
        let tokens: Vec<Token<'_>> =
            words.iter().map(|word| Token { raw: word.clone(), text: word.clone() }).collect();
        let fields = read_row(row, &tokens, line_cx.negated, line_cx.sample_cx.version)?;
        let rule_cx = RuleContext { section: line_cx.section, version: line_cx.sample_cx.version };
        rule.complain(&fields, rule_cx)
    })
}

/// The options that begin with a word.
fn entries<'o>(options: &'o Options, word: &str) -> impl Iterator<Item = &'o Entry> {
    let found = options.by_word.get(cut(word)).map(Vec::as_slice).unwrap_or_default();
    found.iter().filter_map(|entry| options.entries.get(*entry)).filter(|entry| !entry.attributes.refused)
}

/// Returns what is wrong with a value that is one word or a part of one, if something is.
fn scalar(
    field: Field,
    ty: &Type,
    limit: Option<&Limit>,
    text: &str,
    sample_cx: SampleContext,
) -> Option<Complaint> {
    let wants = |what: &str| {
        let why = format!("`{text}` is not {what}");
        Some(Complaint { word: Some(text.to_owned()), ..Complaint::new(why) })
    };
    let number = match ty {
        Type::Int | Type::Count => match integer(text) {
            None => return wants("a whole number"),
            Some(number) if number < 0 && limit.is_none() => return wants("a number from 0 on"),
            number => number,
        },
        Type::Time(unit) => match read_time(text, *unit) {
            None => return wants("a time"),
            Some(time) if time > LONGEST_TIME => {
                let why = format!(
                    "`{text}` is too long: HAProxy accepts at most {LONGEST_TIME} ms, some 24.8 days"
                );
                return Some(Complaint { word: Some(text.to_owned()), ..Complaint::new(why) });
            }
            time => time,
        },
        Type::Seconds => match read_time(text, 1000) {
            None => return wants("a time"),
            time => time.map(|time| time / 1000),
        },
        Type::Size | Type::Bytes => match read_size(text) {
            None => return wants("a size"),
            size => size,
        },
        Type::Kilobytes => match read_size(text) {
            None => return wants("a size"),
            size => size.map(|size| size / 1024),
        },
        Type::OnOff if limit.is_none() && !matches!(text, "on" | "off") => {
            return Some(Complaint::one_of(path_of(field), text, &["on", "off"]));
        }
        Type::Switch | Type::OneOf(_) => {
            let known: &[&str] = match ty {
                Type::OneOf(known) => known,
                _ => &["on", "off"],
            };
            return (!known.contains(&text)).then(|| Complaint::one_of(path_of(field), text, known));
        }
        Type::Pairs if text.split(',').any(|pair| !pair.contains('=')) => {
            return wants("a list of `name=value`");
        }
        _ => None,
    };
    let limit = limit?;
    if let Some(number) = number {
        return limit.complain_of_number(path_of(field), number, sample_cx);
    }
    let text = match (ty, text) {
        (Type::OnOff, "on") => "enabled",
        (Type::OnOff, "off") => "disabled",
        (_, text) => text,
    };
    let words: Vec<String> = match ty {
        Type::Commas => text.split(',').map(ToOwned::to_owned).collect(),
        _ => vec![text.to_owned()],
    };
    limit.complain_of(path_of(field), &words, sample_cx)
}

/// The path of a field of this table.
fn path_of(field: Field) -> &'static str {
    super::accepted().field_path(field)
}
