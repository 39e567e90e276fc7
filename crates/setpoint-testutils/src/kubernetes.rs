//! A Kubernetes API server with its etcd, with the garbage collector and the namespace controller.
//!
//! ```text
//! test ──kube client──▶ kube-apiserver (RBAC on) ──▶ etcd (in memory, or durable)
//!                              ▲
//!                 kube-controllers: garbage collector, namespaces
//! ```
//!
//! Without the two controllers owner references and deleted namespaces would never be collected. Everything else
//! that a cluster has (nodes, scheduler, other controllers) is not there.

mod access;
mod history;
mod shared;

use std::path::{Path, PathBuf};
use std::process::Command;

use kube::Client;
use serde_json::Value;

pub use history::History;
pub use shared::TestNamespace;

use crate::certificates::Authority;
use crate::etcd::{Durability, Etcd};
use crate::part::{self, Missing};
use crate::ports::Port;
use crate::process::Process;
use crate::workdir::Workdir;

const ADMIN_TOKEN: &str = "admin-of-the-test";

/// A running API server.
#[derive(Debug)]
pub struct Kubernetes {
    programs: Programs,
    memory: Memory,
    // In the order in which they are ended.
    controllers: Process,
    server: Process,
    etcd: Etcd,
    folder: Workdir,
    authority: Authority,
    port: Port,
}

#[derive(Debug)]
struct Programs {
    server: PathBuf,
    controllers: PathBuf,
    kubectl: PathBuf,
}

/// Where watches of ConfigMaps are answered from.
#[derive(Debug, Clone, Copy)]
enum Memory {
    /// The cache of the API server, as anywhere. It is lost when the server is killed.
    Usual,
    /// etcd, which remembers.
    Long,
}

impl Memory {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Usual => &[],
            Self::Long => &["--watch-cache-sizes=configmaps#0"],
        }
    }
}

impl Kubernetes {
    /// Starts an API server of the test's own, on a fast etcd. Most tests do with [`Kubernetes::shared`].
    pub async fn start() -> Result<Self, Missing> {
        Self::start_with(Durability::Fast).await
    }

    /// Starts an API server of the test's own, on an etcd that is as fast or as durable as asked.
    pub async fn start_with(durability: Durability) -> Result<Self, Missing> {
        Self::start_as(durability, Memory::Usual).await
    }

    /// Starts an API server of the test's own, on a fast etcd, whose [`History`] reaches back over its own restart.
    pub async fn start_with_history() -> Result<Self, Missing> {
        Self::start_as(Durability::Fast, Memory::Long).await
    }

    async fn start_as(durability: Durability, memory: Memory) -> Result<Self, Missing> {
        let programs = Programs {
            server: part::program("kube-apiserver", "kube-apiserver")?,
            controllers: part::program("kube-controllers", "kube-controllers")?,
            kubectl: part::program("kubectl", "kubectl")?,
        };
        let etcd = Etcd::start_with(durability).await?;
        let folder = Workdir::new("kubernetes");
        let port = Port::lease();
        let authority = Authority::new();
        let certificate = authority.server();
        folder.write("ca.crt", authority.certificate());
        folder.write("server.crt", certificate.certificate);
        folder.write("server.key", certificate.key);
        let accounts = authority.server();
        folder.write("accounts.crt", accounts.certificate);
        folder.write("accounts.key", accounts.key);
        folder.write("tokens.csv", format!("{ADMIN_TOKEN},admin,admin,\"system:masters\"\n"));
        let configuration = access::kubeconfig(&port, &authority, ADMIN_TOKEN);
        folder.write("kubeconfig", configuration.to_string());

        let server = launch_server(&programs.server, &folder, &port, &etcd, memory);
        server_ready(&server, &configuration).await;
        let controllers = launch_controllers(&programs.controllers, &folder);
        Ok(Self { programs, memory, controllers, server, etcd, folder, authority, port })
    }

    /// The base URL of the API.
    pub fn url(&self) -> String {
        format!("https://{}", self.port.address())
    }

    /// A configuration file of the administrator, for `kubectl` and other programs.
    pub fn kubeconfig_file(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    /// The program `kubectl`.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.programs.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig_file());
        command
    }

    /// A client of the administrator.
    ///
    /// Each test makes its own: a client's connections end with the runtime that opened them.
    pub async fn client(&self) -> Client {
        access::client(&self.kubeconfig(ADMIN_TOKEN)).await
    }

    /// The authority that signed the API server's certificate; it can sign those of webhooks.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// The process of the API server.
    pub fn server(&mut self) -> &mut Process {
        &mut self.server
    }

    /// The process of the controllers.
    pub fn controllers(&mut self) -> &mut Process {
        &mut self.controllers
    }

    /// The etcd below.
    pub fn etcd(&mut self) -> &mut Etcd {
        &mut self.etcd
    }

    /// The folder with everything but the data.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the API server with SIGKILL and starts it again on the same data and port.
    pub async fn restart(&mut self) {
        self.server.kill();
        self.server = launch_server(&self.programs.server, &self.folder, &self.port, &self.etcd, self.memory);
        server_ready(&self.server, &self.kubeconfig(ADMIN_TOKEN)).await;
    }

    /// Kills the controllers with SIGKILL and starts them again.
    pub fn restart_controllers(&mut self) {
        self.controllers.kill();
        self.controllers = launch_controllers(&self.programs.controllers, &self.folder);
    }

    fn kubeconfig(&self, token: &str) -> Value {
        access::kubeconfig(&self.port, &self.authority, token)
    }
}

fn launch_server(program: &Path, folder: &Workdir, port: &Port, etcd: &Etcd, memory: Memory) -> Process {
    let at = |name: &str| folder.path().join(name).display().to_string();
    let arguments = [
        ("etcd-servers", etcd.endpoint()),
        ("bind-address", "127.0.0.1".to_owned()),
        ("advertise-address", "127.0.0.1".to_owned()),
        ("secure-port", port.number().to_string()),
        ("endpoint-reconciler-type", "none".to_owned()),
        ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
        ("tls-cert-file", at("server.crt")),
        ("tls-private-key-file", at("server.key")),
        ("token-auth-file", at("tokens.csv")),
        ("authorization-mode", "RBAC".to_owned()),
        // No controller makes service accounts, so that pods must do without one.
        ("disable-admission-plugins", "ServiceAccount".to_owned()),
        ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
        ("service-account-key-file", at("accounts.crt")),
        ("service-account-signing-key-file", at("accounts.key")),
        ("shutdown-delay-duration", "0s".to_owned()),
    ]
    .map(|(name, value)| format!("--{name}={value}"));
    Process::start(
        "kube-apiserver",
        Command::new(program).args(arguments).args(memory.arguments()),
        &folder.path().join("kube-apiserver.log"),
    )
}

async fn server_ready(server: &Process, configuration: &Value) {
    let client = access::client(configuration).await;
    let ready = async || {
        let request = ::http::Request::get("/readyz").body(Vec::new()).ok()?;
        client.request_text(request).await.ok().filter(|answer| answer == "ok").map(|_| ())
    };
    server.until("it is ready", ready).await;
}

fn launch_controllers(program: &Path, folder: &Workdir) -> Process {
    let mut command = Command::new(program);
    command.arg(folder.path().join("kubeconfig"));
    Process::start("kube-controllers", &mut command, &folder.path().join("kube-controllers.log"))
}
