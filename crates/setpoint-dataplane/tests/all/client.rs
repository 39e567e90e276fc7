//! The client, on a real HAProxy behind our own API in each dialect.

use setpoint_dataplane::client::{
    ApiError, Capability, Client, ConnectError, FileKind, For, OperateError, PushReload, ReloadStatus,
    Settings, Tls,
};
use setpoint_dataplane_api::{Address, Dialect, Listener, TlsFiles};
use setpoint_haproxy::compare::{Diff, compare};
use setpoint_haproxy::model::{Edition, Version};
use setpoint_haproxy::text::Document;
use setpoint_testutils::certificates::Authority;
use setpoint_testutils::wait::{self, LIMIT};
use setpoint_testutils::{Proxy, need};

use crate::world::{CREDENTIALS, World};

const TEXT: &str = "frontend web\n  bind 127.0.0.1:PORT\n  default_backend app\n\nbackend app\n  balance roundrobin\n  \
                    server s1 127.0.0.1:1 weight 10\n";

fn diff(old: &str, new: &str, client: &Client) -> Diff {
    let cx = client.context(Version::V3_4);
    compare(&Document::parse(old.as_bytes()), &Document::parse(new.as_bytes()), &cx).unwrap()
}

#[tokio::test]
async fn version_auto_detection() {
    for dialect in Dialect::ALL {
        let world = need!(World::start(dialect, TEXT).await);
        let client = world.client().await;
        assert_eq!(client.version().schema(), dialect.version());
        assert_eq!((client.edition(), client.is_enterprise()), (Edition::Community, false));
        assert_eq!(client.capabilities().has(Capability::CrtLists), dialect.version() >= Version::V3_2);
        assert_eq!(client.endpoint(), world.url);
        assert!(client.is_setpoint());
        let process = client.process().await.unwrap();
        assert!(process.pid.is_some() && process.version.starts_with("3."), "{process:?}");
        world.end().await;
    }
}

#[tokio::test]
async fn a_transaction_carries_operations_in_every_dialect() {
    let new = TEXT.replace("weight 10", "weight 20").replace("balance roundrobin", "balance leastconn")
        + "  http-request deny if { src 192.0.2.1 }\n  server s2 127.0.0.1:2\n\nbackend other\n  server o1 127.0.0.1:3\n";
    for dialect in Dialect::ALL {
        let world = need!(World::start(dialect, TEXT).await);
        let client = world.client().await;
        let (text, version) = client.raw_configuration().await.unwrap();
        let desired = world.text(&new);
        let found = diff(&String::from_utf8(text).unwrap(), &desired, &client);
        assert_eq!(found.operations().len(), 6, "{:#?}", found.plan("x").to_string());
        let transaction = client.begin(version).await.unwrap();
        assert_eq!(transaction.version, version);
        for operation in found.operations() {
            client.operate(operation, For::Transaction(&transaction.id)).await.unwrap();
        }
        assert_eq!(client.configuration_version().await.unwrap(), version, "nothing is committed yet");
        let changed = client.commit(&transaction.id, false).await.unwrap();
        assert_eq!(changed.version, Some(version + 1));
        let id = changed.reload_id.filter(|_| changed.is_delayed).expect("a new backend needs a reload");
        let ended = wait::until("the reload", LIMIT, async || {
            let reload = client.reload(&id).await.unwrap();
            (reload.status != ReloadStatus::InProgress).then_some(reload)
        });
        assert_eq!(ended.await.status, ReloadStatus::Succeeded);
        assert!(diff(&world.file(), &desired, &client).is_empty(), "{}", world.file());
        world.end().await;
    }
}

#[tokio::test]
async fn a_weight_is_changed_without_a_transaction_and_without_a_reload() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let client = world.client().await;
    let (text, version) = client.raw_configuration().await.unwrap();
    let pid = client.process().await.unwrap().pid;
    let desired = world.text(&TEXT.replace("weight 10", "weight 20"));
    let found = diff(&String::from_utf8(text).unwrap(), &desired, &client);
    let [operation] = found.operations() else { panic!("{found:?}") };
    let changed = client.operate(operation, For::Version(version)).await.unwrap();
    assert_eq!((changed.version, changed.reload_id, changed.is_delayed), (Some(version + 1), None, false));
    assert_eq!(client.process().await.unwrap().pid, pid);
    // What was made for another version is refused, and says which one is there.
    let stale = client.operate(operation, For::Version(version)).await.unwrap_err();
    let OperateError::Api(ApiError::Conflict { version: Some(actual), .. }) = &stale else {
        panic!("{stale}")
    };
    assert_eq!(*actual, version + 1);
    world.end().await;
}

#[tokio::test]
async fn a_text_is_pushed_for_a_version_and_refused_with_what_haproxy_says() {
    for dialect in [Dialect::ALL[0], Dialect::default()] {
        let world = need!(World::start(dialect, TEXT).await);
        let client = world.client().await;
        let version = client.configuration_version().await.unwrap();
        let bad = world.text(&TEXT.replace("balance roundrobin", "balance nonsense"));
        let refused =
            client.push_raw_configuration(bad.as_bytes(), version, &PushReload::Delayed).await.unwrap_err();
        assert!(refused.to_string().contains("balance"), "{refused}");
        assert!(!refused.is_conflict() && !refused.is_connection());
        let good = world.text(&TEXT.replace("balance roundrobin", "balance leastconn"));
        let changed =
            client.push_raw_configuration(good.as_bytes(), version, &PushReload::Forced).await.unwrap();
        assert_eq!(changed.version, Some(version + 1));
        assert!(world.file().contains("leastconn"));
        let stale =
            client.push_raw_configuration(good.as_bytes(), version, &PushReload::Delayed).await.unwrap_err();
        assert!(stale.is_conflict(), "{stale}");
        world.end().await;
    }
}

#[tokio::test]
async fn files_are_made_replaced_read_and_deleted_by_the_names_that_the_api_gives() {
    for dialect in [Dialect::ALL[0], Dialect::ALL[2], Dialect::default()] {
        let world = need!(World::start(dialect, TEXT).await);
        let client = world.client().await;
        for (kind, name) in [(FileKind::Map, "my.hosts.map"), (FileKind::General, "503.http")] {
            assert_eq!(client.files(kind).await.unwrap(), []);
            let (made, _) = client.create_file(kind, name, b"a b\n").await.unwrap();
            let again = client.create_file(kind, name, b"a b\n").await.unwrap_err();
            assert!(again.is_conflict(), "{again}");
            let listed: Vec<String> =
                client.files(kind).await.unwrap().into_iter().map(|file| file.storage_name).collect();
            assert_eq!(listed, [made.storage_name.as_str()]);
            let changed = client.replace_file(kind, &made.storage_name, b"a c\n", true).await.unwrap();
            assert_eq!(changed.reload_id, None, "{kind:?}");
            assert_eq!(client.file(kind, &made.storage_name).await.unwrap().unwrap(), b"a c\n");
            client.delete_file(kind, &made.storage_name).await.unwrap();
            client.delete_file(kind, &made.storage_name).await.unwrap();
            assert_eq!(client.file(kind, &made.storage_name).await.unwrap(), None);
        }
        world.end().await;
    }
}

/// With it, a text without a version begins to count at 1 again, and nobody's change is noticed.
#[test]
fn no_call_skips_the_version() {
    let mut folders = vec![std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut read = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            read += 1;
            assert!(!std::fs::read_to_string(&path).unwrap().contains("skip_version"), "{}", path.display());
        }
    }
    assert!(read > 10, "the sources were found");
}

#[tokio::test]
async fn a_call_that_the_version_has_not_is_not_made() {
    let world = need!(World::start(Dialect::ALL[0], TEXT).await);
    let client = world.client().await;
    let error = client.replace_ca_file("ca.pem", b"").await.unwrap_err();
    assert!(error.to_string().contains("3.2+"), "{error}");
    world.end().await;
}

#[tokio::test]
async fn an_aborted_transaction_is_gone_and_aborting_it_again_is_no_error() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let client = world.client().await;
    let version = client.configuration_version().await.unwrap();
    let transaction = client.begin(version).await.unwrap();
    client.abort(&transaction.id).await.unwrap();
    client.abort(&transaction.id).await.unwrap();
    assert!(client.commit(&transaction.id, false).await.is_err());
    world.end().await;
}

#[tokio::test]
async fn nobody_who_answers_is_told_apart_from_somebody_who_refuses() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let target = world.url.trim_start_matches("http://").parse().unwrap();
    let proxy = Proxy::start(target).await;
    let through = Settings { url: format!("http://{}", proxy.address()), ..world.settings() };
    let client = Client::connect(through.clone()).await.unwrap();
    proxy.cut();
    let error = client.configuration_version().await.unwrap_err();
    assert!(error.is_connection(), "{error}");
    assert!(error.to_string().contains(&proxy.address().to_string()), "{error}");
    proxy.heal();
    client.configuration_version().await.unwrap();

    let wrong = Settings::new(&world.url).with_credentials("admin", "geheim");
    let error = Client::connect(wrong).await.unwrap_err();
    let ConnectError::Api(ApiError::Refused { status: 401, .. }) = &error else { panic!("{error}") };
    assert!(!format!("{error} {error:?}").contains("geheim"), "{error:?}");
    world.end().await;
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_too_late_is_an_error() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let short = Settings { longest_answer: 40, ..world.settings() };
    let error = Client::connect(short).await.unwrap_err().to_string();
    assert!(error.contains("longer than 40 bytes"), "{error}");
    // Nobody ever answers there.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let late = Settings { timeout: std::time::Duration::from_millis(200), ..Settings::new(url) };
    let error = Client::connect(late).await.unwrap_err();
    assert!(matches!(error, ConnectError::Api(ApiError::Timeout { .. })), "{error}");
    world.end().await;
}

#[tokio::test]
async fn who_asks_by_the_address_goes_before_who_asks_by_default() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let (user, password) = CREDENTIALS;
    let url = world.url.replace("http://", &format!("http://{user}:{password}@"));
    let client = Client::connect(Settings::new(url).with_credentials(user, "another")).await.unwrap();
    assert_eq!(client.endpoint(), world.url);
    world.end().await;
}

/// Whom an API trusts, and who trusts it.
#[tokio::test]
async fn a_certificate_of_an_authority_that_is_named_is_trusted_and_one_is_shown_to_whom_it_is_asked_for() {
    let world = need!(World::start(Dialect::default(), TEXT).await);
    let (authority, other) = (Authority::new(), Authority::new());
    let (server, client) = (authority.server(), authority.server());
    let write = |name: &str, text: &str| {
        let path = world.path(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let files = |client_authorities| TlsFiles {
        certificate: write("server.pem", &server.certificate),
        key: write("server.key", &server.key),
        client_authorities,
    };
    let authorities = write("clients.pem", &authority.certificate());
    let mut urls = Vec::new();
    for files in [files(None), files(Some(authorities))] {
        let listener = Listener::bind(Address::Tls("127.0.0.1:0".parse().unwrap(), files)).await.unwrap();
        urls.push(listener.url().trim_end_matches("/v3").to_owned());
        tokio::spawn(setpoint_dataplane_api::serve(vec![listener], world.api(), std::future::pending()));
    }
    let connect = async |url: &str, trusted: &Authority, identity: Option<String>| {
        let tls = Tls {
            authorities: Some(trusted.certificate().into_bytes()),
            identity: identity.map(String::into_bytes),
        };
        let settings = Settings { tls, timeout: LIMIT, ..Settings::new(url) };
        let client = Client::connect(settings.with_credentials(CREDENTIALS.0, CREDENTIALS.1)).await?;
        Ok::<_, ConnectError>(client.configuration_version().await?)
    };
    let is_refused = |outcome: Result<u64, ConnectError>| match outcome {
        Err(ConnectError::Api(error)) => error.is_connection(),
        _ => false,
    };
    let identity = || Some(client.certificate.clone() + &client.key);
    assert_eq!(connect(&urls[0], &authority, None).await.unwrap(), 1);
    assert!(is_refused(connect(&urls[0], &other, None).await), "nobody known has signed for it");
    assert_eq!(connect(&urls[1], &authority, identity()).await.unwrap(), 1);
    assert!(is_refused(connect(&urls[1], &authority, None).await), "it wants to know who asks");
    let stranger = other.server();
    assert!(is_refused(connect(&urls[1], &authority, Some(stranger.certificate + &stranger.key)).await));
    world.end().await;
}
