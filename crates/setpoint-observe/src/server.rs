//! The endpoints.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::Observed;

/// How long requests under way may take once the server is to end.
const SHUTDOWN: Duration = Duration::from_secs(1);
/// How long a request may take to come, and its answer to be taken.
const EXCHANGE: Duration = Duration::from_secs(10);
/// How long the head of a request may be, in bytes.
const HEAD: usize = 16 * 1024;
/// How many connections there may be; more of them wait.
const CONNECTIONS: usize = 32;
/// How long nothing is accepted after the system refused to.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// Why the endpoints are not served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address can't be used.
    #[error("can't listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// There is nothing to serve them on.
    #[error("can't serve the endpoints: {0}")]
    Serve(#[source] std::io::Error),
}

/// Serves `/healthz`, `/readyz`, `/metrics` and `/debug/state`.
pub struct Server {
    listener: TcpListener,
    observed: Arc<dyn Observed>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on an address.
    pub async fn bind(address: SocketAddr, observed: Arc<dyn Observed>) -> Result<Self, ServeError> {
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self { listener, observed })
    }

    /// Returns where it listens; a port that was left open is known here.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is cancelled.
    pub async fn run(self, cancel: CancellationToken) {
        let (permits, mut connections) = (Arc::new(Semaphore::new(CONNECTIONS)), JoinSet::new());
        let accept = async || {
            // Nobody closes it.
            let permit = Arc::clone(&permits).acquire_owned().await.ok();
            (self.listener.accept().await, permit)
        };
        while let Some((accepted, permit)) = cancel.run_until_cancelled(accept()).await {
            while connections.try_join_next().is_some() {}
            match accepted {
                Ok((stream, _)) => {
                    let observed = Arc::clone(&self.observed);
                    connections.spawn(async move {
                        serve(stream, observed).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the endpoints could not be accepted");
                    sleep(ACCEPT_AGAIN).await;
                }
            }
        }
        // A scrape that never ends must not hold the process up.
        let _ = timeout(SHUTDOWN, async { while connections.join_next().await.is_some() {} }).await;
    }
}

/// An answer: its status, what kind of text it is, and the text.
type Answer = (&'static str, &'static str, String);

const TEXT: &str = "text/plain; charset=utf-8";

/// Answers the one request of a connection. More requests need new connections: probes and scrapes are rare, and that keeps every
/// connection within its time.
async fn serve(mut stream: TcpStream, observed: Arc<dyn Observed>) {
    // An error on the way concerns the client alone.
    let _ = timeout(EXCHANGE, async {
        let mut head = Vec::new();
        while !head.windows(4).any(|end| end == b"\r\n\r\n") {
            if head.len() > HEAD || stream.read_buf(&mut head).await? == 0 {
                return Ok(());
            }
        }
        let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (status, kind, text) = answer(&*observed, method, target.split('?').next().unwrap_or_default());
        let length = text.len();
        let mut response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        if method != "HEAD" {
            response.push_str(&text);
        }
        stream.write_all(response.as_bytes()).await?;
        stream.shutdown().await
    })
    .await;
}

fn answer(observed: &dyn Observed, method: &str, path: &str) -> Answer {
    if !matches!(method, "GET" | "HEAD") {
        return ("405 Method Not Allowed", TEXT, "it can only be read\n".to_owned());
    }
    let probe = |found: Result<String, String>| match found {
        Ok(text) => ("200 OK", TEXT, text + "\n"),
        Err(text) => ("503 Service Unavailable", TEXT, text + "\n"),
    };
    match path {
        "/healthz" => probe(observed.liveness().map(|()| "ok".to_owned())),
        "/readyz" => probe(observed.readiness()),
        "/metrics" => {
            ("200 OK", "application/openmetrics-text; version=1.0.0; charset=utf-8", observed.metrics())
        }
        "/debug/state" => ("200 OK", "application/json", observed.state().to_string() + "\n"),
        _ => {
            let text = "there is /healthz, /readyz, /metrics and /debug/state\n";
            ("404 Not Found", TEXT, text.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    struct Stuck;

    impl Observed for Stuck {
        fn liveness(&self) -> Result<(), String> {
            Err("the loop stands still".to_owned())
        }

        fn readiness(&self) -> Result<String, String> {
            Ok("standby".to_owned())
        }

        fn metrics(&self) -> String {
            "# EOF\n".to_owned()
        }

        fn state(&self) -> Value {
            json!({ "known": 1 })
        }
    }

    async fn get(address: SocketAddr, path: &str) -> String {
        ask(address, "GET", path).await
    }

    async fn ask(address: SocketAddr, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn what_a_command_shows_is_served_with_the_status_of_a_probe() {
        let server = Server::bind(([127, 0, 0, 1], 0).into(), Arc::new(Stuck)).await.unwrap();
        let (address, cancel) = (server.address().unwrap(), CancellationToken::new());
        let running = tokio::spawn(server.run(cancel.clone()));
        let health = get(address, "/healthz").await;
        assert!(
            health.starts_with("HTTP/1.1 503") && health.ends_with("the loop stands still\n"),
            "{health}"
        );
        let ready = get(address, "/readyz").await;
        assert!(ready.starts_with("HTTP/1.1 200") && ready.ends_with("standby\n"), "{ready}");
        assert!(get(address, "/metrics").await.contains("application/openmetrics-text"));
        assert!(get(address, "/debug/state").await.ends_with("{\"known\":1}\n"));
        assert!(get(address, "/other").await.starts_with("HTTP/1.1 404"));
        assert!(get(address, "/healthz?verbose").await.starts_with("HTTP/1.1 503"));
        assert!(ask(address, "POST", "/metrics").await.starts_with("HTTP/1.1 405"));
        assert!(ask(address, "HEAD", "/metrics").await.ends_with("\r\n\r\n"));
        // One that asks for nothing holds nobody up.
        let _idle = TcpStream::connect(address).await.unwrap();
        cancel.cancel();
        tokio::time::timeout(SHUTDOWN * 5, running).await.expect("it ends").unwrap();
    }
}
