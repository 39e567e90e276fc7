//! etcd, alone or as a cluster of three.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::http;
use crate::part::{self, Missing};
use crate::ports::Port;
use crate::process::Process;
use crate::workdir::Workdir;

/// Whether what etcd has confirmed survives a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Data in memory, nothing waits for a disk: for all tests but those of durability.
    Fast,
    /// Data on disk, written through.
    Durable,
}

/// One member of etcd.
#[derive(Debug)]
pub struct Etcd {
    program: PathBuf,
    arguments: Vec<String>,
    process: Process,
    folder: Workdir,
    client: Port,
    _peer: Port,
}

impl Etcd {
    /// Starts a single fast member.
    pub async fn start() -> Result<Self, Missing> {
        Self::start_with(Durability::Fast).await
    }

    /// Starts a single member.
    pub async fn start_with(durability: Durability) -> Result<Self, Missing> {
        let mut members = members(1, durability)?;
        let member = members.remove(0);
        member.ready().await;
        Ok(member)
    }

    /// Where clients connect: `http://127.0.0.1:…`.
    pub fn endpoint(&self) -> String {
        self.client.http()
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The folder with its data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills it with SIGKILL and starts it again on the same data and ports.
    pub async fn restart(&mut self) {
        self.process.kill();
        self.launch();
        self.ready().await;
    }

    /// Starts it again after [`Process::kill`], without waiting until it answers.
    pub fn launch(&mut self) {
        self.process = launch(&self.program, &self.arguments, &self.folder);
    }

    /// Waits until it takes part in a cluster that has a leader.
    pub async fn ready(&self) {
        let url = format!("{}/health", self.endpoint());
        self.process.until("it is healthy", async || http::answers(&url).await.then_some(())).await;
    }

    /// Writes a key.
    pub async fn put(&self, key: &str, value: &str) -> Result<(), reqwest::Error> {
        let body = json!({ "key": BASE64_STANDARD.encode(key), "value": BASE64_STANDARD.encode(value) });
        http::post_json(&format!("{}/v3/kv/put", self.endpoint()), &body).await.map(|_| ())
    }

    /// Reads a key.
    pub async fn get(&self, key: &str) -> Result<Option<String>, reqwest::Error> {
        let body = json!({ "key": BASE64_STANDARD.encode(key) });
        let answer = http::post_json(&format!("{}/v3/kv/range", self.endpoint()), &body).await?;
        let value = answer.pointer("/kvs/0/value").and_then(Value::as_str);
        Ok(value
            .and_then(|value| BASE64_STANDARD.decode(value).ok())
            .and_then(|value| String::from_utf8(value).ok()))
    }
}

/// A cluster of three members.
#[derive(Debug)]
pub struct EtcdCluster {
    /// The members.
    pub members: Vec<Etcd>,
}

impl EtcdCluster {
    /// Starts a fast cluster.
    pub async fn start() -> Result<Self, Missing> {
        let members = members(3, Durability::Fast)?;
        for member in &members {
            member.ready().await;
        }
        Ok(Self { members })
    }

    /// Where clients connect.
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(Etcd::endpoint).collect()
    }
}

/// Launches the members of one cluster.
fn members(count: usize, durability: Durability) -> Result<Vec<Etcd>, Missing> {
    let program = part::program("etcd", "etcd")?;
    let ports: Vec<_> = (0..count).map(|_| (Port::lease(), Port::lease())).collect();
    let cluster: Vec<_> =
        ports.iter().enumerate().map(|(i, (_, peer))| format!("member-{i}={}", peer.http())).collect();
    let cluster = cluster.join(",");
    let launch_member = |(index, (client, peer)): (usize, (Port, Port))| {
        let folder = match durability {
            Durability::Fast => Workdir::in_memory("etcd"),
            Durability::Durable => Workdir::new("etcd"),
        };
        let mut arguments: Vec<String> = [
            ("name", format!("member-{index}")),
            ("data-dir", folder.path().join("data").display().to_string()),
            ("listen-client-urls", client.http()),
            ("advertise-client-urls", client.http()),
            ("listen-peer-urls", peer.http()),
            ("initial-advertise-peer-urls", peer.http()),
            ("initial-cluster", cluster.clone()),
            ("initial-cluster-state", "new".to_owned()),
            ("log-level", "warn".to_owned()),
        ]
        .map(|(name, value)| format!("--{name}={value}"))
        .into();
        if durability == Durability::Fast {
            arguments.push("--unsafe-no-fsync".to_owned());
        }
        let process = launch(&program, &arguments, &folder);
        Etcd { program: program.clone(), arguments, process, folder, client, _peer: peer }
    };
    Ok(ports.into_iter().enumerate().map(launch_member).collect())
}

fn launch(program: &Path, arguments: &[String], folder: &Workdir) -> Process {
    Process::start("etcd", Command::new(program).args(arguments), &folder.path().join("etcd.log"))
}
