//! HAProxy in master-worker mode, with its master and runtime sockets.

mod contained;
mod proc;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

pub use contained::Contained;
pub use proc::Processes;

use crate::part::{self, Missing};
use crate::ports::Port;
use crate::process::Process;
use crate::workdir::Workdir;

/// The versions of HAProxy that tests run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// The oldest that is supported.
    V2_6,
    /// 3.0.
    V3_0,
    /// 3.2.
    V3_2,
    /// The newest.
    V3_4,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Self; 4] = [Self::V2_6, Self::V3_0, Self::V3_2, Self::V3_4];

    /// The name of the part.
    pub fn part(self) -> &'static str {
        match self {
            Self::V2_6 => "haproxy-2.6",
            Self::V3_0 => "haproxy-3.0",
            Self::V3_2 => "haproxy-3.2",
            Self::V3_4 => "haproxy-3.4",
        }
    }

    /// The program.
    pub fn program(self) -> Result<PathBuf, Missing> {
        part::program(self.part(), "haproxy")
    }
}

/// A running HAProxy: a master, its worker, and a port for a test to listen on.
#[derive(Debug)]
pub struct Haproxy {
    version: Version,
    program: PathBuf,
    process: Process,
    folder: Workdir,
    port: Port,
    layout: Layout,
}

/// Where the sockets and the defaults are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// In a file of their own that is read first: a test writes only what it is about.
    TwoFiles,
    /// At the beginning of the one file: for a program that reads, checks and writes the file by itself.
    OneFile,
}

/// What HAProxy says of a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Whether it would be accepted; a configuration that only lacks a listener is.
    pub accepted: bool,
    /// What HAProxy printed.
    pub output: String,
}

impl Haproxy {
    /// Starts HAProxy with one frontend, `main`, on [`Haproxy::address`] that answers by itself.
    pub async fn start(version: Version) -> Result<Self, Missing> {
        Self::start_with(version, |port| {
            format!(
                "frontend main\n  bind {}\n  http-request return status 200 content-type text/plain string haproxy\n",
                port.address()
            )
        })
        .await
    }

    /// Starts HAProxy with a configuration that is made for the port it may listen on.
    ///
    /// The sockets and the defaults (HTTP mode, timeouts) are in a file of their own that is read first.
    pub async fn start_with(
        version: Version,
        configuration: impl FnOnce(&Port) -> String,
    ) -> Result<Self, Missing> {
        Self::start_as(version, configuration, Layout::TwoFiles).await
    }

    /// Starts HAProxy with all of its configuration in [`Haproxy::configuration_file`], sockets and defaults first.
    pub async fn start_with_one_file(
        version: Version,
        configuration: impl FnOnce(&Port) -> String,
    ) -> Result<Self, Missing> {
        Self::start_as(version, configuration, Layout::OneFile).await
    }

    async fn start_as(
        version: Version,
        configuration: impl FnOnce(&Port) -> String,
        layout: Layout,
    ) -> Result<Self, Missing> {
        let program = version.program()?;
        let folder = Workdir::new("haproxy");
        let port = Port::lease();
        write(&folder, layout, &configuration(&port));
        let process = launch(&program, &folder, layout);
        let haproxy = Self { version, program, process, folder, port, layout };
        haproxy.ready().await;
        Ok(haproxy)
    }

    /// The version.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Where its frontend listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// The base URL of its frontend.
    pub fn url(&self) -> String {
        self.port.http()
    }

    /// The configuration file that a test may change.
    pub fn configuration_file(&self) -> PathBuf {
        self.folder.path().join("haproxy.cfg")
    }

    /// The folder with everything of this instance.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The socket of the master.
    pub fn master_socket(&self) -> PathBuf {
        self.folder.path().join("master.sock")
    }

    /// The socket of the worker.
    pub fn runtime_socket(&self) -> PathBuf {
        self.folder.path().join("runtime.sock")
    }

    /// The file with the process id of the master, kept over reloads and restarts.
    pub fn pid_file(&self) -> PathBuf {
        self.folder.path().join("haproxy.pid")
    }

    /// The process of the master.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Asks the master something.
    pub async fn master(&self, command: &str) -> std::io::Result<String> {
        ask(&self.master_socket(), command).await
    }

    /// Asks the worker something.
    pub async fn runtime(&self, command: &str) -> std::io::Result<String> {
        ask(&self.runtime_socket(), command).await
    }

    /// Its processes and how often it was reloaded, as the master tells.
    pub async fn processes(&self) -> Processes {
        let answer = async || Processes::read(&self.master("show proc").await.ok()?);
        self.process.until("its master tells its processes", answer).await
    }

    /// How often it was reloaded, failed reloads included.
    pub async fn reloads(&self) -> u32 {
        self.processes().await.reloads
    }

    /// The process ids of the workers of the present configuration.
    pub async fn workers(&self) -> Vec<u32> {
        self.processes().await.workers
    }

    /// Writes a configuration, reloads, and waits until a new worker serves it; the error is the end of the log.
    pub async fn reload(&self, configuration: &str) -> Result<(), String> {
        write(&self.folder, self.layout, configuration);
        let before = self.processes().await;
        // Where the master starts anew for a reload, it closes the connection without an answer.
        let _ = self.master("reload").await;
        let settled = async || {
            let now = Processes::read(&self.master("show proc").await.ok()?)?;
            (now.reloads > before.reloads && now.settled()).then_some(now)
        };
        let after = self.process.until("a reload has come to its end", settled).await;
        if after.workers.is_empty() || after.workers == before.workers || after.failed > before.failed {
            return Err(self.process.log());
        }
        self.runtime_answers().await;
        Ok(())
    }

    /// Kills it with SIGKILL and starts it again on the same port and configuration.
    pub async fn restart(&mut self) {
        self.process.kill();
        self.process = launch(&self.program, &self.folder, self.layout);
        self.ready().await;
    }

    /// Asks HAProxy of a version whether it would accept a configuration.
    pub fn check(version: Version, text: &str) -> Result<Check, Missing> {
        Ok(check(&version.program()?, text))
    }

    /// Asks this HAProxy's program whether it would accept a configuration.
    pub fn would_accept(&self, text: &str) -> Check {
        check(&self.program, text)
    }

    async fn ready(&self) {
        let worker = async || {
            let processes = Processes::read(&self.master("show proc").await.ok()?)?;
            (!processes.workers.is_empty()).then_some(())
        };
        self.process.until("it has a worker", worker).await;
        self.runtime_answers().await;
    }

    async fn runtime_answers(&self) {
        let answers =
            async || self.runtime("show info").await.ok().filter(|answer| answer.contains("Uptime"));
        self.process.until("its runtime socket answers", answers).await;
    }
}

fn check(program: &Path, text: &str) -> Check {
    let folder = Workdir::new("haproxy-check");
    let file = folder.write("haproxy.cfg", text);
    let output = Command::new(program)
        .arg("-c")
        .arg("-f")
        .arg(file)
        .current_dir(folder.path())
        .output()
        .expect("haproxy can be started");
    let text =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let no_listener = output.status.code() == Some(2) && text.contains("no listener");
    Check { accepted: output.status.success() || no_listener, output: text }
}

fn write(folder: &Workdir, layout: Layout, configuration: &str) {
    let base = base(folder.path());
    match layout {
        Layout::TwoFiles => {
            folder.write("base.cfg", base);
            folder.write("haproxy.cfg", configuration);
        }
        Layout::OneFile => {
            folder.write("haproxy.cfg", base + configuration);
        }
    }
}

fn launch(program: &Path, folder: &Workdir, layout: Layout) -> Process {
    let at = |name: &str| folder.path().join(name);
    let mut command = Command::new(program);
    command.args(["-W", "-S"]).arg(at("master.sock")).arg("-p").arg(at("haproxy.pid"));
    if layout == Layout::TwoFiles {
        command.arg("-f").arg(at("base.cfg"));
    }
    command.arg("-f").arg(at("haproxy.cfg")).current_dir(folder.path());
    Process::start("haproxy", &mut command, &at("haproxy.log"))
}

fn base(folder: &Path) -> String {
    let socket = folder.join("runtime.sock");
    format!(
        "global\n  stats socket {} mode 600 level admin expose-fd listeners\n  hard-stop-after 5s\n\
         defaults\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n",
        socket.display()
    )
}

/// How long an answer on a socket may take: what a busy machine needs, and less than the limit of whoever asks again.
const ANSWER_WITHIN: Duration = Duration::from_mins(1);

/// Sends one command to a socket and reads the whole answer.
async fn ask(socket: &Path, command: &str) -> std::io::Result<String> {
    let answer = async {
        let mut stream = UnixStream::connect(socket).await?;
        stream.write_all(format!("{command}\n").as_bytes()).await?;
        // The master keeps a connection open for more commands until it is told that there are none.
        stream.shutdown().await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    };
    timeout(ANSWER_WITHIN, answer).await?
}
