//! What the model makes of sections, beyond single lines.

use setpoint_haproxy::model::{Context, Object, ObjectKind, SectionModel, TextOnly, Version, section_model};
use setpoint_haproxy::text::Document;

fn read_in(text: &str, cx: &Context) -> SectionModel {
    let document = Document::parse(text.as_bytes());
    section_model(document.sections().last().unwrap(), cx)
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
fn a_variable_is_text_only_until_its_value_is_known() {
    let text = "backend b\n  server s1 \"${ADDR}\":80\n";
    assert_eq!(read(text).text_only, Some(TextOnly::Variable));
    let known = read_in(text, &Context::default().with_env("ADDR", "192.0.2.1"));
    assert_eq!(known.text_only, None);
    assert_eq!(known.children[0].get("address").and_then(|value| value.as_str()), Some("192.0.2.1"));
}

#[test]
fn a_section_without_a_model_or_with_a_broken_line_is_text_only() {
    assert_eq!(read("listen l\n  bind :80\n").text_only, Some(TextOnly::NoModel));
    assert_eq!(read("backend b\n  description it's\n").text_only, Some(TextOnly::Broken));
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
    assert_eq!(wrong.unwrap_err().to_string(), "server: port can't be \"80\": a number is needed");
    let rule =
        Object::from_json(ObjectKind::HttpRequestRule, &serde_json::json!({ "type": "set-header" }), &cx)
            .unwrap();
    assert!(rule.write(&cx, &mut Vec::new()).unwrap_err().to_string().contains("has no line for"));
}
