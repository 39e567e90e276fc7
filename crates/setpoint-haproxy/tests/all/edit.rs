//! The edit API: what it reads and changes, what it refuses, and that nothing else is touched.

use setpoint_haproxy::edit::{ChildKey, EditError, Editor, SectionKey};
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, TextOnly};
use setpoint_haproxy::text::{Document, SectionKind};
use setpoint_testutils::{Haproxy, Version, need};

fn object(kind: ObjectKind, json: &serde_json::Value) -> Object {
    Object::from_json(kind, json, &Context::default()).unwrap().0
}

fn server(name: &str, address: &str) -> Object {
    object(ObjectKind::Server, &serde_json::json!({ "name": name, "address": address, "port": 80 }))
}

fn rule(name: &str) -> Object {
    object(
        ObjectKind::HttpRequestRule,
        &serde_json::json!({ "type": "set-header", "hdr_name": name, "hdr_format": "y" }),
    )
}

fn deny_if(acl: &str) -> Object {
    object(
        ObjectKind::HttpRequestRule,
        &serde_json::json!({ "type": "deny", "cond": "if", "cond_test": acl }),
    )
}

fn acl(name: &str) -> Object {
    let json = serde_json::json!({ "acl_name": name, "criterion": "src", "value": "10.0.0.1" });
    object(ObjectKind::Acl, &json)
}

fn edited(
    text: &str,
    edit: impl FnOnce(&mut Editor<'_>) -> Result<(), EditError>,
) -> Result<String, EditError> {
    let cx = Context::default();
    let mut editor = Editor::new(Document::parse(text.as_bytes()), &cx);
    let outcome = edit(&mut editor);
    let printed = String::from_utf8(editor.finish().print()).unwrap();
    if outcome.is_err() {
        assert_eq!(printed, text, "what is refused changes nothing");
    }
    outcome.map(|()| printed)
}

fn backend() -> SectionKey {
    SectionKey::named(SectionKind::Backend, "b")
}

fn frontend() -> SectionKey {
    SectionKey::named(SectionKind::Frontend, "f")
}

fn index(index: u32) -> ChildKey {
    ChildKey::Index(index)
}

const TEXT: &str = "# top\nfrontend f\n\tbind   :80\n\thttp-request set-header a y # why\n\thttp-request set-header b y\n\n# ours\nbackend b\n\tmode  http\n\tserver s1 10.0.0.1:80  # one\n\tserver s2 10.0.0.2:80\n";

#[test]
fn children_are_read_by_name_and_by_place() {
    let cx = Context::default();
    let mut editor = Editor::new(Document::parse(TEXT.as_bytes()), &cx);
    let s2 = editor.get(&backend(), ObjectKind::Server, &ChildKey::Name("s2".into())).unwrap();
    assert_eq!(s2.get("address").unwrap().as_str(), Some("10.0.0.2"));
    let second = editor.get(&frontend(), ObjectKind::HttpRequestRule, &index(1)).unwrap();
    assert_eq!(second, rule("b"));
    let names: Vec<Object> = editor.list(&backend(), ObjectKind::Server).unwrap();
    assert_eq!(names.iter().map(|server| server.name().unwrap()).collect::<Vec<_>>(), ["s1", "s2"]);
    assert_eq!(editor.sections(SectionKind::Backend), [backend()]);
    assert_eq!(editor.section(&backend()).unwrap().children.len(), 2);
}

#[test]
fn an_edit_touches_nothing_else() {
    let created = edited(TEXT, |editor| editor.create(&frontend(), &rule("x"), Some(1))).unwrap();
    assert_eq!(
        created,
        TEXT.replace(
            "\thttp-request set-header b y",
            "\thttp-request set-header x y\n\thttp-request set-header b y"
        )
    );
    let replaced = edited(TEXT, |editor| {
        editor.replace(&backend(), &ChildKey::Name("s2".into()), &server("s2", "10.0.0.9"))
    })
    .unwrap();
    assert_eq!(replaced, TEXT.replace("10.0.0.2:80", "10.0.0.9:80"));
    let deleted =
        edited(TEXT, |editor| editor.delete(&frontend(), ObjectKind::HttpRequestRule, &index(0))).unwrap();
    assert_eq!(deleted, TEXT.replace("\thttp-request set-header a y # why\n", ""));
    let listed = edited(TEXT, |editor| {
        let mut rules = editor.list(&frontend(), ObjectKind::HttpRequestRule)?;
        rules.insert(1, rule("x"));
        rules.push(rule("z"));
        editor.replace_list(&frontend(), ObjectKind::HttpRequestRule, &rules)
    })
    .unwrap();
    let expected = "\thttp-request set-header a y # why\n\thttp-request set-header x y\n\thttp-request set-header b y\n\thttp-request set-header z y\n";
    assert!(listed.contains(expected), "{listed}");
    let emptied =
        edited(TEXT, |editor| editor.replace_list(&frontend(), ObjectKind::HttpRequestRule, &[])).unwrap();
    assert!(!emptied.contains("http-request"), "{emptied}");
}

#[test]
fn what_does_not_fit_is_refused_with_its_reason() {
    let exists = edited(TEXT, |editor| editor.create(&backend(), &server("s1", "10.0.0.3"), None));
    assert_eq!(exists, Err(EditError::Exists { what: "server s1 of backend b".into() }));
    let renamed = edited(TEXT, |editor| {
        editor.replace(&backend(), &ChildKey::Name("s1".into()), &server("s2", "10.0.0.3"))
    });
    assert!(matches!(renamed, Err(EditError::Exists { .. })), "{renamed:?}");
    let far = edited(TEXT, |editor| editor.create(&frontend(), &rule("x"), Some(99)));
    let length = 2;
    let kind = ObjectKind::HttpRequestRule;
    assert_eq!(far, Err(EditError::OutOfRange { section: frontend(), kind, index: 99, length }));
    let gone = edited(TEXT, |editor| editor.delete(&frontend(), kind, &index(2)));
    assert_eq!(gone, Err(EditError::OutOfRange { section: frontend(), kind, index: 2, length }));
    let nameless =
        edited(TEXT, |editor| editor.delete(&backend(), ObjectKind::Server, &ChildKey::Name("s3".into())));
    assert_eq!(nameless, Err(EditError::NotFound { what: "server s3 in backend b".into() }));
    let missing = edited(TEXT, |editor| editor.delete_section(&SectionKey::named(SectionKind::Backend, "c")));
    assert_eq!(missing, Err(EditError::NotFound { what: "backend c".into() }));
    let misplaced = edited(TEXT, |editor| editor.create(&frontend(), &server("s1", "10.0.0.1"), None));
    assert_eq!(
        misplaced,
        Err(EditError::WrongPlace { kind: ObjectKind::Server, section: ObjectKind::Frontend })
    );
    let json = serde_json::json!({ "name": "s3", "address": "10.0.0.1", "check": "bogus" });
    let invalid = edited(TEXT, |editor| editor.create(&backend(), &object(ObjectKind::Server, &json), None));
    assert!(matches!(&invalid, Err(EditError::Invalid { field, .. }) if field == "check"), "{invalid:?}");
}

#[test]
fn a_section_beside_a_conditional_is_changed_only_as_text() {
    for (text, why) in [
        ("frontend f\n  bind :80\n.if 1\n  http-request deny\n.endif\n", TextOnly::Conditional),
        ("frontend f\n  \"$A\" x\n", TextOnly::Variable),
        ("frontend f\n  bind \"open\n", TextOnly::Broken),
    ] {
        let refused = edited(text, |editor| editor.create(&frontend(), &rule("x"), Some(0)));
        assert_eq!(refused, Err(EditError::TextOnly { section: frontend(), why }), "{text}");
    }
    let captcha = SectionKey::named(SectionKind::Captcha, "l");
    let refused = edited("captcha l\n  provider x\n", |editor| editor.create(&captcha, &rule("x"), None));
    assert_eq!(refused, Err(EditError::TextOnly { section: captcha, why: TextOnly::NoModel }));
}

#[test]
fn an_acl_stands_above_the_rules_that_name_it() {
    let below = "frontend f\n  bind 127.0.0.1:80\n  mode http\n  timeout client 1s\n  http-request set-header a y\n  acl b src 10.0.0.1\n  http-request deny if b\n";
    let kind = ObjectKind::HttpRequestRule;
    let texts = [
        // A new ACL at the top of the list, then an old rule above that comes to name it.
        edited(below, |editor| {
            editor.create(&frontend(), &acl("a"), Some(0))?;
            editor.replace(&frontend(), &index(0), &deny_if("a"))
        }),
        // A new ACL behind one that stands below the rule.
        edited(below, |editor| {
            editor.create(&frontend(), &acl("a"), Some(1))?;
            editor.replace(&frontend(), &index(0), &deny_if("a !b"))
        }),
        edited(below, |editor| editor.create(&frontend(), &deny_if("b"), Some(0))),
        edited(below, |editor| {
            let mut rules = editor.list(&frontend(), kind)?;
            rules.insert(0, deny_if("b"));
            editor.replace_list(&frontend(), kind, &rules)
        }),
    ];
    for text in texts {
        let text = text.unwrap();
        for (at, _) in text.match_indices(" if ") {
            let tests = text[at + 4..].lines().next().unwrap().split(' ');
            for name in tests.map(|name| name.trim_start_matches('!')) {
                assert!(text.find(&format!("acl {name} ")).unwrap() < at, "{text}");
            }
        }
        for version in Version::ALL {
            let check = need!(Haproxy::check(version, &text));
            assert!(check.accepted, "{version:?}\n{text}\n{}", check.output);
        }
    }
}

#[test]
fn sections_are_created_replaced_renamed_and_deleted_whole() {
    let cx = Context::default();
    let section =
        |json: serde_json::Value| SectionModel::from_json(ObjectKind::Backend, &json, &cx).unwrap().0;
    let whole = section(serde_json::json!({
        "name": "n", "mode": "http", "servers": { "s": { "name": "s", "address": "10.0.0.5", "port": 1 } },
    }));
    let created = edited(TEXT, |editor| editor.create_section(&whole).map(drop)).unwrap();
    assert_eq!(created, format!("{TEXT}\nbackend n\n\tmode http\n\tserver s 10.0.0.5:1\n"));
    let twice = edited(&created, |editor| editor.create_section(&whole).map(drop));
    assert_eq!(twice, Err(EditError::Exists { what: "backend n".into() }));
    let taken = edited(&created, |editor| editor.replace_section(&backend(), &whole));
    assert_eq!(taken, Err(EditError::Exists { what: "backend n".into() }));
    let replaced = edited(TEXT, |editor| editor.replace_section(&backend(), &whole)).unwrap();
    assert!(
        replaced.ends_with("backend n\n\tmode http\n\tserver s 10.0.0.5:1\n") && !replaced.contains("s1")
    );
    let deleted = edited(&created, |editor| editor.delete_section(&backend())).unwrap();
    assert!(!deleted.contains("s1") && deleted.contains("backend n"), "{deleted}");
    let settings = section(serde_json::json!({ "name": "b", "mode": "tcp" })).object.unwrap();
    let changed = edited(TEXT, |editor| editor.replace_settings(&backend(), &settings)).unwrap();
    assert_eq!(changed, TEXT.replace("mode  http", "mode tcp"));
}

/// A frontend of some hundred kilobytes, so that it is kept in chunks.
fn long(count: u32) -> String {
    let rules: String = (0..count).map(|n| format!("  http-request set-header X-{n} y # {n}\n")).collect();
    format!("global\n  daemon\n\nfrontend f\n  bind :80\n{rules}\nbackend b\n  server s 10.0.0.1:80\n")
}

#[test]
fn a_long_section_is_edited_anywhere_as_a_short_one_is() {
    let count = 2_000;
    let text = long(count);
    let cx = Context::default();
    let kind = ObjectKind::HttpRequestRule;
    for at in [0, 1, 63, 64, 65, 500, 999, 1_998, 1_999] {
        let line = format!("  http-request set-header X-{at} y # {at}\n");
        let mut editor = Editor::new(Document::parse(text.as_bytes()), &cx);
        assert_eq!(
            editor.get(&frontend(), kind, &index(at)).unwrap().get("hdr_name").unwrap().as_str(),
            Some(&*format!("X-{at}"))
        );
        editor.create(&frontend(), &rule("N"), Some(at)).unwrap();
        editor.create(&frontend(), &rule("E"), None).unwrap();
        editor.delete(&frontend(), kind, &index(at + 1)).unwrap();
        let expected = text
            .replace(&line, "  http-request set-header N y\n")
            .replace("\n\nbackend b", "\n  http-request set-header E y\n\nbackend b");
        let document = editor.finish();
        assert_eq!(String::from_utf8(document.print()).unwrap(), expected, "{at}");
        let whole = Document::parse(&document.print());
        assert_eq!(document, whole);
        let models = |document: &Document| {
            setpoint_haproxy::model::model(document, &cx)
                .sections
                .iter()
                .map(|section| section.to_json(&cx))
                .collect::<Vec<_>>()
        };
        assert_eq!(models(&document), models(&whole), "{at}");
    }
}

#[test]
fn many_sections_come_and_go_by_their_names() {
    let cx = Context::default();
    let mut editor = Editor::new(Document::parse(b"global\n\ndefaults\n  mode http\n"), &cx);
    let key = |n: u32| SectionKey::named(SectionKind::Backend, format!("b{n}"));
    for n in 0..1_500 {
        let json = serde_json::json!({ "name": format!("b{n}") });
        let section = SectionModel::from_json(ObjectKind::Backend, &json, &cx).unwrap().0;
        editor.create_section(&section).unwrap();
        editor.create(&key(n), &server("s", "10.0.0.1"), None).unwrap();
        if n % 3 == 2 {
            editor.delete_section(&key(n - 1)).unwrap();
        }
    }
    for n in 0..1_500 {
        let found = editor.get(&key(n), ObjectKind::Server, &ChildKey::Name("s".into()));
        assert_eq!(found.is_ok(), n % 3 != 1, "{n}");
    }
    assert_eq!(editor.sections(SectionKind::Backend).len(), 1_000);
}

#[test]
fn settings_that_were_replaced_are_what_the_section_says() {
    let text = "frontend f\n  bind :80\n  errorloc302 503 /a\n  errorloc302 404 /b\n";
    let bare = object(ObjectKind::Frontend, &serde_json::json!({ "name": "f" }));
    let replaced = edited(text, |editor| editor.replace_settings(&frontend(), &bare)).unwrap();
    assert_eq!(replaced, "frontend f\n  bind :80\n");
}
