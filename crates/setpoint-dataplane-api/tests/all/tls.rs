//! What HAProxy holds for TLS, changed at runtime: authorities, revoked certificates, lists of certificates.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer, KeyIdMethod,
    KeyPair, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd,
};
use serde_json::{Value as Json, json};
use setpoint_dataplane_api::Dialect;
use setpoint_testutils::{Missing, need};

use crate::found::{answer, ask, request};
use crate::world::{Plan, World, certificate};

/// An authority of a name.
fn authority(name: &str) -> (String, Issuer<'static, KeyPair>) {
    let mut parameters = CertificateParams::new([]).unwrap();
    parameters.distinguished_name = rcgen::DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate().unwrap();
    let pem = parameters.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(parameters, key))
}

/// A list on which an authority revokes one certificate.
fn revoked(issuer: &Issuer<'static, KeyPair>, serial: u64) -> String {
    let revoked = RevokedCertParams {
        serial_number: SerialNumber::from(serial),
        revocation_time: date_time_ymd(2026, 1, 1),
        reason_code: None,
        invalidity_date: None,
    };
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2026, 1, 1),
        next_update: date_time_ymd(2036, 1, 1),
        crl_number: SerialNumber::from(serial),
        issuing_distribution_point: None,
        revoked_certs: vec![revoked],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    list.signed_by(issuer).unwrap().pem().unwrap()
}

async fn world(dialect: Dialect, ca: &str, crl: &str) -> Result<World, Missing> {
    let plan = Plan { dialect, ..Plan::default() };
    World::start(&plan, |folder, ports| {
        fs::write(folder.join("ca.pem"), ca).unwrap();
        fs::write(folder.join("crl.pem"), crl).unwrap();
        fs::write(folder.join("ssl/more.pem"), certificate('b')).unwrap();
        let folder = folder.display();
        fs::write(format!("{folder}/list.txt"), format!("{folder}/ssl/site.pem\n")).unwrap();
        format!(
            "global\n  stats socket {folder}/run.sock level admin\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n\
             frontend s\n  bind {} ssl crt-list {folder}/list.txt ca-file {folder}/ca.pem crl-file {folder}/crl.pem verify optional\n  \
             bind {} ssl crt {folder}/ssl/more.pem\n",
            ports[0].address(),
            ports[1].address()
        )
    })
    .await
}

/// Sends a file as a form.
async fn send(world: &World, method: &str, path: &str, name: &str, content: &str) -> (u16, String) {
    let body = format!(
        "--xBOUNDx\r\nContent-Disposition: form-data; name=\"file_upload\"; filename=\"{name}\"\r\n\r\n{content}\r\n--xBOUNDx--\r\n"
    );
    let request = request(world, method, &format!("/services/haproxy/runtime/{path}"));
    let request = request.header("content-type", "multipart/form-data; boundary=xBOUNDx").body(body);
    let (status, _, body) = answer(request).await;
    (status, body)
}

async fn get(world: &World, path: &str) -> (u16, Json) {
    let (status, _, body) = ask(world, "GET", &format!("runtime/{path}"), None).await;
    (status, serde_json::from_str(&body).unwrap_or(Json::String(body)))
}

/// The dialects of two versions of HAProxy.
fn dialects() -> [Dialect; 2] {
    [Dialect::ALL[2], Dialect::ALL[4]]
}

#[tokio::test]
async fn authorities_are_made_replaced_added_to_and_deleted_at_runtime() {
    let [(first, issuer), (second, _), (third, _)] = ["first", "second", "third"].map(authority);
    for dialect in dialects() {
        let what = dialect.version();
        let world = need!(world(dialect, &first, &revoked(&issuer, 7)).await);
        let (status, body) = send(&world, "POST", "ssl_ca_files", "new.pem", &first).await;
        assert_eq!(status, 201, "{what}: {body}");
        let (status, body) = send(&world, "POST", "ssl_ca_files", "new.pem", &first).await;
        assert_eq!(status, 409, "{what}: {body}");
        let count = async || get(&world, "ssl_ca_files/new.pem").await.1["count"].clone();
        assert_eq!(count().await, "1 certificate(s)", "{what}");
        let (status, body) = send(&world, "PUT", "ssl_ca_files/new.pem", "new.pem", &second).await;
        assert_eq!(status, 200, "{what}: {body}");
        let (status, body) = send(&world, "POST", "ssl_ca_files/new.pem/entries", "x.pem", &third).await;
        assert_eq!(status, 201, "{what}: {body}");
        assert_eq!(count().await, "2 certificate(s)", "{what}");
        for (index, name) in [(1, "second"), (2, "third")] {
            let (status, entry) = get(&world, &format!("ssl_ca_files/new.pem/entries/{index}")).await;
            assert_eq!(
                (status, entry["subject"].clone()),
                (200, json!(format!("/CN={name}"))),
                "{what}: {entry}"
            );
        }
        // What is no certificate is refused, and nothing is left of it.
        let (status, body) = send(&world, "PUT", "ssl_ca_files/new.pem", "new.pem", "nonsense\n").await;
        assert_eq!(status, 400, "{what}: {body}");
        assert_eq!(count().await, "2 certificate(s)", "{what}");
        let (status, body) = send(&world, "PUT", "ssl_ca_files/new.pem", "new.pem", &third).await;
        assert_eq!(status, 200, "{what}: {body}");
        assert_eq!(ask(&world, "DELETE", "runtime/ssl_ca_files/new.pem", None).await.0, 204, "{what}");
        assert_eq!(get(&world, "ssl_ca_files/new.pem").await.0, 404, "{what}");
        // One that a listener uses stays.
        let used = format!("{}/ca.pem", world.folder.path().display()).replace('/', "%2F");
        let (status, _, body) = ask(&world, "DELETE", &format!("runtime/ssl_ca_files/{used}"), None).await;
        assert!(status >= 400 && body.contains("in use"), "{what}: {status} {body}");
        world.end().await;
    }
}

#[tokio::test]
async fn revoked_certificates_are_made_replaced_and_deleted_at_runtime() {
    let (ca, issuer) = authority("first");
    for dialect in dialects() {
        let what = dialect.version();
        let world = need!(world(dialect, &ca, &revoked(&issuer, 7)).await);
        let (status, body) = send(&world, "POST", "ssl_crl_files", "new.pem", &revoked(&issuer, 0x55)).await;
        assert_eq!(status, 201, "{what}: {body}");
        let held = async || get(&world, "ssl_crl_files/new.pem").await;
        assert_eq!(held().await.0, 200, "{what}");
        let (status, body) =
            send(&world, "PUT", "ssl_crl_files/new.pem", "new.pem", &revoked(&issuer, 0x66)).await;
        assert_eq!(status, 200, "{what}: {body}");
        let (status, body) = send(&world, "PUT", "ssl_crl_files/new.pem", "new.pem", "nonsense\n").await;
        assert_eq!(status, 400, "{what}: {body}");
        assert_eq!(ask(&world, "DELETE", "runtime/ssl_crl_files/new.pem", None).await.0, 204, "{what}");
        assert_eq!(held().await.0, 404, "{what}");
        world.end().await;
    }
}

#[tokio::test]
async fn entries_of_a_list_of_certificates_come_and_go_at_runtime() {
    let (ca, issuer) = authority("first");
    for dialect in dialects() {
        let what = dialect.version();
        let world = need!(world(dialect, &ca, &revoked(&issuer, 7)).await);
        let folder = world.folder.path().display().to_string();
        let encoded = |name: &str| format!("{folder}/{name}").replace('/', "%2F");
        let entries = format!("ssl_crt_lists/entries?name={}", encoded("list.txt"));
        let listed = async || {
            let (status, entries) = get(&world, &entries).await;
            assert_eq!(status, 200, "{what}: {entries}");
            let entries = entries.as_array().unwrap().clone();
            entries.iter().map(|entry| entry["file"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let [site, more] = ["ssl/site.pem", "ssl/more.pem"].map(|name| format!("{folder}/{name}"));
        assert_eq!(listed().await, std::slice::from_ref(&site), "{what}");
        let entry = json!({ "file": more, "ssl_bind_config": "alpn h2", "sni_filter": ["b.example.test"] });
        let path = format!("runtime/{entries}");
        let (status, _, body) = ask(&world, "POST", &path, Some(entry.clone())).await;
        assert_eq!(status, 201, "{what}: {body}");
        assert_eq!(listed().await, [site.clone(), more.clone()], "{what}");
        let (status, _, body) = ask(&world, "POST", &path, Some(json!({ "file": "/nowhere.pem" }))).await;
        assert!(status >= 400, "{what}: {status} {body}");
        let delete = format!("{path}&cert_file={}", encoded("ssl/more.pem"));
        let (status, _, body) = ask(&world, "DELETE", &delete, None).await;
        assert_eq!(status, 204, "{what}: {body}");
        let (status, _, body) = ask(&world, "DELETE", &delete, None).await;
        assert!(status >= 400, "{what}: {status} {body}");
        assert_eq!(listed().await, [site], "{what}");
        // No certificate is managed by ACME here.
        let (status, _, body) = ask(&world, "PUT", "runtime/acme?certificate=nowhere.pem", None).await;
        assert_eq!(status, 404, "{what}: {body}");
        world.end().await;
    }
}
