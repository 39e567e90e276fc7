//! A TCP proxy in front of a part, for networks that misbehave.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::ports::Port;

/// Passes connections on to a part, and does to them what it is told.
#[derive(Debug)]
pub struct Proxy {
    port: Port,
    faults: watch::Sender<Faults>,
    connections: Arc<AtomicU64>,
    swallowed: Arc<AtomicU64>,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

/// What is done to connections.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    cut: bool,
    delay: Duration,
    bytes_per_second: Option<u32>,
    corrupt: bool,
    /// On connections up to this one nothing passes any more.
    frozen: u64,
    /// Nothing passes on new connections either.
    freeze_new: bool,
    /// After so many bytes of answers nothing passes on a connection.
    answers: Option<u64>,
}

/// Which way bytes go, and on which connection.
#[derive(Debug)]
struct Way {
    connection: u64,
    answers: bool,
    swallowed: Arc<AtomicU64>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    /// Starts a proxy in front of an address on this machine.
    pub async fn start(target: SocketAddr) -> Self {
        let port = Port::lease();
        let listener = TcpListener::bind(port.address()).await.expect("a leased port can be bound");
        let (faults, seen) = watch::channel(Faults::default());
        let counted = Arc::new(AtomicU64::new(0));
        let number_of = Arc::clone(&counted);
        let swallowed = Arc::new(AtomicU64::new(0));
        let lost = Arc::clone(&swallowed);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&requests);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let number = number_of.fetch_add(1, Ordering::Relaxed) + 1;
                let (lost, asked) = (Arc::clone(&lost), Arc::clone(&asked));
                let way = move |answers| Way {
                    connection: number,
                    answers,
                    swallowed: Arc::clone(&lost),
                    requests: Arc::clone(&asked),
                };
                connections.spawn(connect(stream, target, way, seen.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { port, faults, connections: counted, swallowed, requests, _tasks: tasks }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// Ends all connections, and every new one at once.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.cut = true);
    }

    /// Holds everything that passes back for so long, in each direction.
    pub fn delay(&self, delay: Duration) {
        self.faults.send_modify(|faults| faults.delay = delay);
    }

    /// Lets so many bytes pass in a second, in each direction of each connection.
    pub fn limit(&self, bytes_per_second: u32) {
        self.faults.send_modify(|faults| faults.bytes_per_second = Some(bytes_per_second.max(1)));
    }

    /// Lets nothing pass any more on the connections that there are, and leaves them open: the other end is gone without a
    /// word. New connections work.
    pub fn freeze(&self) {
        let last = self.connections.load(Ordering::Relaxed);
        self.faults.send_modify(|faults| (faults.frozen, faults.freeze_new) = (last, false));
    }

    /// Accepts new connections on which nothing ever passes, until [`freeze`](Self::freeze) or [`heal`](Self::heal).
    pub fn freeze_new(&self) {
        self.faults.send_modify(|faults| faults.freeze_new = true);
    }

    /// Lets so many bytes of answers pass on each connection, and nothing after that.
    pub fn freeze_answers_after(&self, bytes: u64) {
        self.faults.send_modify(|faults| faults.answers = Some(bytes));
    }

    /// Returns how often something was lost on a frozen connection.
    pub fn swallowed(&self) -> u64 {
        self.swallowed.load(Ordering::Relaxed)
    }

    /// Returns how many connections there were.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns what was asked so far, where it is HTTP in clear text: the method and the path of each request.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes bytes of everything that passes.
    pub fn corrupt(&self) {
        self.faults.send_modify(|faults| faults.corrupt = true);
    }

    /// Passes everything on as it is again; connections that were frozen stay so.
    pub fn heal(&self) {
        self.faults.send_modify(|faults| *faults = Faults { frozen: faults.frozen, ..Faults::default() });
    }
}

async fn connect(
    client: TcpStream,
    target: SocketAddr,
    way: impl Fn(bool) -> Way,
    mut faults: watch::Receiver<Faults>,
) {
    if faults.borrow_and_update().cut {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let (there, back) = (faults.clone(), faults.clone());
    tokio::select! {
        _ = faults.wait_for(|faults| faults.cut) => {}
        () = async { tokio::join!(pass(from_client, to_server, way(false), there), pass(from_server, to_client, way(true), back)); } => {}
    }
}

/// Passes bytes in one direction until its end.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    way: Way,
    faults: watch::Receiver<Faults>,
) {
    let mut buffer = vec![0; 16 * 1024];
    let (mut passed, mut frozen) = (0, false);
    loop {
        // In small pieces while the speed is limited, so that it is even.
        let most =
            faults.borrow().bytes_per_second.map_or(buffer.len(), |limit| (limit as usize / 20).max(1));
        let piece = most.min(buffer.len());
        let Some(room) = buffer.get_mut(..piece) else { return };
        let Ok(length @ 1..) = from.read(room).await else { break };
        let Some(bytes) = room.get_mut(..length) else { return };
        let now = *faults.borrow();
        frozen |= now.freeze_new
            || way.connection <= now.frozen
            || (way.answers && now.answers.is_some_and(|most| passed >= most));
        if frozen {
            way.swallowed.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        passed += length as u64;
        if let Some(request) = request(bytes).filter(|_| !way.answers) {
            way.requests.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        }
        if now.corrupt {
            bytes.iter_mut().step_by(7).for_each(|byte| *byte ^= 0x55);
        }
        sleep(now.delay).await;
        if let Some(limit) = now.bytes_per_second {
            sleep(Duration::from_secs_f64(
                f64::from(u32::try_from(length).unwrap_or(u32::MAX)) / f64::from(limit),
            ))
            .await;
        }
        if to.write_all(bytes).await.is_err() {
            break;
        }
    }
    if frozen {
        // Whatever becomes of one end, the other never hears of it.
        std::future::pending::<()>().await;
    }
    let _ = to.shutdown().await;
}

/// The method and the path of a request, if one begins here.
fn request(bytes: &[u8]) -> Option<String> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let line = std::str::from_utf8(bytes.get(..end)?).ok()?;
    line.strip_suffix(" HTTP/1.1").map(str::to_owned)
}
