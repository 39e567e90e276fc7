//! Whether a server or a backend can be added to a running HAProxy, and if not, why.

use std::cell::{OnceCell, RefCell};

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_plan::Runtime;

use super::runtime::{RuntimeContext, address, base_of_servers, is_enabled};
use crate::model::{Context, Field, Fields, Object, ObjectKind, Value, section_model};
use crate::table::address::{Reached, lacks_port, reached};
use crate::table::facts::{Base, facts};
use crate::table::grammar::{Entry, first_word};
use crate::table::resources::Resource;
use crate::table::write::{WriteContext, static_option, unwritten, write_row};
use crate::table::{Company, Distinct, directives};
use crate::text::{SectionKind, Word};

/// What is the same for all servers that come to a section, and is looked for where the first of them asks.
#[derive(Debug, Default)]
pub(super) struct Found {
    static_line: OnceCell<Option<String>>,
    provided: RefCell<FxHashMap<Resource, bool>>,
    servers: OnceCell<Servers>,
}

/// The servers of a section as it runs.
#[derive(Debug, Default)]
struct Servers {
    count: i64,
    has_template: bool,
    /// The values that no two of them may share.
    values: FxHashSet<(Field, String)>,
}

impl RuntimeContext<'_> {
    /// Returns the verdict about a section that is new.
    pub(super) fn new_section(&self, kind: SectionKind, object: &Object) -> Runtime {
        if kind != SectionKind::Backend {
            return Runtime::no(format!("adding a `{kind}` section needs a reload"));
        }
        if !self.version.adds_backends() {
            return Runtime::no("a backend can be added at runtime only from 3.4 on");
        }
        let is_static = |field: Field| {
            Some(field) != directives().metadata_field()
                && !directives().is_dynamic(ObjectKind::Backend, field, self.version)
        };
        if let Some((field, _)) = object.fields.iter().find(|(field, _)| is_static(*field)) {
            return Runtime::no(format!("a backend that is added at runtime can't have `{field}`"));
        }
        if object.get("from").is_none() {
            return Runtime::no("a backend that is added at runtime must name its `defaults` with `from`");
        }
        let stated = |object: &Object| object.get("mode").is_some();
        let governing = self.defaults.iter().find(|object| stated(object));
        if !stated(object) && governing.is_none() {
            return Runtime::no(
                "neither the backend nor its `defaults` say its mode, which is needed at runtime",
            );
        }
        let mut governing = std::iter::once(object).chain(governing);
        let refused = governing.find_map(|object| self.static_value(object));
        if let Some((field, value)) = refused {
            return Runtime::no(format!("a backend with `{field} {value}` can't be added at runtime"));
        }
        let distinct = directives().distinct(ObjectKind::Backend).into_iter();
        let mut everywhere = distinct.filter(|(_, distinct)| *distinct == Distinct::Everywhere);
        let taken = everywhere.find_map(|(field, _)| {
            let value = object.fields.get(field)?;
            self.named.is_taken(value.as_str()?).then_some((field, value))
        });
        taken.map_or(Runtime::Yes, |(field, value)| {
            Runtime::no(format!("something else may have its `{field} {value}` while HAProxy runs"))
        })
    }

    /// Finds a value of a section or of its `defaults` that a backend can't have which is added at runtime.
    fn static_value<'o>(&self, object: &'o Object) -> Option<(Field, &'o Value)> {
        object.fields.iter().find_map(|(field, value)| {
            let accepted = directives().dynamic_values(ObjectKind::Backend, *field, self.version);
            let is_static =
                !accepted.is_empty() && !value.as_str().is_some_and(|text| accepted.contains(&text));
            is_static.then_some((*field, value))
        })
    }

    /// Why a server can't be added.
    pub(super) fn add_server(&self, new: &Object) -> Option<String> {
        if let Some(refused) = self.static_balance() {
            return Some(refused);
        }
        let own = self.old.or(self.new).and_then(|model| model.object.as_ref());
        // What a section says wins over what its `defaults` say.
        let governing: Vec<&Object> = own.into_iter().chain(&self.old_defaults).collect();
        let line = directives().static_servers(&governing, self.version).or_else(|| self.static_line());
        if let Some(line) = line {
            return Some(format!("a server can't be added at runtime beside `{line}`"));
        }
        if let Some(refused) = self.mixes(new) {
            return Some(refused);
        }
        let whole = self.added(new);
        if let Some(refused) = self.unnamed(&whole, &governing) {
            return Some(refused);
        }
        if let Some(refused) = self.unmet(&whole, &governing).or_else(|| self.taken(&whole)) {
            return Some(refused);
        }
        let rows = directives().rows(ObjectKind::Server, self.version);
        let site = WriteContext { judges: false, ..WriteContext::new(&Context::new(self.version), None) };
        for row in rows {
            if let Some(word) = static_option(row, &whole.fields, site) {
                return Some(format!("a server with `{word}` can't be added at runtime"));
            }
        }
        let mut written = directives().rows(ObjectKind::Server, self.version);
        let written = written.find_map(|row| write_row(row, &whole.fields, site).ok().flatten());
        let lost = written.map(|written| unwritten(Some(ObjectKind::Server), &whole.fields, &written.used));
        if let Some((field, _)) = lost.iter().flatten().next() {
            return Some(format!("HAProxy {} has no `{field}` of a server", self.version));
        }
        if let Err(error) = new.write(&Context::new(self.version), &mut Vec::new()) {
            return Some(format!("HAProxy {} refuses it: {error}", self.version));
        }
        let loaded = directives().loaded_files(ObjectKind::Server);
        let mut files = whole.fields.iter().filter(|(field, _)| loaded.contains(field));
        let mut files = files.by_ref().filter_map(|(_, value)| value.as_str());
        if let Some(file) = files.find(|file| !file.starts_with('@') && !self.named.is_loaded(file)) {
            return Some(format!("nothing has loaded `{file}`"));
        }
        if let Some(refused) = self.refuses_address(address(new)) {
            return Some(refused);
        }
        let tracked = whole.get("track").and_then(Value::as_str).filter(|tracked| !self.is_there(tracked));
        tracked.map(|tracked| {
            format!("it tracks `{tracked}`, which is not there with a check when HAProxy starts")
        })
    }

    /// A server that comes, with what it takes over in a file from elsewhere: it is told all of that.
    pub(super) fn added(&self, server: &Object) -> Object {
        let mut whole = self.effective(server);
        directives().follow(&mut whole, self.version);
        whole
    }

    /// Why a server can't be added whose words add to those of `default-server`, or mean something else behind them: HAProxy is told
    /// each word once, in the order of the table.
    fn mixes(&self, new: &Object) -> Option<String> {
        let section = self.new.or(self.old).and_then(|model| model.object.as_ref());
        let inherited = section.into_iter().chain(&self.defaults);
        let bases: Vec<Fields> = inherited.map(|object| base_of_servers(object).fields).collect();
        let rows = || directives().rows(ObjectKind::Server, self.version);
        let mixes = bases.iter().enumerate().any(|(at, base)| {
            let nearer = std::iter::once(&new.fields).chain(bases.get(..at).unwrap_or_default());
            nearer.into_iter().any(|own| rows().any(|row| row.adds_options(base, own)))
        });
        mixes.then(|| "its words and those of `default-server` can't be told as one line".to_owned())
    }

    /// Why a server can't be added that takes its name for TLS from the requests.
    fn unnamed(&self, whole: &Object, governing: &[&Object]) -> Option<String> {
        let is_named =
            whole.get("sni").is_some() || whole.get("sni_auto").and_then(Value::as_str) == Some("disabled");
        let is_unnamed = !self.version.names_added_servers()
            && is_enabled(whole, "ssl")
            && !is_named
            && self.is_provided(Resource::HttpMode, governing);
        is_unnamed.then(|| {
            format!("HAProxy {} takes no name for TLS from requests where a server is added", self.version)
        })
    }

    /// Finds a line of the section as it runs that the model does not cover, and beside which no server can be added.
    fn static_line(&self) -> Option<String> {
        self.found.static_line.get_or_init(|| self.find_static_line()).clone()
    }

    fn find_static_line(&self) -> Option<String> {
        let unmodelled = &self.old.filter(|model| !model.unmodelled.is_empty())?.unmodelled;
        if self.setting("balance.algorithm").is_some() {
            return None;
        }
        let unmodelled: FxHashSet<u32> = unmodelled.iter().copied().collect();
        let name = self.backend.as_deref().map(str::as_bytes);
        let sections = self.documents[0].sections().iter();
        let mut sections =
            sections.filter(|section| section.kind().is_proxy() && section.name().as_deref() == name);
        sections.find_map(|section| {
            let mut lines = section.lines().filter(|line| unmodelled.contains(&line.number()));
            lines.find_map(|line| {
                let words: Vec<Word<'_>> = line.words().collect();
                facts().static_servers(&words, self.version).map(ToOwned::to_owned)
            })
        })
    }

    /// Why a server can't be added that lacks something, or has options that HAProxy does not accept together.
    fn unmet(&self, whole: &Object, governing: &[&Object]) -> Option<String> {
        let options = directives().stated_options(ObjectKind::Server, &whole.fields, self.version);
        let word = |option: &Entry| option.items.first().and_then(first_word).unwrap_or_default();
        for option in &options {
            let has = |other: &str| options.iter().any(|option| word(option) == other);
            if let Some(other) = option.attributes.company.excluded(has) {
                return Some(Company::refused(word(option), other));
            }
            let required = option.attributes.requires.iter().chain(&option.attributes.dynamic_requires);
            for provision in required.filter(|provision| provision.holds(&whole.fields)) {
                let resource = provision.resource;
                let mut provided = options.iter().flat_map(|option| &option.attributes.provides);
                let is_own = provided.any(|other| other.resource == resource && other.holds(&whole.fields))
                    || resource == Resource::CheckPort && !lacks_port(&address_and_port(whole));
                if !is_own && !self.is_provided(resource, governing) {
                    return Some(resource.message(word(option)));
                }
            }
        }
        None
    }

    /// Returns whether the section, its `defaults` or `global` provide a resource to its servers.
    fn is_provided(&self, resource: Resource, governing: &[&Object]) -> bool {
        let known = self.found.provided.borrow().get(&resource).copied();
        known.unwrap_or_else(|| {
            let children = self.new.or(self.old).map(|model| model.children.as_slice()).unwrap_or_default();
            let objects: Vec<&Object> = governing.iter().copied().chain(children).collect();
            let is_provided = directives().is_provided(resource, &objects) || self.is_global(resource);
            self.found.provided.borrow_mut().insert(resource, is_provided);
            is_provided
        })
    }

    /// Returns whether the `global` section that runs provides a resource, or may do so.
    fn is_global(&self, resource: Resource) -> bool {
        let sections = self.documents[0].sections().iter();
        let mut globals = sections.filter(|section| section.kind() == SectionKind::Global);
        globals.any(|section| {
            let model = section_model(section, &Context::new(self.version));
            model.object.as_ref().is_none_or(|global| directives().is_provided(resource, &[global]))
        })
    }

    /// Why a server can't be added that has what another one has while HAProxy runs.
    fn taken(&self, whole: &Object) -> Option<String> {
        directives().distinct(ObjectKind::Server).into_iter().find_map(|(field, distinct)| {
            let value = whole.fields.get(field)?;
            let servers = self.found.servers.get_or_init(|| self.servers());
            let is_held = servers.values.contains(&(field, value.to_string()));
            let is_taken = match distinct {
                Distinct::Everywhere => self.named.is_taken(value.as_str()?),
                Distinct::Section => is_held,
                // Those without a number have one of the first.
                Distinct::Numbered => {
                    let is_of_the_first = value.as_int().is_some_and(|number| number <= servers.count);
                    is_of_the_first || is_held || servers.has_template
                }
            };
            is_taken.then(|| format!("another one may have its `{field} {value}` while HAProxy runs"))
        })
    }

    /// The servers of the section as it runs.
    fn servers(&self) -> Servers {
        let distinct = directives().distinct(ObjectKind::Server);
        let mut found = Servers::default();
        for server in self.old.map(|model| model.children.as_slice()).unwrap_or_default() {
            if !matches!(server.kind, ObjectKind::Server | ObjectKind::ServerTemplate) {
                continue;
            }
            found.count += 1;
            found.has_template |= server.kind == ObjectKind::ServerTemplate;
            let values = distinct.iter().filter_map(|(field, _)| Some((*field, server.fields.get(*field)?)));
            found.values.extend(values.map(|(field, value)| (field, value.to_string())));
        }
        found
    }

    /// Why a server at an address can't be added.
    fn refuses_address(&self, address: &str) -> Option<String> {
        let why = match reached(address) {
            Reached::Ip | Reached::Socket => return None,
            Reached::Name => "a server whose address is a name can't be added at runtime",
            Reached::Quic if !self.version.reaches_servers_by_quic() => {
                "HAProxy reaches servers by QUIC from 3.3 on only"
            }
            Reached::Quic if self.global_states("expose_experimental_directives", &self.documents[..1]) => {
                return None;
            }
            Reached::Quic => {
                "a server that is reached by QUIC can be added only after `expose-experimental-directives`"
            }
            Reached::Datagram | Reached::Otherwise => {
                "a server at an address of this family can't be added at runtime"
            }
        };
        Some(why.to_owned())
    }

    /// Returns whether the current configuration has a server with a check, by its name or `backend/name`.
    fn is_there(&self, path: &str) -> bool {
        let own = self.backend.as_deref().unwrap_or_default();
        let (backend, server) = path.split_once('/').unwrap_or((own, path));
        let sections = self.documents[0].sections().iter();
        let mut sections = sections.filter(|section| section.name().as_deref() == Some(backend.as_bytes()));
        sections.any(|section| {
            let provides = |word: &str| facts().is_provided_by_option(word, Resource::HealthCheck);
            let facts = facts().section(section.kind());
            let mut checks_by_default = false;
            section.lines().any(|line| {
                let words: Vec<_> = line.words().collect();
                let keyword = words.first().map(Word::to_str_lossy).unwrap_or_default();
                let checks = |word: &Word<'_>| provides(&word.to_str_lossy());
                let has_check = words.iter().skip(1).any(checks);
                match facts.base(&keyword) {
                    Some(Base::Is { .. }) => {
                        checks_by_default |= has_check;
                        false
                    }
                    Some(Base::On(_)) => {
                        words.get(1).is_some_and(|word| word.is(server)) && (checks_by_default || has_check)
                    }
                    None => false,
                }
            })
        })
    }
}

/// The address of a server as it is written, with its port.
fn address_and_port(server: &Object) -> String {
    match server.get("port").and_then(Value::as_int) {
        Some(port) if address(server).contains(':') => format!("[{}]:{port}", address(server)),
        Some(port) => format!("{}:{port}", address(server)),
        None => address(server).to_owned(),
    }
}
