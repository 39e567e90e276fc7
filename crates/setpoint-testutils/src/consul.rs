//! Consul as a server, with or without ACLs, alone or as a cluster of three.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::http;
use crate::part::{self, Missing};
use crate::ports::Port;
use crate::process::Process;
use crate::workdir::Workdir;

/// The token that may do everything, on servers with ACLs.
const MANAGEMENT_TOKEN: &str = "5e790147-0000-4000-8000-000000000001";

/// Whether a server asks for tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acl {
    /// Everybody may do everything.
    Off,
    /// Without a token nothing is allowed.
    On,
}

/// One Consul server.
#[derive(Debug)]
pub struct Consul {
    program: PathBuf,
    acl: Acl,
    process: Process,
    folder: Workdir,
    http: Port,
    _others: [Port; 2],
}

/// A value in Consul's key-value store, and the index of its last change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned {
    /// The value; none if there is no such key.
    pub value: Option<String>,
    /// What a blocking query gives back to be told of the next change.
    pub index: u64,
}

impl Consul {
    /// Starts a single server.
    pub async fn start(acl: Acl) -> Result<Self, Missing> {
        Self::start_with(acl, &json!({})).await
    }

    /// Starts a single server whose configuration has these fields as well.
    pub async fn start_with(acl: Acl, more: &Value) -> Result<Self, Missing> {
        let mut servers = servers(1, acl, more)?;
        let server = servers.remove(0);
        server.ready().await;
        Ok(server)
    }

    /// The server, without ACLs, that the tests of one binary share, started by the first that asks for it.
    pub async fn shared() -> Result<&'static Self, Missing> {
        static SHARED: OnceCell<Consul> = OnceCell::const_new();
        SHARED.get_or_try_init(|| Self::start(Acl::Off)).await
    }

    /// The base URL of its HTTP API.
    pub fn url(&self) -> String {
        self.http.http()
    }

    /// The token that may do everything; none where ACLs are off.
    pub fn token(&self) -> Option<&'static str> {
        (self.acl == Acl::On).then_some(MANAGEMENT_TOKEN)
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
        self.process = launch(&self.program, &self.folder);
    }

    /// Waits until it belongs to a cluster that has a leader at work.
    pub async fn ready(&self) {
        let leader = async || {
            let nodes =
                self.request(Method::GET, "/v1/catalog/nodes").send().await.ok()?.error_for_status().ok()?;
            (nodes.text().await.ok()?.trim() != "[]").then_some(())
        };
        self.process.until("it finds a leader", leader).await;
    }

    /// A request to its HTTP API, with the management token where one is needed.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = http::client().request(method, format!("{}{path}", self.url()));
        match self.token() {
            Some(token) => request.header("X-Consul-Token", token),
            None => request,
        }
    }

    /// Writes a key.
    pub async fn put(&self, key: &str, value: &str) -> Result<(), reqwest::Error> {
        let request = self.request(Method::PUT, &format!("/v1/kv/{key}")).body(value.to_owned());
        request.send().await?.error_for_status().map(|_| ())
    }

    /// Removes a key.
    pub async fn delete(&self, key: &str) -> Result<(), reqwest::Error> {
        let request = self.request(Method::DELETE, &format!("/v1/kv/{key}"));
        request.send().await?.error_for_status().map(|_| ())
    }

    /// Removes all keys below a prefix.
    pub async fn delete_tree(&self, prefix: &str) -> Result<(), reqwest::Error> {
        let request = self.request(Method::DELETE, &format!("/v1/kv/{prefix}?recurse"));
        request.send().await?.error_for_status().map(|_| ())
    }

    /// Saves all that it holds.
    pub async fn save(&self) -> Result<Vec<u8>, reqwest::Error> {
        let request = self.request(Method::GET, "/v1/snapshot");
        Ok(request.send().await?.error_for_status()?.bytes().await?.to_vec())
    }

    /// Goes back to what it held when it was saved.
    pub async fn restore(&self, saved: Vec<u8>) -> Result<(), reqwest::Error> {
        let request = self.request(Method::PUT, "/v1/snapshot").body(saved);
        request.send().await?.error_for_status().map(|_| ())
    }

    /// Makes a policy with these rules, or gives an existing one these rules, and a new token that has it.
    pub async fn token_with(&self, policy: &str, rules: &str) -> Result<String, reqwest::Error> {
        self.set_policy(policy, rules).await?;
        let body = json!({ "Policies": [{ "Name": policy }] });
        let request = self.request(Method::PUT, "/v1/acl/token").json(&body);
        let made: Value = request.send().await?.error_for_status()?.json().await?;
        Ok(made["SecretID"].as_str().unwrap_or_default().to_owned())
    }

    /// Gives a policy other rules; makes it if there is none.
    pub async fn set_policy(&self, policy: &str, rules: &str) -> Result<(), reqwest::Error> {
        let found = self.request(Method::GET, &format!("/v1/acl/policy/name/{policy}")).send().await?;
        let id = match found.error_for_status() {
            Ok(found) => found.json::<Value>().await?["ID"].as_str().map(str::to_owned),
            Err(_) => None,
        };
        let path = id.as_ref().map_or("/v1/acl/policy".to_owned(), |id| format!("/v1/acl/policy/{id}"));
        let body = json!({ "ID": id, "Name": policy, "Rules": rules });
        self.request(Method::PUT, &path).json(&body).send().await?.error_for_status().map(|_| ())
    }

    /// Reads a key.
    pub async fn get(&self, key: &str) -> Result<Versioned, reqwest::Error> {
        read(self.request(Method::GET, &format!("/v1/kv/{key}?raw"))).await
    }

    /// Reads a key when it has changed since `index`, or when so much time has passed.
    pub async fn get_after(
        &self,
        key: &str,
        index: u64,
        longest: Duration,
    ) -> Result<Versioned, reqwest::Error> {
        let path = format!("/v1/kv/{key}?raw&index={index}&wait={}ms", longest.as_millis());
        read(self.request(Method::GET, &path).timeout(longest * 2 + crate::wait::LIMIT)).await
    }
}

/// A cluster of three servers.
#[derive(Debug)]
pub struct ConsulCluster {
    /// The servers.
    pub servers: Vec<Consul>,
}

impl ConsulCluster {
    /// Starts a cluster.
    pub async fn start(acl: Acl) -> Result<Self, Missing> {
        let servers = servers(3, acl, &json!({}))?;
        for server in &servers {
            server.ready().await;
        }
        Ok(Self { servers })
    }
}

async fn read(request: reqwest::RequestBuilder) -> Result<Versioned, reqwest::Error> {
    let response = request.send().await?;
    let index = response.headers().get("X-Consul-Index").and_then(|index| index.to_str().ok()?.parse().ok());
    let index = index.unwrap_or_default();
    if response.status() == reqwest::StatusCode::NOT_FOUND {
        return Ok(Versioned { value: None, index });
    }
    Ok(Versioned { value: Some(response.error_for_status()?.text().await?), index })
}

/// Launches the servers of one cluster.
fn servers(count: usize, acl: Acl, more: &Value) -> Result<Vec<Consul>, Missing> {
    let program = part::program("consul", "consul")?;
    let ports: Vec<_> = (0..count).map(|_| [Port::lease(), Port::lease(), Port::lease()]).collect();
    let members: Vec<_> = ports.iter().map(|[_, _, serf]| serf.address().to_string()).collect();
    let launch_server = |(index, [http, server, serf]): (usize, [Port; 3])| {
        let folder = Workdir::new("consul");
        let mut configuration = json!({
            "server": true,
            "bootstrap_expect": count,
            "node_name": format!("server-{index}"),
            "data_dir": folder.path().join("data"),
            "bind_addr": "127.0.0.1",
            "client_addr": "127.0.0.1",
            "ports": {
                "http": http.number(), "server": server.number(), "serf_lan": serf.number(),
                "serf_wan": -1, "dns": -1, "grpc": -1, "grpc_tls": -1,
            },
            "retry_join": members,
            "retry_interval": "1s",
            "performance": { "raft_multiplier": 1 },
            "disable_update_check": true,
            "leave_on_terminate": false,
            "skip_leave_on_interrupt": true,
            "rejoin_after_leave": true,
            "log_level": "warn",
        });
        if let (Acl::On, Some(fields)) = (acl, configuration.as_object_mut()) {
            let tokens = json!({ "initial_management": MANAGEMENT_TOKEN, "agent": MANAGEMENT_TOKEN });
            let acl = json!({ "enabled": true, "default_policy": "deny", "tokens": tokens });
            fields.insert("acl".to_owned(), acl);
        }
        merge(&mut configuration, more);
        folder.write("consul.json", configuration.to_string());
        let process = launch(&program, &folder);
        Consul { program: program.clone(), acl, process, folder, http, _others: [server, serf] }
    };
    Ok(ports.into_iter().enumerate().map(launch_server).collect())
}

/// Adds the fields of one object to another, also inside of it.
fn merge(into: &mut Value, more: &Value) {
    match (into, more) {
        (Value::Object(into), Value::Object(more)) => {
            for (name, value) in more {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, more) => *into = more.clone(),
    }
}

fn launch(program: &Path, folder: &Workdir) -> Process {
    let mut command = Command::new(program);
    command.arg("agent").arg("-config-file").arg(folder.path().join("consul.json"));
    Process::start("consul", &mut command, &folder.path().join("consul.log"))
}
