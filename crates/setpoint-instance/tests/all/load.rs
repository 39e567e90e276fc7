//! Changes under load: no request fails for them.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value as Json, json};
use setpoint_haproxy::edit::{ChildKey, EditError, SectionKey};
use setpoint_haproxy::model::{Object, ObjectKind};
use setpoint_haproxy::text::SectionKind;
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{Applied, Settings};
use setpoint_instance::reload::processes;
use setpoint_testutils::{Backend, Version, need};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::instance::{Running, backend_with, change, web};
use crate::world::World;

/// Clients that keep their connections.
struct Clients {
    stop: Arc<AtomicBool>,
    tasks: JoinSet<Count>,
}

/// How many requests were answered.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    answered: usize,
    /// Failed on a connection that was just made.
    failed_at_once: usize,
    /// Failed on a connection on which others had been answered: HAProxy has closed it meanwhile.
    failed_later: usize,
}

impl Count {
    fn failed(self) -> usize {
        self.failed_at_once + self.failed_later
    }
}

impl Clients {
    fn start(address: SocketAddr, count: usize) -> Self {
        let (stop, mut tasks) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
        for _ in 0..count {
            tasks.spawn(ask(address, Arc::clone(&stop)));
        }
        Self { stop, tasks }
    }

    async fn stop(self) -> Count {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.tasks.join_all().await;
        ended.into_iter().fold(Count::default(), |all, one| Count {
            answered: all.answered + one.answered,
            failed_at_once: all.failed_at_once + one.failed_at_once,
            failed_later: all.failed_later + one.failed_later,
        })
    }
}

/// Asks until it is told to stop, on one connection for as long as HAProxy lets it.
async fn ask(address: SocketAddr, stop: Arc<AtomicBool>) -> Count {
    let (mut count, mut open) = (Count::default(), None);
    while !stop.load(Ordering::Relaxed) {
        let is_kept = open.is_some();
        let stream = match open.take() {
            Some(stream) => Ok(stream),
            None => TcpStream::connect(address).await,
        };
        let Ok(mut stream) = stream else {
            count.failed_at_once += 1;
            continue;
        };
        match exchange(&mut stream).await {
            Some(answer) if answer.starts_with("HTTP/1.1 200 ") => {
                count.answered += 1;
                let closes = answer.to_ascii_lowercase().contains("\r\nconnection: close\r\n");
                open = (!closes).then_some(stream);
            }
            _ if is_kept => count.failed_later += 1,
            _ => count.failed_at_once += 1,
        }
        // A connection is idle in between, as those of people are.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    count
}

/// One request and its whole answer.
async fn exchange(stream: &mut TcpStream) -> Option<String> {
    stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.ok()?;
    let mut answer = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length =
                head.split_once("content-length: ")?.1.lines().next()?.trim().parse::<usize>().ok()?;
            if body.len() >= length {
                return Some(text);
            }
        }
        if stream.read_buf(&mut answer).await.ok()? == 0 {
            return None;
        }
    }
}

fn server(configuration: &Configuration, json: &Json) -> Object {
    Object::from_json(ObjectKind::Server, json, configuration.context()).unwrap().0
}

/// The changes that a running HAProxy is told, one after another.
fn runtime_change(
    number: u32,
    address: SocketAddr,
) -> impl FnOnce(&mut Configuration) -> Result<(), EditError> {
    move |configuration| {
        let json = |name: &str, weight: u32| json!({ "name": name, "address": address.ip().to_string(), "port": address.port(), "weight": weight });
        let mut s2 = json("s2", 10 + number);
        // One that is removed may be there until its connections have ended: the next one has another name.
        let name = format!("new{}", number / 4);
        let third = server(configuration, &json(&name, 5));
        let key = web();
        match number % 4 {
            0 => configuration.editor(&key).create(&key, &third, None),
            1 => {
                s2["maintenance"] = json!("enabled");
                let s2 = server(configuration, &s2);
                configuration.editor(&key).replace(&key, &ChildKey::Name("s2".into()), &s2)
            }
            2 => {
                let s2 = server(configuration, &s2);
                configuration.editor(&key).replace(&key, &ChildKey::Name("s2".into()), &s2)
            }
            _ => configuration.editor(&key).delete(
                &key,
                ObjectKind::Server,
                &ChildKey::Name(name.as_str().into()),
            ),
        }
    }
}

/// Removes a backend that was made for a reload.
fn without(name: String) -> impl FnOnce(&mut Configuration) -> Result<(), EditError> {
    move |configuration| {
        let key = SectionKey::named(SectionKind::Backend, name.as_str());
        configuration.editor(&key).delete_section(&key)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_through_200_changes_at_runtime_and_20_reloads() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let (first, second) = (Backend::start("first").await, Backend::start("second").await);
        let text = format!(
            "global\n  stats socket {}/run.sock level admin\ndefaults\n  mode http\n  option idle-close-on-response\n  option redispatch\n  retries 3\n  \
             timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\
             frontend main\n  bind {}\n  default_backend web\n\
             backend web\n  balance roundrobin\n  server s1 {} weight 10\n  server s2 {} weight 10\n",
            world.folder.path().display(),
            world.port.address(),
            first.address(),
            second.address()
        );
        fs::write(world.file(), text).unwrap();
        let settings = Settings { reload_delay: Duration::from_millis(1), ..world.settings(version) };
        let running = Running::start_on(world, settings).await;
        let reloads = async || processes(&running.world.master()).await.unwrap().master.reloads;
        let before = reloads().await;

        let clients = Clients::start(running.world.port.address(), 12);
        for number in 0..200 {
            let done = change(&running.instance, runtime_change(number, second.address())).await.unwrap();
            assert_eq!(done.applied, Applied::Runtime, "{version:?}, change {number}: {done:?}");
        }
        let count = clients.stop().await;
        assert!(count.answered > 200 && count.failed() == 0, "{version:?}, at runtime: {count:?}");
        assert_eq!(reloads().await, before, "{version:?}: no reload");

        let clients = Clients::start(running.world.port.address(), 12);
        let mut ordered = BTreeSet::new();
        for number in 0..10 {
            let name = format!("b{number}");
            for done in [
                change(&running.instance, backend_with(&name)).await.unwrap(),
                change(&running.instance, without(name.clone())).await.unwrap(),
            ] {
                let Applied::Ordered(id) = &done.applied else { panic!("{version:?}: {done:?}") };
                ordered.insert(id.clone());
                running.settled().await;
            }
        }
        let count = clients.stop().await;
        assert!(count.answered > 200 && count.failed() == 0, "{version:?}, in reloads: {count:?}");
        let made = usize::try_from(reloads().await - before).unwrap();
        assert_eq!(made, ordered.len(), "{version:?}: reloads for 20 commits");
        assert!(running.instance.differences().await.unwrap().is_empty(), "{version:?}");
        running.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_option_a_reload_costs_only_requests_on_connections_that_were_idle() {
    const RELOADS: u32 = 10;
    for version in Version::ALL {
        let world = need!(World::new(version));
        // It answers by itself, and nothing says that idle connections are to be closed with an answer.
        world.write("one");
        let settings = world.settings(version);
        let running = Running::start_on(world, settings).await;
        let clients = Clients::start(running.world.port.address(), 12);
        for _ in 0..RELOADS {
            running.instance.reload().await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let count = clients.stop().await;
        println!("{version:?}: {RELOADS} reloads, 12 clients that keep their connections: {count:?}");
        assert!(count.answered > 200 && count.failed_at_once == 0, "{version:?}: {count:?}");
        running.stop().await;
    }
}
