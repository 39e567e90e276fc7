//! How the API is reached, and by whom: TLS, Unix sockets, limits, names of requests, metrics.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::{Certificate, Client, ClientBuilder, Identity, Response};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use setpoint_dataplane_api::{Address, Listener, Options, TlsFiles, serve};
use setpoint_testutils::{Missing, Port, need};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::world::{Plan, WITHIN, World};

fn text(_: &Path, ports: &[Port]) -> String {
    format!(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\nfrontend f\n  bind {}\nbackend web\n  server s1 127.0.0.1:9\n",
        ports[0].address()
    )
}

async fn world(options: Options) -> Result<World, Missing> {
    World::start(&Plan { options, ..Plan::default() }, text).await
}

/// Serves the API of a world on one more address.
async fn also(world: &World, address: Address) -> String {
    let listener = Listener::bind(address).await.unwrap();
    let url = listener.url();
    tokio::spawn(serve(vec![listener], Arc::clone(&world.api), std::future::pending()));
    url
}

fn client() -> ClientBuilder {
    Client::builder().no_proxy().timeout(WITHIN)
}

async fn version(client: &Client, url: &str) -> reqwest::Result<Response> {
    let url = format!("{url}/services/haproxy/configuration/version");
    client.get(url).basic_auth("admin", Some("adminpwd")).send().await
}

/// An authority, and certificates that it signs.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut parameters = CertificateParams::new([name.to_owned()]).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = parameters.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(parameters, key) }
    }

    /// A certificate of this machine and its key, in one text.
    fn sign(&self) -> String {
        let key = KeyPair::generate().unwrap();
        let parameters = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        format!("{}{}", parameters.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

#[tokio::test]
async fn over_tls_only_clients_of_the_authority_are_served_and_renewed_certificates_are_used() {
    let world = need!(world(Options::default()).await);
    let (own, theirs, other) = (Authority::new("own"), Authority::new("theirs"), Authority::new("other"));
    let path = |name: &str| world.folder.path().join(name);
    fs::write(path("api.pem"), own.sign()).unwrap();
    fs::write(path("clients.pem"), &theirs.pem).unwrap();
    let files = TlsFiles {
        certificate: path("api.pem"),
        key: path("api.pem"),
        client_authorities: Some(path("clients.pem")),
    };
    let url = also(&world, Address::Tls("127.0.0.1:0".parse().unwrap(), files)).await;
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let tls = |identity: Option<&Authority>| {
        let root = Certificate::from_pem(own.pem.as_bytes()).unwrap();
        let builder = client().tls_certs_only([root]);
        let builder = match identity {
            Some(identity) => builder.identity(Identity::from_pem(identity.sign().as_bytes()).unwrap()),
            None => builder,
        };
        builder.build().unwrap()
    };
    assert_eq!(version(&tls(Some(&theirs)), &url).await.unwrap().status(), 200);
    assert!(version(&tls(None), &url).await.is_err(), "without a certificate");
    assert!(version(&tls(Some(&other)), &url).await.is_err(), "with one of somebody else");
    assert!(version(&client().build().unwrap(), &url.replace("https", "http")).await.is_err(), "without TLS");
    // One that is renewed is used without a restart; nonsense is not.
    fs::write(path("api.pem"), "nonsense").unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(version(&tls(Some(&theirs)), &url).await.unwrap().status(), 200);
    fs::write(path("api.pem"), other.sign()).unwrap();
    let renewed = async || version(&tls(Some(&theirs)), &url).await.is_err().then_some(());
    setpoint_testutils::wait::until("the renewed certificate", WITHIN, renewed).await;
    world.end().await;
}

/// The length of an element in DER, with its tag, at the beginning of bytes; and the length of its tag and length.
fn der(bytes: &[u8]) -> (usize, usize) {
    match bytes[1] {
        short @ 0..=127 => (usize::from(short) + 2, 2),
        long => {
            let count = usize::from(long & 0x7f);
            let length = bytes[2..2 + count].iter().fold(0, |length, byte| length << 8 | usize::from(*byte));
            (length + 2 + count, 2 + count)
        }
    }
}

/// A sequence in DER of elements.
fn sequence(content: &[u8]) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    let head = match (high, low) {
        (0, 0..=127) => vec![0x30, low],
        (0, _) => vec![0x30, 0x81, low],
        _ => vec![0x30, 0x82, high, low],
    };
    [head.as_slice(), content].concat()
}

/// A certificate as it was before it had extensions: of version 1. Its signature is worth nothing.
fn of_version_1(pem: &str) -> String {
    let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let whole = &certificate[der(&certificate).1..];
    let (signed, after) = whole.split_at(der(whole).0);
    let mut fields = &signed[der(signed).1..];
    let mut kept = Vec::new();
    while !fields.is_empty() {
        let (field, rest) = fields.split_at(der(fields).0);
        // The version and the extensions.
        if !matches!(field[0], 0xa0 | 0xa3) {
            kept.extend_from_slice(field);
        }
        fields = rest;
    }
    let text = STANDARD.encode(sequence(&[sequence(&kept), after.to_vec()].concat()));
    format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
}

#[tokio::test]
async fn a_certificate_that_can_not_be_used_is_refused_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("api.pem");
    let refused = async |text: &str| {
        fs::write(&path, text).unwrap();
        let files = TlsFiles { certificate: path.clone(), key: path.clone(), client_authorities: None };
        let address = Address::Tls("127.0.0.1:0".parse().unwrap(), files);
        Listener::bind(address).await.unwrap_err().to_string()
    };
    let error = refused("").await;
    assert!(error.contains("the certificate") && error.contains("api.pem"), "{error}");
    let whole = Authority::new("own").sign();
    let (certificate, key) = whole.split_at(whole.find("-----BEGIN PRIVATE").unwrap());
    let error = refused(certificate).await;
    assert!(error.contains("the private key") && !error.contains("BEGIN"), "{error}");
    let error = refused(&format!("{}{key}", of_version_1(certificate))).await;
    assert!(error.contains("X.509 version 1") && error.contains("version 3"), "{error}");
    let other = Authority::new("own").sign();
    let error =
        refused(&format!("{}{key}", other.split_at(other.find("-----BEGIN PRIVATE").unwrap()).0)).await;
    assert!(error.contains("with the key of"), "{error}");
}

#[tokio::test]
async fn a_unix_socket_serves_whoever_may_open_it() {
    let world = need!(world(Options::default()).await);
    let path = world.folder.path().join("api.sock");
    assert_eq!(also(&world, Address::Unix(path.clone())).await, format!("unix:{}", path.display()));
    let ask = async |credentials: &str| {
        let mut stream = UnixStream::connect(&path).await.unwrap();
        let request = format!(
            "GET /v3/services/haproxy/configuration/version HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{credentials}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = ask("authorization: Basic YWRtaW46YWRtaW5wd2Q=\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n1\n"), "{answer}");
    let answer = ask("").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    world.end().await;
}

#[tokio::test]
async fn who_asks_too_often_has_to_wait() {
    let world = need!(world(Options { requests_per_second: Some(3), ..Options::default() }).await);
    let (client, url) = (client().build().unwrap(), format!("{}/v3", world.url));
    let mut refused = None;
    for _ in 0..1_000 {
        let answer = version(&client, &url).await.unwrap();
        if answer.status() != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.unwrap();
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    let served = async || (version(&client, &url).await.unwrap().status() == 200).then_some(());
    setpoint_testutils::wait::until("being served again", WITHIN, served).await;
    world.end().await;
}

#[tokio::test]
async fn who_guesses_passwords_has_to_wait_and_who_has_one_does_not() {
    let world = need!(world(Options::default()).await);
    let (client, url) = (client().build().unwrap(), format!("{}/v3", world.url));
    assert_eq!(version(&client, &url).await.unwrap().status(), 200);
    let guess = async |number: usize| {
        let url = format!("{url}/services/haproxy/configuration/version");
        client.get(url).basic_auth("admin", Some(number)).send().await.unwrap().status().as_u16()
    };
    let mut statuses = Vec::new();
    for number in 0..1_000 {
        statuses.push(guess(number).await);
        if statuses.last() == Some(&429) {
            break;
        }
    }
    assert!(statuses.len() > 20 && statuses.last() == Some(&429), "{statuses:?}");
    assert_eq!(version(&client, &url).await.unwrap().status(), 200, "who was right before is not held up");
    world.end().await;
}

#[tokio::test]
async fn bodies_of_strangers_are_not_read_and_long_ones_are_refused() {
    let world = need!(world(Options { longest_body: 1_000, ..Options::default() }).await);
    let (client, url) =
        (client().build().unwrap(), format!("{}/v3/services/haproxy/configuration/raw", world.url));
    let push =
        client.post(format!("{url}?version=1")).header("content-type", "text/plain").body("#".repeat(2_000));
    let answer = push.basic_auth("admin", Some("adminpwd")).send().await.unwrap();
    assert_eq!(answer.status(), 413);
    assert!(answer.text().await.unwrap().contains("1000 bytes"));
    // A stranger is answered before a body has come.
    let mut stream = TcpStream::connect(world.url.trim_start_matches("http://")).await.unwrap();
    let request = "POST /v3/services/haproxy/configuration/raw?version=1 HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 12];
    tokio::time::timeout(WITHIN, stream.read_exact(&mut answer)).await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 401");
    world.end().await;
}

#[tokio::test]
async fn requests_have_names_and_what_happens_is_counted() {
    let world = need!(world(Options::default()).await);
    let client = client().build().unwrap();
    let ask = |path: &str| client.get(format!("{}{path}", world.url)).basic_auth("admin", Some("adminpwd"));
    let named = ask("/v3/info").header("x-request-id", "mine-1").send().await.unwrap();
    assert_eq!(named.headers()["x-request-id"], "mine-1");
    let long = "x".repeat(200);
    let named = ask("/v3/info").header("x-request-id", &long).send().await.unwrap();
    assert_eq!(named.headers()["x-request-id"].len(), 36, "one that is too long is replaced");
    assert_eq!(client.get(format!("{}/metrics", world.url)).send().await.unwrap().status(), 401);

    let weigh = client
        .put(format!("{}/v3/services/haproxy/configuration/backends/web/servers/s1?version=1", world.url))
        .basic_auth("admin", Some("adminpwd"))
        .header("content-type", "application/json")
        .body(r#"{"name": "s1", "address": "127.0.0.1", "port": 9, "weight": 7}"#);
    assert_eq!(weigh.send().await.unwrap().status(), 200);
    let counted = async || {
        let text = ask("/metrics").send().await.unwrap().text().await.unwrap();
        text.contains("setpoint_dataplane_commits_total{applied=\"runtime\"} 1\n").then_some(text)
    };
    let text = setpoint_testutils::wait::until("the commit to be counted", WITHIN, counted).await;
    for line in [
        "setpoint_dataplane_configuration_version 2\n",
        "setpoint_dataplane_requests_total{method=\"PUT\",status=\"200\"} 1\n",
        "setpoint_dataplane_requests_total{method=\"GET\",status=\"401\"} 1\n",
        "setpoint_dataplane_transactions_open 0\n",
        "setpoint_dataplane_leftover_servers 0\n",
        "# EOF\n",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    world.end().await;
}

#[tokio::test]
async fn a_listener_of_events_does_not_hold_up_the_end() {
    let world = need!(world(Options::default()).await);
    let listener = Listener::bind(Address::Tcp("127.0.0.1:0".parse().unwrap())).await.unwrap();
    let url = listener.url();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let served = tokio::spawn(serve(vec![listener], Arc::clone(&world.api), async move {
        let _ = stopped.await;
    }));
    let client = client().build().unwrap();
    let request = client.get(format!("{url}/services/haproxy/events")).basic_auth("admin", Some("adminpwd"));
    let mut events = request.send().await.unwrap();
    assert!(events.chunk().await.unwrap().is_some());
    stop.send(()).unwrap();
    assert!(
        tokio::time::timeout(WITHIN, events.chunk()).await.unwrap().unwrap().is_none(),
        "the stream ends"
    );
    tokio::time::timeout(WITHIN, served).await.unwrap().unwrap();
    world.end().await;
}
