//! The endpoints.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::Observed;

/// How long requests under way may take once the server is to end.
const SHUTDOWN: Duration = Duration::from_secs(1);

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
    /// Serving ended.
    #[error("can't serve the endpoints any more: {0}")]
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
    pub async fn run(self, cancel: CancellationToken) -> Result<(), ServeError> {
        let routes = Router::new()
            .route("/healthz", get(liveness))
            .route("/readyz", get(readiness))
            .route("/metrics", get(metrics))
            .route("/debug/state", get(state))
            .with_state(self.observed);
        let served =
            axum::serve(self.listener, routes).with_graceful_shutdown(cancel.clone().cancelled_owned());
        // A scrape that never ends must not hold the process up.
        let cut_off = async {
            cancel.cancelled().await;
            tokio::time::sleep(SHUTDOWN).await;
        };
        tokio::select! {
            served = served.into_future() => served.map_err(ServeError::Serve),
            () = cut_off => Ok(()),
        }
    }
}

async fn liveness(State(observed): State<Arc<dyn Observed>>) -> (StatusCode, String) {
    answer(observed.liveness().map(|()| "ok".to_owned()))
}

async fn readiness(State(observed): State<Arc<dyn Observed>>) -> (StatusCode, String) {
    answer(observed.readiness())
}

async fn metrics(State(observed): State<Arc<dyn Observed>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], observed.metrics())
}

async fn state(State(observed): State<Arc<dyn Observed>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], observed.state().to_string() + "\n")
}

fn answer(said: Result<String, String>) -> (StatusCode, String) {
    match said {
        Ok(text) => (StatusCode::OK, text + "\n"),
        Err(text) => (StatusCode::SERVICE_UNAVAILABLE, text + "\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

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
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
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
        cancel.cancel();
        running.await.unwrap().unwrap();
    }
}
