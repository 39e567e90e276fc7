//! Servers that say their name, and clients that ask for it all the time.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How many clients ask at once.
const CLIENTS: usize = 4;
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How often it is looked whether there was enough traffic.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Nobody wants to heat the machine.
const PAUSE: Duration = Duration::from_millis(1);

/// Starts a server that answers every request with its name.
pub(super) async fn serve(name: &'static str) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let length = name.len();
                let head =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{name}");
                let _ = stream.write_all(head.as_bytes()).await;
            });
        }
    });
    Ok(address)
}

/// What clients saw.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Answers, by the server that gave them.
    pub(super) served: BTreeMap<String, u64>,
    /// Requests that were not answered.
    pub(super) failed: u64,
}

/// Clients that ask until they are dropped.
#[derive(Debug)]
pub(super) struct Traffic {
    seen: Arc<Mutex<Seen>>,
    clients: Vec<tokio::task::JoinHandle<()>>,
}

impl Traffic {
    /// Asks at an address.
    pub(super) fn start(address: SocketAddr) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let client = |seen: Arc<Mutex<Seen>>| async move {
            loop {
                let answer = timeout(ANSWER_WITHIN, ask(address)).await;
                count(&seen, answer.ok().and_then(Result::ok));
                tokio::time::sleep(PAUSE).await;
            }
        };
        let clients = (0..CLIENTS).map(|_| tokio::spawn(client(Arc::clone(&seen)))).collect();
        Self { seen, clients }
    }

    /// Waits until so many requests have ended since the last time.
    pub(super) async fn at_least(&self, requests: u64) {
        let ended = || {
            let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.served.values().sum::<u64>() + seen.failed
        };
        while ended() < requests {
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// What was seen since the last time.
    pub(super) fn take(&self) -> Seen {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.clients.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

fn count(seen: &Mutex<Seen>, answer: Option<String>) {
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    match answer {
        Some(name) => *seen.served.entry(name).or_default() += 1,
        None => seen.failed += 1,
    }
}

/// Asks once, and returns who answered.
async fn ask(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET / HTTP/1.1\r\nhost: demo\r\nconnection: close\r\n\r\n").await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    match answer.split_once("\r\n\r\n") {
        Some((head, name)) if head.starts_with("HTTP/1.1 200 ") => Ok(name.to_owned()),
        _ => Err(io::Error::other(answer)),
    }
}
