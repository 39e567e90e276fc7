//! Servers that are gone from the configuration and not from HAProxy.

use std::fs;
use std::time::{Duration, Instant};

use setpoint_haproxy::edit::ChildKey;
use setpoint_haproxy::model::{Object, ObjectKind};
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{Applied, Settings};
use setpoint_instance::runtime::ServerState;
use setpoint_testutils::{Missing, Version, need, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::instance::{Running, change, web};
use crate::world::{WITHIN, World};

/// A server that keeps its connections, and a HAProxy before it.
async fn start(version: Version, drain: Duration) -> Result<(Running, TcpListener), Missing> {
    let world = World::new(version)?;
    let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = format!(
        "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n\
         frontend main\n  bind {}\n  default_backend web\nbackend web\n  server s1 {}\n",
        world.port.address(),
        server.local_addr().unwrap()
    );
    fs::write(world.file(), text).unwrap();
    let settings = Settings { drain, ..world.settings(version) };
    Ok((Running::start_on(world, settings).await, server))
}

/// Sends a byte to and fro.
async fn talk(client: &mut TcpStream, server: &mut TcpStream) {
    client.write_all(b"a").await.unwrap();
    assert_eq!(server.read_u8().await.unwrap(), b'a');
    server.write_all(b"b").await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'b');
}

async fn state(running: &Running) -> Option<ServerState> {
    running.instance.worker().servers(Some("web")).await.unwrap().unwrap_or_default().into_iter().next()
}

fn remove(configuration: &mut Configuration) -> Result<(), setpoint_haproxy::edit::EditError> {
    configuration.editor(&web()).delete(&web(), ObjectKind::Server, &ChildKey::Name("s1".into()))
}

async fn gone(running: &Running) {
    let is_gone = async || state(running).await.is_none().then_some(());
    wait::until("the server to be gone", WITHIN, is_gone).await;
    let is_counted = async || (running.instance.leftovers() == 0).then_some(());
    wait::until("nothing to be left", WITHIN, is_counted).await;
}

#[tokio::test]
async fn a_server_with_connections_stays_in_maintenance_until_they_end_also_if_the_program_does() {
    for version in Version::ALL {
        let (running, listener) = need!(start(version, Duration::ZERO).await);
        let worker = running.worker().await;
        let mut client = TcpStream::connect(running.world.port.address()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        talk(&mut client, &mut server).await;
        let done = change(&running.instance, remove).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}");
        assert_eq!(running.instance.leftovers(), 1, "{version:?}");
        assert_eq!(state(&running).await.unwrap().admin_state().word(), "maint", "{version:?}");
        talk(&mut client, &mut server).await;
        // Another one that takes over knows it for what it is.
        let settings = running.world.settings(version);
        let running = running.again(settings).await;
        let is_known = async || (running.instance.leftovers() == 1).then_some(());
        wait::until("it to be known", WITHIN, is_known).await;
        talk(&mut client, &mut server).await;
        drop((client, server));
        gone(&running).await;
        assert_eq!(running.worker().await, worker, "{version:?}: no reload");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_comes_back_while_its_connections_last_is_ready_again_without_a_reload() {
    for version in Version::ALL {
        let (running, listener) = need!(start(version, Duration::ZERO).await);
        let worker = running.worker().await;
        let mut client = TcpStream::connect(running.world.port.address()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        talk(&mut client, &mut server).await;
        let done = change(&running.instance, remove).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}");
        assert_eq!(running.instance.leftovers(), 1, "{version:?}");
        let port = listener.local_addr().unwrap().port();
        let add = |configuration: &mut Configuration| {
            let json = serde_json::json!({ "name": "s1", "address": "127.0.0.1", "port": port, "weight": 7 });
            let (object, _) = Object::from_json(ObjectKind::Server, &json, configuration.context()).unwrap();
            configuration.editor(&web()).create(&web(), &object, None)
        };
        let done = change(&running.instance, add).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}: {done:?}");
        assert_eq!(running.instance.leftovers(), 0, "{version:?}");
        let found = state(&running).await.unwrap();
        assert_eq!((found.weight(), found.admin_state().word()), (7, "ready"), "{version:?}");
        talk(&mut client, &mut server).await;
        running.settled().await;
        assert_eq!(running.worker().await, worker, "{version:?}: no reload");
        assert!(running.instance.differences().await.unwrap().is_empty(), "{version:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_is_removed_drains_for_as_long_as_it_should() {
    const DRAIN: Duration = Duration::from_secs(2);
    for version in Version::ALL {
        let (running, _listener) = need!(start(version, DRAIN).await);
        let worker = running.worker().await;
        let removed = Instant::now();
        let done = change(&running.instance, remove).await.unwrap();
        assert_eq!(done.applied, Applied::Runtime, "{version:?}");
        let found = state(&running).await.map(|state| state.admin_state().word());
        // On a busy machine that may be over before anybody looks.
        assert!(found == Some("drain") || removed.elapsed() >= DRAIN, "{version:?}: {found:?}");
        gone(&running).await;
        assert!(removed.elapsed() >= DRAIN, "{version:?}: {:?}", removed.elapsed());
        assert_eq!(running.worker().await, worker, "{version:?}: no reload");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_server_that_haproxy_lost_comes_back_with_a_reload_at_the_next_start() {
    let (running, _listener) = need!(start(Version::V3_4, Duration::ZERO).await);
    let worker = running.instance.worker();
    for command in ["set server web/s1 state maint", "del server web/s1"] {
        let told = worker.tell(&setpoint_instance::cli::Request::new(command)).await.unwrap();
        assert!(matches!(told, setpoint_instance::runtime::Reply::Done(_)), "{told:?}");
    }
    assert!(state(&running).await.is_none());
    let settings = running.world.settings(Version::V3_4);
    let running = running.again(settings).await;
    // A master that is just reloading refuses connections.
    let is_back =
        async || running.instance.worker().servers(Some("web")).await.ok().flatten()?.into_iter().next();
    wait::until("the server to be back", WITHIN, is_back).await;
    running.stop().await;
}
