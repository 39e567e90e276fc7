//! Everything is gone when the process that started it is, whichever way that ends.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use setpoint_testutils::{Etcd, Haproxy, Missing, Version, need, part, wait};

use crate::process_is_gone;

/// Another process that has started HAProxy and etcd and joined two hosts.
struct Other {
    process: Child,
    /// Its parts' processes.
    parts: BTreeSet<u32>,
    /// The folders, the namespaces and the register that it made.
    left_behind: Vec<PathBuf>,
}

/// What the other process needs.
fn parts() -> Result<(), Missing> {
    Version::V3_4.program()?;
    part::program("etcd", "etcd")?;
    part::program("iproute2", "ip")?;
    part::root("a network namespace")
}

async fn start_other() -> Other {
    let mut process = Command::new(env!("CARGO_BIN_EXE_setpoint-up"))
        .args(["haproxy", "etcd", "network", "--seconds", "300"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let ready = tokio::task::spawn_blocking(move || {
        output.lines().map_while(Result::ok).any(|line| line.starts_with("ready"))
    });
    assert!(tokio::time::timeout(wait::LIMIT, ready).await.unwrap().unwrap(), "it does not start");

    let register = std::env::temp_dir().join(format!("setpoint-guard-{}", process.id()));
    let entries: Vec<_> = std::fs::read_dir(&register).unwrap().map(|entry| entry.unwrap()).collect();
    let (mut parts, mut left_behind) = (BTreeSet::new(), vec![register]);
    for entry in entries {
        let name = entry.file_name().into_string().unwrap();
        if let Some(group) = name.strip_prefix("group-") {
            let group: u32 = group.parse().unwrap();
            parts.insert(group);
            parts.extend(children(group));
        } else if name.starts_with("folder-") {
            left_behind.push(std::fs::read_to_string(entry.path()).unwrap().into());
        } else if let Some(namespace) = name.strip_prefix("namespace-") {
            left_behind.push(Path::new("/run/netns").join(namespace));
        }
    }
    assert_eq!(left_behind.len(), 5, "a register, two folders and two namespaces: {left_behind:?}");
    assert!(parts.len() >= 3, "etcd, a master and a worker: {parts:?}");
    for path in &left_behind {
        assert!(path.exists(), "{}", path.display());
    }
    Other { process, parts, left_behind }
}

fn children(id: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    children.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

async fn everything_is_gone(mut other: Other) {
    other.process.wait().unwrap();
    for id in other.parts {
        process_is_gone(id).await;
    }
    for path in other.left_behind {
        wait::until("a folder to be gone", wait::LIMIT, async || (!path.exists()).then_some(())).await;
    }
}

async fn end_by(signal: Signal) {
    let other = start_other().await;
    kill(Pid::from_raw(i32::try_from(other.process.id()).unwrap()), signal).unwrap();
    everything_is_gone(other).await;
}

#[tokio::test]
async fn when_it_is_killed_with_sigkill() {
    need!(parts());
    end_by(Signal::SIGKILL).await;
}

#[tokio::test]
async fn when_it_is_interrupted() {
    need!(parts());
    end_by(Signal::SIGINT).await;
}

#[tokio::test]
async fn when_a_test_panics() {
    let haproxy = need!(Haproxy::start(Version::V3_4).await);
    let mut etcd = need!(Etcd::start().await);
    let mut ids = vec![etcd.process().id()];
    let processes = haproxy.processes().await;
    ids.extend(processes.workers);
    ids.push(processes.master);
    let folders = [haproxy.folder().to_path_buf(), etcd.folder().to_path_buf()];
    let panicked = tokio::spawn(async move {
        let _parts = (haproxy, etcd);
        assert!(Path::new("/").as_os_str().is_empty(), "this is the panic");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    for id in ids {
        process_is_gone(id).await;
    }
    for folder in folders {
        assert!(!folder.exists(), "{}", folder.display());
    }
}
