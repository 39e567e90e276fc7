//! From the text after ` ; ` to the attributes of a row, or of an option.

use super::attributes::{
    Attributes, Distinct, Multiplicity, Repeat, SecretIf, Sequence, Servers, StaticServers, Unique, Unless,
};
use super::compile::Compiler;
use super::grammar::{Direction, Item, Versions};
use super::names::{Name, Naming, Reference};
use super::resources::{EnvironmentChange, Provision, Resource, RuntimeRule, Step};
use super::rules::Rule;
use super::samples::Stage;
use super::{Text, Zero, collect_fields, path_of};
use crate::model::{Field, ObjectKind, Value};

impl Compiler {
    /// Reads the attributes of a row or an option. Paths that they name get a prefix.
    pub(super) fn attributes(
        &mut self,
        text: &'static str,
        items: &[Item],
        prefix: &str,
        line: &str,
    ) -> Attributes {
        let mut read = Attributes::default();
        let mut fields = Vec::new();
        collect_fields(items, &mut fields);
        for attribute in words(text) {
            let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let (name, range) = key.split_once('@').map_or((key, None), |(name, range)| (name, Some(range)));
            let versions = match range {
                Some(range) => self.versions(range, line),
                None => Versions::ALL,
            };
            match (name, value) {
                ("list", path) => read.list = Some(self.field(&format!("{prefix}{path}"), Zero::Dropped)),
                ("meta", path) => read.metadata = Some(self.field(path, Zero::Dropped)),
                ("default-unless", text) => read.default_unless.push(unless(text)),
                ("default", value) => read.defaults.push((versions, value)),
                ("default-of", text) => {
                    let (path, value) = text.split_once(':').unwrap_or((text, ""));
                    read.default_of = self.owned(&fields, path, prefix, line).map(|field| (field, value));
                }
                ("repeat", name) => match Repeat::by_name(name) {
                    Some(repeat) => read.repeat = repeat,
                    None => self.error(line, "nothing repeats so"),
                },
                ("sets", names) => read.sets = parts(names, ','),
                ("adds-to", names) => read.adds_to = parts(names, ','),
                ("sequence", text) => read.sequences.push(sequence(text)),
                ("secret", path) => match self.owned(&fields, path, prefix, line) {
                    Some(field) => read.secret.push(field),
                    None => read.secret.clone_from(&fields),
                },
                ("secret-if", text) => read.secret_if.extend(self.secret_if(&fields, text, prefix, line)),
                ("mirror", prefix) => read.mirror = self.mirror(&fields, prefix),
                ("implied", value) => read.implied = self.implied(&fields, value),
                ("in", kinds) => read.places = self.places(kinds, line),
                ("if", name) => {
                    read.rule = Rule::by_name(name);
                    self.expect(read.rule.is_some(), line, "no such rule");
                }
                ("read", options) => {
                    (read.direction, read.read_beside) = (Direction::Read, parts(options, '|'));
                }
                ("write", "") => read.direction = Direction::Write,
                ("runtime", name) => {
                    read.runtime = RuntimeRule::by_name(name);
                    self.expect(read.runtime.is_some(), line, "no value is changed at runtime so");
                }
                ("dynamic", values) => {
                    (read.dynamic, read.dynamic_no) = (Some(versions), Some(versions));
                    read.dynamic_values = parts(values, '|');
                }
                ("static-servers" | "static-unless-balance", values) => {
                    let (values, unless_balance) = (parts(values, '|'), name == "static-unless-balance");
                    read.static_servers = Some(StaticServers { versions, values, unless_balance });
                }
                ("dynamic-yes", "") => read.dynamic = Some(versions),
                ("dynamic-no", "") => read.dynamic_no = Some(versions),
                ("follows", paths) => read.follows = parts(paths, '|'),
                ("follows-beside", path) => read.follows_beside = Some(path),
                ("follows-unless", paths) => read.follows_unless = parts(paths, '|'),
                ("refused", "") => read.refused = true,
                ("instead", "") => read.text = Some(Text::Instead),
                ("single", "") => read.several = Multiplicity::One,
                ("unique", groups) => read.unique(groups, versions),
                ("ref", text) => read.references.extend(self.reference(items, &fields, text, prefix, line)),
                ("name", text) => read.names.extend(self.naming(items, &fields, text, prefix, line)),
                ("stick-table", path) => {
                    read.stick_table = self.owned(&fields, path, prefix, line);
                    let field = read.stick_table;
                    let table = |field| Reference { field, name: Name::Table, may_dangle: false };
                    read.references.extend(field.map(table));
                }
                ("deprecated", advice) => read.deprecated = Some((versions, advice.trim_matches('"'))),
                ("experimental", "") => read.experimental = Some(versions),
                ("needs", options) => read.company.needs = parts(options, '|'),
                ("ignored", "") => read.ignored = true,
                ("no-default", "") => read.no_default = true,
                ("wants", word) => read.wants = Some(word),
                ("ignores-rest", "") => read.ignores_rest = true,
                ("excludes", options) => read.company.excludes = parts(options, '|'),
                ("distinct", name) => {
                    read.distinct = Distinct::by_name(name);
                    self.expect(read.distinct.is_some(), line, "nothing is distinct so");
                }
                ("provides", text) => read.provides.extend(self.provision(&fields, text, prefix, line)),
                ("requires", text) => read.requires.extend(self.provision(&fields, text, prefix, line)),
                ("dynamic-requires", text) => {
                    read.dynamic_requires.extend(self.provision(&fields, text, prefix, line));
                }
                ("less-than", text) => {
                    let (path, limit) = text.split_once(':').unwrap_or((text, ""));
                    let field = self.owned(&fields, path, prefix, line);
                    self.expect(field.is_some() && !limit.is_empty(), line, "two numbers are compared");
                    read.less_than.extend(field.map(|field| (field, limit)));
                }
                ("step", "") => read.step = Some(Step::Uses),
                ("step", "connect") => read.step = Some(Step::Connects),
                ("base", name) => read.base = Some(name),
                ("based-on", name) => read.based_on = Some(name),
                ("loads", "") => read.loads = true,
                ("ref-requires", name) => {
                    read.references_require = Resource::by_name(name);
                    self.expect(read.references_require.is_some(), line, "there is no such resource");
                }
                ("ref-if", paths) => read.references_if = parts(paths, ','),
                ("state", "on" | "off") => read.state = Some(value == "on"),
                ("named", "") => read.wants_named_defaults = true,
                ("hash-place", values) => read.hash_place = Some(parts(values, '|')),
                ("env", name) => {
                    read.environment = EnvironmentChange::by_name(name);
                    self.expect(read.environment.is_some(), line, "nothing changes the environment so");
                }
                ("predefined", name) => read.predefined = Some(name),
                ("stage", name) => {
                    read.stage = Stage::by_name(name);
                    self.expect(read.stage.is_some(), line, "no such stage");
                }
                ("rank", number) => {
                    read.rank = number.parse().ok();
                    self.expect(read.rank.is_some(), line, "a rank is a number");
                }
                ("place", number) => {
                    read.place = number.parse().ok();
                    self.expect(read.place.is_some(), line, "a place is a number");
                }
                ("servers", text) => read.servers = Some(servers(text)),
                ("no", "") => read.negatable = true,
                ("no-quic", range) => read.no_quic = Some(self.versions(range, line)),
                ("experimental-quic", range) => read.experimental_quic = Some(self.versions(range, line)),
                ("no-datagrams", range) => read.no_datagrams = Some(self.versions(range, line)),
                ("haproxy", range) => read.haproxy = Some(self.versions(range, line)),
                _ => self.error(line, "an attribute is not understood"),
            }
        }
        read
    }

    /// Finds a field of a row by its path; none where no path is given.
    fn owned(&mut self, fields: &[Field], path: &str, prefix: &str, line: &str) -> Option<Field> {
        if path.is_empty() {
            return None;
        }
        let path = format!("{prefix}{path}");
        let found = fields.iter().copied().find(|field| path_of(&self.out.fields, *field) == path);
        self.expect(found.is_some(), line, "it has no such value");
        found
    }

    /// Reads `name`, `name?`, `path:name`: a value, and what it is the name of.
    fn reference(
        &mut self,
        items: &[Item],
        fields: &[Field],
        text: &'static str,
        prefix: &str,
        line: &str,
    ) -> Option<Reference> {
        let (text, may_dangle) = text.strip_suffix('?').map_or((text, false), |text| (text, true));
        let (path, name) = text.split_once(':').unwrap_or(("", text));
        let field = self.owned(fields, path, prefix, line).or_else(|| first_value(items));
        let name = Name::by_keyword(name);
        self.expect(field.is_some() && name.is_some(), line, "nothing is referred to so");
        Some(Reference { field: field?, name: name?, may_dangle })
    }

    /// Reads `name`, `path:name`, or `@:name`: a value, and what it gives a name to.
    fn naming(
        &mut self,
        items: &[Item],
        fields: &[Field],
        text: &'static str,
        prefix: &str,
        line: &str,
    ) -> Option<Naming> {
        let (path, name) = text.split_once(':').unwrap_or(("", text));
        let field = match path {
            "@" => None,
            path => self.owned(fields, path, prefix, line).or_else(|| first_value(items)),
        };
        let name = Name::by_keyword(name);
        self.expect(name.is_some() && (field.is_some() || path == "@"), line, "nothing is named so");
        Some(Naming { field, name: name? })
    }

    /// Reads `resource` or `resource:path=start`: what is provided or required, and the value that decides over it.
    fn provision(
        &mut self,
        fields: &[Field],
        text: &'static str,
        prefix: &str,
        line: &str,
    ) -> Option<Provision> {
        let (name, condition) = text.split_once(':').unwrap_or((text, ""));
        let (path, start) = condition.split_once('=').unwrap_or((condition, ""));
        // The value may be one of another option.
        let path = format!("{prefix}{path}");
        let own = fields.iter().copied().find(|field| path_of(&self.out.fields, *field) == path);
        let when =
            (!condition.is_empty()).then(|| (own.unwrap_or_else(|| self.field(&path, Zero::Dropped)), start));
        let resource = Resource::by_name(name);
        self.expect(resource.is_some(), line, "there is no such resource");
        Some(Provision { resource: resource?, when })
    }

    /// Reads `value:other` or `value:other:PART|PART`: a value that is a secret where another one holds the name of a
    /// credential, or one of some parts.
    fn secret_if(
        &mut self,
        fields: &[Field],
        text: &'static str,
        prefix: &str,
        line: &str,
    ) -> Option<SecretIf> {
        let mut parts = text.splitn(3, ':');
        let mut field =
            |compiler: &mut Self| compiler.owned(fields, parts.next().unwrap_or_default(), prefix, line);
        let (secret, other) = (field(self), field(self));
        self.expect(secret.is_some() && other.is_some(), line, "two values tell a secret");
        let parts = parts.next().map_or(super::secrets::NAMES.to_vec(), |parts| parts.split('|').collect());
        Some(SecretIf { secret: secret?, field: other?, parts })
    }

    /// Reads the sections in which HAProxy accepts something: `frontend,defaults`.
    fn places(&mut self, kinds: &str, line: &str) -> Vec<ObjectKind> {
        let known: Vec<ObjectKind> = kinds.split(',').filter_map(ObjectKind::by_model).collect();
        self.expect(known.len() == kinds.split(',').count(), line, "its sections are not understood");
        known
    }

    /// Returns the fields that show the first element of a list a second time, below a prefix.
    fn mirror(&mut self, fields: &[Field], prefix: &str) -> Vec<(Field, Field)> {
        let paths: Vec<(Field, &'static str)> =
            fields.iter().map(|field| (*field, path_of(&self.out.fields, *field))).collect();
        paths
            .into_iter()
            .map(|(field, path)| (field, self.field(&format!("{prefix}{path}"), Zero::Dropped)))
            .collect()
    }

    /// Reads `value` or `path:value`: what a field holds where the row is written without it.
    fn implied(&mut self, fields: &[Field], text: &'static str) -> Option<(Field, Value)> {
        let (path, text) = text.split_once(':').map_or((None, text), |(path, text)| (Some(path), text));
        let field = match path {
            Some(path) => fields.iter().copied().find(|field| path_of(&self.out.fields, *field) == path)?,
            None => *fields.first()?,
        };
        let value = match text {
            "true" | "false" => Value::Bool(text == "true"),
            text => Value::Int(text.parse().ok()?),
        };
        Some((field, value))
    }
}

impl Attributes {
    /// Reads what follows `unique`.
    fn unique(&mut self, groups: &'static str, versions: Versions) {
        let is_warned = groups == "warned";
        self.several = if is_warned { Multiplicity::UniqueNamesWarned } else { Multiplicity::UniqueNames };
        let groups = groups.split(',').filter(|group| !group.is_empty() && !is_warned);
        let unique = self.unique.get_or_insert_with(|| Unique { groups: Vec::new(), is_warned });
        unique.groups.extend(groups.map(|group| (group, versions)));
    }
}

/// Splits attributes at blanks; what is in double quotes stays together, without them.
fn words(text: &'static str) -> Vec<&'static str> {
    let (mut words, mut rest) = (Vec::new(), text.trim());
    while !rest.is_empty() {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let quote = rest.find('"').filter(|quote| *quote < end);
        let end =
            match quote.and_then(|quote| rest.get(quote + 1..)?.find('"').map(|length| quote + length + 2)) {
                Some(end) => end,
                None => end,
            };
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// Returns the first value of some items that takes a word.
fn first_value(items: &[Item]) -> Option<Field> {
    items.iter().find_map(|item| match item {
        Item::Value { field, ty, .. } if !ty.is_silent() => Some(*field),
        Item::Address { address, .. } => Some(*address),
        _ => None,
    })
}

/// Splits a list of words; none where there is nothing.
fn parts(text: &'static str, at: char) -> Vec<&'static str> {
    text.split(at).filter(|part| !part.is_empty()).collect()
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

/// Reads `dynamic,ordered` and the like.
fn servers(text: &str) -> Servers {
    let has = |word: &str| text.split(',').any(|part| part == word);
    Servers { are_dynamic: has("dynamic"), are_ordered: has("ordered"), are_hashed: has("hashed") }
}
