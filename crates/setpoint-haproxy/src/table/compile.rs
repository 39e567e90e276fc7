//! From the text of the table to rows: the only place that knows how rows are laid out.

use rustc_hash::{FxHashMap, FxHashSet};

use super::attributes::Attributes;
use super::grammar::{Entry, Item, Options, Type, Versions, resolve_stops};
use super::words::Words;
use super::{FieldInfo, Row, Zero};
use crate::model::{Field, ObjectKind, Version};

/// What the blocks of the table hold, in the order in which they stand there.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    pub(super) fields: Vec<FieldInfo>,
    pub(super) rows: Vec<Row>,
    /// For each kind of section, the keywords of its lines in the order in which they are written.
    pub(super) orders: Vec<(ObjectKind, Vec<&'static str>)>,
    /// What is wrong with the table; empty, or a test fails.
    pub(super) errors: Vec<String>,
    /// How many rows there are up to the end of each source.
    pub(super) ends: Vec<usize>,
    /// The lists of words, by name.
    pub(super) words: FxHashMap<&'static str, Words>,
    /// The words that the options of a block of parameters begin with, by the block's name.
    pub(super) options: FxHashMap<&'static str, Words>,
}

/// Reads the text of the table.
pub(super) fn compile(sources: &[&'static str]) -> Compiled {
    let mut compiler = Compiler::default();
    // Every object can have these, whatever rows it has.
    compiler.field("metadata", Zero::Dropped);
    compiler.field(".", Zero::Dropped);
    for source in sources {
        compiler.collect_params(source);
    }
    for source in sources {
        compiler.collect_rows(source);
        compiler.out.ends.push(compiler.out.rows.len());
    }
    compiler.out
}

#[derive(Default)]
pub(super) struct Compiler {
    pub(super) out: Compiled,
    by_path: FxHashMap<(&'static str, Zero), Field>,
    params: FxHashMap<&'static str, Vec<&'static str>>,
    /// The rows that a `listen` has so far.
    of_listen: FxHashSet<&'static str>,
    /// The names of the blocks being included, so that one that includes itself is an error.
    including: Vec<&'static str>,
}

/// A block of the table, by its header.
enum Block {
    /// Rows of some kinds, and the attributes that all of them have.
    Rows(Vec<ObjectKind>, &'static str),
    Order(ObjectKind),
    Params(&'static str),
    Words(&'static str),
    Unknown,
}

/// Removes a comment and blanks; a line with nothing else is skipped.
fn content(line: &'static str) -> Option<&'static str> {
    let line = if line.starts_with('#') { "" } else { line.split(" # ").next().unwrap_or(line) };
    Some(line.trim()).filter(|line| !line.is_empty())
}

/// Reads the header of a block: `[server]`, `[order backend]`, `[params server]`, `[defaults frontend backend]`,
/// `[http_request_rule] ; stage=http-request`.
fn header(line: &'static str) -> Option<Block> {
    let (line, attributes) = split_attributes(line);
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let words: Vec<&'static str> = inner.split_whitespace().collect();
    Some(match words.as_slice() {
        ["order", kind] => ObjectKind::by_model(kind).map_or(Block::Unknown, Block::Order),
        ["params", name] => Block::Params(name),
        ["words", name] => Block::Words(name),
        kinds => {
            let known: Vec<ObjectKind> = kinds.iter().filter_map(|kind| ObjectKind::by_model(kind)).collect();
            if known.len() == kinds.len() && !known.is_empty() {
                Block::Rows(known, attributes)
            } else {
                Block::Unknown
            }
        }
    })
}

impl Compiler {
    fn collect_params(&mut self, source: &'static str) {
        let mut block = None;
        for line in source.lines().filter_map(content) {
            if let Some(next) = header(line) {
                block = Some(next);
                continue;
            }
            let (versions, after) = first_token(line);
            match block {
                Some(Block::Params(name)) => {
                    self.params.entry(name).or_default().push(line);
                    let word = after.split([' ', '(']).next().into_iter();
                    self.out.options.entry(name).or_default().extend(Versions::ALL, word);
                }
                Some(Block::Words(name)) => {
                    let versions = self.versions(versions, line);
                    self.out.words.entry(name).or_default().extend(versions, after.split_whitespace());
                }
                _ => {}
            }
        }
    }

    fn collect_rows(&mut self, source: &'static str) {
        let mut block = Block::Unknown;
        for line in source.lines().filter_map(content) {
            if let Some(next) = header(line) {
                if matches!(next, Block::Unknown) {
                    self.out.errors.push(format!("unknown block {line}"));
                }
                if let Block::Order(kind) = next {
                    self.out.orders.push((kind, Vec::new()));
                }
                block = next;
                continue;
            }
            match &block {
                Block::Rows(kinds, shared) => {
                    let (kinds, shared) = (kinds.clone(), *shared);
                    self.row(&kinds, shared, line);
                }
                Block::Order(_) => {
                    if let Some((_, order)) = self.out.orders.last_mut() {
                        order.push(line);
                    }
                }
                Block::Params(_) | Block::Words(_) | Block::Unknown => {}
            }
        }
    }

    /// Reads one row: `[owners] versions [=] items [; attributes]`.
    fn row(&mut self, kinds: &[ObjectKind], shared: &'static str, line: &'static str) {
        let errors = self.out.errors.len();
        let mut rest = line;
        let mut owners = kinds.to_vec();
        if kinds.len() > 1 {
            let (letters, after) = first_token(rest);
            rest = after;
            owners = kinds
                .iter()
                .copied()
                .filter(|kind| kind.model().chars().next().is_some_and(|c| letters.contains(c)))
                .collect();
            if owners.is_empty() || letters.chars().count() != kinds.len() {
                self.error(line, "its column of sections is not understood");
            }
        }
        let (versions, after) = first_token(rest);
        let versions = self.versions(versions, line);
        // What both a frontend and a backend have in rows of their own, a `listen` has once.
        let is_of_proxy = owners.contains(&ObjectKind::Frontend) || owners.contains(&ObjectKind::Backend);
        if is_of_proxy && !after.starts_with("= ") && self.of_listen.insert(after) {
            owners.push(ObjectKind::Listen);
        }
        let (grammar, own) = split_attributes(after);
        let attributes: &'static str = match (shared, own) {
            ("", own) => own,
            (shared, "") => shared,
            // Once for each such row while the table is read, which lives for ever.
            (shared, own) => Box::leak(format!("{shared} {own}").into_boxed_str()),
        };
        let (is_header, grammar) = match grammar.strip_prefix("= ") {
            Some(grammar) => (true, grammar),
            None => (false, grammar),
        };
        if let Some(child) = grammar.strip_prefix('@') {
            let Some(child) = ObjectKind::by_model(child.trim()) else {
                self.error(line, "no such kind of child");
                return;
            };
            let attributes = self.attributes(attributes, &[], "", line);
            self.out.rows.push(Row { child: Some(child), attributes, ..Row::new(owners, versions) });
            return;
        }
        let mut tokens = grammar.split_whitespace();
        let mut items = self.items(&mut tokens, "", line).0;
        resolve_stops(&mut items, &[]);
        let attributes = self.attributes(attributes, &items, "", line);
        let row = Row { is_header, items, attributes, ..Row::new(owners, versions) };
        if self.out.errors.len() == errors {
            self.out.rows.push(row);
        }
    }

    pub(super) fn error(&mut self, line: &str, what: &str) {
        self.out.errors.push(format!("{what}: {line}"));
    }

    /// Notes an error unless something holds.
    pub(super) fn expect(&mut self, holds: bool, line: &str, what: &str) {
        if !holds {
            self.error(line, what);
        }
    }

    /// Reads a range of versions: `*`, `3.1+`, `-3.2`, `3.1-3.3`, `3.1`.
    pub(super) fn versions(&mut self, text: &str, line: &str) -> Versions {
        let range = (|| -> Option<Versions> {
            if text == "*" {
                return Some(Versions::ALL);
            }
            if let Some(since) = text.strip_suffix('+') {
                return Some(Versions { since: since.parse().ok()?, until: Version::LATEST });
            }
            let (since, until) = text.split_once('-').unwrap_or((text, text));
            let since = if since.is_empty() { Version::V2_6 } else { since.parse().ok()? };
            Some(Versions { since, until: until.parse().ok()? })
        })();
        range.unwrap_or_else(|| {
            self.error(line, "its versions are not understood");
            Versions::ALL
        })
    }

    /// Interns a path. Whether a zero is kept belongs to the identity of a field.
    pub(super) fn field(&mut self, path: &str, zero: Zero) -> Field {
        if let Some((_, field)) = self.by_path.get_key_value(&(path, zero)) {
            return *field;
        }
        // Once for each path while the table is read: paths live as long as the table, which is for ever.
        let path: &'static str = Box::leak(path.to_owned().into_boxed_str());
        let field = Field(u16::try_from(self.out.fields.len()).unwrap_or(u16::MAX));
        self.out.fields.push(FieldInfo { path, zero });
        self.by_path.insert((path, zero), field);
        field
    }

    /// Reads items up to a closing token, which is returned.
    fn items(
        &mut self,
        tokens: &mut dyn Iterator<Item = &'static str>,
        prefix: &str,
        line: &str,
    ) -> (Vec<Item>, Option<&'static str>) {
        let mut items = Vec::new();
        while let Some(token) = tokens.next() {
            match token {
                "[" => {
                    // The paths of a repeated group are those of an element: they get no prefix, which is known only at its end.
                    let group: Vec<&'static str> = balanced(tokens);
                    let (inner, end) = group.split_at(group.len().saturating_sub(1));
                    let list = end.first().and_then(|end| end.strip_prefix("]*"));
                    let inner_prefix = if list.is_some() { "" } else { prefix };
                    let inner = self.items(&mut inner.iter().copied(), inner_prefix, line).0;
                    items.push(match list {
                        Some(path) => Item::Repeat {
                            field: self.field(&format!("{prefix}{path}"), Zero::Dropped),
                            items: inner,
                        },
                        None => Item::Optional(inner),
                    });
                }
                "{" => {
                    let mut options = Options::default();
                    loop {
                        let (inner, end) = self.items(tokens, prefix, line);
                        if !inner.is_empty() {
                            add_option(&mut options, Entry { items: inner, ..Entry::default() });
                        }
                        match end {
                            Some("/") => {}
                            Some("}") => break,
                            _ => {
                                self.error(line, "a brace is not closed");
                                break;
                            }
                        }
                    }
                    items.push(Item::Options(options));
                }
                "}" | "/" => return (items, Some(token)),
                token if token.starts_with("?if") || token.starts_with("!if") => {
                    let own = token.get(3..).unwrap_or_default().trim_start_matches(':');
                    let cond = self.field(&format!("{prefix}{own}cond"), Zero::Dropped);
                    let test = self.field(&format!("{prefix}{own}cond_test"), Zero::Dropped);
                    items.push(Item::Condition { cond, test, required: token.starts_with('!') });
                }
                token if token.starts_with('%') => {
                    let (name, own) = token
                        .get(1..)
                        .unwrap_or_default()
                        .split_once(':')
                        .unwrap_or((token.get(1..).unwrap_or_default(), ""));
                    let options = self.include(name, &format!("{prefix}{own}"), line);
                    items.push(Item::Options(options));
                }
                token => {
                    let item = self.item(token, prefix, line);
                    items.push(item);
                }
            }
        }
        (items, None)
    }

    /// Makes the options of a block of parameters.
    fn include(&mut self, name: &'static str, prefix: &str, line: &str) -> Options {
        let mut options = Options { block: Some(name), ..Options::default() };
        let Some(rows) = self.params.get(name).cloned() else {
            self.error(line, "no such block of parameters");
            return options;
        };
        if self.including.contains(&name) {
            self.error(line, "a block of parameters includes itself");
            return options;
        }
        self.including.push(name);
        for row in rows {
            let (versions, after) = first_token(row);
            let versions = self.versions(versions, row);
            let (grammar, attributes) = split_attributes(after);
            let mut tokens = grammar.split_whitespace();
            let items = self.items(&mut tokens, prefix, row).0;
            let attributes = self.attributes(attributes, &items, prefix, row);
            // What an element of a list holds are its own fields, which have no prefix.
            let items = match attributes.list {
                Some(_) => self.items(&mut grammar.split_whitespace(), "", row).0,
                None => items,
            };
            let entry = Entry { versions, items, attributes, ..Entry::default() };
            add_option(&mut options, entry);
        }
        self.including.pop();
        options
    }
}

/// Adds an option, and for one that toggles its opposite, which starts with `no-`.
fn add_option(options: &mut Options, mut entry: Entry) {
    if let [Item::Literal(word), Item::Value { field, ty: ty @ Type::Toggle, .. }] =
        entry.items.as_mut_slice()
    {
        let opposite: &'static str = Box::leak(format!("no-{word}").into_boxed_str());
        let ty_disabled = Type::Always("disabled");
        let disabled = Item::Value { field: *field, ty: ty_disabled, stops: Vec::new(), limit: None };
        *ty = Type::Always("enabled");
        let dynamic = entry.attributes.dynamic_no;
        let attributes = Attributes {
            dynamic,
            provides: Vec::new(),
            requires: Vec::new(),
            takes_away: !entry.attributes.adds_to.is_empty(),
            ..entry.attributes.clone()
        };
        let opposite = Entry { items: vec![Item::Literal(opposite), disabled], attributes, ..entry.clone() };
        options.add(entry);
        options.add(opposite);
        return;
    }
    options.add(entry);
}

/// Takes tokens up to the bracket that closes a group that was opened; that bracket is the last of them.
fn balanced(tokens: &mut dyn Iterator<Item = &'static str>) -> Vec<&'static str> {
    let mut depth = 1_usize;
    let mut group = Vec::new();
    for token in tokens {
        if token == "[" {
            depth += 1;
        } else if token == "]" || token.starts_with("]*") {
            depth -= 1;
        }
        group.push(token);
        if depth == 0 {
            break;
        }
    }
    group
}

/// Takes the first token off a line.
fn first_token(line: &'static str) -> (&'static str, &'static str) {
    match line.split_once(char::is_whitespace) {
        Some((token, rest)) => (token, rest.trim_start()),
        None => (line, ""),
    }
}

/// Splits the attributes off a row.
fn split_attributes(line: &'static str) -> (&'static str, &'static str) {
    match line.split_once(" ; ") {
        Some((grammar, attributes)) => (grammar.trim_end(), attributes),
        None => (line, ""),
    }
}
