//! A small HTTP backend that says who it is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::ports::Port;

/// Answers every request with `200` and its own name, until it is dropped.
#[derive(Debug)]
pub struct Backend {
    name: String,
    port: Port,
    requests: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Backend {
    /// Starts a backend of that name.
    pub async fn start(name: &str) -> Self {
        Self::start_as(200, name, "text/plain").await
    }

    /// Starts a backend that answers every request with an HTTP error.
    pub async fn start_refusing(status: u16) -> Self {
        Self::start_as(status, "refused", "text/plain").await
    }

    /// Starts a backend that answers with a page.
    pub async fn start_html(page: &str) -> Self {
        Self::start_as(200, page, "text/html").await
    }

    async fn start_as(status: u16, name: &str, kind: &str) -> Self {
        let port = Port::lease();
        let listener = TcpListener::bind(port.address()).await.expect("a leased port can be bound");
        let requests = Arc::new(AtomicUsize::new(0));
        let head = format!(
            "HTTP/1.1 {status} Answer\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            name.len()
        );
        let (answer, counter) = (head + name, Arc::clone(&requests));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, answer.clone(), Arc::clone(&counter)));
                while connections.try_join_next().is_some() {}
            }
        });
        Self { name: name.to_owned(), port, requests, _tasks: tasks }
    }

    /// Its name, which is what it answers.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.port.address()
    }

    /// How many requests it has answered.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

/// Answers requests without bodies on one connection, one after the other.
async fn serve(mut stream: TcpStream, answer: String, requests: Arc<AtomicUsize>) {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(Ok(length @ 1..)) = timeout(Duration::from_mins(1), stream.read(&mut buffer)).await {
        head.extend_from_slice(buffer.get(..length).unwrap_or_default());
        while let Some(end) = head.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            head.drain(..end + 4);
            requests.fetch_add(1, Ordering::Relaxed);
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
        if head.len() > 64 * 1024 {
            return;
        }
    }
}
