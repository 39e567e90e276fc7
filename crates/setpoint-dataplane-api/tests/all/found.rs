//! What people found who used the API for the first time.

use std::fs;
use std::time::Duration;

use reqwest::{Client, RequestBuilder};
use serde_json::{Value as Json, json};
use setpoint_instance::cli::Request as CliRequest;
use setpoint_instance::runtime::Reply;
use setpoint_testutils::{Missing, need};

use crate::world::{Plan, World, certificate};

async fn world(more: &str) -> Result<World, Missing> {
    World::start(&Plan::default(), |folder, ports| {
        let folder = folder.display();
        format!(
            "global\n  stats socket {folder}/run.sock level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend f\n  bind {}\n  use_backend web if {{ path /web }}\nbackend web\n  server s1 127.0.0.1:9 weight 1\n{}",
            ports[0].address(),
            more.replace("$D", &folder.to_string()).replace("$PORT", &ports[1].address().to_string())
        )
    })
    .await
}

pub(crate) fn request(world: &World, method: &str, path: &str) -> RequestBuilder {
    let client = Client::builder().no_proxy().timeout(Duration::from_mins(1)).build().unwrap();
    let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
    client.request(method, format!("{}/v3{path}", world.url)).basic_auth("admin", Some("adminpwd"))
}

/// The status, the name of the reload, and the body of an answer.
pub(crate) async fn answer(request: RequestBuilder) -> (u16, Option<String>, String) {
    let response = request.send().await.unwrap();
    let reload = response.headers().get("reload-id").map(|id| id.to_str().unwrap().to_owned());
    (response.status().as_u16(), reload, response.text().await.unwrap())
}

pub(crate) async fn ask(
    world: &World,
    method: &str,
    path: &str,
    body: Option<Json>,
) -> (u16, Option<String>, String) {
    let request = request(world, method, &format!("/services/haproxy/{path}"));
    answer(match body {
        Some(body) => request.header("content-type", "application/json").body(body.to_string()),
        None => request,
    })
    .await
}

#[tokio::test]
async fn a_reload_that_never_was_is_not_there() {
    let world = need!(world("").await);
    let (status, _, body) = ask(&world, "GET", "reloads/2026-01-31-7", None).await;
    assert_eq!(status, 404, "{body}");
    assert!(body.contains("Reload with ID 2026-01-31-7 does not exist"), "{body}");
    let (status, id, _) =
        ask(&world, "POST", "configuration/backends?version=1", Some(json!({ "name": "b" }))).await;
    let id = id.unwrap();
    world.settled().await;
    let (found, _, body) = ask(&world, "GET", &format!("reloads/{id}"), None).await;
    assert_eq!((status, found), (202, 200));
    assert!(body.contains("succeeded"), "{body}");
    world.end().await;
}

#[tokio::test]
async fn the_endpoints_are_listed_at_the_root() {
    let world = need!(world("").await);
    for path in ["", "/"] {
        let (status, _, body) = answer(request(&world, "GET", path)).await;
        assert_eq!(status, 200, "{path}: {body}");
        assert!(body.contains("\"/services\"") && body.contains("\"/info\""), "{path}: {body}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_rule_is_written_above_the_choice_of_a_backend_so_that_haproxy_does_not_warn() {
    let world = need!(world("").await);
    let rule = json!({ "type": "set-header", "hdr_name": "x", "hdr_format": "y" });
    let path = "configuration/frontends/f/http_request_rules/0?version=1&force_reload=true";
    let (status, _, body) = ask(&world, "POST", path, Some(rule)).await;
    assert_eq!(status, 201, "{body}");
    let text = fs::read_to_string(world.file()).unwrap();
    assert!(text.contains("  http-request set-header x y\n  use_backend web"), "{text}");
    world.end().await;
}

#[tokio::test]
async fn what_haproxy_has_against_a_pushed_text_is_said_by_the_lines_of_that_text() {
    let world = need!(world("").await);
    let text = fs::read_to_string(world.file()).unwrap();
    let lines = text.lines().count();
    for query in ["version=1", "version=1&only_validate=true"] {
        let push = request(&world, "POST", &format!("/services/haproxy/configuration/raw?{query}"));
        let push = push.header("content-type", "text/plain").body(format!("{text}  nonsense\n"));
        let (status, _, body) = answer(push).await;
        assert_eq!(status, 400, "{body}");
        let place = format!("haproxy.cfg:{}]", lines + 1);
        assert!(body.contains(&place) && body.contains("nonsense"), "{place} in {body}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_stick_table_that_is_not_there_and_data_that_it_does_not_store_are_the_clients_mistakes() {
    let world = need!(
        world(
            "listen l\n  bind $PORT\n  stick-table type string len 32 size 1k store gpc0,http_req_rate(10s)\n"
        )
        .await
    );
    let (status, _, body) = ask(&world, "GET", "runtime/stick_tables/nosuch/entries", None).await;
    assert_eq!(status, 404, "{body}");
    let wrong = json!({ "key": "k", "data_type": { "bytes_in_cnt": 2 } });
    let (status, _, body) = ask(&world, "POST", "runtime/stick_tables/l/entries", Some(wrong)).await;
    assert_eq!(status, 400, "{body}");
    // One of a `listen` section says what it stores.
    let (status, _, body) = ask(&world, "GET", "runtime/stick_tables/l", None).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("http_req_rate") && body.contains("10000"), "{body}");
    world.end().await;
}

/// What a running HAProxy says to a command.
async fn shown(world: &World, command: &'static str, word: &str) -> String {
    let request = CliRequest::new(command).word(word).unwrap();
    match world.api.instance().worker().ask(&request).await.unwrap() {
        Reply::Done(answer) | Reply::Refused(answer) => answer,
    }
}

#[tokio::test]
async fn entries_of_a_list_of_certificates_are_checked_and_told() {
    let world = need!(world("").await);
    let path = |name: &str| world.folder.path().join("ssl").join(name).display().to_string();
    fs::write(path("list.crtlist"), format!("{}\n", path("site.pem"))).unwrap();
    fs::write(path("other.pem"), certificate('b')).unwrap();
    let bind = json!({ "name": "tls", "address": "127.0.0.1", "port": world.ports[2].number(), "ssl": true, "crt_list": path("list.crtlist") });
    let (status, _, body) =
        ask(&world, "POST", "configuration/frontends/f/binds?version=1&force_reload=true", Some(bind)).await;
    assert_eq!(status, 201, "{body}");
    let reloads = async || {
        setpoint_instance::reload::processes(world.api.instance().master()).await.unwrap().master.reloads
    };
    let before = reloads().await;

    let entries = "storage/ssl_crt_lists/list.crtlist/entries";
    let entry = json!({ "file": path("other.pem"), "sni_filter": ["b.example.test"] });
    let (status, reload, body) = ask(&world, "POST", entries, Some(entry)).await;
    assert_eq!((status, reload), (201, None), "{body}");
    let list = shown(&world, "show ssl crt-list -n", &path("list.crtlist")).await;
    assert!(list.contains("other.pem") && list.contains("b.example.test"), "{list}");

    // What HAProxy refuses is not written.
    let entry = json!({ "file": path("nosuch.pem") });
    let (status, _, body) = ask(&world, "POST", entries, Some(entry)).await;
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("nosuch.pem"), "{body}");
    assert!(!fs::read_to_string(path("list.crtlist")).unwrap().contains("nosuch"));

    let remove = format!("{entries}?certificate={}&line_number=2", path("other.pem"));
    let (status, reload, body) = ask(&world, "DELETE", &remove, None).await;
    assert_eq!((status, reload), (204, None), "{body}");
    let list = shown(&world, "show ssl crt-list -n", &path("list.crtlist")).await;
    assert!(!list.contains("other.pem"), "{list}");
    assert_eq!(reloads().await, before);

    // The first entry serves those who name no host: it changes with a reload.
    let first = format!("{entries}?certificate={}", path("site.pem"));
    ask(&world, "POST", entries, Some(json!({ "file": path("other.pem") }))).await;
    let (status, reload, body) = ask(&world, "DELETE", &first, None).await;
    assert_eq!((status, reload.is_some()), (202, true), "{body}");
    world.end().await;
}

#[tokio::test]
async fn authorities_that_are_replaced_in_the_storage_are_told() {
    let authority = |name: &str| {
        let mut parameters = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        let key = rcgen::KeyPair::generate().unwrap();
        parameters.self_signed(&key).unwrap().pem()
    };
    let world = need!(world("").await);
    let path = world.folder.path().join("general/ca.pem").display().to_string();
    let upload = |request: RequestBuilder, text: &str| {
        let head = "Content-Disposition: form-data; name=\"file_upload\"; filename=\"ca.pem\"";
        let body = format!("--x\r\n{head}\r\n\r\n{text}\r\n--x--\r\n");
        answer(request.header("content-type", "multipart/form-data; boundary=x").body(body))
    };
    let create = request(&world, "POST", "/services/haproxy/storage/general");
    assert_eq!(upload(create, &authority("one")).await.0, 201);
    let server = json!({ "name": "s2", "address": "127.0.0.1", "port": 9, "ssl": "enabled", "verify": "required", "ssl_cafile": path });
    let (status, _, body) =
        ask(&world, "POST", "configuration/backends/web/servers?version=1&force_reload=true", Some(server))
            .await;
    assert_eq!(status, 201, "{body}");
    let replace = request(&world, "PUT", "/services/haproxy/storage/general/ca.pem");
    let (status, reload, body) = upload(replace, &authority("two")).await;
    assert_eq!((status, reload), (204, None), "{body}");
    let told = shown(&world, "show ssl ca-file", &path).await;
    assert!(told.contains("CN=two") && !told.contains("CN=one"), "{told}");
    // What is no certificate is refused, and not written.
    let replace = request(&world, "PUT", "/services/haproxy/storage/general/ca.pem");
    let (status, _, body) = upload(replace, "nonsense").await;
    assert_eq!(status, 400, "{body}");
    assert!(fs::read_to_string(&path).unwrap().contains("BEGIN CERTIFICATE"));
    world.end().await;
}

#[tokio::test]
async fn that_haproxy_does_not_run_is_said_in_these_words() {
    let mut world = need!(world("").await);
    world.stop_haproxy().await;
    let (status, _, body) = ask(&world, "GET", "runtime/stick_tables", None).await;
    assert_eq!(status, 500, "{body}");
    assert!(body.contains("HAProxy does not run"), "{body}");
    let path = "configuration/backends/web/servers/s1?version=1&force_reload=true";
    let server = json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": 7 });
    let (status, _, body) = ask(&world, "PUT", path, Some(server)).await;
    assert_eq!(status, 400, "{body}");
    assert!(body.contains("HAProxy does not run"), "{body}");
    world.end().await;
}
