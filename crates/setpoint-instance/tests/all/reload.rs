//! The verdict of a reload is what HAProxy runs afterwards, on every version and by every way of asking.

use setpoint_instance::cli::Socket;
use setpoint_instance::process::Identity;
use setpoint_instance::reload::{Master, Method, Outcome, ReloadError, processes, reload};
use setpoint_testutils::{Version, http, need, wait};

use crate::world::{WITHIN, World};

/// All ways of asking, for a master.
fn methods(pid: u32) -> [Method; 3] {
    let command = ["sh", "-c", &format!("kill -USR2 {pid}")].map(Into::into).to_vec();
    [Method::Socket, Method::Signal, Method::Command(command)]
}

#[tokio::test]
async fn a_reload_succeeds_when_a_new_worker_serves_and_fails_when_none_does() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let haproxy = world.launch().start().await.unwrap();
        for (number, method) in methods(haproxy.identity().pid()).iter().enumerate() {
            let what = format!("{version:?}, {method:?}");
            let before = processes(&world.master()).await.unwrap().serving().unwrap().pid;
            let word = format!("word-{number}");
            world.write(&word);
            let outcome = reload(&world.master(), method, WITHIN).await.unwrap();
            let Outcome::Succeeded { worker, .. } = outcome else { panic!("{what}: {outcome:?}") };
            assert_ne!(worker, before);
            assert_eq!(http::get(&world.port.http()).await, Some(word.clone()), "{what}");

            std::fs::write(world.file(), "backend b\n  balance bogus\n").unwrap();
            let outcome = reload(&world.master(), method, WITHIN).await.unwrap();
            let Outcome::Failed { messages } = outcome else { panic!("{what}: {outcome:?}") };
            if *method == Method::Socket && version > Version::V2_6 {
                assert!(messages.contains("balance"), "{what}: {messages}");
            }
            let after = processes(&world.master()).await.unwrap().serving().unwrap().pid;
            assert_eq!(after, worker, "{what}: the one that served before goes on");
            assert_eq!(http::get(&world.port.http()).await, Some(word), "{what}");
        }
        haproxy.stop(WITHIN).await.unwrap();
    }
}

/// A configuration whose worker can be asked by itself.
fn write_with_socket(world: &World, word: &str) {
    let socket = world.folder.path().join("run.sock");
    let line = format!("global\n  stats socket {} level admin\n", socket.display());
    std::fs::write(world.file(), world.text(word).replacen("global\n", &line, 1)).unwrap();
}

#[tokio::test]
async fn a_master_without_a_socket_is_reloaded_by_a_signal_and_judged_by_its_processes() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        write_with_socket(&world, "first");
        let mut haproxy =
            std::process::Command::new(&world.program).arg("-W").arg("-f").arg(world.file()).spawn().unwrap();
        let worker = Socket::new(world.folder.path().join("run.sock"));
        let master = || Master::Process { files: vec![world.file()], worker: worker.clone() };
        let serving = async || processes(master()).await.ok()?.serving().map(|worker| worker.pid);
        let answers = async || http::get(&world.port.http()).await.filter(|word| word == "first");
        wait::until("it to serve", WITHIN, answers).await;
        assert_eq!(processes(master()).await.unwrap().master.pid, haproxy.id(), "{version:?}");
        // One that failed is not taken for the verdict of the next, and the other way round.
        for round in 0..3 {
            let before = serving().await.unwrap();
            let word = format!("round-{round}");
            write_with_socket(&world, &word);
            let outcome = reload(master(), &Method::Socket, WITHIN).await.unwrap();
            let Outcome::Succeeded { worker, .. } = outcome else { panic!("{version:?}: {outcome:?}") };
            assert_ne!(worker, before, "{version:?}");
            assert_eq!(http::get(&world.port.http()).await, Some(word.clone()), "{version:?}");
            std::fs::write(world.file(), "backend b\n  balance bogus\n").unwrap();
            let outcome = reload(master(), &Method::Signal, WITHIN).await.unwrap();
            assert!(matches!(outcome, Outcome::Failed { .. }), "{version:?}: {outcome:?}");
            assert_eq!(serving().await, Some(worker), "{version:?}");
            assert_eq!(http::get(&world.port.http()).await, Some(word), "{version:?}");
        }
        haproxy.kill().unwrap();
        haproxy.wait().unwrap();
    }
}

#[tokio::test]
async fn a_master_whose_socket_may_not_reload_gets_a_signal() {
    for version in [Version::V2_6, Version::V3_0] {
        let world = need!(World::new(version));
        let mut socket = world.folder.path().join("master.sock").into_os_string();
        socket.push(",level,user");
        let mut haproxy = std::process::Command::new(&world.program);
        let haproxy = haproxy.arg("-W").arg("-S").arg(socket).arg("-f").arg(world.file()).spawn();
        let mut haproxy = haproxy.unwrap();
        let answers = async || http::get(&world.port.http()).await.filter(|word| word == "one");
        wait::until("it to serve", WITHIN, answers).await;
        world.write("two");
        let outcome = reload(&world.master(), &Method::Socket, WITHIN).await.unwrap();
        assert!(matches!(outcome, Outcome::Succeeded { .. }), "{version:?}: {outcome:?}");
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("two"), "{version:?}");
        haproxy.kill().unwrap();
        haproxy.wait().unwrap();
    }
}

#[tokio::test]
async fn a_reload_that_something_else_has_begun_is_not_in_the_way() {
    for version in Version::ALL {
        let world = need!(World::new(version));
        let haproxy = world.launch().start().await.unwrap();
        let master = world.master();
        for round in 0..5 {
            world.write(&format!("round-{round}"));
            haproxy.identity().signal(rustix::process::Signal::USR2).unwrap();
            let outcome = reload(&master, &Method::Socket, WITHIN).await.unwrap();
            assert!(matches!(outcome, Outcome::Succeeded { .. }), "{version:?}: {outcome:?}");
        }
        assert_eq!(http::get(&world.port.http()).await.as_deref(), Some("round-4"), "{version:?}");
        haproxy.stop(WITHIN).await.unwrap();
    }
}

#[tokio::test]
async fn a_dead_hung_or_replaced_master_is_an_error_and_no_verdict() {
    let world = need!(World::new(Version::V3_4));
    let haproxy = world.launch().start().await.unwrap();
    let identity: Identity = haproxy.identity();
    // A command that does nothing: neither a new worker nor a failure.
    let nothing = Method::Command(vec!["true".into()]);
    let error = reload(&world.master(), &nothing, std::time::Duration::from_millis(300)).await.unwrap_err();
    assert!(matches!(error, ReloadError::TimedOut(_)), "{error}");
    let refused = Method::Command(["sh", "-c", "echo no >&2; exit 3"].map(Into::into).to_vec());
    let error = reload(&world.master(), &refused, WITHIN).await.unwrap_err().to_string();
    assert!(error.contains("no") && error.contains('3'), "{error}");
    let limits =
        setpoint_instance::cli::Limits { time: std::time::Duration::from_millis(300), size: 1 << 20 };
    identity.signal(rustix::process::Signal::STOP).unwrap();
    let master: Socket = world.master().with_limits(limits);
    let error = reload(&master, &Method::Socket, WITHIN).await.unwrap_err();
    assert!(matches!(error, ReloadError::Socket(_)), "{error}");
    identity.signal(rustix::process::Signal::CONT).unwrap();
    haproxy.stop(WITHIN).await.unwrap();
    let error = reload(&world.master(), &Method::Socket, WITHIN).await.unwrap_err();
    assert!(matches!(error, ReloadError::Socket(_)), "{error}");
}
