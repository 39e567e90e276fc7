//! Whether an operation can be done at runtime, and if not, why.

use std::cell::{OnceCell, RefCell};

use rustc_hash::{FxHashMap, FxHashSet};
use setpoint_plan::{AttributeChange, Runtime};
use smol_str::SmolStr;

use super::content::ChildChange;
use super::named::NamedServers;
use crate::model::spelling::{one_word, split};
use crate::model::{Context, Field, Object, ObjectKind, SectionModel, Value, Version, section_model};
use crate::table::address::{Reached, lacks_port, reached};
use crate::table::facts::{Base, facts};
use crate::table::grammar::{Entry, first_word};
use crate::table::resources::{Resource, RuntimeRule};
use crate::table::write::{WriteContext, static_option, unwritten, write_row};
use crate::table::{Distinct, Name, Unless, directives};
use crate::text::{Document, SectionKind, Word};

/// What decides whether an operation can be done at runtime.
#[derive(Debug)]
pub(super) struct RuntimeContext<'a> {
    pub(super) version: Version,
    /// The name of the section.
    pub(super) backend: Option<SmolStr>,
    pub(super) old: Option<&'a SectionModel>,
    pub(super) new: Option<&'a SectionModel>,
    /// The `defaults` that govern the section as it runs, nearest first; of one that is new, those that will.
    pub(super) old_defaults: Vec<Object>,
    /// The `defaults` that govern the section as it is desired, nearest first.
    pub(super) defaults: Vec<Object>,
    /// Both sides.
    pub(super) documents: [&'a Document; 2],
    /// The servers that lines of both sides name.
    pub(super) named: &'a NamedServers<'a>,
    /// What was found once for all servers that come.
    pub(super) found: Found,
}

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

/// Returns the verdict about a section that goes.
pub(super) fn deleted_section(kind: SectionKind) -> Runtime {
    match kind {
        SectionKind::Backend => {
            Runtime::no("a backend is deleted by a reload: it may still serve connections")
        }
        kind => Runtime::no(format!("deleting a `{kind}` section needs a reload")),
    }
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
        refused.map_or(Runtime::Yes, |(field, value)| {
            Runtime::no(format!("a backend with `{field} {value}` can't be added at runtime"))
        })
    }

    /// Returns the verdict about a section whose settings change.
    pub(super) fn changed_section(&self, kind: SectionKind, changes: &[AttributeChange]) -> Runtime {
        let mut settings = changes.iter().filter(|change| change.attribute != COMMENT);
        let refused = settings.find_map(|change| self.refuses_setting(kind, &change.attribute));
        refused.map_or(Runtime::Yes, Runtime::no)
    }

    /// Why a running HAProxy can't be told another value of a setting of the section.
    fn refuses_setting(&self, kind: SectionKind, path: &str) -> Option<String> {
        let reload = || Some(format!("settings of `{kind}` are changed by a reload"));
        let (Some(old), Some(new)) = (self.old, self.new) else { return reload() };
        let (Some(old), Some(new)) = (&old.object, &new.object) else { return reload() };
        let is_listening = matches!(new.kind, ObjectKind::Frontend | ObjectKind::Listen) && !self.is_off();
        if rule_of(new.kind, path) != Some(RuntimeRule::Backlog) || !is_listening {
            return reload();
        }
        let is_limited =
            |object: &Object| object.get(path).and_then(Value::as_int).is_some_and(|most| most > 0);
        if !is_limited(old) || !is_limited(new) {
            return Some(format!(
                "without `{path}`, that of `global` holds, which is read when HAProxy starts"
            ));
        }
        let has_backlog = |own: &Object, defaults: &[Object]| {
            let mut governing = std::iter::once(own).chain(defaults);
            governing.any(|object| object.get("backlog").is_some())
        };
        (!has_backlog(old, &self.old_defaults) || !has_backlog(new, &self.defaults)).then(|| {
            format!("without `backlog`, listeners are made for `{path}` connections when HAProxy starts")
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

    /// Returns the verdict about a child.
    pub(super) fn child(&self, change: &ChildChange<'_>, changes: &[AttributeChange]) -> Runtime {
        let refused = match (change.kind, change.old, change.new) {
            (_, Some(_), Some(_)) if only_a_comment(changes) => None,
            (ObjectKind::Server, ..) if !self.is_backend() => {
                Some("only servers of a backend can be changed at runtime".to_owned())
            }
            (ObjectKind::Server, ..) if self.is_off() => {
                Some("servers of a proxy that is disabled can't be changed at runtime".to_owned())
            }
            (ObjectKind::Server, Some(old), Some(new)) => self.set_server(old, new, changes),
            (ObjectKind::Server, None, Some(new)) => self.add_server(new),
            (ObjectKind::Server, Some(old), None) => self.delete_server(old),
            (kind, ..) => Some(format!("{} are read when HAProxy starts", plural(kind))),
        };
        refused.map_or(Runtime::Yes, Runtime::no)
    }

    /// Returns whether servers of the section are those of a backend.
    fn is_backend(&self) -> bool {
        let object = self.new.or(self.old).and_then(|model| model.object.as_ref());
        object.is_some_and(|object| matches!(object.kind, ObjectKind::Backend | ObjectKind::Listen))
    }

    /// Returns whether the section is disabled as it runs: HAProxy refuses commands about its servers, or dies of them.
    fn is_off(&self) -> bool {
        let own = self.old.or(self.new).and_then(|model| model.object.as_ref());
        // What a section says wins over what its `defaults` say.
        let mut governing = own.into_iter().chain(&self.old_defaults);
        governing.find_map(|object| directives().is_on(object)) == Some(false)
    }

    fn set_server(&self, old: &Object, new: &Object, changes: &[AttributeChange]) -> Option<String> {
        let mut settings = changes.iter().filter(|change| change.attribute != COMMENT);
        settings.find_map(|AttributeChange { attribute, .. }| match rule_of(ObjectKind::Server, attribute) {
            Some(RuntimeRule::Always) => self.agent_sets(attribute, old, new),
            Some(RuntimeRule::Balance) => {
                self.static_balance().or_else(|| self.agent_sets(attribute, old, new))
            }
            Some(RuntimeRule::Address) => self.refuses_to_move(old, new),
            Some(RuntimeRule::Limit) => {
                let refused = self.refuses_limit(attribute, old, new);
                refused.or_else(|| self.agent_sets(attribute, old, new))
            }
            Some(RuntimeRule::Check) => self.refuses_check(attribute, old, new),
            Some(RuntimeRule::Agent) => self.refuses_agent(attribute, old, new),
            Some(RuntimeRule::Backlog) | None => {
                Some(format!("`{attribute}` of a server is changed by a reload"))
            }
        })
    }

    /// Why a server can't be told a weight, a limit or a state that its agent sets: what that answers next would take it back.
    fn agent_sets(&self, path: &str, old: &Object, new: &Object) -> Option<String> {
        let is_asked =
            is_enabled(&self.running(old), "agent-check") || is_enabled(&self.effective(new), "agent-check");
        is_asked.then(|| format!("its agent sets `{path}` while HAProxy runs, and would take it back"))
    }

    /// Why a server can't be told another address.
    fn refuses_to_move(&self, old: &Object, new: &Object) -> Option<String> {
        // A server is told an address, and not all of them.
        if reached(address(new)) != Reached::Ip || address(new).trim_matches('*').is_empty() {
            return Some("a server's address can be changed at runtime only to an IP address".to_owned());
        }
        if old.get("port").is_some() && new.get("port").is_none() {
            return Some("a server's port can't be taken away at runtime".to_owned());
        }
        let whole = self.running(old);
        let is_resolved = directives()
            .references(ObjectKind::Server, Name::Resolvers)
            .iter()
            .any(|field| whole.fields.get(*field).is_some());
        if reached(address(old)) == Reached::Name && is_resolved {
            return Some(
                "HAProxy resolves its name while it runs, and would take the address back".to_owned(),
            );
        }
        (!matches!(reached(address(old)), Reached::Ip | Reached::Name))
            .then(|| "a server's address can be changed at runtime only from an IP address".to_owned())
    }

    /// Why a server can't be told another limit: beside `minconn`, HAProxy would set that as well where both are the same.
    fn refuses_limit(&self, path: &str, old: &Object, new: &Object) -> Option<String> {
        let has_least = |server: &Object| server.get("minconn").is_some();
        (has_least(&self.running(old)) || has_least(&self.effective(new)))
            .then(|| format!("beside `minconn`, `{path}` of a server is changed by a reload"))
    }

    /// Why a server can't be told another port that it is checked at.
    fn refuses_check(&self, path: &str, old: &Object, new: &Object) -> Option<String> {
        let (old, new) = (self.running(old), self.effective(new));
        if !is_enabled(&old, "check") || !is_enabled(&new, "check") {
            return Some(format!("`{path}` of a server can be changed at runtime only while it is checked"));
        }
        // With a port, checks have nothing of how the server itself is spoken to.
        let port = |server: &Object| server.get(path).and_then(Value::as_int).filter(|port| *port > 0);
        if port(&old).is_none() || port(&new).is_none() {
            return Some(format!("`{path}` of a server can neither be added nor taken away at runtime"));
        }
        let is_shared =
            |server: &Object| is_enabled(server, "agent-check") && server.get("agent-port").is_none();
        (is_shared(&old) || is_shared(&new)).then(|| format!("its agent listens on `{path}` as well"))
    }

    /// Why a server can't be told another setting of its agent.
    fn refuses_agent(&self, path: &str, old: &Object, new: &Object) -> Option<String> {
        let (old, new) = (self.running(old), self.effective(new));
        if !is_enabled(&old, "agent-check") || !is_enabled(&new, "agent-check") {
            return Some(format!(
                "`{path}` of a server can be changed at runtime only while its agent is asked"
            ));
        }
        let (Some(_), Some(value)) = (old.get(path), new.get(path)) else {
            return Some(format!("`{path}` of a server can neither be added nor taken away at runtime"));
        };
        let text = value.as_str()?;
        if path == "agent-addr" {
            let is_ip = text.parse::<std::net::IpAddr>().is_ok();
            return (!is_ip).then(|| "a name of an agent is resolved when HAProxy starts".to_owned());
        }
        let words = split(&one_word(text)).unwrap_or_default();
        let has_line_end = words.iter().any(|word| word.chars().any(char::is_control));
        (words.len() != 1 || has_line_end)
            .then(|| format!("no command can have the line end in `{path}` of a server"))
    }

    fn add_server(&self, new: &Object) -> Option<String> {
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
        let whole = self.effective(new);
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
            let excluded = options.iter().find(|other| option.attributes.excludes.contains(&word(other)));
            if let Some(other) = excluded {
                return Some(format!("HAProxy does not accept `{}` beside `{}`", word(option), word(other)));
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

    /// Returns whether a `global` section of some documents states a setting, or may do so.
    fn global_states(&self, path: &str, documents: &[&Document]) -> bool {
        documents.iter().flat_map(|document| document.sections()).any(|section| {
            section.kind() == SectionKind::Global
                && section_model(section, &Context::new(self.version))
                    .object
                    .as_ref()
                    .is_none_or(|global| global.get(path).is_some())
        })
    }

    /// A server that comes, changes or goes, with what `default-server` lines say.
    pub(super) fn whole_server(&self, change: &ChildChange<'_>) -> Option<Object> {
        let server = change.new.or(change.old).filter(|_| change.kind == ObjectKind::Server)?;
        Some(self.effective(server))
    }

    /// A server with what `default-server` lines say, which a running HAProxy has to be told as well.
    fn effective(&self, server: &Object) -> Object {
        with_default_server(server, self.new.or(self.old), &self.defaults)
    }

    /// A server with what `default-server` lines say, as it runs.
    fn running(&self, server: &Object) -> Object {
        with_default_server(server, self.old.or(self.new), &self.old_defaults)
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

    fn delete_server(&self, old: &Object) -> Option<String> {
        let name = old.name().unwrap_or_default();
        let path = format!("{}/{name}", self.backend.as_deref().unwrap_or_default());
        if let Some(word) = self.named.named_by(&path) {
            return Some(format!("`{word}` names it in another line"));
        }
        self.named.is_in_an_expression(&path).then(|| "an expression names it".to_owned())
    }

    /// Why servers can't come and weights can't change, if the algorithm is a static one.
    fn static_balance(&self) -> Option<String> {
        let text = |path: &str| self.setting(path).and_then(|value| value.as_str().map(ToOwned::to_owned));
        let algorithm = text("balance.algorithm")?;
        let dynamic = match directives().servers_of(&algorithm) {
            Some(servers) if !servers.are_hashed => servers.are_dynamic,
            _ => text("hash_type.method").as_deref() == Some("consistent"),
        };
        (!dynamic).then(|| format!("`balance {algorithm}` is static"))
    }

    /// A setting of the section, or of the `defaults` that govern it.
    fn setting(&self, path: &str) -> Option<&Value> {
        // What runs is what counts.
        let own = self.old.or(self.new).and_then(|model| model.object.as_ref());
        own.into_iter().chain(&self.old_defaults).find_map(|object| object.get(path))
    }

    /// The `defaults` of both sides.
    fn all_defaults(&self) -> impl Iterator<Item = &Object> {
        self.old_defaults.iter().chain(&self.defaults)
    }

    /// What holds where a section or a server says nothing: this version's default, unless a `defaults` or a
    /// `default-server` of either side says something.
    pub(super) fn assumed(&self, kind: ObjectKind, field: Field) -> Option<Value> {
        let default = directives().default(kind, field, self.version)?;
        let path = field.path();
        let unless = directives().default_unless(kind, field, self.version);
        if unless.iter().any(|unless| self.may_hold(kind, unless)) {
            return None;
        }
        let governed = match kind {
            ObjectKind::Server | ObjectKind::ServerTemplate => {
                let path = format!("default_server.{path}");
                let own = self.old.into_iter().chain(self.new).filter_map(|model| model.object.as_ref());
                own.chain(self.all_defaults()).any(|object| object.get(&path).is_some())
            }
            kind if kind.is_section() => self.all_defaults().any(|object| object.get(path).is_some()),
            _ => false,
        };
        (!governed).then_some(default)
    }

    /// Returns whether what takes a default away may be so, on either side. What holds for a `defaults` section is for those to say
    /// that it governs.
    fn may_hold(&self, kind: ObjectKind, unless: &Unless) -> bool {
        if unless.is_global {
            return self.global_states(unless.path, &self.documents);
        }
        let own = self.old.into_iter().chain(self.new).filter_map(|model| model.object.as_ref());
        let mut stated = own.chain(self.all_defaults()).filter_map(|object| object.get(unless.path));
        kind == ObjectKind::Defaults
            || stated.any(|value| unless.value.is_none_or(|expected| value.as_str() == Some(expected)))
    }
}

/// A server as HAProxy runs it: with what the `default-server` lines of its section say, and those of the `defaults` that govern
/// it, nearest first.
pub fn with_default_server(server: &Object, section: Option<&SectionModel>, defaults: &[Object]) -> Object {
    let mut whole = server.clone();
    // What a section says wins over what its `defaults` say.
    let own = section.and_then(|model| model.object.as_ref());
    for (field, value) in own.into_iter().chain(defaults).flat_map(|object| &object.fields) {
        let path = field.path().strip_prefix("default_server.");
        let own = path.and_then(|path| directives().field(server.kind, path));
        let own = own.filter(|own| !directives().is_ignored_default(server.kind, *own, value));
        if let Some(own) = own.filter(|own| whole.fields.get(*own).is_none()) {
            whole.fields.set(own, value.clone());
        }
    }
    whole
}

/// The attribute that HAProxy has not to be told: the comment of a line.
const COMMENT: &str = "metadata";

/// Returns whether nothing but the comments of lines differ.
fn only_a_comment(changes: &[AttributeChange]) -> bool {
    !changes.is_empty() && changes.iter().all(|change| change.attribute == COMMENT)
}

/// On what it depends whether a running HAProxy can be told another value of a field, if it can at all.
fn rule_of(kind: ObjectKind, path: &str) -> Option<RuntimeRule> {
    let table = directives();
    table.field(kind, path).and_then(|field| table.runtime_rule(kind, field))
}

/// Returns whether an object has something switched on.
fn is_enabled(object: &Object, path: &str) -> bool {
    object.get(path).and_then(Value::as_str) == Some("enabled")
}

/// What objects of a kind are called.
fn plural(kind: ObjectKind) -> String {
    let name = kind.model().replace('_', " ");
    match name.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{name}s"),
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

fn address(server: &Object) -> &str {
    server.get("address").and_then(Value::as_str).unwrap_or_default()
}
