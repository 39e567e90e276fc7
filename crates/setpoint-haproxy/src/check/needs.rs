//! What lines need that other lines have to give, as `provides=`, `requires=`, `less-than=` and `step` of rows tell.
//!
//! ```text
//!  lines with their rows ──▶ what each section provides ─┐
//!                        └─▶ what each line requires ────┴──▶ what is missing, when all lines have been read
//! ```

use rustc_hash::{FxHashMap, FxHashSet};

use super::configuration::{CheckedLine, Part};
use super::governing::Mode;
use crate::model::{Field, ObjectKind, Version};
use crate::table::accept::Match;
use crate::table::address::lacks_port;
use crate::table::facts::facts;
use crate::table::grammar::{Entry, Item, first_word};
use crate::table::resources::{Provision, Resource, Step};
use crate::table::{Name, Repeat, Row, accepted, directives, fields_of};
use crate::text::{Diagnostic, Problem, SectionKind, Word};

/// What lines provide and require, collected line by line and section by section.
#[derive(Debug, Default)]
pub(super) struct Needs {
    everywhere: Provided,
    own: Provided,
    /// What lines of the section at hand require.
    own_missing: Vec<Missing>,
    missing: Vec<Missing>,
    /// What a section requires and denies, whatever others provide.
    denied: Vec<Missing>,
    /// For each kind of health check of the section at hand, whether its first step connects; nothing where that is unknown.
    first_steps: FxHashMap<&'static str, Option<Step>>,
    /// The numbers that `global` sets; nothing where a number is unknown.
    limits: FxHashMap<&'static str, Option<i64>>,
    exceeding: Vec<Exceeding>,
    /// The servers of all sections, as `backend/server`, each with whether it has a health check.
    servers: FxHashMap<String, bool>,
    tracking: Vec<Tracking>,
    /// The references that servers below have by default in the section at hand.
    default_tracking: Vec<Tracking>,
}

/// A line, and where it stands.
#[derive(Clone, Copy)]
pub(super) struct Place<'p, 'd> {
    pub(super) part: &'p Part<'d>,
    pub(super) line: &'p CheckedLine<'d>,
    /// How many words stand before it: `no` or `default`.
    pub(super) offset: usize,
    /// Whether HAProxy does not look at what the section needs: no proxy uses it, or it is disabled.
    pub(super) is_unused: bool,
}

/// A reference to a server of which HAProxy wants something.
#[derive(Debug)]
struct Tracking {
    file: usize,
    server: String,
    diagnostic: Diagnostic,
}

/// What lines of some sections provide.
#[derive(Debug, Default)]
struct Provided {
    resources: FxHashSet<Resource>,
    /// What a line says that it does not provide, whatever others do.
    denied: FxHashSet<Resource>,
    /// Whether a line that can't be read may provide anything.
    is_open: bool,
}

impl Provided {
    fn has(&self, resource: Resource) -> bool {
        self.is_open || self.resources.contains(&resource)
    }
}

/// Something that a line requires, and what is reported if nothing provides it.
#[derive(Debug)]
struct Missing {
    file: usize,
    resource: Resource,
    diagnostic: Diagnostic,
}

/// A number that has to be less than one that `global` sets.
#[derive(Debug)]
struct Exceeding {
    file: usize,
    number: i64,
    limit: &'static str,
    diagnostic: Diagnostic,
}

impl Needs {
    /// Begins a section.
    pub(super) fn begin(&mut self) {
        self.own = Provided::default();
        self.default_tracking.clear();
        self.first_steps.clear();
    }

    /// Ends a section: what it provides to itself is known, and its mode.
    pub(super) fn end(&mut self, part: &Part<'_>, mode: Mode) {
        let own = std::mem::take(&mut self.own);
        if matches!(part.kind, SectionKind::Global | SectionKind::Defaults) {
            self.everywhere.is_open |= own.is_open;
            self.everywhere.resources.extend(&own.resources);
        }
        for missing in self.own_missing.drain(..) {
            let resource = missing.resource;
            if resource.is_mode() && !mode.may_be(resource) {
                self.denied.push(missing);
                continue;
            }
            if resource.is_mode() || own.has(resource) {
                continue;
            }
            let is_denied = own.denied.contains(&missing.resource);
            if is_denied { self.denied.push(missing) } else { self.missing.push(missing) }
        }
    }

    /// Notes a line that could not be read as any row: it may provide what such lines do.
    pub(super) fn unread(&mut self, part: &Part<'_>, line: &CheckedLine<'_>) {
        let Some(first) = line.words.first() else { return };
        let keyword = first.to_str_lossy();
        self.own.is_open |= first.variable;
        self.own.resources.extend(facts().section(part.kind).provided_by(&keyword));
        if let Some(limit) = facts().sets_limit(&keyword).filter(|_| part.kind == SectionKind::Global) {
            self.limits.insert(limit, None);
        }
        if let Some(first_step) = facts().steps(&keyword) {
            self.first_steps.entry(first_step).or_insert(None);
        }
    }

    /// Notes what a line provides and requires.
    pub(super) fn line(
        &mut self,
        row: &'static Row,
        matched: &Match<'_>,
        place: Place<'_, '_>,
    ) -> Option<Diagnostic> {
        let Place { part, line, offset, is_unused } = place;
        let is_default = row.attributes.repeat == Repeat::Merge;
        let counts = |provision: &&Provision| holds(provision, matched);
        let own = row.attributes.provides.iter().filter(counts).map(|provision| provision.resource);
        self.own.resources.extend(own);
        let others = row.attributes.provides.iter().filter(|provision| !holds(provision, matched));
        self.own.denied.extend(others.map(|provision| provision.resource));
        let options = matched.options.iter().flat_map(|(option, _)| &option.attributes.provides);
        let mut of_line: FxHashSet<Resource> =
            options.filter(counts).map(|provision| provision.resource).collect();
        if has_port(row, matched) {
            of_line.insert(Resource::CheckPort);
        }
        self.servers(row, matched, place, &of_line);
        if is_default {
            self.own.resources.extend(&of_line);
        }
        let keyword = line.words.get(row.keyword_count() - 1 + offset).or(line.words.first());
        let of_row = row.attributes.requires.iter().filter(counts);
        let of_row = of_row.map(|provision| (provision, value_word(provision, matched, line).or(keyword)));
        let of_options = matched.options.iter().enumerate().flat_map(|(at, (option, word))| {
            let later = matched.options.get(at + 1..).unwrap_or_default();
            let requires = option.attributes.requires.iter().filter(|_| !is_overridden(option, later));
            requires
                .filter(|provision| holds(provision, matched))
                .map(|provision| (provision, line.words.get(*word + offset)))
        });
        // What others start from is looked at where they do, and listeners of `global` are HAProxy's own.
        let is_looked_at = !is_default && part.kind != SectionKind::Global;
        for (provision, word) in of_row.chain(of_options).filter(|_| is_looked_at) {
            let Provision { resource, .. } = *provision;
            // Other sections than proxies are checked by HAProxy itself.
            let is_provided = resource == Resource::CheckPort && !part.kind.is_proxy();
            let Some(word) = word.filter(|_| !is_provided && !of_line.contains(&resource)) else { continue };
            let message = resource.message(&word.to_str_lossy());
            let diagnostic = needs(line, word, message).with_hint(resource.hint());
            // HAProxy looks at peers where it is one of them, which its host's name decides.
            let may_be = is_unused && resource.is_of_servers() || part.kind == SectionKind::Peers;
            let diagnostic = if may_be { diagnostic.warning() } else { diagnostic };
            self.own_missing.push(Missing { file: part.file, resource, diagnostic });
        }
        self.numbers(row, matched, part, line);
        self.step(row, line)
    }

    /// Notes that a word of a line requires something, whatever its row tells.
    pub(super) fn require(
        &mut self,
        resource: Resource,
        (part, line): (&Part<'_>, &CheckedLine<'_>),
        (word, name): (&Word<'_>, &str),
    ) {
        let diagnostic = needs(line, word, resource.message(name)).with_hint(resource.hint());
        self.own_missing.push(Missing { file: part.file, resource, diagnostic });
    }

    /// Notes a server and whether it has a health check, and references to servers that have to have one.
    fn servers(
        &mut self,
        row: &Row,
        matched: &Match<'_>,
        Place { part, line, offset, is_unused }: Place<'_, '_>,
        of_line: &FxHashSet<Resource>,
    ) {
        let Some(section) = part.name() else { return };
        let value = |field: Field| matched.values.iter().find(|(given, ..)| *given == field);
        let path =
            |name: &str| if name.contains('/') { name.to_owned() } else { format!("{section}/{name}") };
        let mut names = row.attributes.names.iter().filter(|naming| naming.name == Name::Server);
        if let Some((_, _, name)) = names.find_map(|naming| value(naming.field?)) {
            let has_check = self.own.has(Resource::HealthCheck) || of_line.contains(&Resource::HealthCheck);
            self.servers.insert(path(name), has_check);
            self.tracking.append(&mut self.default_tracking);
        }
        let is_default = row.attributes.repeat == Repeat::Merge;
        for (option, _) in matched.options.iter().filter(|_| !is_unused) {
            let references = option.attributes.references.iter();
            let Some(resource) = option.attributes.references_require else { continue };
            for (_, at, name) in references.filter_map(|reference| value(reference.field)) {
                let Some(word) = line.words.get(*at + offset) else { continue };
                let diagnostic = needs(line, word, resource.message(name)).with_hint(resource.hint());
                let tracking = Tracking { file: part.file, server: path(name), diagnostic };
                if is_default { self.default_tracking.push(tracking) } else { self.tracking.push(tracking) }
            }
        }
    }

    /// Notes the numbers that a line sets for others, and those that have to be less.
    fn numbers(&mut self, row: &Row, matched: &Match<'_>, part: &Part<'_>, line: &CheckedLine<'_>) {
        for (field, at, text) in &matched.values {
            let path = accepted().field_path(*field);
            if part.kind == SectionKind::Global && facts().is_limit(path) {
                self.limits.insert(path, text.parse().ok());
            }
            let limits = row.attributes.less_than.iter().filter(|(limited, _)| limited == field);
            for (_, limit) in limits {
                if let (Ok(number), Some(word)) = (text.parse(), line.words.get(*at)) {
                    let diagnostic = needs(line, word, String::new());
                    self.exceeding.push(Exceeding { file: part.file, number, limit, diagnostic });
                }
            }
        }
    }

    /// Looks at a step of a health check: where one connects, the first has to.
    fn step(&mut self, row: &Row, line: &CheckedLine<'_>) -> Option<Diagnostic> {
        let step = row.attributes.step.filter(|_| line.certain)?;
        let keyword = row.items.first().and_then(first_word)?;
        let first = *self.first_steps.entry(keyword).or_insert(Some(step));
        let word = line.words.get(row.keyword_count() - 1)?;
        (step == Step::Connects && first == Some(Step::Uses)).then(|| {
            needs(line, word, "where a step connects, the first one has to".to_owned())
                .with_hint("put it before all that sends or expects")
        })
    }

    /// Reports what is missing, when all lines have been read.
    pub(super) fn finish(self, version: Option<Version>, found: &mut [Vec<Diagnostic>]) {
        for Missing { file, resource, diagnostic } in self.missing {
            if let Some(found) = found.get_mut(file).filter(|_| !self.everywhere.has(resource)) {
                found.push(diagnostic);
            }
        }
        for Missing { file, diagnostic, .. } in self.denied {
            if let Some(found) = found.get_mut(file) {
                found.push(diagnostic);
            }
        }
        for Tracking { file, server, diagnostic } in self.tracking {
            let is_unchecked = self.servers.get(&server) == Some(&false);
            let is_missing = is_unchecked && !self.everywhere.has(Resource::HealthCheck);
            if let Some(found) = found.get_mut(file).filter(|_| is_missing) {
                found.push(diagnostic);
            }
        }
        let version = version.unwrap_or(Version::LATEST);
        for Exceeding { file, number, limit, diagnostic } in self.exceeding {
            let Some(field) = directives().field(ObjectKind::Global, limit) else { continue };
            let default = || directives().default(ObjectKind::Global, field, version)?.as_int();
            let Some(most) = self.limits.get(limit).copied().unwrap_or_else(default) else { continue };
            let Some(found) = found.get_mut(file).filter(|_| number >= most && !self.everywhere.is_open)
            else {
                continue;
            };
            let starts = directives().starts_of(ObjectKind::Global, field, version);
            let keyword = starts.first().map(String::as_str).unwrap_or_default();
            let message = format!("{number} is too large: it has to be less than {most}");
            let hint = format!("a line `{keyword}` in `global` sets another limit");
            found.push(Diagnostic { message, ..diagnostic }.with_hint(hint));
        }
    }
}

/// Returns whether a provision counts for a line.
fn holds(provision: &Provision, matched: &Match<'_>) -> bool {
    provision.when.is_none_or(|(field, start)| {
        matched.values.iter().any(|(given, _, text)| *given == field && text.starts_with(start))
    })
}

/// Returns whether a line has an address that HAProxy can check as it stands.
fn has_port(row: &Row, matched: &Match<'_>) -> bool {
    row.items.iter().any(|item| match item {
        Item::Address { address, .. } => {
            let mut given = matched.values.iter().filter(|(field, ..)| field == address);
            given.any(|(_, _, text)| !lacks_port(text))
        }
        _ => false,
    })
}

/// Finds the word whose value decides over a provision.
fn value_word<'l>(
    provision: &Provision,
    matched: &Match<'_>,
    line: &'l CheckedLine<'_>,
) -> Option<&'l Word<'l>> {
    let (field, _) = provision.when?;
    let (_, at, _) = matched.values.iter().find(|(given, ..)| *given == field)?;
    line.words.get(*at)
}

/// Returns whether a later option of a line takes the place of one, as `no-ssl` takes that of `ssl`.
fn is_overridden(option: &Entry, later: &[(&'static Entry, usize)]) -> bool {
    let own = fields_of(&option.items);
    later.iter().any(|(other, _)| fields_of(&other.items).iter().any(|field| own.contains(field)))
}

/// Reports what a word needs.
fn needs(line: &CheckedLine<'_>, word: &Word<'_>, message: String) -> Diagnostic {
    line.diagnostic(Problem::Needs, (word.column, word.raw), message)
}
