//! The edit of what is desired with which HAProxy would not have to reload for an operation.
//!
//! Nothing is guessed: an edit is tried on the section, with `global` and all `defaults`, and named where the comparison finds then
//! that HAProxy can be told.
//!
//! ```text
//! operation that reloads ─▶ edits ─▶ compare ─▶ can be told? ─▶ "with an IP address"
//! ```

use std::net::IpAddr;

use serde_json::{Map, Value as Json};
use setpoint_haproxy::compare::{Operation, SectionKey, Subject, compare};
use setpoint_haproxy::edit::Editor;
use setpoint_haproxy::model::{Context, Object, ObjectKind};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_plan::Action;

/// An address that stands for any.
const EXAMPLE: &str = "192.0.2.1";

/// Both sides of a comparison, as much of them as an operation is about.
pub(super) struct Trial<'t> {
    current: Document,
    desired: Document,
    cx: &'t Context,
    operation: &'t Operation,
    /// Why a target can't do an operation without a reload, if that is so.
    narrow: &'t dyn Fn(&Operation) -> Option<String>,
}

impl<'t> Trial<'t> {
    pub(super) fn new(
        [current, desired]: [&Document; 2],
        cx: &'t Context,
        operation: &'t Operation,
        narrow: &'t dyn Fn(&Operation) -> Option<String>,
    ) -> Self {
        let part = |document: &Document| part(document, &operation.section);
        Self { current: part(current), desired: part(desired), cx, operation, narrow }
    }

    /// The edit, in words that follow "would take no reload"; none if none was found.
    pub(super) fn edit(&self) -> Option<String> {
        match &self.operation.subject {
            Subject::Child { kind: ObjectKind::Server, new: Some(server), .. } => self.of_server(server),
            Subject::Section { new: Some(backend), .. }
                if self.operation.action == Action::Create
                    && self.operation.section.kind == SectionKind::Backend =>
            {
                self.of_backend(backend)
            }
            _ => None,
        }
    }

    fn of_server(&self, server: &Object) -> Option<String> {
        let Json::Object(whole) = server.to_json() else { return None };
        let address = whole.get("address").and_then(Json::as_str).unwrap_or_default();
        if address.parse::<IpAddr>().is_err() {
            let mut with = whole.clone();
            with.insert("address".to_owned(), Json::from(EXAMPLE));
            if self.is_told_with_server(with) {
                return Some(format!("with an IP address in the place of `{address}`"));
            }
        }
        let settings =
            || whole.keys().filter(|name| !["name", "address", "port", "metadata"].contains(&name.as_str()));
        for name in settings() {
            let mut without = whole.clone();
            without.remove(name);
            if self.is_told_with_server(without) {
                return Some(format!("without `{name}`"));
            }
        }
        let mut bare = whole.clone();
        bare.retain(|name, _| ["name", "address", "port", "weight"].contains(&name.as_str()));
        let dropped: Vec<String> =
            whole.keys().filter(|name| !bare.contains_key(*name)).map(|name| format!("`{name}`")).collect();
        self.is_told_with_server(bare).then(|| format!("without {}", dropped.join(", ")))
    }

    fn is_told_with_server(&self, server: Map<String, Json>) -> bool {
        let Subject::Child { key, .. } = &self.operation.subject else { return false };
        let Ok((server, _)) = Object::from_json(ObjectKind::Server, &Json::Object(server), self.cx) else {
            return false;
        };
        let mut editor = Editor::new(self.desired.clone(), self.cx);
        let replaced = editor.replace(&self.operation.section, key, &server);
        replaced.is_ok() && self.is_told(&editor.finish())
    }

    fn of_backend(&self, backend: &Object) -> Option<String> {
        let Json::Object(whole) = backend.to_json() else { return None };
        let editor = Editor::new(self.current.clone(), self.cx);
        let defaults = editor.sections(SectionKind::Defaults);
        let named: Vec<&str> = defaults.iter().filter_map(|defaults| defaults.name.as_deref()).collect();
        let own: Vec<&String> = whole
            .keys()
            .filter(|name| !["name", "from", "mode", "metadata"].contains(&name.as_str()))
            .collect();
        let from = whole.get("from").and_then(Json::as_str);
        for name in from.into_iter().chain(named.iter().copied().filter(|name| Some(*name) != from)) {
            let mut with = whole.clone();
            with.insert("from".to_owned(), Json::from(name));
            if from != Some(name) && self.is_told_with_backend(with.clone()) {
                return Some(format!("with `from {name}`"));
            }
            for setting in &own {
                let mut without = with.clone();
                without.remove(*setting);
                if self.is_told_with_backend(without) {
                    return Some(format!("with `from {name}`, and `{setting}` said there"));
                }
            }
            with.retain(|name, _| ["name", "from", "mode"].contains(&name.as_str()));
            if self.is_told_with_backend(with) {
                let own: Vec<String> = own.iter().map(|name| format!("`{name}`")).collect();
                return Some(format!("with `from {name}`, and {} said there", own.join(", ")));
            }
        }
        None
    }

    fn is_told_with_backend(&self, backend: Map<String, Json>) -> bool {
        let Ok((backend, _)) = Object::from_json(ObjectKind::Backend, &Json::Object(backend), self.cx) else {
            return false;
        };
        let mut editor = Editor::new(self.desired.clone(), self.cx);
        editor.replace_settings(&self.operation.section, &backend).is_ok() && self.is_told(&editor.finish())
    }

    /// Returns whether nothing takes a reload where this is desired.
    fn is_told(&self, desired: &Document) -> bool {
        let Ok(mut diff) = compare(&self.current, desired, self.cx) else { return false };
        diff.narrow(self.narrow);
        let of_it = |operation: &&Operation| match (&self.operation.subject, &operation.subject) {
            (Subject::Child { kind, key, .. }, Subject::Child { kind: other, key: others, .. }) => {
                kind == other && key == others
            }
            (Subject::Section { .. }, Subject::Section { .. }) => operation.section == self.operation.section,
            (_, Subject::Text { .. } | Subject::Configuration { .. }) => true,
            _ => false,
        };
        diff.operations().iter().filter(of_it).all(|operation| operation.runtime.is_possible())
    }
}

/// What of a document decides about a section: `global`, all `defaults`, and the section.
fn part(document: &Document, key: &SectionKey) -> Document {
    let is_part = |kind: SectionKind, name: Option<&[u8]>| {
        matches!(kind, SectionKind::Global | SectionKind::Defaults)
            || kind == key.kind && name == key.name.as_deref().map(str::as_bytes)
    };
    let sections = document.sections().iter();
    let sections = sections.filter(|section| is_part(section.kind(), section.name().as_deref()));
    Document::from_sections(sections.cloned().collect())
}

#[cfg(test)]
mod tests {
    use setpoint_haproxy::model::Version;

    use super::*;

    const CURRENT: &str =
        "defaults web\n  mode http\n  balance roundrobin\n\nbackend b from web\n  server s 192.0.2.9:80\n";

    /// The edit for the first operation that takes a reload.
    fn edit(desired: &str) -> Option<String> {
        let cx = Context::new(Version::V3_4).with_haproxy(Version::V3_4);
        let (current, desired) = (Document::parse(CURRENT.as_bytes()), Document::parse(desired.as_bytes()));
        let diff = compare(&current, &desired, &cx).unwrap();
        let operation = diff.operations().iter().find(|operation| !operation.runtime.is_possible()).unwrap();
        Trial::new([&current, &desired], &cx, operation, &|_| None).edit()
    }

    #[test]
    fn the_edit_that_avoids_a_reload_is_one_with_which_haproxy_can_be_told() {
        assert_eq!(
            edit(&format!("{CURRENT}  server t shop.test:80\n")).unwrap(),
            "with an IP address in the place of `shop.test`"
        );
        assert_eq!(
            edit(&format!("{CURRENT}\nbackend more\n  server m 192.0.2.1:80\n")).unwrap(),
            "with `from web`"
        );
        assert_eq!(
            edit(&format!(
                "{CURRENT}\nbackend more from web\n  balance roundrobin\n  server m 192.0.2.1:80\n"
            ))
            .unwrap(),
            "with `from web`, and `balance` said there"
        );
        assert_eq!(
            edit(&CURRENT.replace("server s", "http-request deny\n  server s")),
            None,
            "no edit helps"
        );
    }
}
