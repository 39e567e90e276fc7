//! From an operation to the call that carries it out.

use serde_json::Value as Json;
use setpoint_haproxy::api::{Child, Key, Parent, SECTIONS, Section, Shape, child_of};
use setpoint_haproxy::compare::{ChildKey, Operation, SectionKey, Subject};
use setpoint_haproxy::model::{Object, ObjectKind, Version};
use setpoint_plan::Action;

use super::info::ApiVersion;
use super::transport::Call;

/// The path of all that is configured.
pub(super) const CONFIGURATION: &str = "services/haproxy/configuration";

/// What a section without a name is called in the API, with its number behind it.
const UNNAMED: &str = "unnamed_defaults_";

/// Why no call carries out an operation: only a push of the whole text does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no call of the API does that: {0}")]
pub struct NoCall(String);

impl NoCall {
    pub(super) fn because(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Returns the call that carries out an operation, without the version or transaction that it is made for.
pub(super) fn call_of(operation: &Operation, version: &ApiVersion) -> Result<Call, NoCall> {
    let section = SECTIONS.iter().find(|section| section.keyword == operation.section.kind);
    let Some(section) = section else {
        return Err(NoCall::because(format!("the API knows no section {}", operation.section)));
    };
    match &operation.subject {
        Subject::Section { new, .. } => {
            let body = new.as_ref().map(Object::to_json);
            section_call(operation.action, section, &operation.section, body, version)
        }
        Subject::Child { kind: child, key, new, .. } => {
            let place = Place { kind: *child, within: section.kind, section: &operation.section, key };
            place.call(operation.action, new.as_ref(), version)
        }
        Subject::Text { .. } | Subject::Configuration { .. } => {
            Err(NoCall::because(operation.reason.as_str()))
        }
    }
}

/// The name by which the API knows a section.
fn name_of(section: &SectionKey, kind: ObjectKind) -> Result<Option<String>, NoCall> {
    match (&section.name, section.nth) {
        (None, nth) if kind == ObjectKind::Defaults => Ok(Some(format!("{UNNAMED}{}", nth + 1))),
        (name, 0) => Ok(name.as_ref().map(ToString::to_string)),
        _ => Err(NoCall::because(format!("{section} shares its name with another section"))),
    }
}

/// The call that does something to a section, with what it is to say.
pub(super) fn section_call(
    action: Action,
    section: &Section,
    key: &SectionKey,
    new: Option<Json>,
    version: &ApiVersion,
) -> Result<Call, NoCall> {
    let (api, kind) = (version.schema(), section.kind);
    if !(section.since.0..=section.since.1).contains(&api) || kind == ObjectKind::Listen {
        return Err(NoCall::because(format!("API {version} has no {kind} sections")));
    }
    let name = name_of(key, kind)?;
    let collection = format!("{CONFIGURATION}/{}", section.path);
    let one = |call: Call| match (&name, section.shape) {
        (Some(name), Shape::Usual | Shape::NotReplaced) => call.part(name),
        _ => call,
    };
    let body = || new.ok_or_else(|| NoCall::because("nothing is said of it"));
    match action {
        Action::Delete if section.shape == Shape::One => {
            Err(NoCall::because(format!("{} can't be deleted", section.label)))
        }
        Action::Delete => Ok(one(Call::delete(&collection))),
        Action::Modify if section.shape == Shape::NotReplaced => {
            Err(NoCall::because(format!("{} can't be replaced", section.label)))
        }
        Action::Modify => Ok(one(Call::put(&collection)).json(body()?)),
        Action::Create => match (section.shape, kind) {
            // There is always one.
            (Shape::One, _) => Ok(Call::put(&collection).json(body()?)),
            (_, ObjectKind::Defaults) if name.as_ref().is_some_and(|name| name.starts_with(UNNAMED)) => {
                Err(NoCall::because("the API makes no defaults section without a name"))
            }
            // 3.0 has no other way to make one.
            (_, ObjectKind::Defaults) if api == Version::V3_0 => Ok(Call::put(&collection).json(body()?)),
            _ => Ok(Call::post(&collection).json(body()?)),
        },
        Action::Recreate => Err(NoCall::because("it takes two calls")),
    }
}

/// Where a child stands.
pub(super) struct Place<'o> {
    pub(super) kind: ObjectKind,
    pub(super) within: ObjectKind,
    pub(super) section: &'o SectionKey,
    pub(super) key: &'o ChildKey,
}

impl Place<'_> {
    /// The row of the table that says where children like this one are.
    pub(super) fn child(&self, version: &ApiVersion) -> Result<&'static Child, NoCall> {
        let is_elsewhere = self.kind == ObjectKind::CrtLoad && !version.has_loads_below_stores();
        let api = if is_elsewhere { Version::V3_0 } else { version.schema() };
        child_of(self.kind, self.within, api).filter(|_| self.within != ObjectKind::Listen).ok_or_else(|| {
            NoCall::because(format!("API {version} has no {} in {} sections", self.kind, self.within))
        })
    }

    /// The call of the collection.
    pub(super) fn collection(&self, child: &Child, make: fn(&str) -> Call) -> Result<Call, NoCall> {
        let name = name_of(self.section, self.within)?;
        let named = || name.clone().ok_or_else(|| NoCall::because(format!("{} has no name", self.section)));
        match child.parent {
            Parent::Unnamed => Ok(make(&format!("{CONFIGURATION}/{}", child.path))),
            Parent::Query(parameter) => {
                Ok(make(&format!("{CONFIGURATION}/{}", child.path)).query(parameter, named()?))
            }
            Parent::Path => {
                // `backends/{parent_name}/servers`
                let mut parts = child.path.split('/');
                let first = parts.next().unwrap_or_default();
                let call = make(&format!("{CONFIGURATION}/{first}")).part(&named()?);
                Ok(parts.skip(1).fold(call, Call::part))
            }
        }
    }

    fn call(&self, action: Action, new: Option<&Object>, version: &ApiVersion) -> Result<Call, NoCall> {
        let child = self.child(version)?;
        let body = || new.map(Object::to_json).ok_or_else(|| NoCall::because("nothing is said of it"));
        let one = |make: fn(&str) -> Call| {
            Ok::<_, NoCall>(self.collection(child, make)?.part(&self.key.to_string()))
        };
        match (action, child.key) {
            (Action::Create, Key::Name(_)) => Ok(self.collection(child, Call::post)?.json(body()?)),
            (Action::Create, Key::Index) => Ok(one(Call::post)?.json(body()?)),
            // Whether its place is behind the last is not known here.
            (Action::Create, Key::Appended) => {
                Err(NoCall::because(format!("a {} can only be put behind all others", self.kind)))
            }
            (Action::Modify, _) => Ok(one(Call::put)?.json(body()?)),
            (Action::Delete, _) => one(Call::delete),
            (Action::Recreate, _) => Err(NoCall::because("it takes two calls")),
        }
    }
}

#[cfg(test)]
mod tests {
    use setpoint_haproxy::compare::compare;
    use setpoint_haproxy::model::Context;
    use setpoint_haproxy::text::Document;

    use super::*;

    /// The calls between two texts, in the words of a line each.
    fn calls(version: &str, old: &str, new: &str) -> Vec<Result<String, String>> {
        let version: ApiVersion = version.parse().unwrap();
        let cx = Context::new(version.schema());
        let diff = compare(&Document::parse(old.as_bytes()), &Document::parse(new.as_bytes()), &cx).unwrap();
        let call = |operation| {
            call_of(operation, &version).map(|call| call.to_string()).map_err(|why| why.to_string())
        };
        diff.operations().iter().map(call).collect()
    }

    #[test]
    fn sections_and_children_have_their_paths() {
        let old = "backend a\n  server s1 10.0.0.1:80\n  http-request deny\nfrontend gone\n";
        let new = "backend a\n  server s1 10.0.0.2:80\n  http-request deny if { src 10.0.0.0/8 }\n\
                   backend b\n  balance roundrobin\nuserlist u\n  user x password y\n";
        let found: Vec<String> = calls("v3.4.0", old, new).into_iter().map(Result::unwrap).collect();
        for expected in [
            "DELETE configuration/frontends/gone",
            "POST configuration/backends",
            "POST configuration/userlists",
            "POST configuration/users?userlist=u",
            "PUT configuration/backends/a/servers/s1",
        ] {
            assert!(found.iter().any(|call| call == expected), "{expected}: {found:#?}");
        }
    }

    #[test]
    fn what_changed_its_path_from_one_patch_to_the_next_is_asked_where_it_is() {
        let (old, new) = ("crt-store s\n", "crt-store s\n  load crt a.pem\n");
        let of = |version| calls(version, old, new).pop().unwrap().unwrap();
        assert_eq!(of("v3.2.8"), "POST configuration/crt_loads?crt_store=s");
        assert_eq!(of("v3.2.9"), "POST configuration/crt_stores/s/crt_loads");
        assert_eq!(of("v3.0.21"), "POST configuration/crt_loads?crt_store=s");
        assert_eq!(of("v3.4.0"), "POST configuration/crt_stores/s/crt_loads");
    }

    #[test]
    fn what_no_call_does_is_said() {
        let text = |old, new| calls("v3.0.21", old, new).into_iter().find_map(Result::err).unwrap();
        let unknown = text("backend b\n", "backend b\n  frobnicate 1\n");
        assert!(unknown.starts_with("no call of the API does that: "), "{unknown}");
        let listen = text("backend b\n", "backend b\nlisten l\n  bind :80\n");
        assert!(listen.contains("listen"), "{listen}");
    }
}
