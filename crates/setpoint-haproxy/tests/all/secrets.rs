//! No secret of a configuration is shown: not by a difference, not by `check`, not by an error.

use setpoint_haproxy::check::{Checks, check, without_secrets};
use setpoint_haproxy::model::{Context, Object, ObjectKind, Version};
use setpoint_haproxy::text::Document;

use crate::compare::diff;

/// Lines with a secret, each in its section.
const LINES: [(&str, &str); 21] = [
    ("frontend f", "http-request set-header X-Auth-Key XX"),
    ("frontend f", "http-request set-var(txn.auth_key) str(XX)"),
    ("backend b", r#"tcp-check send "AUTH XX\r\n""#),
    ("backend b", r"option httpchk GET / HTTP/1.0\r\nAuthorization:\ Basic\ XX"),
    ("backend b", r#"http-check send meth POST uri / body "password=XX""#),
    ("global", "ssl-passphrase-cmd /bin/echo XX"),
    ("global", "setenv DB_PW XX"),
    ("global", "set-var proc.password str(XX)"),
    ("frontend f", "http-request set-var(txn.token) str(XX)"),
    ("frontend f", r#"acl a req.hdr(authorization) -m str "Bearer XX""#),
    ("frontend f", r#"http-request deny unless { req.hdr(Authorization) "Basic XX" }"#),
    ("frontend f", "acl a req.hdr(X-Api-Key) -m str XX"),
    ("frontend f", r#"http-request deny unless { http_auth_bearer,jwt_verify(HS256,"XX") 1 }"#),
    ("frontend f", "http-request set-header X-Sum %[req.hdr(a),hmac(sha256,XX),hex]"),
    ("frontend f", r#"http-request set-header Cookie "session=XX""#),
    ("frontend f", "stats auth admin:new # was XX"),
    ("userlist u", "user admin insecure-password XX"),
    ("userlist u", "user admin insecure-password new # was XX"),
    ("frontend f", r#"http-request redirect location "https://user:XX@example.test/""#),
    ("backend b", "server s 127.0.0.1:1 agent-check agent-port 2 agent-send XX"),
    ("global", "lua-load /a.lua XX"),
];

#[test]
fn diff_never_prints_a_password() {
    for (section, line) in LINES {
        for wrap in ["L", ".if 1\n  L\n  .endif"] {
            let text =
                |secret: &str| format!("{section}\n  {}\n", wrap.replace('L', &line.replace("XX", secret)));
            let changed = text("hunter2").replace("new", "newer");
            for found in [diff(&text("hunter1"), &changed), diff("global\n", &format!("global\n{changed}"))] {
                assert!(!found.is_empty(), "{line}");
                let plan = found.plan("x");
                let shown = format!("{plan} {plan:?} {}", serde_json::to_string(&plan).unwrap());
                assert!(!shown.contains("hunter"), "{line}: {shown}");
            }
        }
    }
}

#[test]
fn check_never_prints_a_password() {
    for (section, line) in LINES {
        for line in [format!("{line} junk"), format!("junk {line}"), format!("{line} \"")] {
            let line = line.replace("XX", "hunter2");
            let document = Document::parse(format!("{section}\n  {line}\n").as_bytes());
            let checks = Checks { version: Some(Version::V3_4), ..Checks::default() };
            for found in check(&document, &checks) {
                let shown = serde_json::to_string(&found).unwrap();
                assert!(!shown.contains("hunter"), "{line}: {shown}");
            }
            let (shown, _) = without_secrets(line.as_bytes(), 1);
            assert!(!shown.contains("hunter"), "{shown}");
        }
    }
}

#[test]
fn what_follows_a_misspelt_keyword_is_as_secret_as_what_follows_the_keyword() {
    for (section, line) in [
        ("userlist u", "user b insecure-pasword hunter2"),
        ("frontend f", "stats ath admin:hunter2"),
        ("global", "setnv DB_PASSWORD hunter2"),
        ("global", "cluster-secrt hunter2"),
        ("acme a", "eab-mac-kee hunter2"),
        ("acme a", "eab-mac-key x hunter2"),
        ("global", "setenv DB_PASSWORD a hunter2"),
        ("frontend f", "http-request set-header Authorization Basic hunter2"),
        ("frontend f", "http-request set-heder X-Api-Key hunter2 if TRUE"),
    ] {
        let document = Document::parse(format!("{section}\n  {line}\n").as_bytes());
        let found = check(&document, &Checks { version: Some(Version::V3_4), ..Checks::default() });
        assert_ne!(found, [], "{line}");
        let shown = serde_json::to_string(&found).unwrap();
        assert!(!shown.contains("hunter"), "{line}: {shown}");
        let (shown, _) = without_secrets(line.as_bytes(), 1);
        assert!(!shown.contains("hunter"), "{shown}");
    }
}

#[test]
fn a_secret_in_text_that_takes_the_place_of_another_is_told_from_it() {
    let text = |token: &str| format!(".if 1\nglobal\n  presetenv API_TOKEN {token}\n.endif\n");
    let found = diff(&text("hunter1"), &text("hunter2"));
    let change = &found.operations()[0].changes[0];
    assert_eq!(change.old.as_deref(), Some("presetenv API_TOKEN (secret)"));
    assert_eq!(change.new.as_deref(), Some("presetenv API_TOKEN (another secret)"));
}

#[test]
fn what_is_wrong_is_still_told_beside_a_secret() {
    let document = Document::parse(b"userlist u\n  user admin insecure-password hunter2 junk\n");
    let found = check(&document, &Checks::default());
    assert_eq!(found[0].text, "junk");
    assert_eq!(found[0].message, "HAProxy does not accept `junk` after `(secret)`");
}

#[test]
fn an_error_never_shows_a_secret() {
    let cx = Context::new(Version::V3_4);
    for (kind, json) in [
        (ObjectKind::User, serde_json::json!({ "password": "hunter2", "secure_password": false })),
        (ObjectKind::TcpCheck, serde_json::json!({ "action": "bogus", "data": "hunter2" })),
        (ObjectKind::Server, serde_json::json!({ "name": "s", "tcp_md5sig": "hunter2" })),
        (
            ObjectKind::HttpRequestRule,
            serde_json::json!({ "type": "set-header", "hdr_name": "Authorization", "hdr_format": "%[hunter2" }),
        ),
    ] {
        let (object, _) = Object::from_json(kind, &json, &cx).unwrap();
        let error = object.write(&cx, &mut Vec::new()).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter"), "{error:?}");
    }
}
