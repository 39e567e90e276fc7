//! Whether an operation can be done at runtime, and if not, why.

use setpoint_plan::{AttributeChange, Runtime};
use smol_str::SmolStr;

use super::added::Found;
use super::content::ChildChange;
use super::named::NamedServers;
use crate::model::spelling::{one_word, split};
use crate::model::{Context, Field, Object, ObjectKind, SectionModel, Value, Version, section_model};
use crate::table::address::{Reached, reached};
use crate::table::resources::RuntimeRule;
use crate::table::{Name, Unless, directives};
use crate::text::{Document, SectionKind};

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

    /// Returns whether a `global` section of some documents states a setting, or may do so.
    pub(super) fn global_states(&self, path: &str, documents: &[&Document]) -> bool {
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
        Some(if change.old.is_none() { self.added(server) } else { self.effective(server) })
    }

    /// A server with what `default-server` lines say, which a running HAProxy has to be told as well.
    pub(super) fn effective(&self, server: &Object) -> Object {
        with_default_server(server, self.new.or(self.old), &self.defaults)
    }

    /// A server with what `default-server` lines say, as it runs.
    fn running(&self, server: &Object) -> Object {
        with_default_server(server, self.old.or(self.new), &self.old_defaults)
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
    pub(super) fn static_balance(&self) -> Option<String> {
        let text = |path: &str| self.setting(path).and_then(|value| value.as_str().map(ToOwned::to_owned));
        let algorithm = text("balance.algorithm")?;
        let dynamic = match directives().servers_of(&algorithm) {
            Some(servers) if !servers.are_hashed => servers.are_dynamic,
            _ => text("hash_type.method").as_deref() == Some("consistent"),
        };
        (!dynamic).then(|| format!("`balance {algorithm}` is static"))
    }

    /// A setting of the section, or of the `defaults` that govern it.
    pub(super) fn setting(&self, path: &str) -> Option<&Value> {
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
    for (field, value) in own.into_iter().chain(defaults).flat_map(|object| base_of_servers(object).fields) {
        if whole.fields.get(field).is_none() {
            whole.fields.set(field, value);
        }
    }
    whole
}

/// What the `default-server` lines of a section say of its servers.
pub(super) fn base_of_servers(section: &Object) -> Object {
    let mut base = Object::new(ObjectKind::Server);
    for (field, value) in &section.fields {
        let path = field.path().strip_prefix("default_server.");
        let own = path.and_then(|path| directives().field(ObjectKind::Server, path));
        if let Some(own) = own.filter(|own| !directives().is_ignored_default(ObjectKind::Server, *own, value))
        {
            base.fields.set(own, value.clone());
        }
    }
    base
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
pub(super) fn is_enabled(object: &Object, path: &str) -> bool {
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

/// The address of a server.
pub(super) fn address(server: &Object) -> &str {
    server.get("address").and_then(Value::as_str).unwrap_or_default()
}
