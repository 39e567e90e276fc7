//! What a row, or an option of one, says beyond its grammar: the attributes after ` ; `.

use super::Text;
use super::compile::Compiler;
use super::grammar::{Direction, Item, Versions};
use super::names::{Name, Naming, Reference};
use super::resources::{EnvironmentChange, Provision, Resource, RuntimeRule, Step};
use super::rules::Rule;
use super::samples::Stage;
use super::{Repetition, Zero, collect_fields, path_of};
use crate::model::{Field, ObjectKind, Value};

/// The attributes of a row, or of an option.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an attribute of its own")]
pub(crate) struct Attributes {
    /// The list of which each such line, or option, is an element.
    pub(crate) list: Option<Field>,
    /// The field that keeps the comment of the line.
    pub(crate) metadata: Option<Field>,
    /// In which directions it counts.
    pub(crate) direction: Direction,
    /// For an option that is only read: the options of which one has to stand beside it.
    pub(crate) read_beside: Vec<&'static str>,
    /// What a second such line does.
    pub(crate) repeat: Repeat,
    /// For a list whose first element the API shows a second time: the fields of an element, and of its double.
    pub(crate) mirror: Vec<(Field, Field)>,
    /// What the API adds to what it is sent where a field is not given, and what it belongs to is.
    pub(crate) implied: Option<(Field, Value)>,
    /// Where HAProxy can change it without a reload, if anywhere.
    pub(crate) runtime: Option<RuntimeRule>,
    /// The versions that accept it of something that is added to a running HAProxy.
    pub(crate) dynamic: Option<Versions>,
    /// The values that are accepted of it then; all, where there are none.
    pub(crate) dynamic_values: Vec<&'static str>,
    /// Where no server can be added to a running HAProxy beside it.
    pub(crate) static_servers: Option<StaticServers>,
    /// The same of the opposite of an option that toggles.
    pub(crate) dynamic_no: Option<Versions>,
    /// The fields that are never shown.
    pub(crate) secret: Vec<Field>,
    /// Where another value tells whether it is a secret: the field, and what its value holds then.
    pub(crate) secret_if: Vec<SecretIf>,
    /// Of an option: what it sets. Of those that set the same, the last holds.
    pub(crate) sets: Vec<&'static str>,
    /// The lines among which its place matters.
    pub(crate) sequences: Vec<Sequence>,
    /// What holds where it is not given, by version.
    pub(crate) defaults: Vec<(Versions, &'static str)>,
    /// What one of its values is where the line does not give it.
    pub(crate) default_of: Option<(Field, &'static str)>,
    /// Where its default does not hold.
    pub(crate) default_unless: Vec<Unless>,
    /// Whether no HAProxy has it, although the schema has a property for it.
    pub(crate) refused: bool,
    /// The sections in which HAProxy accepts it, if not in all that can hold it.
    pub(crate) places: Vec<ObjectKind>,
    /// What has to hold between its values.
    pub(crate) rule: Option<&'static Rule>,
    /// For the place of children: whether there can be several.
    pub(crate) several: Multiplicity,
    /// For what opens a section: within which names it has to have one of its own.
    pub(crate) unique: Option<Unique>,
    /// What it is beside the schema, if it is not of the schema.
    pub(crate) text: Option<Text>,
    /// What its values refer to.
    pub(crate) references: Vec<Reference>,
    /// What HAProxy wants of what it refers to.
    pub(crate) references_require: Option<Resource>,
    /// The settings of the section without which HAProxy does not look up what it refers to.
    pub(crate) references_if: Vec<&'static str>,
    /// What its values give names to.
    pub(crate) names: Vec<Naming>,
    /// The field that names the stick table it works on; where it is not given, that is the section's own.
    pub(crate) stick_table: Option<Field>,
    /// The versions that warn of it, and what to do instead.
    pub(crate) deprecated: Option<(Versions, &'static str)>,
    /// The versions that accept it only after `expose-experimental-directives`.
    pub(crate) experimental: Option<Versions>,
    /// The options of which HAProxy wants one.
    pub(crate) needs: Vec<&'static str>,
    /// Whether HAProxy ignores it, with a warning.
    pub(crate) ignored: bool,
    /// Whether HAProxy ignores it in what others start from, such as `default-server`.
    pub(crate) no_default: bool,
    /// For what opens a section: the word that begins a line without which HAProxy refuses it.
    pub(crate) wants: Option<&'static str>,
    /// The options that HAProxy does not accept beside it.
    pub(crate) excludes: Vec<&'static str>,
    /// Where no other may have its value.
    pub(crate) distinct: Option<Distinct>,
    /// What it gives to others.
    pub(crate) provides: Vec<Provision>,
    /// What it can't be without.
    pub(crate) requires: Vec<Provision>,
    /// What it can't be without in something that is added to a running HAProxy.
    pub(crate) dynamic_requires: Vec<Provision>,
    /// Values that have to be less than a number that `global` sets: the field, and the path of that number.
    pub(crate) less_than: Vec<(Field, &'static str)>,
    /// What it does, if it is a step of a health check.
    pub(crate) step: Option<Step>,
    /// The name of the lines below that start from its values.
    pub(crate) base: Option<&'static str>,
    /// The name of the lines above that it starts from.
    pub(crate) based_on: Option<&'static str>,
    /// Whether its value is a file that HAProxy loads when it starts, and not later.
    pub(crate) loads: bool,
    /// Whether its section is in use after such a line, if it decides that.
    pub(crate) state: Option<bool>,
    /// Whether HAProxy accepts it in `defaults` sections only where these have a name.
    pub(crate) wants_named_defaults: bool,
    /// Of an option of servers: the values with which a server's place in a consistent hash does not follow from the order of
    /// servers; all, where there are none.
    pub(crate) hash_place: Option<Vec<&'static str>>,
    /// What it does to the environment.
    pub(crate) environment: Option<EnvironmentChange>,
    /// For what opens a section: the name that one has which HAProxy makes by itself.
    pub(crate) predefined: Option<&'static str>,
    /// When its expressions are evaluated.
    pub(crate) stage: Option<&'static Stage>,
    /// When it is created among others: what is referred to comes first.
    pub(crate) rank: Option<i32>,
    /// Where such lines stand among the other lines of their section that have places.
    pub(crate) place: Option<u8>,
    /// What an algorithm makes of its servers.
    pub(crate) servers: Option<Servers>,
    /// Whether `no` may stand before it, although it does not toggle.
    pub(crate) negatable: bool,
    /// The versions in which its address can't be one of QUIC.
    pub(crate) no_quic: Option<Versions>,
    /// The versions in which its address can't be one of datagrams.
    pub(crate) no_datagrams: Option<Versions>,
    /// The versions of HAProxy that have it, where not those of the schema.
    pub(crate) haproxy: Option<Versions>,
}

/// Whether a section can have several children of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Multiplicity {
    /// As many as one likes.
    #[default]
    Many,
    /// As many as have names of their own: HAProxy refuses the second.
    UniqueNames,
    /// As many as have names of their own: HAProxy warns of the second, and passes over it.
    UniqueNamesWarned,
    /// Just one.
    One,
}

/// Within which sections a name must be given once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unique {
    /// The names of the groups of sections, each with the versions that look at it; none for those of its own kind.
    pub(crate) groups: Vec<(&'static str, Versions)>,
    /// Whether HAProxy warns only.
    pub(crate) is_warned: bool,
}

/// What a second line of a directive does to the first, or the same option once more in a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It takes its place.
    #[default]
    Last,
    /// `repeat=first`: HAProxy ignores it, with a warning.
    First,
    /// `repeat=refused`: HAProxy refuses it.
    Refused,
    /// `repeat=add`: its words come after those of the first, as if all stood in one line; those of an option after a comma.
    Add,
    /// `repeat=merge`: its options come beside those of the first, and win over the same ones: `default-server`.
    Merge,
    /// `repeat=beside`: both hold, which the schema can't say: from the second on, such lines are not modelled, nor is a line that
    /// has the option twice.
    Beside,
}

impl Repeat {
    /// Finds what a row calls by a name.
    fn by_name(name: &str) -> Option<Self> {
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

/// Where no server can be added to a running HAProxy.
#[derive(Clone, Debug)]
pub(crate) struct StaticServers {
    /// The versions that do not accept one.
    pub(crate) versions: Versions,
    /// The values with which they don't; all, where there are none.
    pub(crate) values: Vec<&'static str>,
    /// Whether they do where an algorithm is stated.
    pub(crate) unless_balance: bool,
}

/// Where no other may have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Distinct {
    /// `distinct`: among such lines of a section.
    Section,
    /// `distinct=numbered`: among such lines of a section, of which those without one are numbered in their order.
    Numbered,
    /// `distinct=everywhere`: in the whole configuration.
    Everywhere,
}

impl Distinct {
    /// Finds what rows call by a name.
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "" => Self::Section,
            "numbered" => Self::Numbered,
            "everywhere" => Self::Everywhere,
            _ => return None,
        })
    }
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

/// A value that is a secret where another one holds a text.
#[derive(Clone, Debug)]
pub(crate) struct SecretIf {
    pub(crate) secret: Field,
    pub(crate) field: Field,
    /// Parts of the other value, in capitals.
    pub(crate) parts: Vec<&'static str>,
}

/// What an algorithm makes of the servers of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Servers {
    /// Whether servers can be added and weights changed while HAProxy runs: `dynamic`.
    pub(crate) are_dynamic: bool,
    /// Whether their order counts: `ordered`.
    pub(crate) are_ordered: bool,
    /// Whether `hash-type` decides over both: `hashed`.
    pub(crate) are_hashed: bool,
}

impl Attributes {
    /// Returns what a second line, or the same option once more in a line, does to the first.
    pub(crate) fn repetition(&self) -> Repetition {
        match (self.list.is_some(), self.repeat) {
            (true, _) | (false, Repeat::Add | Repeat::Merge | Repeat::Beside) => Repetition::Counts,
            (false, Repeat::First) => Repetition::Ignored,
            (false, Repeat::Refused) => Repetition::Refused,
            (false, Repeat::Last) => Repetition::Replaces,
        }
    }

    /// Returns whether HAProxy accepts it of something that is added to it.
    pub(crate) fn is_dynamic(&self, version: crate::model::Version) -> bool {
        self.dynamic.is_some_and(|dynamic| dynamic.contains(version))
    }

    /// Returns whether a version of HAProxy has it, as far as it says.
    pub(crate) fn is_of(&self, version: crate::model::Version) -> bool {
        self.haproxy.is_none_or(|versions| versions.contains(version))
    }

    /// Returns whether HAProxy accepts it in some sections only, of which one is none.
    pub(crate) fn is_outside(&self, section: Option<ObjectKind>) -> bool {
        section.is_some_and(|section| {
            let is_in = |kind: &ObjectKind| match section {
                ObjectKind::Listen => matches!(kind, ObjectKind::Frontend | ObjectKind::Backend),
                section => *kind == section,
            };
            !self.places.is_empty() && !self.places.iter().any(is_in)
        })
    }
}

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
                ("needs", options) => read.needs = parts(options, '|'),
                ("ignored", "") => read.ignored = true,
                ("no-default", "") => read.no_default = true,
                ("wants", word) => read.wants = Some(word),
                ("excludes", options) => read.excludes = parts(options, '|'),
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
