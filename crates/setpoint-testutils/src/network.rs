//! Network namespaces joined by veth: several hosts on one machine.
//!
//! The names of namespaces hold the process that made them. The first namespace of a process sweeps up those whose
//! process is gone.

use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::guard::{Guard, Registration};
use crate::part::{self, Missing};

/// What the names of all namespaces begin with.
const PREFIX: &str = "setpoint-";
/// Where namespaces have their names.
const NAMES: &str = "/run/netns";

/// A host of its own: interfaces, routes, firewall. Removed when it is dropped.
#[derive(Debug)]
pub struct NetworkNamespace {
    name: String,
    tools: Tools,
    _registration: Registration,
}

#[derive(Debug, Clone)]
struct Tools {
    ip: PathBuf,
    nft: PathBuf,
    ping: PathBuf,
}

impl NetworkNamespace {
    /// Makes a host with nothing but a loopback interface. It takes root to do so.
    pub fn new() -> Result<Self, Missing> {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        static SWEPT: Once = Once::new();
        let tools = Tools {
            ip: part::program("iproute2", "ip")?,
            nft: part::program("nftables", "nft")?,
            ping: part::program("iputils-ping", "ping")?,
        };
        part::root("a network namespace")?;
        SWEPT.call_once(|| sweep(&tools.ip));
        let name = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let registration = Guard::get().namespace(&name);
        let made = run(Command::new(&tools.ip).args(["netns", "add", &name]));
        if !made.status.success() {
            return Err(Missing::new("a network namespace", String::from_utf8_lossy(&made.stderr).trim()));
        }
        let namespace = Self { name, tools, _registration: registration };
        namespace.ip(&["link", "set", "lo", "up"]);
        Ok(namespace)
    }

    /// Its name, as `ip netns` knows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Joins two hosts by a cable: an interface of the given name in each, with an address and up.
    pub fn join(
        &self,
        interface: &str,
        address: &str,
        other: &Self,
        other_interface: &str,
        other_address: &str,
    ) {
        must(Command::new(&self.tools.ip).args([
            "link",
            "add",
            interface,
            "netns",
            &self.name,
            "type",
            "veth",
            "peer",
            "name",
            other_interface,
            "netns",
            &other.name,
        ]));
        for (host, interface, address) in
            [(self, interface, address), (other, other_interface, other_address)]
        {
            host.ip(&["address", "add", address, "dev", interface]);
            host.ip(&["link", "set", interface, "up"]);
        }
    }

    /// Runs `ip` for this host and returns what it printed; panics if it fails.
    pub fn ip(&self, arguments: &[&str]) -> String {
        must(Command::new(&self.tools.ip).args(["-n", &self.name]).args(arguments))
    }

    /// Applies an nftables script on this host, in one transaction; panics if it is refused.
    pub fn nft(&self, script: &str) -> String {
        let mut child = self
            .command(&self.tools.nft)
            .args(["-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nft can be started");
        if let Some(mut input) = child.stdin.take() {
            input.write_all(script.as_bytes()).expect("nft reads its script");
        }
        let output = child.wait_with_output().expect("nft ends");
        assert!(output.status.success(), "nft: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Whether an answer to one ping comes back within a second.
    pub fn reaches(&self, address: IpAddr) -> bool {
        let output =
            run(self.command(&self.tools.ping).args(["-c", "1", "-W", "1"]).arg(address.to_string()));
        output.status.success()
    }

    /// A command that runs on this host.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(&self.tools.ip);
        command.args(["netns", "exec", &self.name]).arg(program);
        command
    }
}

impl Drop for NetworkNamespace {
    fn drop(&mut self) {
        run(Command::new(&self.tools.ip).args(["netns", "del", &self.name]));
    }
}

/// Removes the namespaces of processes that are gone.
fn sweep(ip: &Path) {
    for entry in std::fs::read_dir(NAMES).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            run(Command::new(ip).args(["netns", "del", &name]));
        }
    }
}

fn run(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?} can't be started: {error}"))
}

/// Runs a command that has to succeed and returns what it printed.
pub(crate) fn must(command: &mut Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
