//! What servers inherit: the `default-server` lines of their section, and of the `defaults` that govern it.
//!
//! HAProxy runs a server with all of these, and says so of it in `show servers state`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use setpoint_haproxy::compare::with_default_server;
use setpoint_haproxy::model::{Context, Object, section_model};
use setpoint_haproxy::text::{Document, Section, SectionKind};

use super::differences::WITH_SERVERS;

/// The `default-server` lines of the sections of a text that have servers.
#[derive(Debug, Default)]
pub(super) struct Inherited {
    /// What holds for a section, nearest first; what says nothing of servers is left out.
    sections: HashMap<(SectionKind, String), Arc<[Object]>>,
}

impl Inherited {
    /// Reads a text.
    pub(super) fn of(text: &Document, cx: &Context) -> Self {
        let (mut named, mut last) = (BTreeMap::new(), Arc::from([]));
        let mut all = Self::default();
        for section in text.sections() {
            let kind = section.kind();
            if kind != SectionKind::Defaults && !WITH_SERVERS.contains(&kind) {
                continue;
            }
            let from = section.from().map(Cow::into_owned);
            let governing: Arc<[Object]> = match from {
                Some(name) => named.get(&name).map_or_else(|| Arc::from([]), Arc::clone),
                // A `defaults` without `from` starts from nothing.
                None if kind == SectionKind::Defaults => Arc::from([]),
                None => Arc::clone(&last),
            };
            let holds: Arc<[Object]> = match own_lines(section, cx) {
                Some(own) => std::iter::once(own).chain(governing.iter().cloned()).collect(),
                None => governing,
            };
            let name = section.name().map(Cow::into_owned);
            if kind == SectionKind::Defaults {
                named.extend(name.map(|name| (name, Arc::clone(&holds))));
                last = holds;
            } else if let Some(name) = name.filter(|_| !holds.is_empty()) {
                let name = String::from_utf8_lossy(&name).into_owned();
                all.sections.entry((kind, name)).or_insert(holds);
            }
        }
        all
    }

    /// A server of a section as it runs: what it does not say itself, its `default-server` lines say.
    pub(super) fn whole<'s>(&self, kind: SectionKind, section: &str, server: &'s Object) -> Cow<'s, Object> {
        match self.sections.get(&(kind, section.to_owned())) {
            Some(lines) => Cow::Owned(with_default_server(server, None, lines)),
            None => Cow::Borrowed(server),
        }
    }
}

/// What the `default-server` lines of a section say; none if it has none. Nothing else of the section is read: there may be very
/// many of them.
fn own_lines(section: &Section, cx: &Context) -> Option<Object> {
    let is_one = |keyword: Option<Cow<'_, [u8]>>| keyword.is_some_and(|word| *word == *b"default-server");
    let mut lines = section.lines().filter(|line| is_one(line.keyword())).peekable();
    lines.peek()?;
    let text = lines.fold(b"backend b\n".to_vec(), |text, line| [&text, line.raw(), b"\n"].concat());
    let text = Document::parse(&text);
    section_model(text.sections().first()?, cx).object.clone()
}

#[cfg(test)]
mod tests {
    use super::*;
    use setpoint_haproxy::edit::{ChildKey, Editor, SectionKey};
    use setpoint_haproxy::model::{ObjectKind, Value};

    #[test]
    fn a_server_says_its_own_and_inherits_from_its_section_and_from_the_defaults_that_govern_it() {
        let cx = Context::default();
        let text = Document::parse(
            b"defaults a\n  default-server weight 5 disabled\ndefaults b from a\n  default-server maxconn 7\n\
              backend near from b\n  default-server weight 6\n  server s 192.0.2.1:80\n  server own 192.0.2.1:80 weight 7 enabled\n\
              backend last\n  server s 192.0.2.1:80\nbackend first from a\n  server s 192.0.2.1:80\n\
              defaults\nlisten none\n  server s 192.0.2.1:80\n",
        );
        let inherited = Inherited::of(&text, &cx);
        let mut editor = Editor::new(text, &cx);
        let mut of = |kind: SectionKind, section: &str, server: &str| {
            let key = ChildKey::Name(server.into());
            let server = editor.get(&SectionKey::named(kind, section), ObjectKind::Server, &key).unwrap();
            let whole = inherited.whole(kind, section, &server);
            let number = |path: &str| whole.get(path).and_then(Value::as_int);
            let state = whole.get("maintenance").and_then(Value::as_str).map(str::to_owned);
            (number("weight"), number("maxconn"), state)
        };
        let disabled = || Some("enabled".to_owned());
        assert_eq!(of(SectionKind::Backend, "near", "s"), (Some(6), Some(7), disabled()));
        assert_eq!(of(SectionKind::Backend, "near", "own"), (Some(7), Some(7), Some("disabled".to_owned())));
        assert_eq!(of(SectionKind::Backend, "last", "s"), (Some(5), Some(7), disabled()));
        assert_eq!(of(SectionKind::Backend, "first", "s"), (Some(5), None, disabled()));
        assert_eq!(of(SectionKind::Listen, "none", "s"), (None, None, None));
    }
}
