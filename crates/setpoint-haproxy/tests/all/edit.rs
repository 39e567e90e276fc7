//! The edit API: what it reads and changes, what it refuses, and that nothing else is touched.

use setpoint_haproxy::edit::{ChildKey, EditError, Editor, Fault, SectionKey};
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, TextOnly, Version as Api};
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
    let is_check = |faults: &[Fault]| faults.iter().map(|fault| fault.field.as_str()).eq(["check"]);
    assert!(matches!(&invalid, Err(EditError::Invalid { faults }) if is_check(faults)), "{invalid:?}");
}

#[test]
fn what_the_schema_refuses_is_invalid_with_its_field_all_at_once() {
    let cx = Context::default();
    let json = serde_json::json!({ "name": "s 3", "check": "bogus", "port": 70000 });
    let bad = object(ObjectKind::Server, &json);
    let fault = |field: &str, why: &str| Fault { field: field.into(), why: format!("{field} in body {why}") };
    let faults = |prefix: &str| {
        [
            ("address", "is required"),
            ("check", "should be one of [enabled disabled]"),
            ("name", r"should match '^[^\s]+$'"),
            ("port", "should be less than or equal to 65535"),
        ]
        .map(|(field, why)| fault(&format!("{prefix}{field}"), why))
        .to_vec()
    };
    let wanted = Err(EditError::Invalid { faults: faults("") });
    assert_eq!(edited(TEXT, |editor| editor.create(&backend(), &bad, None)), wanted);
    let s1 = ChildKey::Name("s1".into());
    assert_eq!(edited(TEXT, |editor| editor.replace(&backend(), &s1, &bad)), wanted);
    assert_eq!(
        edited(TEXT, |editor| editor.replace_list(
            &backend(),
            ObjectKind::Server,
            std::slice::from_ref(&bad)
        )),
        wanted
    );
    let section = serde_json::json!({ "name": "n", "balance": { "algorithm": "bogus" }, "servers": [json] });
    let (section, _) = SectionModel::from_json(ObjectKind::Backend, &section, &cx).unwrap();
    for outcome in [
        edited(TEXT, |editor| editor.create_section(&section).map(drop)),
        edited(TEXT, |editor| editor.replace_section(&backend(), &section)),
    ] {
        let Err(EditError::Invalid { faults: found }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(found[0].field, "balance.algorithm");
        assert_eq!(found[1..], faults("servers.s 3."));
    }
    let settings =
        edited(TEXT, |editor| editor.replace_settings(&backend(), section.object.as_ref().unwrap()));
    assert!(matches!(settings, Err(EditError::Invalid { .. })), "{settings:?}");
}

#[test]
fn a_list_that_must_be_there_may_be_empty() {
    let cx = Context::default();
    let json = serde_json::json!({ "name": "x", "error_files": [] });
    let (section, _) = SectionModel::from_json(ObjectKind::HttpErrors, &json, &cx).unwrap();
    let created = edited("", |editor| editor.create_section(&section).map(drop));
    assert_eq!(created.unwrap(), "http-errors x\n");
}

#[test]
fn a_place_for_something_named_is_refused() {
    let placed = edited(TEXT, |editor| editor.create(&backend(), &server("s3", "10.0.0.3"), Some(0)));
    let why = "server s3 is known by its name: it takes no index";
    let faults = vec![Fault { field: "index".into(), why: why.into() }];
    assert_eq!(placed, Err(EditError::Invalid { faults }));
}

#[test]
fn a_proxy_takes_no_name_that_haproxy_wants_to_be_another() {
    let beside = |version, kind: &str| {
        let cx = Context::new(version);
        let mut editor = Editor::new(Document::parse(TEXT.as_bytes()), &cx);
        let (kind, json) = (ObjectKind::by_model(kind).unwrap(), serde_json::json!({ "name": "b" }));
        let (section, _) = SectionModel::from_json(kind, &json, &cx).unwrap();
        let created = editor.create_section(&section).map(drop);
        let renamed = editor
            .replace_settings(&frontend(), &Object { kind: ObjectKind::Frontend, ..section.object.unwrap() });
        (created, renamed)
    };
    let taken = Err(EditError::Exists { what: "backend b".into() });
    assert_eq!(beside(Api::V3_4, "frontend"), (taken.clone(), taken.clone()));
    assert_eq!(beside(Api::V3_2, "frontend").0, Ok(()));
    assert_eq!(beside(Api::V3_2, "log_forward").0, taken);
    assert_eq!(beside(Api::V3_4, "cache").0, Ok(()));
    // HAProxy says the same.
    for version in Version::ALL {
        let text = "frontend b\n  bind 127.0.0.1:80\n  mode http\n  timeout client 1s\nbackend b\n  mode http\n  timeout connect 1s\n  timeout server 1s\n";
        let check = need!(Haproxy::check(version, text));
        assert_eq!(check.accepted, version != Version::ALL[3], "{version:?} {}", check.output);
    }
}

#[test]
fn of_sections_that_share_a_name_each_is_edited_by_its_number() {
    let text =
        "defaults\n  mode http\n\nbackend a\n\ndefaults\n  mode tcp\n\nbackend b\n  server s 10.0.0.1:80\n";
    let second = SectionKey { nth: 1, ..SectionKey::unnamed(SectionKind::Defaults) };
    let third = SectionKey { nth: 2, ..second.clone() };
    let timeout = object(ObjectKind::Defaults, &serde_json::json!({ "mode": "tcp", "client_timeout": 1000 }));
    let changed = edited(text, |editor| editor.replace_settings(&second, &timeout)).unwrap();
    assert_eq!(changed, text.replace("mode tcp\n", "mode tcp\n  timeout client 1s\n"));
    let log = object(ObjectKind::LogTarget, &serde_json::json!({ "global": true }));
    let logged = edited(text, |editor| {
        editor.create(&second, &log, Some(0))?;
        assert_eq!(editor.list(&second, ObjectKind::LogTarget)?.len(), 1);
        assert_eq!(editor.list(&SectionKey { nth: 0, ..second.clone() }, ObjectKind::LogTarget)?.len(), 0);
        Ok(())
    });
    assert_eq!(logged.unwrap(), text.replace("mode tcp\n", "mode tcp\n  log global\n"));
    let deleted = edited(text, |editor| editor.delete_section(&second)).unwrap();
    assert_eq!(deleted, text.replace("defaults\n  mode tcp\n\n", ""));
    let missing = edited(text, |editor| editor.delete_section(&third));
    assert_eq!(missing, Err(EditError::NotFound { what: "defaults #3".into() }));
    let twice = edited(text, |editor| {
        editor.delete_section(&SectionKey { nth: 0, ..second.clone() })?;
        editor.delete_section(&SectionKey { nth: 0, ..second.clone() })
    });
    assert_eq!(twice.unwrap(), "backend a\n\nbackend b\n  server s 10.0.0.1:80\n");
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
    // Neither is one deleted or replaced whole: the lines that decide over others go with it.
    let text =
        "global\n.if defined(A)\nbackend b\n  mode http\n.else\nbackend c\n  mode http\n.endif\nbackend d\n";
    for name in ["b", "c"] {
        let key = SectionKey::named(SectionKind::Backend, name);
        let why = TextOnly::Conditional;
        let text_only = Err(EditError::TextOnly { section: key.clone(), why });
        assert_eq!(edited(text, |editor| editor.delete_section(&key)), text_only, "{name}");
        let json = serde_json::json!({ "name": name, "mode": "tcp" });
        let section = SectionModel::from_json(ObjectKind::Backend, &json, &Context::default()).unwrap().0;
        assert_eq!(edited(text, |editor| editor.replace_section(&key, &section)), text_only, "{name}");
    }
    let key = SectionKey::named(SectionKind::Backend, "d");
    let without = edited(text, |editor| editor.delete_section(&key)).unwrap();
    assert_eq!(without, text.replace("backend d\n", ""));
    let captcha = SectionKey::named(SectionKind::Captcha, "l");
    let refused = edited("captcha l\n  provider x\n", |editor| editor.create(&captcha, &rule("x"), None));
    assert_eq!(refused, Err(EditError::TextOnly { section: captcha, why: TextOnly::NoModel }));
}

#[test]
fn a_new_rule_stands_above_what_haproxy_looks_at_after_it() {
    let text = "frontend f\n  bind :80\n  use_backend b if { path /b }\n  default_backend b\n";
    let with_rule = edited(text, |editor| editor.create(&frontend(), &rule("x"), None)).unwrap();
    assert_eq!(
        with_rule,
        "frontend f\n  bind :80\n  http-request set-header x y\n  use_backend b if { path /b }\n  default_backend b\n"
    );
    let accept =
        object(ObjectKind::TcpRequestRule, &serde_json::json!({ "type": "content", "action": "accept" }));
    let with_both = edited(&with_rule, |editor| editor.create(&frontend(), &accept, None)).unwrap();
    assert!(
        with_both.contains("  tcp-request content accept\n  http-request set-header x y\n"),
        "{with_both}"
    );
    let text = "backend b\n  use-server s if { path /b }\n  server s 192.0.2.1:80\n";
    let with_rule = edited(text, |editor| editor.create(&backend(), &rule("x"), None)).unwrap();
    assert!(with_rule.contains("  http-request set-header x y\n  use-server s"), "{with_rule}");
    for version in Version::ALL {
        // HAProxy warns of a rule that stands below what it looks at after it.
        let text = format!(
            "{}{with_both}{with_rule}",
            "defaults\n  mode http\n  timeout client 5s\n  timeout connect 5s\n  timeout server 5s\n"
        );
        let check = need!(Haproxy::check(version, &text));
        assert!(
            check.accepted && !check.output.contains("still be processed before"),
            "{version:?}: {check:?}"
        );
    }
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
        // Settings have conditions as well, new ones and old ones.
        edited(below, |editor| {
            let settings = serde_json::json!({
                "name": "f", "mode": "http", "client_timeout": 1000,
                "monitor_uri": "/up", "monitor_fail": { "cond": "if", "cond_test": "b" },
            });
            editor.replace_settings(&frontend(), &object(ObjectKind::Frontend, &settings))
        }),
        edited(
            "frontend f\n  mode http\n  timeout client 1s\n  acl a src 10.0.0.1\n  monitor fail if a\n  bind 127.0.0.1:80\n  acl b src 10.0.0.2\n  acl c src 10.0.0.3\n",
            |editor| {
                let settings = serde_json::json!({
                    "name": "f", "mode": "http", "client_timeout": 1000,
                    "monitor_fail": { "cond": "unless", "cond_test": "a b" },
                    "stats_options": { "stats_admin": true, "stats_admin_cond": "if", "stats_admin_cond_test": "c" },
                });
                editor.replace_settings(&frontend(), &object(ObjectKind::Frontend, &settings))
            },
        ),
        edited(
            "backend b\n  mode http\n  timeout server 1s\n  timeout connect 1s\n  acl a src 10.0.0.1\n  server s 10.0.0.1:80\n",
            |editor| {
                let settings = serde_json::json!({
                    "name": "b", "mode": "http", "server_timeout": 1000, "connect_timeout": 1000,
                    "force_persist_list": [{ "cond": "if", "cond_test": "a" }],
                    "ignore_persist_list": [{ "cond": "unless", "cond_test": "a" }],
                });
                editor.replace_settings(&backend(), &object(ObjectKind::Backend, &settings))
            },
        ),
    ];
    for text in texts {
        let text = text.unwrap();
        for (at, word) in text.match_indices(" if ").chain(text.match_indices(" unless ")) {
            let tests = text[at + word.len()..].lines().next().unwrap().split(' ');
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
    let cx = Context::default();
    let kind = ObjectKind::HttpRequestRule;
    let places = [0, 1, 63, 64, 65, 500, 999, 1_998, 1_999];
    for (at, indentation) in places.into_iter().flat_map(|at| [(at, "  "), (at, "")]) {
        let text = long(count).replace("\n  ", &format!("\n{indentation}"));
        let line = format!("{indentation}http-request set-header X-{at} y # {at}\n");
        let mut editor = Editor::new(Document::parse(text.as_bytes()), &cx);
        assert_eq!(
            editor.get(&frontend(), kind, &index(at)).unwrap().get("hdr_name").unwrap().as_str(),
            Some(&*format!("X-{at}"))
        );
        editor.create(&frontend(), &rule("N"), Some(at)).unwrap();
        editor.create(&frontend(), &rule("E"), None).unwrap();
        editor.delete(&frontend(), kind, &index(at + 1)).unwrap();
        let expected = text
            .replace(&line, &format!("{indentation}http-request set-header N y\n"))
            .replace("\n\nbackend b", &format!("\n{indentation}http-request set-header E y\n\nbackend b"));
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

#[test]
fn a_section_that_is_renamed_many_times_is_always_the_same_one() {
    let cx = Context::default();
    let text = "backend a\n\tserver s1 10.0.0.1:80\nbackend b\nbackend c\nbackend d\n";
    let mut editor = Editor::new(Document::parse(text.as_bytes()), &cx);
    let mut name = "b".to_owned();
    for round in 0..3_000 {
        let key = SectionKey::named(SectionKind::Backend, &name);
        name = format!("b{round}");
        editor
            .replace_settings(&key, &object(ObjectKind::Backend, &serde_json::json!({ "name": name })))
            .unwrap();
    }
    let expected = text.replace("backend b\n", &format!("backend {name}\n"));
    assert_eq!(String::from_utf8(editor.finish().print()).unwrap(), expected);
}
