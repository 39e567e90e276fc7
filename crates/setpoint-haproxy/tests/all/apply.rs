//! Operations applied to a document: what is changed and what stays, and that they lead to what is desired.

use proptest::prelude::*;
use setpoint_haproxy::compare::compare;
use setpoint_haproxy::edit::{EditError, SectionKey};
use setpoint_haproxy::model::{Context, ObjectKind};
use setpoint_haproxy::table;
use setpoint_haproxy::text::{Document, SectionKind};

use crate::compare::{applied, diff, told};
use crate::configurations::{MIXED, any};

#[test]
fn all_that_is_not_changed_stays_byte_for_byte() {
    let current = "# top\nglobal\n\tdaemon\n\n# ours\nbackend   b  # here\n\tmode    http\n\n\tbalance   roundrobin   # fair\n\tserver s1 10.0.0.1:80  # one\n\t# the end\n\nbackend c\n";
    let desired = "global\n daemon\nbackend b # here\n mode http\n balance leastconn\n retries 3\n server s1 10.0.0.1:80 # one\n server s2 10.0.0.2:80\nbackend c\n";
    let expected = "# top\nglobal\n\tdaemon\n\n# ours\nbackend   b  # here\n\tmode    http\n\n\tbalance leastconn   # fair\n\tretries 3\n\tserver s1 10.0.0.1:80  # one\n\tserver s2 10.0.0.2:80\n\t# the end\n\nbackend c\n";
    assert_eq!(applied(current, desired), expected);
}

#[test]
fn a_changed_line_keeps_the_words_and_blanks_that_need_not_change() {
    let current = "backend b\n  server  s1   10.0.0.1:80   weight 10  inter 2s check  # one\n  http-request  set-header X-A  \"b c\"  if { path /x }\n";
    for (from, to) in [
        ("weight 10", "weight 20"),
        ("10.0.0.1:80", "10.0.0.9:80"),
        ("inter 2s", "inter 3s"),
        ("X-A", "X-B"),
        ("path /x", "path /y"),
    ] {
        let desired = current.replace(from, to);
        assert_eq!(applied(current, &desired.replace("   ", " ")), desired, "{from}");
    }
    let gone = applied(current, &current.replace("weight 10  ", ""));
    assert!(gone.contains("server  s1   10.0.0.1:80  inter 2s check  # one\n"), "{gone}");
    let more = applied(current, &current.replace("check", "check backup"));
    assert!(more.contains("server  s1   10.0.0.1:80   weight 10  inter 2s check backup  # one\n"), "{more}");
}

#[test]
fn a_new_section_is_written_in_the_style_of_the_others() {
    let current = "defaults\n\tmode http\n\nfrontend f\n\tbind :80\n";
    let desired = "defaults\n\tmode http\nfrontend f\n\tbind :80\nbackend b\n  balance leastconn\n  server s 10.0.0.1:1\n";
    let expected = "defaults\n\tmode http\n\nfrontend f\n\tbind :80\n\nbackend b\n\tbalance leastconn\n\tserver s 10.0.0.1:1\n";
    assert_eq!(applied(current, desired), expected);
}

#[test]
fn a_new_acl_stands_before_the_rules() {
    let current = "frontend f\n  bind :80\n  http-request deny if { src 10.0.0.1 }\n";
    let desired = "frontend f\n  bind :80\n  acl a src 10.0.0.2\n  http-request deny if { src 10.0.0.1 }\n  http-request deny if a\n";
    assert_eq!(applied(current, desired), desired);
}

#[test]
fn a_section_stays_with_the_defaults_that_govern_it() {
    let current = "defaults\n  retries 1\nbackend a\ndefaults\n  retries 2\nbackend b\n";
    let desired = "defaults\n  retries 1\nbackend a\nbackend n\ndefaults\n  retries 2\nbackend b\n";
    assert_eq!(
        applied(current, desired),
        "defaults\n  retries 1\nbackend a\n\nbackend n\n\ndefaults\n  retries 2\nbackend b\n"
    );
}

#[test]
fn sections_without_a_name_go_from_the_last_to_the_first() {
    let current = "global\ndefaults\ndefaults\n  retries 1\n";
    assert_eq!(told(&diff(current, "global\n")), ["- text of defaults #2", "- text of defaults"]);
    assert_eq!(applied(current, "global\n"), "global\n");
}

#[test]
fn what_haproxy_would_refuse_can_be_put_right_and_is_not_judged() {
    let text = |fetch: &str, factor: u8| {
        format!(
            "backend b\n  hash-balance-factor {factor}\n  http-request set-var(txn.a) {fetch}\n  server s 10.0.0.1:80\n"
        )
    };
    let (wrong, right) = (text("srcc", 50), text("src", 150));
    assert_eq!(applied(&wrong, &right), right);
    assert_eq!(applied(&right, &wrong), wrong);
}

/// Everything that a document says, section by section: named children as sets.
fn meaning(text: &str) -> Vec<String> {
    let cx = Context::default();
    let document = Document::parse(text.as_bytes());
    let mut all: Vec<String> = Vec::new();
    let mut governor = String::new();
    for section in document.sections() {
        let model = setpoint_haproxy::model::section_model(section, &cx);
        let name = model.name.clone().unwrap_or_default();
        if model.kind == setpoint_haproxy::text::SectionKind::Defaults {
            let unnamed = all.iter().filter(|said| said.starts_with("defaults  ")).count();
            governor = if name.is_empty() { format!("#{unnamed}") } else { name.to_string() };
        }
        let mut children: Vec<String> = model
            .children
            .iter()
            .filter(|child| !child.kind.is_ordered())
            .map(|child| format!("{} {}", child.kind, child.to_json()))
            .collect();
        children.sort();
        let mut kinds: std::collections::BTreeMap<ObjectKind, Vec<String>> =
            std::collections::BTreeMap::new();
        for child in model.children.iter().filter(|child| child.kind.is_ordered()) {
            kinds.entry(child.kind).or_default().push(child.to_json().to_string());
        }
        let own = match &model.object {
            Some(object) => {
                // Stated or not, a default is the same; where `defaults` govern, `compare` itself tells.
                let mut object = object.clone();
                for (field, value) in &object.clone().fields {
                    if table::directives().default(object.kind, *field, cx.haproxy).as_ref() == Some(value) {
                        object.fields.remove(*field);
                    }
                }
                let mut json = object.to_json();
                if model.kind.is_proxy() {
                    json.as_object_mut().unwrap().remove("from");
                }
                json.to_string()
            }
            None => section
                .lines()
                .flat_map(|line| {
                    line.words().map(|word| word.to_str_lossy().into_owned()).collect::<Vec<_>>()
                })
                .collect(),
        };
        // Named or not, what governs is what counts.
        let named = section.from().map(|name| String::from_utf8_lossy(&name).into_owned());
        let governed = model.kind.is_proxy().then(|| named.unwrap_or_else(|| governor.clone()));
        all.push(format!("{} {name} {own} {children:?} {kinds:?} {governed:?}", model.kind));
    }
    all.sort();
    all
}

proptest! {
    #[test]
    fn applied_in_order_the_operations_give_exactly_what_is_desired(current in any::configuration(), desired in any::configuration()) {
        let result = applied(&current, &desired);
        prop_assert_eq!(told(&diff(&result, &desired)), [""; 0], "{}", result);
        prop_assert_eq!(meaning(&result), meaning(&desired), "{}", result);
    }

    #[test]
    fn a_configuration_compared_with_itself_in_another_style_gives_nothing(text in any::configuration(), style in 0..3_usize) {
        let restyled = match style {
            0 => text.replace("\n  ", "\n\t\t"),
            1 => text.replace('\n', "\r\n"),
            _ => text.replace("\n  ", "\n\n    # why\n  ").replace(" check", "  \"check\""),
        };
        prop_assert_eq!(told(&diff(&text, &restyled)), [""; 0]);
    }

    #[test]
    fn formatting_never_changes_what_is_meant(text in any::configuration()) {
        let formatted = String::from_utf8(Document::parse(text.as_bytes()).formatted().print()).unwrap();
        prop_assert_eq!(told(&diff(&text, &formatted)), [""; 0]);
        prop_assert_eq!(meaning(&text), meaning(&formatted));
    }

    #[test]
    fn any_two_texts_can_be_compared_and_applied_without_panic(a in any::text(), b in any::text()) {
        let cx = Context::default();
        let (a, b) = (Document::parse(&a), Document::parse(&b));
        if let Ok(diff) = compare(&a, &b, &cx) {
            let mut document = a;
            for operation in diff.operations() {
                if let Ok(next) = document.apply(operation, &cx) {
                    document = next;
                }
            }
            let _ = diff.plan("x").to_string();
        }
    }
}

/// What comes of the last operation between two texts where it is applied to another one.
fn elsewhere(current: &str, desired: &str, other: &str) -> Result<(), EditError> {
    let (cx, diff) = (Context::default(), diff(current, desired));
    let operation = diff.operations().last().unwrap();
    Document::parse(other.as_bytes()).apply(operation, &cx).map(drop)
}

#[test]
fn an_operation_that_does_not_fit_a_document_is_refused_with_its_reason() {
    let server = |name: &str| format!("backend b\n  server {name} 10.0.0.1:80\n");
    let both = server("s") + "  server n 10.0.0.2:80\n";
    let exists = elsewhere(&server("s"), &both, &both);
    assert!(matches!(exists, Err(EditError::Exists { .. })), "{exists:?}");
    let rules = |count: usize| {
        let rules = (0..count).map(|at| format!("  http-request set-header X-{at} y\n"));
        format!("backend b\n{}", rules.collect::<String>())
    };
    let far = elsewhere(&rules(4), &rules(5), &rules(2));
    assert!(matches!(far, Err(EditError::OutOfRange { index: 4, length: 2, .. })), "{far:?}");
    let conditional = elsewhere(&rules(0), &rules(1), "backend b\n.if 1\n  mode http\n.endif\n");
    assert!(matches!(conditional, Err(EditError::TextOnly { .. })), "{conditional:?}");
    for (current, desired) in [(rules(0), rules(1)), (rules(1), rules(0)), (server("s"), both.clone())] {
        let missing = elsewhere(&current, &desired, "backend other\n");
        assert!(matches!(missing, Err(EditError::NotFound { .. })), "{missing:?}");
    }
    let gone = elsewhere(&both, &server("s"), &server("s"));
    assert!(matches!(gone, Err(EditError::NotFound { .. })), "{gone:?}");
    let there = elsewhere("backend b\n", "backend b\nbackend c\n", "backend c\n");
    assert!(matches!(there, Err(EditError::Exists { .. })), "{there:?}");
    // A server of a frontend is no difference that two texts can have.
    let cx = Context::default();
    let mut operation = diff(&server("s"), &both).operations()[0].clone();
    operation.section = SectionKey::named(SectionKind::Frontend, "f");
    let misplaced = Document::parse(b"frontend f\n  bind :80\n").apply(&operation, &cx).map(drop);
    assert!(matches!(misplaced, Err(EditError::WrongPlace { .. })), "{misplaced:?}");
}

#[test]
fn a_mixed_configuration_reaches_any_of_its_parts() {
    let document = Document::parse(MIXED.as_bytes());
    for index in 2..document.sections().len() {
        let without = document.without_section(index);
        let text = String::from_utf8(without.print()).unwrap();
        assert_eq!(told(&diff(&applied(MIXED, &text), &text)), [""; 0], "{index}");
        assert_eq!(told(&diff(&applied(&text, MIXED), MIXED)), [""; 0], "{index}");
    }
}

/// Each pair is a configuration that HAProxy accepts and one that is desired instead.
const ORDERS: [(&str, &str); 8] = [
    ("", "frontend f\n  bind 127.0.0.1:8080\n  acl a src 10.0.0.1\n  monitor-uri /up\n  monitor fail if a\n"),
    ("", "backend b\n  acl a src 10.0.0.1\n  force-persist if a\n"),
    ("", "backend b\n  acl a src 10.0.0.1\n  stats admin if a\n"),
    ("", "backend b\n  acl a src 10.0.0.1\n  stats http-request auth unless a\n"),
    (
        "frontend f\n  bind 127.0.0.1:8080\n  monitor-uri /up\n",
        "frontend f\n  bind 127.0.0.1:8080\n  acl a src 10.0.0.1\n  monitor-uri /up\n  monitor fail if a\n",
    ),
    (
        "frontend f\n  bind 127.0.0.1:8080\n  http-request set-header a y\n  acl old src 10.0.0.1\n",
        "frontend f\n  bind 127.0.0.1:8080\n  acl new src 10.0.0.1\n  http-request deny if new\n  http-request set-header a y\n",
    ),
    ("global\n", "global\n  expose-experimental-directives\n  tune.fd.edge-triggered on\n"),
    (
        "frontend f\n  bind 127.0.0.1:8080\n  acl a src 10.0.0.1\n",
        "frontend f\n  bind 127.0.0.1:8080\n  acl a src 10.0.0.1\n  http-request deny if a\n",
    ),
];

#[test]
fn what_is_applied_is_accepted_where_what_is_desired_is() {
    use setpoint_testutils::{Haproxy, Version, need};
    let defaults =
        "defaults d\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n";
    for (current, desired) in ORDERS {
        let whole = |text: &str| match text.strip_prefix("global\n") {
            Some(rest) => format!("global\n{rest}{defaults}"),
            None => format!("{defaults}{text}"),
        };
        let (current, desired) = (whole(current), whole(desired));
        let result = applied(&current, &desired);
        for text in [&desired, &result] {
            let check = need!(Haproxy::check(Version::V3_4, text));
            assert!(check.accepted, "{text}{}", check.output);
        }
        assert!(diff(&result, &desired).is_empty(), "{result}");
    }
}
