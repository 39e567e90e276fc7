//! `setpoint haproxy serve` on 5,000 backends with 4 servers each, before a real HAProxy.
//!
//! ```text
//!  the command ── starts ──▶ HAProxy
//!      ▲ HTTP on one connection, or on a thousand
//!  each case: a few rounds, the best counts
//! ```
//!
//! Beside each stands `haproxy -c` on the same text: what a change that has to be checked can't be faster than; and where an
//! original Dataplane API is found, what that takes for the same.

pub(crate) mod original;

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use base64::Engine as _;
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::haproxy::haproxy;

/// How many rounds are measured; the best counts.
const ROUNDS: usize = 5;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataplaneCase {
    /// A server changed in a transaction.
    ChangeInTransaction,
    /// A transaction begun.
    OpenTransaction,
    /// A weight changed by itself, and in effect.
    Weight,
    /// A backend read with all that stands in it.
    ReadBackend,
    /// A hundred weights changed in a transaction, committed and in effect.
    #[value(name = "weights-100")]
    Weights100,
    /// The whole text pushed with one change, and the reload ordered.
    RawPush,
    /// What is in memory after the start.
    MemoryStart,
    /// What was in memory at most, after a push.
    MemoryPush,
    /// A thousand connections that read 2,000 times a second altogether: the 99th of a hundred.
    #[value(name = "clients-1000")]
    Clients1000,
}

#[derive(Debug, Serialize)]
struct Figures {
    bench: &'static str,
    case: String,
    seconds: f64,
    /// How many times the limit it took.
    ratio: f64,
    reloads: u32,
    peak_rss_bytes: u64,
    check_seconds: f64,
    /// The version of the original that did the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<String>,
    /// What it took; bytes for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    original_seconds: Option<f64>,
    /// How many times of that ours took.
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio_to_original: Option<f64>,
    #[serde(skip)]
    limit: String,
}

impl DataplaneCase {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// The seconds that it may take at most; bytes for memory. A push may take what HAProxy takes, and a tenth more.
    fn limit(self, check_seconds: f64) -> f64 {
        match self {
            Self::ChangeInTransaction | Self::OpenTransaction => 0.001,
            Self::Weight => 0.005,
            Self::ReadBackend => 0.0003,
            Self::Weights100 => 0.2,
            Self::RawPush => check_seconds * 1.1,
            Self::MemoryStart => 60e6,
            Self::MemoryPush => 80e6,
            Self::Clients1000 => 0.05,
        }
    }
}

/// Measures the cases and prints a line for each.
pub(crate) fn run(cases: &[DataplaneCase], json: bool, scale: f64) -> Result<()> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "floats saturate")]
    let backends = ((5000.0 * scale).round() as u32).max(200);
    for case in cases {
        let figures = measure(*case, backends)?;
        if json {
            println!("{}", serde_json::to_string(&figures)?);
        } else {
            let missed = if figures.ratio > 1.0 { "  missed" } else { "" };
            let beside = match (&figures.original, figures.original_seconds) {
                (Some(version), Some(took)) => format!("  the original {version}: {}", shown(*case, took)),
                _ => String::new(),
            };
            println!(
                "{:<22} {:>12}  at most {:>10}  {} reloads  peak {} MiB  check {:.3} s{missed}{beside}",
                figures.case,
                shown(*case, figures.seconds),
                figures.limit,
                figures.reloads,
                figures.peak_rss_bytes >> 20,
                figures.check_seconds
            );
        }
    }
    Ok(())
}

fn shown(case: DataplaneCase, value: f64) -> String {
    match case {
        DataplaneCase::MemoryStart | DataplaneCase::MemoryPush => format!("{:.1} MB", value / 1e6),
        _ if value >= 1.0 => format!("{value:.2} s"),
        _ => format!("{:.2} ms", value * 1e3),
    }
}

fn measure(case: DataplaneCase, backends: u32) -> Result<Figures> {
    let original = match original::newest() {
        Some((version, program)) => {
            let stage = Stage::start_original(&program, backends)?;
            Some((version, measure_on(case, &stage)?))
        }
        None => None,
    };
    let stage = Stage::start(backends)?;
    let reloads = stage.reloads()?;
    let seconds = measure_on(case, &stage)?;
    let reloads = stage.reloads()?.saturating_sub(reloads);
    let is_told = matches!(case, DataplaneCase::Weight | DataplaneCase::Weights100);
    ensure!(!is_told || reloads == 0, "{}: {reloads} reloads for what HAProxy can be told", case.name());
    let check_seconds = stage.check_seconds()?;
    let limit = case.limit(check_seconds);
    Ok(Figures {
        bench: "dataplane",
        case: case.name(),
        seconds,
        ratio: seconds / limit,
        reloads,
        peak_rss_bytes: stage.memory("VmHWM:")?,
        check_seconds,
        ratio_to_original: original.as_ref().map(|(_, theirs)| seconds / theirs),
        original_seconds: original.as_ref().map(|(_, theirs)| *theirs),
        original: original.map(|(version, _)| version),
        limit: shown(case, limit),
    })
}

/// What a case takes: seconds, or bytes.
fn measure_on(case: DataplaneCase, stage: &Stage) -> Result<f64> {
    match case {
        DataplaneCase::ChangeInTransaction => change_in_transaction(stage),
        DataplaneCase::OpenTransaction => open_transaction(stage),
        DataplaneCase::Weight => weight(stage),
        DataplaneCase::ReadBackend => read_backend(stage),
        DataplaneCase::Weights100 => weights(stage),
        DataplaneCase::RawPush => raw_push(stage),
        DataplaneCase::MemoryStart => Ok(as_float(stage.memory("VmRSS:")?)),
        DataplaneCase::MemoryPush => {
            raw_push(stage)?;
            Ok(as_float(stage.memory("VmHWM:")?))
        }
        DataplaneCase::Clients1000 => clients(stage),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn as_float(bytes: u64) -> f64 {
    bytes as f64
}

/// The best of a few rounds.
fn best(mut round: impl FnMut(usize) -> Result<Duration>) -> Result<f64> {
    let mut best = Duration::MAX;
    for number in 0..ROUNDS {
        best = best.min(round(number)?);
    }
    Ok(best.as_secs_f64())
}

fn server(weight: usize) -> Json {
    json!({ "name": "s1", "address": "127.0.0.1", "port": 9, "weight": weight })
}

fn change_in_transaction(stage: &Stage) -> Result<f64> {
    let mut client = stage.client()?;
    let id = begin(&mut client)?;
    best(|round| {
        let path = format!("configuration/backends/b{}/servers/s1?transaction_id={id}", 100 + round);
        let start = Instant::now();
        client.json("PUT", &path, Some(&server(20 + round)), 202)?;
        Ok(start.elapsed())
    })
}

fn begin(client: &mut Client) -> Result<String> {
    let version = client.json("GET", "configuration/version", None, 200)?;
    let begun = client.json("POST", &format!("transactions?version={version}"), None, 201)?;
    Ok(begun["id"].as_str().context("a transaction has an id")?.to_owned())
}

fn open_transaction(stage: &Stage) -> Result<f64> {
    let mut client = stage.client()?;
    let version = client.json("GET", "configuration/version", None, 200)?;
    best(|_| {
        let start = Instant::now();
        client.json("POST", &format!("transactions?version={version}"), None, 201)?;
        Ok(start.elapsed())
    })
}

fn weight(stage: &Stage) -> Result<f64> {
    let mut client = stage.client()?;
    best(|round| {
        // What was applied before is checked in the background.
        std::thread::sleep(Duration::from_secs(2));
        let version = client.json("GET", "configuration/version", None, 200)?;
        let path = format!("configuration/backends/b{}/servers/s1?version={version}", 100 + round);
        let start = Instant::now();
        client.json("PUT", &path, Some(&server(20 + round)), stage.told())?;
        let took = start.elapsed();
        let path = format!("runtime/backends/b{}/servers/s1", 100 + round);
        Ok(in_effect(stage, &mut client, &path, 20 + round, start)?.unwrap_or(took))
    })
}

fn read_backend(stage: &Stage) -> Result<f64> {
    let mut client = stage.client()?;
    best(|round| {
        let path = format!("configuration/backends/b{}?full_section=true", 100 + round);
        let start = Instant::now();
        let read = client.json("GET", &path, None, 200)?;
        let took = start.elapsed();
        ensure!(read["servers"].as_object().is_some_and(|servers| servers.len() == 4), "{read}");
        Ok(took)
    })
}

fn weights(stage: &Stage) -> Result<f64> {
    let mut client = stage.client()?;
    best(|round| {
        std::thread::sleep(Duration::from_secs(2));
        let start = Instant::now();
        let id = begin(&mut client)?;
        for backend in 0..100 {
            let path = format!("configuration/backends/b{backend}/servers/s1?transaction_id={id}");
            client.json("PUT", &path, Some(&server(30 + round)), 202)?;
        }
        client.json("PUT", &format!("transactions/{id}"), None, stage.told())?;
        let took = start.elapsed();
        let path = "runtime/backends/b99/servers/s1";
        Ok(in_effect(stage, &mut client, path, 30 + round, start)?.unwrap_or(took))
    })
}

/// Makes sure that a weight is in effect when ours has answered; of the original, how long it took until it was.
fn in_effect(
    stage: &Stage,
    client: &mut Client,
    path: &str,
    weight: usize,
    start: Instant,
) -> Result<Option<Duration>> {
    loop {
        let (status, answer) = client.ask("GET", path, None)?;
        let running: Json = serde_json::from_slice(&answer).unwrap_or_default();
        if status == 200 && running["weight"] == weight {
            return Ok(stage.original.is_some().then(|| start.elapsed()));
        }
        let may_wait = stage.original.is_some() && start.elapsed() < PATIENCE;
        ensure!(may_wait, "it is not in effect: {status} {running}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn raw_push(stage: &Stage) -> Result<f64> {
    let mut client = stage.client()?;
    best(|round| {
        // The reload of the one before is over.
        std::thread::sleep(Duration::from_secs(2));
        let version = client.json("GET", "configuration/version", None, 200)?;
        let text = stage.text.replace(
            "backend b7 from d\n",
            &format!("backend b7 from d\n  balance leastconn\n  retries {}\n", round + 1),
        );
        let path = format!("configuration/raw?version={version}");
        let start = Instant::now();
        let (status, _) = client.ask("POST", &path, Some(("text/plain", text.as_bytes())))?;
        ensure!(status == 202, "a push was answered with {status}");
        Ok(start.elapsed())
    })
}

/// A thousand connections, each with a read every half second.
fn clients(stage: &Stage) -> Result<f64> {
    const CONNECTIONS: usize = 1000;
    const THREADS: usize = 8;
    let mut threads = Vec::new();
    for number in 0..THREADS {
        let clients = (0..CONNECTIONS / THREADS).map(|_| stage.client()).collect::<Result<Vec<_>>>()?;
        threads.push(std::thread::spawn(move || read_for_a_while(clients, number)));
    }
    let mut all = Vec::new();
    for thread in threads {
        let took = thread.join().map_err(|_| anyhow::anyhow!("a client failed"))??;
        all.extend(took);
    }
    all.sort();
    let at = all.len() * 99 / 100;
    Ok(all.get(at).copied().unwrap_or_default().as_secs_f64())
}

/// Each connection in turn, so that all threads together ask 2,000 times a second, for three seconds.
fn read_for_a_while(mut clients: Vec<Client>, number: usize) -> Result<Vec<Duration>> {
    let (begun, mut took) = (Instant::now(), Vec::new());
    let pause = Duration::from_millis(4);
    for asked in 0..750_u32 {
        let due = begun + pause * asked;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let at = usize::try_from(asked)? % clients.len();
        let path = format!("configuration/backends/b{}?full_section=true", number * 20 + at % 100);
        let Some(client) = clients.get_mut(at) else { continue };
        client.json("GET", &path, None, 200)?;
        // From when it was due: a server that is late is late for all that wait.
        took.push(due.elapsed());
    }
    Ok(took)
}

/// The command, or the original, and the HAProxy behind it.
pub(crate) struct Stage {
    pub(crate) text: String,
    /// The API.
    child: Child,
    address: String,
    password: String,
    program: PathBuf,
    setpoint: PathBuf,
    /// The socket of HAProxy's master.
    master: PathBuf,
    /// The HAProxy of the original; ours starts one.
    original: Option<original::Haproxy>,
    /// It goes last.
    folder: tempfile::TempDir,
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The HAProxy outlives it: its master says which process it is.
        if self.original.is_none()
            && let Ok(pid) = self.master()
        {
            let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
            let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        }
    }
}

impl Stage {
    pub(crate) fn start(backends: u32) -> Result<Self> {
        let program = haproxy().context("no HAProxy: run `cargo xtask parts`")?;
        let folder = tempfile::tempdir().context("can't make a temporary directory")?;
        let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let text = text(folder.path(), port, backends)?;
        let file = folder.path().join("haproxy.cfg");
        std::fs::write(&file, &text)?;
        let setpoint = setpoint()?;
        let mut child = Command::new(&setpoint)
            .args(["haproxy", "serve", "--listen", "127.0.0.1:0", "--reload-delay", "0.1", "--haproxy"])
            .arg(&program)
            .arg("--config")
            .arg(&file)
            .stderr(Stdio::piped())
            .spawn()
            .context("can't run setpoint")?;
        let mut lines =
            BufReader::new(child.stderr.take().context("it has a standard error output")?).lines();
        let address = loop {
            let line = lines.next().context("the command ended")??;
            if let Some((_, url)) = line.split_once("is served on http://") {
                break url.trim_end_matches("/v3").to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        let password = std::fs::read_to_string(folder.path().join(".haproxy.cfg.setpoint/password"))?;
        let password = password.trim().to_owned();
        let master = folder.path().join(".haproxy.cfg.setpoint/master.sock");
        let stage =
            Self { text, child, address, password, program, setpoint, master, original: None, folder };
        // What is looked at when it starts is over.
        std::thread::sleep(Duration::from_secs(1));
        Ok(stage)
    }

    /// The folder that all of it is in.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration of the HAProxy.
    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("haproxy.cfg")
    }

    /// The command.
    pub(crate) fn setpoint(&self) -> &Path {
        &self.setpoint
    }

    /// HAProxy.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Where the API is, and the file with the password of its user `admin`.
    pub(crate) fn address(&self) -> (String, PathBuf) {
        let password = if self.original.is_some() { "password" } else { ".haproxy.cfg.setpoint/password" };
        (format!("http://{}", self.address), self.folder.path().join(password))
    }

    /// Ends the API; HAProxy goes on.
    pub(crate) fn end_api(&mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw);
        let _ = pid.map(|pid| rustix::process::kill_process(pid, rustix::process::Signal::TERM));
        let _ = self.child.wait();
    }

    /// The status of a change that a running HAProxy can be told: the original reloads.
    fn told(&self) -> u16 {
        if self.original.is_some() { 202 } else { 200 }
    }

    fn client(&self) -> Result<Client> {
        let stream = TcpStream::connect(&self.address).context("can't connect to the API")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let credentials =
            base64::engine::general_purpose::STANDARD.encode(format!("admin:{}", self.password));
        Ok(Client { stream: BufReader::new(stream), credentials })
    }

    fn memory(&self, name: &str) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("the system tells")?;
        let kilobytes: u64 = line.trim().trim_end_matches(" kB").trim().parse()?;
        Ok(kilobytes * 1024)
    }

    fn processes(&self) -> Result<String> {
        let mut socket = std::os::unix::net::UnixStream::connect(&self.master)?;
        socket.write_all(b"show proc\n")?;
        socket.shutdown(std::net::Shutdown::Write)?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn master(&self) -> Result<u32> {
        let answer = self.processes()?;
        let line = answer.lines().find(|line| line.contains("master")).context("no master")?;
        Ok(line.split_ascii_whitespace().next().unwrap_or_default().parse()?)
    }

    pub(crate) fn reloads(&self) -> Result<u32> {
        let answer = self.processes()?;
        let line = answer.lines().find(|line| line.contains("master")).context("no master")?;
        Ok(line.split_ascii_whitespace().nth(2).unwrap_or_default().parse()?)
    }

    fn check_seconds(&self) -> Result<f64> {
        let file = self.folder.path().join("haproxy.cfg");
        let mut best = Duration::MAX;
        for _ in 0..3 {
            let start = Instant::now();
            let status = Command::new(&self.program)
                .arg("-c")
                .arg("-f")
                .arg(&file)
                .stderr(Stdio::null())
                .stdout(Stdio::null())
                .status()?;
            best = best.min(start.elapsed());
            ensure!(status.success(), "HAProxy refuses the text");
        }
        Ok(best.as_secs_f64())
    }
}

/// The command, which is built beside this program.
fn setpoint() -> Result<PathBuf> {
    let this = std::env::current_exe().context("can't find this program")?;
    let setpoint = this.with_file_name("setpoint");
    ensure!(setpoint.exists(), "{} is not built; run `cargo xtask bench`", setpoint.display());
    Ok(setpoint)
}

fn text(folder: &Path, port: u16, backends: u32) -> Result<String> {
    let mut text = format!(
        "global\n  stats socket {}/run.sock mode 600 level admin\n  hard-stop-after 1s\n\ndefaults d\n  mode http\n  timeout connect 5s\n  timeout client 30s\n  timeout server 30s\n\nfrontend f from d\n  bind 127.0.0.1:{port}\n  default_backend b0\n\n",
        folder.display()
    );
    for backend in 0..backends {
        write!(text, "backend b{backend} from d\n  balance roundrobin\n")?;
        for server in 1..=4 {
            writeln!(text, "  server s{server} 127.0.0.1:9 weight 10")?;
        }
        text.push('\n');
    }
    Ok(text)
}

/// One connection that is kept.
struct Client {
    stream: BufReader<TcpStream>,
    credentials: String,
}

impl Client {
    fn ask(&mut self, method: &str, path: &str, body: Option<(&str, &[u8])>) -> Result<(u16, Vec<u8>)> {
        let (kind, bytes) = body.unwrap_or(("application/json", b""));
        let head = format!(
            "{method} /v3/services/haproxy/{path} HTTP/1.1\r\nhost: bench\r\nauthorization: Basic {}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            self.credentials,
            bytes.len()
        );
        let stream = self.stream.get_mut();
        stream.write_all(&[head.as_bytes(), bytes].concat())?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).context("no status")?.parse()?;
        let mut length = 0;
        loop {
            line.clear();
            self.stream.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status, body))
    }

    fn json(&mut self, method: &str, path: &str, body: Option<&Json>, wanted: u16) -> Result<Json> {
        let bytes = body.map(|body| body.to_string().into_bytes());
        let body = bytes.as_deref().map(|bytes| ("application/json", bytes));
        let (status, answer) = self.ask(method, path, body)?;
        // Where nothing reloads, it is done.
        if status != wanted && (status, wanted) != (200, 202) {
            bail!("{method} {path} was answered with {status}: {}", String::from_utf8_lossy(&answer));
        }
        Ok(if answer.is_empty() { Json::Null } else { serde_json::from_slice(&answer)? })
    }
}
