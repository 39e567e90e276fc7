//! WireGuard in user space, for kernels that have none.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::guard::{Guard, Registration};
use crate::network::{NetworkNamespace, must};
use crate::part::{self, Missing};
use crate::process::Process;
use crate::workdir::Workdir;

/// Where the sockets are by which `wg` talks to its interfaces.
const SOCKETS: &str = "/var/run/wireguard";

/// A WireGuard interface in a network namespace. Removed when it is dropped.
#[derive(Debug)]
pub struct WireGuard {
    wg: PathBuf,
    interface: String,
    public_key: String,
    process: Process,
    _folder: Workdir,
    socket: PathBuf,
    _registration: Registration,
}

impl WireGuard {
    /// Makes an interface with an address and a port to listen on.
    pub async fn start(host: &NetworkNamespace, address: &str, port: u16) -> Result<Self, Missing> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let program = part::program("wireguard-go", "wireguard-go")?;
        let wg = part::program("wireguard-tools", "wg")?;
        if !Path::new("/dev/net/tun").exists() {
            return Err(Missing::new("a WireGuard interface", "there is no /dev/net/tun"));
        }
        // The sockets of all namespaces are in one folder: the name is unique on the machine.
        let interface = format!("sp{}x{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = Workdir::new("wireguard");
        let socket = Path::new(SOCKETS).join(format!("{interface}.sock"));
        let registration = Guard::get().folder(&socket);
        let private_key = must(Command::new(&wg).arg("genkey"));
        let key_file = folder.write("private-key", &private_key);
        let public_key =
            must(Command::new("/bin/sh").args(["-c", "\"$0\" pubkey < \"$1\""]).arg(&wg).arg(&key_file));

        let mut command = host.command(&program);
        command.args(["-f", &interface]);
        let process = Process::start("wireguard-go", &mut command, &folder.path().join("wireguard-go.log"));
        process.until("its socket listens", async || listens(&socket).then_some(())).await;
        must(
            Command::new(&wg)
                .args(["set", &interface, "listen-port", &port.to_string(), "private-key"])
                .arg(&key_file),
        );
        host.ip(&["address", "add", address, "dev", &interface]);
        host.ip(&["link", "set", &interface, "up"]);
        let public_key = public_key.trim().to_owned();
        Ok(Self { wg, interface, public_key, process, _folder: folder, socket, _registration: registration })
    }

    /// The name of the interface.
    pub fn interface(&self) -> &str {
        &self.interface
    }

    /// Its public key.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// The socket by which it is configured.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Makes another interface a peer: where it is, and which addresses are behind it.
    pub fn add_peer(&self, peer: &Self, endpoint: SocketAddr, allowed: &str) {
        let endpoint = endpoint.to_string();
        let key = peer.public_key();
        must(Command::new(&self.wg).args([
            "set",
            &self.interface,
            "peer",
            key,
            "endpoint",
            &endpoint,
            "allowed-ips",
            allowed,
        ]));
    }

    /// How many bytes came in from its peers.
    pub fn received(&self) -> u64 {
        let transfer = must(Command::new(&self.wg).args(["show", &self.interface, "transfer"]));
        transfer.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).sum()
    }
}

/// Returns whether somebody listens on a socket.
///
/// `wg` must not be asked this: it deletes a socket that refuses connections, and between its `bind` and its `listen` that is
/// the socket of a `wireguard-go` that is starting, which then ends.
fn listens(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok()
}

impl Drop for WireGuard {
    fn drop(&mut self) {
        self.process.stop();
        let _ = std::fs::remove_file(&self.socket);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_socket_that_refuses_connections_does_not_listen_and_stays_where_it_is() {
        let folder = Workdir::new("socket");
        let path = folder.path().join("interface.sock");
        assert!(!listens(&path));
        let listener = UnixListener::bind(&path).expect("it can be bound");
        assert!(listens(&path));
        drop(listener);
        assert!(!listens(&path));
        assert!(path.exists());
    }
}
