//! An API that answers what a test says, and notes what it is asked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// An answer: the status, headers a line each, and the body.
pub(crate) type Said = (u16, &'static str, String);

pub(crate) struct Fake {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

/// What an API of a version says of itself, and of a HAProxy.
pub(crate) fn hello(version: &str, call: &str) -> Option<Said> {
    if call.starts_with("GET /v3/info") {
        return Some((200, "", format!("{{\"api\":{{\"version\":\"{version}\"}},\"system\":{{}}}}")));
    }
    call.starts_with("GET /v3/services/haproxy/runtime/info")
        .then(|| (200, "", "{\"info\":{\"pid\":7,\"uptime\":9,\"version\":\"3.2.4\"}}".to_owned()))
}

impl Fake {
    pub(crate) async fn start(answer: impl FnMut(&str) -> Said + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (noted, answer) = (Arc::clone(&asked), Arc::new(Mutex::new(answer)));
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counted.fetch_add(1, Ordering::Relaxed);
                let (noted, answer) = (Arc::clone(&noted), Arc::clone(&answer));
                tokio::spawn(async move {
                    let _ = serve(stream, |asked| {
                        noted.lock().unwrap().push(asked.to_owned());
                        (answer.lock().unwrap())(asked)
                    })
                    .await;
                });
            }
        });
        Self { url, asked, connections, task }
    }

    /// How many connections were made so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The calls that were made so far: the method, and the path with what is behind it.
    pub(crate) fn calls(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, mut answer: impl FnMut(&str) -> Said) -> std::io::Result<()> {
    let mut held = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            if stream.read_buf(&mut held).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&held[..end]).into_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
        });
        let length = length.unwrap_or(0);
        while held.len() < end + length {
            if stream.read_buf(&mut held).await? == 0 {
                return Ok(());
            }
        }
        let mut first = head.lines().next().unwrap_or_default().split(' ');
        let call = format!("{} {}", first.next().unwrap_or_default(), first.next().unwrap_or_default());
        held.drain(..end + length);
        let (status, headers, body) = answer(&call);
        let headers = headers.lines().fold(String::new(), |text, header| format!("{text}{header}\r\n"));
        let length =
            if status == 204 { String::new() } else { format!("content-length: {}\r\n", body.len()) };
        let said = format!("HTTP/1.1 {status} Said\r\n{headers}{length}\r\n{body}");
        stream.write_all(said.as_bytes()).await?;
    }
}
