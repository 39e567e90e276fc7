//! The endpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::vitals::Vitals;

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

/// Serves `/healthz`, `/readyz` and `/metrics`.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    vitals: Arc<Vitals>,
    metrics: Arc<Metrics>,
}

impl Server {
    /// Listens on an address.
    pub async fn bind(
        address: SocketAddr,
        vitals: Arc<Vitals>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, ServeError> {
        let listener =
            TcpListener::bind(address).await.map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self { listener, shared: Arc::new(Shared { vitals, metrics }) })
    }

    /// Where it listens; a port that was left open is known here.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves until it is cancelled.
    pub async fn run(self, cancel: CancellationToken) -> Result<(), ServeError> {
        let routes = Router::new()
            .route("/healthz", get(healthy))
            .route("/readyz", get(ready))
            .route("/metrics", get(metrics))
            .with_state(self.shared);
        let served =
            axum::serve(self.listener, routes).with_graceful_shutdown(cancel.clone().cancelled_owned());
        // A scrape that never ends must not hold the process up.
        tokio::select! {
            served = served.into_future() => served.map_err(ServeError::Serve),
            () = async { cancel.cancelled().await; tokio::time::sleep(std::time::Duration::from_secs(1)).await } => Ok(()),
        }
    }
}

async fn healthy(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    answer(shared.vitals.is_alive(), "ok\n", "no sign of life\n")
}

async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, String) {
    let role = format!("{:?}\n", shared.vitals.role()).to_lowercase();
    let status = if shared.vitals.is_ready() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, role)
}

async fn metrics(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], shared.metrics.text())
}

fn answer(holds: bool, yes: &'static str, no: &'static str) -> (StatusCode, &'static str) {
    if holds { (StatusCode::OK, yes) } else { (StatusCode::SERVICE_UNAVAILABLE, no) }
}
