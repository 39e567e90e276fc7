//! Tells systemd how the service is doing, where it runs as one: the protocol of `sd_notify(3)`.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
#[cfg(feature = "host")]
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

#[cfg(feature = "dataplane")]
use tokio::task::JoinHandle;

/// A connection to systemd; does nothing where there is none.
#[derive(Debug)]
pub(crate) struct Systemd {
    socket: Option<Arc<Socket>>,
    /// How often systemd wants to hear that all is well.
    watchdog: Option<Duration>,
    /// The status that was sent last.
    status: String,
    ready: bool,
}

#[derive(Debug)]
struct Socket {
    socket: UnixDatagram,
    address: SocketAddr,
}

impl Systemd {
    /// The systemd that started this program, if one did.
    pub(crate) fn from_environment() -> Self {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let socket = variable("NOTIFY_SOCKET").and_then(|path| Socket::open(&path).ok());
        let number = |name: &str| variable(name)?.to_str()?.parse::<u64>().ok();
        let own = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&interval| own && interval > 0);
        Self {
            socket: socket.map(Arc::new),
            watchdog: watchdog.map(Duration::from_micros),
            status: String::new(),
            ready: false,
        }
    }

    /// Says that a pass has been made, and what came of it.
    pub(crate) fn passed(&mut self, status: &str) {
        let mut message = String::new();
        if !std::mem::replace(&mut self.ready, true) {
            message.push_str("READY=1\n");
        }
        self.notify(message, status);
    }

    /// Says what is going on.
    #[cfg(feature = "host")]
    pub(crate) fn status(&mut self, status: &str) {
        self.notify(String::new(), status);
    }

    /// Says that the service ends.
    pub(crate) fn stopping(&mut self) {
        self.notify("STOPPING=1\n".to_owned(), "stopping");
    }

    fn notify(&mut self, mut message: String, status: &str) {
        if status == self.status && message.is_empty() {
            return;
        }
        status.clone_into(&mut self.status);
        // A status is one line.
        message.push_str("STATUS=");
        message.push_str(&status.replace('\n', "; "));
        if let Some(socket) = &self.socket {
            socket.send(&message);
        }
    }

    /// Says that all is well for as long as the returned value lives, twice as often as is asked for. A program that
    /// hangs does not say it.
    #[cfg(feature = "dataplane")]
    pub(crate) fn keep_alive(&self) -> Option<KeepAlive> {
        let (socket, interval) = (Arc::clone(self.socket.as_ref()?), self.watchdog? / 2);
        Some(KeepAlive(tokio::spawn(async move {
            loop {
                socket.send("WATCHDOG=1");
                tokio::time::sleep(interval).await;
            }
        })))
    }

    /// Says that all is well for as long as the returned value lives, twice as often as is asked for, from a thread of its own:
    /// a program may be busy with a large file for longer than systemd waits.
    #[cfg(feature = "host")]
    pub(crate) fn keep_alive_from_thread(&self) -> Option<KeepAliveThread> {
        let (socket, interval) = (Arc::clone(self.socket.as_ref()?), self.watchdog? / 2);
        let (held, let_go) = mpsc::channel();
        let answer = move || {
            loop {
                socket.send("WATCHDOG=1");
                if let_go.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(answer).ok()?;
        Some(KeepAliveThread { _held: held })
    }
}

/// A thread that says that all is well until this is dropped.
#[cfg(feature = "host")]
#[derive(Debug)]
pub(crate) struct KeepAliveThread {
    /// The thread sees that it is gone.
    _held: mpsc::Sender<()>,
}

/// Says that all is well until it is dropped.
#[cfg(feature = "dataplane")]
#[derive(Debug)]
pub(crate) struct KeepAlive(JoinHandle<()>);

#[cfg(feature = "dataplane")]
impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Socket {
    /// A path, or a name in the abstract namespace after an `@`.
    fn open(path: &OsStr) -> io::Result<Self> {
        let address = match path.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(path)?,
        };
        let socket = UnixDatagram::unbound()?;
        // Nothing waits for systemd.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, address })
    }

    fn send(&self, message: &str) {
        // The service works as well where nobody listens.
        let _ = self.socket.send_to_addr(message.as_bytes(), &self.address);
    }
}
