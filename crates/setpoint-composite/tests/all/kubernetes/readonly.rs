//! A Consul that answers, and denies every write: what a token without the right to write sees.

use std::net::SocketAddr;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use tokio::net::TcpListener;

pub(crate) struct ReadOnly {
    address: SocketAddr,
}

impl ReadOnly {
    /// Serves in front of a Consul for as long as the test's runtime lives.
    pub(crate) async fn start(consul: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let routes = Router::new().fallback(pass).with_state(consul);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { address }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn pass(State(consul): State<String>, request: Request) -> Response {
    if request.method() != Method::GET {
        let denied = Body::from("Permission denied");
        return Response::builder().status(StatusCode::FORBIDDEN).body(denied).unwrap();
    }
    let url = format!("{consul}{}", request.uri());
    let answer = reqwest::Client::builder().no_proxy().build().unwrap().get(url).send().await.unwrap();
    let mut response = Response::builder().status(answer.status().as_u16());
    for (name, value) in answer.headers() {
        if name.as_str().starts_with("x-consul") {
            response = response.header(name.as_str(), value.as_bytes());
        }
    }
    response.body(Body::from(answer.bytes().await.unwrap())).unwrap()
}
