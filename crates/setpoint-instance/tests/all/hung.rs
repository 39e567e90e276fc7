//! A worker that stops to answer, or answers nonsense: what waits for it does not wait once for each command, and nonsense is
//! neither consent nor knowledge.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use setpoint_haproxy::edit::ChildKey;
use setpoint_haproxy::model::ObjectKind;
use setpoint_instance::cli::Request;
use setpoint_instance::configuration::Configuration;
use setpoint_instance::instance::{Applied, Event, Settings};
use setpoint_instance::runtime::{Reply, Worker};
use setpoint_testutils::{Missing, Version, need, wait};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use crate::instance::{Running, change, web, weight};
use crate::world::{WITHIN, World};

/// Stands between an instance and the socket of a worker, and keeps some commands to itself.
struct Between {
    /// What came, as it was sent.
    came: Mutex<Vec<String>>,
    /// The word in commands that are not answered, while it hangs.
    keeps: &'static str,
    hangs: AtomicBool,
    /// What these are answered instead, if it does not hang.
    lie: Mutex<Option<&'static str>>,
}

impl Between {
    fn start(path: PathBuf, worker: PathBuf, keeps: &'static str) -> Arc<Self> {
        let listener = UnixListener::bind(path).unwrap();
        let between = Arc::new(Self {
            came: Mutex::default(),
            keeps,
            hangs: AtomicBool::new(false),
            lie: Mutex::default(),
        });
        let shared = Arc::clone(&between);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(pass(stream, worker.clone(), Arc::clone(&shared)));
            }
        });
        between
    }

    fn lie(&self, answer: &'static str) {
        *self.lie.lock().unwrap() = Some(answer);
    }

    fn came(&self, word: &str) -> Vec<String> {
        self.came.lock().unwrap().iter().filter(|line| line.contains(word)).cloned().collect()
    }
}

async fn pass(mut stream: UnixStream, worker: PathBuf, between: Arc<Between>) {
    let mut asked = Vec::new();
    stream.read_to_end(&mut asked).await.unwrap();
    let text = String::from_utf8_lossy(&asked).into_owned();
    let is_meant = text.contains(between.keeps);
    let is_kept = is_meant && between.hangs.load(Ordering::Relaxed);
    let lie = between.lie.lock().unwrap().filter(|_| is_meant);
    between.came.lock().unwrap().push(text);
    if let Some(lie) = lie {
        let _ = stream.write_all(lie.as_bytes()).await;
        return;
    }
    if is_kept {
        return std::future::pending().await;
    }
    let mut real = UnixStream::connect(worker).await.unwrap();
    real.write_all(&asked).await.unwrap();
    real.shutdown().await.unwrap();
    let mut answer = Vec::new();
    real.read_to_end(&mut answer).await.unwrap();
    let _ = stream.write_all(&answer).await;
}

/// An instance before a HAProxy with some servers, and what stands between them.
async fn start(text: &str, keeps: &'static str) -> Result<(Running, Arc<Between>), Missing> {
    let world = World::new(Version::V3_4)?;
    let (real, own) = (world.folder.path().join("run.sock"), world.folder.path().join("between.sock"));
    let text = format!(
        "global\n  stats socket {} level admin\ndefaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n\
         frontend main\n  bind {}\n  default_backend web\nbackend web\n{text}",
        real.display(),
        world.port.address()
    );
    fs::write(world.file(), text).unwrap();
    let settings = Settings { worker_socket: Some(own.clone()), ..world.settings(Version::V3_4) };
    let running = Running::start_on(world, settings).await;
    Ok((running, Between::start(own, real, keeps)))
}

#[tokio::test]
async fn what_operators_set_is_not_set_again_one_time_out_after_another() {
    let servers = [1, 2, 3, 4].map(|number| format!("  server s{number} 127.0.0.1:9\n")).concat();
    let (running, between) = need!(start(&servers, "set server").await);
    let direct = Worker::at(running.world.folder.path().join("run.sock"));
    for number in 1..=4 {
        let command = Request::new("set server").word(&format!("web/s{number}")).unwrap();
        let command = command.word("state").unwrap().word("maint").unwrap();
        assert!(matches!(direct.tell(&command).await.unwrap(), Reply::Done(_)));
    }
    let mut events = running.instance.events();
    between.hangs.store(true, Ordering::Relaxed);
    running.instance.reload().await.unwrap();
    assert_eq!(between.came("set server").len(), 1, "{:?}", between.came("set server"));
    let lost = loop {
        match tokio::time::timeout(WITHIN, events.recv()).await.unwrap().unwrap() {
            Event::Drift { difference } if difference.starts_with("lost after a reload") => break difference,
            _ => {}
        }
    };
    // All of them are named.
    assert!((1..=4).all(|number| lost.contains(&format!("web/s{number}"))), "{lost}");
    running.stop().await;
}

#[tokio::test]
async fn a_commit_is_not_held_up_by_each_server_that_waits_for_its_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut servers = "  server s1 127.0.0.1:9 weight 10\n  balance roundrobin\n".to_owned();
    servers.extend((2..=4).map(|number| format!("  server s{number} {address}\n")));
    let (running, between) = need!(start(&servers, "del server").await);
    // Connections to each of the servers, which keep them from being removed.
    let mut held = Vec::new();
    let direct = Worker::at(running.world.folder.path().join("run.sock"));
    let maintenance = Request::new("set server web/s1 state maint");
    assert!(matches!(direct.tell(&maintenance).await.unwrap(), Reply::Done(_)));
    for _ in 0..3 {
        let client = TcpStream::connect(running.world.port.address()).await.unwrap();
        held.push((client, listener.accept().await.unwrap()));
    }
    let remove = |configuration: &mut Configuration| {
        (2..=4).try_for_each(|number| {
            let name = ChildKey::Name(format!("s{number}").into());
            configuration.editor(&web()).delete(&web(), ObjectKind::Server, &name)
        })
    };
    let done = change(&running.instance, remove).await.unwrap();
    assert_eq!((done.applied, running.instance.leftovers()), (Applied::Runtime, 3));
    let before = between.came("del server").len();
    between.hangs.store(true, Ordering::Relaxed);
    let tried = async || (between.came("del server").len() > before).then_some(());
    wait::until("a server to be removed", WITHIN, tried).await;
    change(&running.instance, weight(20)).await.unwrap();
    let all = between.came("");
    let weighed = all.iter().position(|line| line.contains("weight 20")).unwrap();
    let tried = all[..weighed].iter().filter(|line| line.contains("del server")).count() - before;
    // One that was under way at that moment, and one that had begun before it hung.
    assert!(tried <= 2, "{tried} were tried before the commit: {all:?}");
    running.stop().await;
}

/// The weight of a server in HAProxy, whatever stands between.
async fn weight_of(running: &Running, name: &str) -> Option<i64> {
    let worker = Worker::at(running.world.folder.path().join("run.sock"));
    let servers = worker.servers(Some("web")).await.ok()??;
    Some(servers.iter().find(|server| server.name == name)?.weight())
}

#[tokio::test]
async fn a_worker_that_answers_nonsense_has_not_done_what_it_was_told() {
    for nonsense in ["\ngarbage\n", "\n\u{0}\u{1}\u{2}\n", "\n<html>\n</html>\n", "", "\n"] {
        let servers = "  balance roundrobin\n  server s1 127.0.0.1:9 weight 10\n";
        let (running, between) = need!(start(servers, "set server").await);
        running.settled().await;
        between.lie(nonsense);
        let done = change(&running.instance, weight(20)).await.unwrap();
        assert!(matches!(done.applied, Applied::Ordered(_)), "{nonsense:?}: {done:?}");
        let weighs = async || (weight_of(&running, "s1").await == Some(20)).then_some(());
        wait::until("HAProxy to run what the file says", WITHIN, weighs).await;
        running.stop().await;
    }
}

#[tokio::test]
async fn of_a_table_of_servers_that_is_torn_nothing_is_believed() {
    for torn in ["\n1\n# be_id be_name srv_id\n3 web\n", "\n1\n", "\ngarbage\n", ""] {
        let (running, between) =
            need!(start("  server s1 127.0.0.1:9 weight 10\n", "show servers state").await);
        running.settled().await;
        between.lie(torn);
        assert!(running.instance.differences().await.is_err(), "{torn:?}");
        let mut events = running.instance.events();
        running.instance.reload().await.unwrap();
        loop {
            match tokio::time::timeout(WITHIN, events.recv()).await.unwrap().unwrap() {
                Event::Drift { difference } if difference.contains("not known which servers run") => break,
                _ => {}
            }
        }
        assert_eq!(weight_of(&running, "s1").await, Some(10), "{torn:?}");
        running.stop().await;
    }
}

#[tokio::test]
async fn a_master_that_answers_nonsense_is_asked_to_reload_by_a_signal() {
    for nonsense in ["garbage\n", "# workers\n12 worker 0 0d00h00m01s\n", ""] {
        let world = need!(World::new(Version::V3_4));
        world.write_backend();
        let own = world.folder.path().join("between.sock");
        let between = Between::start(own.clone(), world.master().path().to_owned(), "show proc");
        between.lie(nonsense);
        let settings = Settings { master_socket: own, ..world.settings(Version::V3_4) };
        let running = Running::start_on(world, settings).await;
        let before = running.worker().await;
        running.instance.reload().await.unwrap();
        assert_ne!(running.worker().await, before, "{nonsense:?}");
        running.stop().await;
    }
}
