//! What the model makes of sections, beyond single lines.

use serde_json::json;
use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, TextOnly, Version, section_model};
use setpoint_haproxy::text::Document;

fn read_in(text: &str, cx: &Context) -> SectionModel {
    let document = Document::parse(text.as_bytes());
    SectionModel::clone(&section_model(document.sections().last().unwrap(), cx))
}

fn read(text: &str) -> SectionModel {
    read_in(text, &Context::default())
}

#[test]
fn a_section_with_a_conditional_is_text_only() {
    let section = read("backend b\n  .if defined(X)\n  balance source\n  .endif\n");
    assert_eq!(section.text_only, Some(TextOnly::Conditional));
    assert!(section.object.is_none() && section.children.is_empty());
}

#[test]
fn a_line_with_a_variable_is_text_until_its_value_is_known() {
    let text = "backend b\n  server s1 \"${ADDR}\":80\n";
    let unknown = read(text);
    assert_eq!((unknown.text_only, unknown.unmodelled), (None, vec![1]));
    for section in ["backend \"${NAME}\"\n  mode tcp\n", "backend b\n  \"${LINE}\" x\n"] {
        assert_eq!(read(section).text_only, Some(TextOnly::Variable), "{section}");
    }
    let known = read_in(text, &Context::default().with_env("ADDR", "192.0.2.1"));
    assert_eq!(known.text_only, None);
    assert_eq!(known.children[0].get("address").and_then(|value| value.as_str()), Some("192.0.2.1"));
}

#[test]
fn a_section_without_a_model_or_with_a_broken_line_is_text_only() {
    assert_eq!(read("captcha c\n  provider x\n").text_only, Some(TextOnly::NoModel));
    assert_eq!(read("backend b\n  description it's\n").text_only, Some(TextOnly::Broken));
    assert_eq!(read("backend b\n  mode http # \0\n").text_only, Some(TextOnly::Broken));
}

#[test]
fn a_listen_is_a_frontend_and_a_backend_in_one() {
    let text = "listen l\n  mode http\n  bind :80\n  acl a src 10.0.0.1\n  http-request deny if a\n  balance leastconn\n  option httplog\n  server s 10.0.0.1:80\n";
    let section = read(text);
    assert_eq!((section.text_only, section.unmodelled.as_slice()), (None, [].as_slice()));
    let kinds: Vec<ObjectKind> = section.children.iter().map(|child| child.kind).collect();
    assert_eq!(kinds, [ObjectKind::Bind, ObjectKind::Acl, ObjectKind::HttpRequestRule, ObjectKind::Server]);
    let object = section.object.as_ref().unwrap().to_json();
    assert_eq!((&object["balance"]["algorithm"], &object["httplog"]), (&"leastconn".into(), &true.into()));
}

#[test]
fn what_the_table_does_not_know_is_listed_by_its_line() {
    let section = read("backend b\n  balance source\n  dispatch 192.0.2.1:80\n\n  no such line\n");
    assert_eq!(section.unmodelled, [2, 4]);
    assert_eq!(section.object.unwrap().to_json()["balance"]["algorithm"], "source");
}

#[test]
fn the_last_line_of_a_directive_wins_with_all_it_says() {
    let section = read("backend b\n  balance url_param id check_post 10\n  balance roundrobin\n");
    assert_eq!(
        section.object.unwrap().to_json()["balance"],
        serde_json::json!({ "algorithm": "roundrobin" })
    );
}

#[test]
fn a_second_default_server_adds_to_the_first() {
    let section = read("backend b\n  default-server check inter 1s\n  default-server fall 2\n");
    let expected = serde_json::json!({ "check": "enabled", "inter": 1000, "fall": 2 });
    assert_eq!(section.object.unwrap().to_json()["default_server"], expected);
}

#[test]
fn what_the_schema_has_no_second_place_for_is_kept_as_text() {
    let section =
        read("frontend f\n  errorloc302 503 /a\n  errorloc302 404 /b\n  bind :443 ssl crt a.pem crt b.pem\n");
    assert_eq!(section.unmodelled, [2, 3]);
}

#[test]
fn equal_meaning_is_equal_however_it_is_spelled() {
    let one = read(
        "backend b\n  timeout connect 1000\n  server s1 192.0.2.1:80 weight 10 check\n  http-request set-header X \"a\"\n",
    );
    let two = read(
        "backend b\n  timeout   connect 1s\n  server s1 192.0.2.1:80 check weight 10\n  http-request set-header X a\n",
    );
    assert_eq!((one.object, one.children), (two.object, two.children));
}

#[test]
fn comments_are_metadata_where_the_version_keeps_them() {
    let text = "frontend f\n  acl a src 192.0.2.1 # mine\n";
    let of = |version| read_in(text, &Context::new(version)).children[0].to_json().get("metadata").cloned();
    assert_eq!(of(Version::V3_0), None);
    assert_eq!(of(Version::V3_2), Some(serde_json::json!({ "comment": "mine" })));
}

#[test]
fn an_object_of_the_wrong_type_or_without_what_it_needs_is_refused() {
    let cx = Context::default();
    let wrong = Object::from_json(ObjectKind::Server, &serde_json::json!({ "name": "s", "port": "80" }), &cx);
    assert_eq!(wrong.unwrap_err().to_string(), "server: port can't be a text: a number is needed");
    let rule =
        Object::from_json(ObjectKind::HttpRequestRule, &serde_json::json!({ "type": "set-header" }), &cx)
            .unwrap()
            .0;
    assert!(rule.write(&cx, &mut Vec::new()).unwrap_err().to_string().contains("has no line for"));
}

#[test]
fn what_haproxy_would_refuse_is_refused_before_it_is_written() {
    for (kind, json, said) in [
        (ObjectKind::Server, json!({"name": "s", "address": "10.0.0.1", "fall": 0}), "at least 1"),
        (
            ObjectKind::Server,
            json!({"name": "s", "address": "10.0.0.1", "no_verifyhost": "enabled"}),
            "no option",
        ),
        (
            ObjectKind::Bind,
            json!({"name": "b", "address": "10.0.0.1", "port": 90, "port-range-end": 80}),
            "from 90 to 80",
        ),
        (ObjectKind::Backend, json!({"name": "b", "stats_options": {"stats_maxconn": 2}}), "stats maxconn 2"),
        (
            ObjectKind::Defaults,
            json!({"name": "d", "stats_options": {"stats_admin": true, "stats_admin_cond": "if", "stats_admin_cond_test": "TRUE"}}),
            "stats admin",
        ),
        (ObjectKind::Global, json!({"warn_blocked_traffic_after": 5000}), "from 1 to 1000"),
    ] {
        let cx = Context::default();
        let (object, _) = Object::from_json(kind, &json, &cx).unwrap();
        let error = object.write(&cx, &mut Vec::new()).unwrap_err().to_string();
        assert!(error.contains(said), "{json}: {error}");
    }
}

#[test]
fn what_haproxy_has_no_word_for_is_left_unsaid() {
    let cx = Context::default();
    let json = json!({"name": "b", "tcpka": "disabled", "srvtcpka": "disabled"});
    let mut text = Vec::new();
    Object::from_json(ObjectKind::Backend, &json, &cx).unwrap().0.write(&cx, &mut text).unwrap();
    assert_eq!(text, b"no option srvtcpka\n");
}

#[test]
fn an_address_without_a_port_has_brackets_where_a_part_of_it_would_be_taken_for_one() {
    let cx = Context::default();
    for (kind, json, expected) in [
        (ObjectKind::Server, json!({"name": "s", "address": "::1"}), "server s [::1]\n"),
        (ObjectKind::Backend, json!({"name": "b", "source": {"address": "::1"}}), "source [::1]\n"),
    ] {
        let mut text = Vec::new();
        Object::from_json(kind, &json, &cx).unwrap().0.write(&cx, &mut text).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
    let server = &read("backend b\n  server s [::1]\n").children[0];
    assert_eq!(server.get("address").unwrap().as_str(), Some("::1"));
}

#[test]
fn a_line_of_more_words_than_haproxy_reads_is_refused() {
    let cx = Context::default();
    let words = vec!["x"; 70].join(" ");
    let json = json!({"name": "b", "force_persist_list": [{"cond": "if", "cond_test": words}]});
    let (object, _) = Object::from_json(ObjectKind::Backend, &json, &cx).unwrap();
    let error = object.write(&cx, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("more than 64 words"), "{error}");
}

#[test]
fn quotes_that_nothing_needs_are_not_part_of_a_value() {
    let section = read("backend b\n  mode \"http\"\n  log-tag 'a b'\n");
    let object = section.object.unwrap();
    assert_eq!(object.get("mode").unwrap().as_str(), Some("http"));
    assert_eq!(object.get("log_tag").unwrap().as_str(), Some("'a b'"));
}

#[test]
fn a_value_that_is_set_and_that_haproxy_has_no_word_for_is_an_error() {
    let cx = Context::default();
    for (kind, json, said) in [
        (
            ObjectKind::Server,
            serde_json::json!({ "name": "s", "address": "10.0.0.1", "check": "bogus" }),
            "server: HAProxy 3.4 has no line for check `bogus`",
        ),
        (
            ObjectKind::Server,
            serde_json::json!({ "name": "s", "address": "10.0.0.1", "check": "bogus", "backup": "maybe" }),
            "server: HAProxy 3.4 has no line for backup `maybe`, check `bogus`",
        ),
        (
            ObjectKind::HttpRequestRule,
            serde_json::json!({ "type": "deny", "hdr_name": "X-A" }),
            "http_request_rule: HAProxy 3.4 has no line for hdr_name `X-A`",
        ),
        (
            ObjectKind::Backend,
            serde_json::json!({ "name": "b", "redispatch": { "enabled": "bogus" }, "srvtcpka": "perhaps" }),
            "backend: HAProxy 3.4 has no line for redispatch.enabled `bogus`, srvtcpka `perhaps`",
        ),
        (
            ObjectKind::Backend,
            serde_json::json!({ "name": "b", "force_persist_list": [{ "cond": "if" }] }),
            "backend: HAProxy 3.4 has no line for force_persist_list.0 `cond=if`",
        ),
    ] {
        let (object, _) = Object::from_json(kind, &json, &cx).unwrap();
        let error = object.write(&cx, &mut Vec::new()).unwrap_err();
        assert_eq!(error.to_string(), said);
    }
}

#[test]
fn what_is_switched_off_and_has_no_word_for_it_is_no_error() {
    let cx = Context::default();
    let json = serde_json::json!({ "name": "s", "address": "10.0.0.1", "check_via_socks4": "disabled" });
    let mut text = Vec::new();
    Object::from_json(ObjectKind::Server, &json, &cx).unwrap().0.write(&cx, &mut text).unwrap();
    assert_eq!(text, b"server s 10.0.0.1\n");
}

#[test]
fn properties_that_the_schema_does_not_know_are_returned_beside_the_object() {
    let cx = Context::default();
    let json = serde_json::json!({
        "name": "b", "colour": "red", "balance": { "algorithm": "first", "taste": 1 },
        "servers": { "s": { "name": "s", "address": "10.0.0.1", "smell": true } },
        "http_request_rule_list": [{ "type": "deny", "sound": "loud" }],
    });
    let (section, unknown) = SectionModel::from_json(ObjectKind::Backend, &json, &cx).unwrap();
    assert_eq!(unknown, ["balance.taste", "colour", "http_request_rule_list.0.sound", "servers.s.smell"]);
    assert_eq!(section.children.len(), 2);
}

#[test]
fn a_word_of_several_values_is_read_back_whatever_they_are() {
    let cx = Context::default();
    for value in ["txn.a", "it's", "two words", "say \"hi\"", "a#b", "back\\slash"] {
        let json = json!({"type": "do-resolve", "var_name": value, "resolvers": "r", "expr": "src"});
        let (rule, _) = Object::from_json(ObjectKind::HttpRequestRule, &json, &cx).unwrap();
        let mut text = b"frontend f\n  ".to_vec();
        if rule.write(&cx, &mut text).is_err() {
            continue;
        }
        let text = String::from_utf8(text).unwrap();
        assert_eq!(read(&text).children, [rule], "{text}");
    }
    let json = json!({"type": "do-resolve", "var_name": "it's", "resolvers": "r", "expr": "src"});
    let (rule, _) = Object::from_json(ObjectKind::HttpRequestRule, &json, &cx).unwrap();
    let mut text = Vec::new();
    rule.write(&cx, &mut text).unwrap();
    assert_eq!(text, b"http-request \"do-resolve(it's,r)\" src\n");
}

#[test]
fn a_form_is_that_of_haproxys_version_and_not_of_the_apis() {
    let ring = json!({ "name": "r", "size": 32768 });
    for (api, haproxy, size) in [
        (Version::V3_0, Version::V2_6, "size 32768"),
        (Version::V3_4, Version::V2_6, "size 32768"),
        (Version::V3_4, Version::V3_0, "size 32768"),
        (Version::V3_0, Version::V3_2, "size 32k"),
        (Version::V3_4, Version::V3_4, "size 32k"),
    ] {
        let cx = Context::new(api).with_haproxy(haproxy);
        let (section, _) = SectionModel::from_json(ObjectKind::Ring, &ring, &cx).unwrap();
        let mut text = Vec::new();
        section.write(&cx, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text, format!("ring r\n  {size}\n"), "{api} {haproxy}");
        let read = read_in(&text, &cx);
        assert_eq!(read.to_json(&cx), ring, "{api} {haproxy}");
        // What HAProxy reads as 32 is not taken for more.
        let read = read_in("ring r\n  size 32k\n", &cx);
        assert_eq!(read.unmodelled.is_empty(), haproxy > Version::V3_0, "{api} {haproxy}");
    }
    let drop = json!({ "type": "silent-drop", "rst_ttl": 5 });
    for (haproxy, is_known) in [(Version::V2_6, false), (Version::V2_8, true), (Version::V3_4, true)] {
        let cx = Context::new(Version::V3_0).with_haproxy(haproxy);
        let (rule, _) = Object::from_json(ObjectKind::HttpRequestRule, &drop, &cx).unwrap();
        assert_eq!(rule.write(&cx, &mut Vec::new()).is_ok(), is_known, "{haproxy}");
    }
}

#[test]
fn a_port_that_the_api_has_no_number_for_is_kept_as_text() {
    let section = read("log-forward f\n  dgram-bind 127.0.0.1:0\n");
    assert_eq!((section.children.len(), section.unmodelled.len()), (0, 1));
}
