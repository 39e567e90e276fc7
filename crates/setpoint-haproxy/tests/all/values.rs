//! JSON in, text out: every value is written, returned as unknown, or an error.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use setpoint_conformance::ModelCase;
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, Version};
use setpoint_haproxy::schema::{Asked, validate};
use setpoint_testutils::{Haproxy, haproxy, need};

use crate::conformance::recording;

/// What became of a value.
#[derive(Debug, PartialEq)]
enum Outcome {
    Written(String),
    Unknown(Vec<String>),
    Refused(String),
}

fn outcome(kind: ObjectKind, json: &Json, cx: &Context) -> Outcome {
    let mut text = Vec::new();
    let read = if kind.is_section() {
        SectionModel::from_json(kind, json, cx)
            .and_then(|(section, unknown)| section.write(cx, &mut text).map(|()| unknown))
    } else {
        Object::from_json(kind, json, cx)
            .and_then(|(object, unknown)| object.write(cx, &mut text).map(|()| unknown))
    };
    match read {
        Err(error) => Outcome::Refused(error.to_string()),
        Ok(unknown) if !unknown.is_empty() => Outcome::Unknown(unknown),
        Ok(_) => Outcome::Written(String::from_utf8(text).unwrap()),
    }
}

#[test]
fn every_value_is_written_returned_or_an_error() {
    let unknown = |path: &str| Outcome::Unknown(vec![path.to_owned()]);
    let refused = |why: &str| Outcome::Refused(why.to_owned());
    let (new, old) = (Context::default(), Context::new(Version::V3_0));
    let acl = json!({"acl_name": "a", "criterion": "src", "value": "10.0.0.1", "metadata": {"comment": "x"}});
    let persist = json!({"name": "b", "force_persist": {"cond": "if", "cond_test": "a"},
        "force_persist_list": [{"cond": "if", "cond_test": "b"}]});
    for (kind, json, cx, expected) in [
        (ObjectKind::Backend, json!({"name": "b", "bogus": {}}), &new, unknown("bogus")),
        (ObjectKind::Backend, json!({"name": "b", "bogus": {"a": {}}}), &new, unknown("bogus")),
        (ObjectKind::Acl, acl, &old, unknown("metadata")),
        (
            ObjectKind::Backend,
            persist,
            &new,
            refused("backend: HAProxy 3.4 has no line for force_persist.cond_test `a`"),
        ),
        (
            ObjectKind::Backend,
            json!({"name": "b", "servers": {"s1": {"name": "s2", "address": "10.0.0.1"}}}),
            &new,
            unknown("servers.s1"),
        ),
        (
            ObjectKind::Backend,
            json!({"name": "b", "servers": {"s1": {"address": "10.0.0.1"}}}),
            &new,
            Outcome::Written("backend b\n  server s1 10.0.0.1\n".to_owned()),
        ),
        (
            ObjectKind::Backend,
            json!({"name": "b", "acl_list": {"a": {"acl_name": "a", "criterion": "src"}}}),
            &new,
            refused("backend: acl_list can't be an object: a list is needed"),
        ),
        (
            ObjectKind::Backend,
            json!({"name": "b", "balance": "roundrobin"}),
            &new,
            refused("backend: balance can't be a text: an object is needed"),
        ),
        (
            ObjectKind::Backend,
            json!({"name": "b", "metadata": "mine"}),
            &new,
            refused("backend: metadata can't be a text: an object is needed"),
        ),
    ] {
        assert_eq!(outcome(kind, &json, cx), expected, "{kind} {json}");
    }
}

#[test]
fn what_haproxy_wants_or_refuses_beside_an_option_holds_for_what_is_written() {
    let cookie = |options: Json| {
        let mut cookie = json!({"name": "c"});
        cookie.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        json!({"name": "b", "cookie": cookie})
    };
    for (kind, json, why) in [
        (
            ObjectKind::Backend,
            cookie(json!({"type": "rewrite", "indirect": true})),
            "HAProxy does not accept `rewrite` beside `indirect`",
        ),
        (
            ObjectKind::Backend,
            cookie(json!({"type": "prefix", "preserve": true})),
            "`preserve` can't be without `insert` or `indirect`",
        ),
        (
            ObjectKind::Server,
            json!({"name": "s", "address": "10.0.0.1", "check": "enabled", "track": "b/t"}),
            "HAProxy does not accept `track` beside `check`",
        ),
        (
            ObjectKind::Filter,
            json!({"type": "spoe", "spoe_engine": "e"}),
            "`filter spoe` can't be without `config`",
        ),
    ] {
        match outcome(kind, &json, &Context::default()) {
            Outcome::Refused(said) => assert!(said.contains(why), "{said}"),
            other => panic!("{json}: {other:?}"),
        }
    }
    for options in [
        json!({"type": "insert", "indirect": true, "preserve": true}),
        json!({"type": "prefix", "indirect": true, "preserve": true}),
    ] {
        let outcome = outcome(ObjectKind::Backend, &cookie(options), &Context::default());
        assert!(matches!(outcome, Outcome::Written(_)), "{outcome:?}");
    }
}

/// The values of an object, by their paths.
fn leaves(json: &Json, path: &str, out: &mut Vec<String>) {
    let inner: Vec<(String, &Json)> = match json {
        Json::Object(properties) => properties.iter().map(|(name, json)| (name.clone(), json)).collect(),
        Json::Array(elements) => {
            out.push(path.to_owned());
            elements.iter().enumerate().map(|(index, json)| (index.to_string(), json)).collect()
        }
        _ => return out.push(path.to_owned()),
    };
    for (name, json) in inner {
        leaves(json, &format!("{path}/{name}"), out);
    }
}

/// An object in which the value at a path is another.
fn with(json: &Json, path: &str, value: &Json) -> Json {
    let mut json = json.clone();
    *json.pointer_mut(path).unwrap() = value.clone();
    json
}

/// Each property of each kind of object, changed to values of all types.
#[test]
fn whatever_a_property_is_set_to_does_not_vanish() {
    let (mut tried, mut lost) = (0, String::new());
    for version in [Version::V3_0, Version::V3_2, Version::V3_4] {
        let cx = Context::new(version);
        let mut seen = BTreeSet::new();
        for line in recording(version, "model").lines() {
            let case: ModelCase = serde_json::from_str(line).unwrap();
            let Some(kind) = case.kind().filter(|_| case.status < 300) else { continue };
            let Outcome::Written(before) = outcome(kind, &case.sent, &cx) else { continue };
            let mut paths = Vec::new();
            leaves(&case.sent, "", &mut paths);
            for path in paths {
                let general: String = path.chars().filter(|byte| !byte.is_ascii_digit()).collect();
                if !seen.insert((kind.model(), general)) {
                    continue;
                }
                for value in
                    [json!("zz9"), json!(98_761), json!(true), json!({"zz8": "zz9"}), json!(["zz9", 98_761])]
                {
                    tried += 1;
                    let changed = with(&case.sent, &path, &value);
                    let Outcome::Written(after) = outcome(kind, &changed, &cx) else { continue };
                    let is_written = match &value {
                        Json::String(text) => after.contains(text.as_str()),
                        Json::Object(_) => after.contains("zz8") && after.contains("zz9"),
                        Json::Array(_) => after.contains("zz9") && after.contains("98761"),
                        value => after != before || case.sent.pointer(&path) == Some(value),
                    };
                    if !is_written {
                        writeln!(lost, "{version} {kind} {path} = {value} in {}: {after}", case.sent)
                            .unwrap();
                    }
                }
            }
        }
    }
    assert!(tried > 10_000, "only {tried}");
    assert!(lost.is_empty(), "{} of {tried}\n{lost}", lost.matches(" in {").count());
}

/// Each property that the schema enumerates, set to what is none of its values.
#[test]
fn what_is_none_of_some_values_is_written_only_where_haproxy_accepts_it() {
    let cx = Context::new(Version::V3_4);
    let (mut tried, mut refused, mut seen) = (0, String::new(), BTreeSet::new());
    for line in recording(Version::V3_4, "model").lines() {
        let case: ModelCase = serde_json::from_str(line).unwrap();
        let Some(kind) = case.kind().filter(|kind| kind.is_section() && case.status < 300) else { continue };
        let Outcome::Written(_) = outcome(kind, &case.sent, &cx) else { continue };
        let mut paths = Vec::new();
        leaves(&case.sent, "", &mut paths);
        for path in paths {
            let changed = with(&case.sent, &path, &json!("zz9"));
            let is_enumerated = validate(kind, &changed, cx.api).iter().any(|found| {
                matches!(found.asked, Asked::OneOf(_)) && path.ends_with(&found.field.replace('.', "/"))
            });
            if !is_enumerated || !seen.insert((kind.model(), path.clone())) {
                continue;
            }
            tried += 1;
            let Outcome::Written(text) = outcome(kind, &changed, &cx) else { continue };
            let check = need!(Haproxy::check(haproxy::Version::V3_4, &text));
            let said = check.output.lines().find(|line| line.contains("[ALERT") && line.contains("zz9"));
            if let Some(said) = said {
                writeln!(refused, "{kind} {path}: {said}").unwrap();
            }
        }
    }
    assert!(tried > 40, "only {tried}");
    assert!(refused.is_empty(), "{refused}");
}
