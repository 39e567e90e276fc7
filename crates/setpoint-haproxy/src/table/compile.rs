//! From the text of the table to rows: the only place that knows how rows are laid out.

use rustc_hash::FxHashMap;

use super::forms::form;
use super::grammar::{Direction, Entry, Item, Options, Piece, Type, Versions, resolve_stops};
use super::limits::Limit;
use super::rules::Rule;
use super::{FieldInfo, Repeat, Row, Sequence, Several, Text, Unless, Zero};
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
struct Compiler {
    out: Compiled,
    by_path: FxHashMap<(&'static str, Zero), Field>,
    params: FxHashMap<&'static str, Vec<&'static str>>,
    /// The names of the blocks being included, so that one that includes itself is an error.
    including: Vec<&'static str>,
}

/// A block of the table, by its header.
enum Block {
    Rows(Vec<ObjectKind>),
    Order(ObjectKind),
    Params(&'static str),
    Unknown,
}

/// Removes a comment and blanks; a line with nothing else is skipped.
fn content(line: &'static str) -> Option<&'static str> {
    let line = if line.starts_with('#') { "" } else { line.split(" # ").next().unwrap_or(line) };
    Some(line.trim()).filter(|line| !line.is_empty())
}

/// Reads the header of a block: `[server]`, `[order backend]`, `[params server]`, `[defaults frontend backend]`.
fn header(line: &'static str) -> Option<Block> {
    let inner = line.strip_prefix('[')?.strip_suffix(']')?;
    let words: Vec<&'static str> = inner.split_whitespace().collect();
    Some(match words.as_slice() {
        ["order", kind] => ObjectKind::by_model(kind).map_or(Block::Unknown, Block::Order),
        ["params", name] => Block::Params(name),
        kinds => {
            let known: Vec<ObjectKind> = kinds.iter().filter_map(|kind| ObjectKind::by_model(kind)).collect();
            if known.len() == kinds.len() && !known.is_empty() { Block::Rows(known) } else { Block::Unknown }
        }
    })
}

impl Compiler {
    fn collect_params(&mut self, source: &'static str) {
        let mut block = None;
        for line in source.lines().filter_map(content) {
            if let Some(next) = header(line) {
                block = Some(next);
            } else if let Some(Block::Params(name)) = block {
                self.params.entry(name).or_default().push(line);
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
                Block::Rows(kinds) => {
                    let kinds = kinds.clone();
                    self.row(&kinds, line);
                }
                Block::Order(_) => {
                    if let Some((_, order)) = self.out.orders.last_mut() {
                        order.push(line);
                    }
                }
                Block::Params(_) | Block::Unknown => {}
            }
        }
    }

    /// Reads one row: `[owners] versions [=] items [; attributes]`.
    fn row(&mut self, kinds: &[ObjectKind], line: &'static str) {
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
        let (grammar, attributes) = split_attributes(after);
        let (is_header, grammar) = match grammar.strip_prefix("= ") {
            Some(grammar) => (true, grammar),
            None => (false, grammar),
        };
        if let Some(child) = grammar.strip_prefix('@') {
            let Some(child) = ObjectKind::by_model(child.trim()) else {
                self.error(line, "no such kind of child");
                return;
            };
            let several = match attributes.trim() {
                "" => Several::Any,
                "unique" => Several::Different,
                "single" => Several::No,
                _ => {
                    self.error(line, "an attribute is not understood");
                    Several::Any
                }
            };
            self.out.rows.push(Row { child: Some(child), several, ..Row::new(owners, versions) });
            return;
        }
        let mut tokens = grammar.split_whitespace();
        let mut items = self.items(&mut tokens, "", line).0;
        resolve_stops(&mut items, &[]);
        let mut row = Row { is_header, items, ..Row::new(owners, versions) };
        for attribute in attributes.split_whitespace() {
            match attribute.split_once('=') {
                Some(("list", path)) => row.list = Some(self.field(path, Zero::Dropped)),
                Some(("meta", path)) => row.metadata = Some(self.field(path, Zero::Dropped)),
                Some(("default-unless", text)) => row.default_unless.push(unless(text)),
                Some((key, value)) if key.starts_with("default") => {
                    row.defaults.extend(self.default_of(key, value, line));
                }
                Some(("repeat", name)) => match Repeat::by_name(name) {
                    Some(repeat) => row.repeat = repeat,
                    None => self.error(line, "nothing repeats so"),
                },
                Some(("sequence", text)) => row.sequence = Some(sequence(text)),
                Some(("secret", path)) => row.secret = Some(self.field(path, Zero::Dropped)),
                Some(("mirror", prefix)) => row.mirror = self.mirror(&row.items, prefix),
                Some(("implied", value)) => row.implied = self.implied(&row.items, value),
                Some(("in", kinds)) => row.places = self.places(kinds, line),
                Some(("if", name)) => {
                    row.rule = Rule::by_name(name);
                    if row.rule.is_none() {
                        self.error(line, "no such rule");
                    }
                }
                None if attribute == "read" => row.direction = Direction::Read,
                None if attribute == "write" => row.direction = Direction::Write,
                None if attribute == "runtime" => row.runtime = true,
                None if attribute.split('@').next() == Some("dynamic") => {
                    row.dynamic = Some(self.versions_of(attribute, line));
                }
                None if attribute == "refused" => row.refused = true,
                None if attribute == "instead" => row.text = Some(Text::Instead),
                _ => self.error(line, "an attribute is not understood"),
            }
        }
        if self.out.errors.len() == errors {
            self.out.rows.push(row);
        }
    }

    /// Reads `default=value` or `default@versions=value`.
    fn default_of(
        &mut self,
        key: &'static str,
        value: &'static str,
        line: &str,
    ) -> Option<(Versions, &'static str)> {
        match key.split_once('@') {
            None if key == "default" => Some((Versions::ALL, value)),
            Some(("default", range)) => Some((self.versions(range, line), value)),
            _ => {
                self.error(line, "an attribute is not understood");
                None
            }
        }
    }

    /// Reads the sections in which HAProxy accepts something: `frontend,defaults`.
    fn places(&mut self, kinds: &str, line: &str) -> Vec<ObjectKind> {
        let known: Vec<ObjectKind> = kinds.split(',').filter_map(ObjectKind::by_model).collect();
        if known.len() != kinds.split(',').count() {
            self.error(line, "its sections are not understood");
        }
        known
    }

    /// Returns the fields that show the first element of a list a second time, below a prefix.
    fn mirror(&mut self, items: &[Item], prefix: &str) -> Vec<(Field, Field)> {
        let mut fields = Vec::new();
        super::collect_fields(items, &mut fields);
        let paths: Vec<(Field, &'static str)> =
            fields.into_iter().map(|field| (field, super::path_of(&self.out.fields, field))).collect();
        paths
            .into_iter()
            .map(|(field, path)| (field, self.field(&format!("{prefix}{path}"), Zero::Dropped)))
            .collect()
    }

    /// Reads `value` or `path:value`: what a field holds where the row is written and nothing is said of it.
    fn implied(&mut self, items: &[Item], text: &'static str) -> Option<(Field, crate::model::Value)> {
        let mut fields = Vec::new();
        super::collect_fields(items, &mut fields);
        let (path, text) = text.split_once(':').map_or((None, text), |(path, text)| (Some(path), text));
        let field = match path {
            Some(path) => {
                fields.into_iter().find(|field| super::path_of(&self.out.fields, *field) == path)?
            }
            None => *fields.first()?,
        };
        let value = match text {
            "true" | "false" => crate::model::Value::Bool(text == "true"),
            text => crate::model::Value::Int(text.parse().ok()?),
        };
        Some((field, value))
    }

    fn error(&mut self, line: &str, what: &str) {
        self.out.errors.push(format!("{what}: {line}"));
    }

    /// Reads the versions of an attribute: all for `name`, some for `name@3.0+`.
    fn versions_of(&mut self, attribute: &str, line: &str) -> Versions {
        attribute.split_once('@').map_or(Versions::ALL, |(_, range)| self.versions(range, line))
    }

    /// Reads a range of versions: `*`, `3.1+`, `-3.2`, `3.1-3.3`, `3.1`.
    fn versions(&mut self, text: &str, line: &str) -> Versions {
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
    fn field(&mut self, path: &str, zero: Zero) -> Field {
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
        let mut options = Options::default();
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
            let mut entry = Entry { versions, items, ..Entry::default() };
            for attribute in attributes.split_whitespace() {
                match attribute.split_once('=') {
                    None if attribute == "read" => entry.direction = Direction::Read,
                    None if attribute == "write" => entry.direction = Direction::Write,
                    None if attribute == "runtime" => entry.runtime = true,
                    None if attribute == "secret" => entry.secret = true,
                    None if attribute.starts_with("dynamic") => {
                        let versions = Some(self.versions_of(attribute, row));
                        match attribute.split('@').next() {
                            Some("dynamic") => (entry.dynamic, entry.dynamic_no) = (versions, versions),
                            Some("dynamic-yes") => entry.dynamic = versions,
                            Some("dynamic-no") => entry.dynamic_no = versions,
                            _ => self.error(row, "an attribute is not understood"),
                        }
                    }
                    Some(("default-unless", text)) => entry.default_unless.push(unless(text)),
                    None if attribute == "refused" => entry.refused = true,
                    Some(("in", kinds)) => entry.places = self.places(kinds, row),
                    Some((key, value)) if key.starts_with("default") => {
                        entry.defaults.extend(self.default_of(key, value, row));
                    }
                    // What it holds are the fields of an element, which have no prefix.
                    Some(("list", path)) => {
                        entry.list = Some(self.field(&format!("{prefix}{path}"), Zero::Dropped));
                        entry.items = self.items(&mut grammar.split_whitespace(), "", row).0;
                    }
                    _ => self.error(row, "an attribute is not understood"),
                }
            }
            add_option(&mut options, entry);
        }
        self.including.pop();
        options
    }

    /// Reads one token that stands for at most one word.
    fn item(&mut self, token: &'static str, prefix: &str, line: &str) -> Item {
        if let Some(inner) = token.strip_prefix('<').and_then(|inner| inner.strip_suffix('>'))
            && !inner.contains('<')
        {
            return self.value(inner, prefix, line);
        }
        let (constant, pattern) = match token.split_once('=') {
            Some((path, word)) if !path.contains('<') && !path.is_empty() => {
                (Some(self.field(&format!("{prefix}{path}"), Zero::Dropped)), word)
            }
            _ => (None, token),
        };
        if !pattern.contains('<') {
            return match constant {
                Some(field) => {
                    let (value, word) = pattern.split_once('~').unwrap_or((pattern, pattern));
                    Item::Constant { field, value, word }
                }
                None => Item::Literal(pattern),
            };
        }
        let mut pieces = Vec::new();
        let mut rest = pattern;
        while let Some((literal, after)) = rest.split_once('<') {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(literal));
            }
            let Some((inner, after)) = after.split_once('>') else {
                self.error(line, "a value is not closed");
                break;
            };
            let Typed { path, ty, zero, limit } = self.typed(inner, line);
            pieces.push(Piece::Value { field: self.field(&format!("{prefix}{path}"), zero), ty, limit });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest));
        }
        let constant = constant.map(|field| {
            let word = pattern.split('<').next().unwrap_or(pattern).trim_end_matches(['(', '.', ',']);
            (field, word)
        });
        Item::Pattern { constant, pieces }
    }

    /// Reads what stands between angle brackets as an item of its own.
    fn value(&mut self, inner: &'static str, prefix: &str, line: &str) -> Item {
        let (inner, ported) = inner.strip_suffix('!').map_or((inner, false), |inner| (inner, true));
        let brackets = inner.ends_with(":address6");
        if let Some(paths) = inner.strip_suffix(":address6").or_else(|| inner.strip_suffix(":address")) {
            let mut paths = paths.split(',').map(|path| format!("{prefix}{path}"));
            let address = self.field(&paths.next().unwrap_or_default(), Zero::Dropped);
            let port = paths.next().map(|path| self.field(&path, Zero::Dropped));
            let range_end = paths.next().map(|path| self.field(&path, Zero::Dropped));
            return Item::Address { address, port, range_end, brackets, ported };
        }
        let Typed { path, ty, zero, limit } = self.typed(inner, line);
        let path = if path == "." { path.to_owned() } else { format!("{prefix}{path}") };
        Item::Value { field: self.field(&path, zero), ty, stops: Vec::new(), limit }
    }

    /// Reads `path:type`. A `0` at the end of a type says that a zero is kept in JSON, `0@3.0` that it is up to a version;
    /// what follows in brackets limits the value.
    fn typed(&mut self, inner: &'static str, line: &str) -> Typed {
        let (inner, mut limit) = match inner.strip_suffix(']').and_then(|inner| inner.split_once('[')) {
            Some((inner, text)) => {
                let limit = Limit::read(text);
                if limit.is_none() {
                    self.error(line, "what limits a value is not understood");
                }
                (inner, limit)
            }
            None => (inner, None),
        };
        let (path, name) = inner.split_once(':').unwrap_or((inner, "word"));
        let (name, zero) = match (name.split_once("0@"), name.strip_suffix('0')) {
            (Some((name, until)), _) => (name, until.parse().map_or(Zero::Kept, Zero::KeptUntil)),
            (None, Some(name)) => (name, Zero::Kept),
            (None, None) => (name, Zero::Dropped),
        };
        let ty = match name {
            "word" => Type::Word,
            "name" => Type::Name,
            "int" => Type::Int,
            "count" => Type::Count,
            "ms" => Type::Time(1),
            "s" => Type::Time(1000),
            "seconds" => Type::Seconds,
            "size" => Type::Size,
            "bytes" => Type::Bytes,
            "kb" => Type::Kilobytes,
            "rest" => Type::Rest,
            "args" => Type::Expr,
            "expr" => {
                limit = limit.or_else(|| form("sample").map(Limit::Form));
                Type::Expr
            }
            "words" => Type::Words,
            "ints" => Type::Ints,
            "commas" => Type::Commas,
            "pairs" => Type::Pairs,
            "onoff" => Type::OnOff,
            "switch" => Type::Switch,
            "flag" => Type::Flag,
            "set" => Type::Set,
            "unset" => Type::Unset,
            "once" => Type::Once,
            "toggle" => Type::Toggle,
            "on" => Type::On,
            name if name.starts_with('=') => Type::Always(name.trim_start_matches('=')),
            name if name.starts_with('~') => Type::Otherwise(name.trim_start_matches('~')),
            name if name.contains('|') => Type::OneOf(name.split('|').collect()),
            // A form on its own is that of a word.
            name => {
                limit = limit.or_else(|| form(name).map(Limit::Form));
                if limit.is_none() {
                    self.error(line, "a type is not known");
                }
                Type::Word
            }
        };
        Typed { path, ty, zero, limit }
    }
}

/// Reads `name` or `name:1`: the lines among which the place of one matters.
fn sequence(text: &'static str) -> Sequence {
    let (name, key) = text.split_once(':').unwrap_or((text, ""));
    Sequence { name, key: key.parse().ok() }
}

/// Reads `path:value`, `path` or `global:path`: where a default does not hold.
fn unless(text: &'static str) -> Unless {
    if let Some(path) = text.strip_prefix("global:") {
        return Unless { is_global: true, path, value: None };
    }
    let (path, value) = text.split_once(':').map_or((text, None), |(path, value)| (path, Some(value)));
    Unless { is_global: false, path, value }
}

/// What stands between angle brackets.
struct Typed {
    path: &'static str,
    ty: Type,
    zero: Zero,
    limit: Option<Limit>,
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
        let dynamic = entry.dynamic_no;
        let opposite = Entry { items: vec![Item::Literal(opposite), disabled], dynamic, ..entry.clone() };
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
