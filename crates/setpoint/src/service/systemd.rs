//! Notifies systemd of the state of the service, where it runs as one: the protocol of `sd_notify(3)`.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tokio::task::JoinHandle;

/// A connection to systemd; does nothing where there is none.
#[derive(Debug)]
pub(crate) struct Systemd {
    socket: Option<Arc<Socket>>,
    /// How often systemd wants a sign of life.
    watchdog: Option<Duration>,
    /// The status that was sent last.
    status: String,
    is_ready: bool,
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
            is_ready: false,
        }
    }

    /// Notifies that the service does its work, and how that goes.
    pub(crate) fn ready(&mut self, status: &str) {
        let mut message = String::new();
        if !std::mem::replace(&mut self.is_ready, true) {
            message.push_str("READY=1\n");
        }
        self.notify(message, status);
    }

    /// Notifies of what is going on.
    #[cfg(any(feature = "host", feature = "composite"))]
    pub(crate) fn status(&mut self, status: &str) {
        self.notify(String::new(), status);
    }

    /// Notifies that the service ends.
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

    /// Gives signs of life for as long as the returned value lives and something goes on: a program that hangs gives none.
    ///
    /// What goes on is the runtime, or work that keeps its only thread busy, such as reading a large file, for longer than systemd
    /// waits: how much of that was done so far is asked for.
    pub(crate) fn keep_alive(&self, work_done: impl Fn() -> u64 + Send + 'static) -> Option<KeepAlive> {
        // Twice as often as systemd asks for, and the runtime shows twice as often that it goes on.
        let (socket, interval) = (Arc::clone(self.socket.as_ref()?), self.watchdog? / 2);
        let beats = Arc::new(AtomicU64::new(0));
        let (counted, (held, released)) = (Arc::clone(&beats), mpsc::channel());
        let answer = move || {
            let mut seen = None;
            loop {
                let now = (counted.load(Ordering::Relaxed), work_done());
                if seen.replace(now) != Some(now) {
                    socket.send("WATCHDOG=1");
                }
                if released.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("watchdog".to_owned()).spawn(answer).ok()?;
        let heart = tokio::spawn(async move {
            loop {
                beats.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(interval / 2).await;
            }
        });
        Some(KeepAlive { heart, _held: held })
    }
}

/// Gives signs of life until it is dropped.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    /// Counts for as long as the runtime goes on.
    heart: JoinHandle<()>,
    /// The thread that gives them sees that this is gone.
    _held: mpsc::Sender<()>,
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.heart.abort();
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
