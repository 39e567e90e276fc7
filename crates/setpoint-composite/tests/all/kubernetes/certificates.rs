//! Certificates that are rotated while the operator is at work.

use serde_json::json;
use setpoint_composite::publish::payload_of;
use setpoint_consul::{self as consul, Auth, ClientCertificate, Tls};
use setpoint_testutils::certificates::{Authority, Certificate};
use setpoint_testutils::{Acl, Consul, Port, Workdir, need, wait};

use super::world::{LIMIT, NAME, ORDERED, Running, World};

/// Waits until the metrics have a line.
async fn counts(running: &Running, line: &str) {
    let line = format!("\nsetpoint_composite_consul_certificate{line}\n");
    wait::until(&format!("the metrics to have{line}"), LIMIT, async || {
        running.metrics.text().contains(&line).then_some(())
    })
    .await;
}

#[tokio::test]
async fn other_certificates_are_taken_over_when_they_are_whole_and_not_before() {
    let world = need!(World::new().await);
    let (before, after) = (Authority::new(), Authority::new());
    let folder = Workdir::new("rotation");
    let server = |authority: &Authority| {
        let Certificate { certificate, key } = authority.server();
        folder.write("server.crt", certificate);
        folder.write("server.key", key);
    };
    let trusted = folder.write("trusted.crt", before.certificate());
    server(&before);
    let ours = before.server();
    let tls = Tls {
        ca_file: Some(folder.write("ca.crt", before.certificate())),
        client: Some(ClientCertificate {
            certificate: folder.write("our.crt", ours.certificate),
            key: folder.write("our.key", ours.key),
        }),
    };
    let port = Port::lease();
    let https = json!({
        "ports": { "https": port.number() },
        "tls": { "https": {
            "ca_file": trusted, "verify_incoming": true,
            "cert_file": folder.path().join("server.crt"), "key_file": folder.path().join("server.key"),
        } },
    });
    let mut consul = need!(Consul::start_with(Acl::Off, &https).await);
    let settings = consul::Settings {
        auth: Auth::Anonymous,
        tls,
        ..consul::Settings::new(format!("https://localhost:{}", port.number()))
    };
    let running =
        Running::start(world.client.clone(), consul::Client::new(settings).unwrap(), world.settings());
    world.declare("composite", json!({ "originNamespace": world.name() })).await;
    world.settled("composite").await;
    let adds = async |consul: &Consul, name: &str| {
        let key = format!("composite/{}/structure/{name}/compositeRole", world.name());
        consul.put(&key, "satellite").await.unwrap();
        world.until(name, |map| payload_of(map).unwrap().contains(&format!("\"{name}\""))).await;
    };
    counts(&running, "s_usable 1").await;

    // Half of a certificate, then a whole one without its key, and no authorities at all.
    let new = after.server();
    folder.write("our.crt", &new.certificate[..new.certificate.len() / 2]);
    counts(&running, "s_usable 0").await;
    adds(&consul, "half-a-certificate").await;
    folder.write("our.crt", &new.certificate);
    folder.write("ca.crt", "");
    adds(&consul, "another-ones-key").await;
    counts(&running, "s_usable 0").await;
    counts(&running, "_renewals_total 0").await;

    // All of it, while both authorities are trusted; then the server follows.
    folder.write("trusted.crt", before.certificate() + &after.certificate());
    consul.restart().await;
    folder.write("ca.crt", before.certificate() + &after.certificate());
    folder.write("our.key", &new.key);
    counts(&running, "s_usable 1").await;
    adds(&consul, "ours-are-new").await;
    folder.write("trusted.crt", after.certificate());
    server(&after);
    consul.restart().await;
    adds(&consul, "all-are-new").await;
    world.history.versions_that_never_go_back(NAME, &ORDERED).await;
}
