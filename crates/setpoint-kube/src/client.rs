//! The client of Kubernetes, whose names are resolved by [`setpoint_names`].
//!
//! It is the client that `kube` makes of a configuration, with another resolver below: `kube` has no setting for that, so
//! its layers are put together here in its order.

use std::fmt;
use std::time::Duration;

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use setpoint_names::Resolver;
use tower::ServiceBuilder;
use tower::retry::RetryLayer;

use crate::limits::Limits;

/// How often a connection that is quiet is asked whether its other end is there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// A client whose connections are used again and again, and one that makes a connection for each request.
///
/// The second is for what must not fail because connections are broken that nobody knows to be so.
#[derive(Clone)]
pub struct Clients {
    /// Keeps connections for the next request.
    pub shared: Client,
    /// Keeps none.
    pub fresh: Client,
}

impl Clients {
    /// Makes both of a configuration; they connect when they are first used.
    pub fn new(config: &Config, limits: Limits) -> Result<Self, kube::Error> {
        Ok(Self { shared: client(config, limits)?, fresh: make(config, limits, Some(0))? })
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients").finish_non_exhaustive()
    }
}

impl From<Client> for Clients {
    /// Takes one client for both.
    fn from(client: Client) -> Self {
        Self { shared: client.clone(), fresh: client }
    }
}

/// Makes a client of a configuration; it connects when it is first used, and no request waits longer than the limits.
pub fn client(config: &Config, limits: Limits) -> Result<Client, kube::Error> {
    make(config, limits, None)
}

fn make(config: &Config, limits: Limits, idle: Option<usize>) -> Result<Client, kube::Error> {
    if let Some(proxy) = &config.proxy_url {
        // As `kube` answers without its features for proxies.
        let (proxy_url, protocol_feature) = (Box::new(proxy.clone()), "kube/http-proxy");
        return Err(kube::Error::ProxyProtocolDisabled { proxy_url, protocol_feature });
    }
    let mut plain = HttpConnector::new_with_resolver(Resolver::default());
    plain.enforce_http(false);
    plain.set_keepalive(Some(KEEPALIVE));
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(plain)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let mut builder = hyper_util::client::legacy::Builder::new(TokioExecutor::new());
    if let Some(idle) = idle {
        builder.pool_max_idle_per_host(idle);
    }
    let client = builder.build::<_, Body>(connector);

    let retries = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retries)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .layer(limits)
        .service(client);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).build())
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::HeaderMap;
    use axum::routing::get;
    use tokio::net::TcpListener;

    use super::*;

    /// The version of an API server that wants to see the right token.
    async fn version(headers: HeaderMap) -> Result<&'static str, axum::http::StatusCode> {
        let shown = headers.get("authorization").is_some_and(|value| value == "Bearer secret");
        let version = r#"{"major": "1", "minor": "34", "gitVersion": "v1.34.0", "gitCommit": "", "gitTreeState": "",
                          "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}"#;
        if shown { Ok(version) } else { Err(axum::http::StatusCode::UNAUTHORIZED) }
    }

    #[tokio::test]
    async fn a_client_finds_its_server_by_name_and_shows_its_token() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let router = Router::new().route("/version", get(version));
        let server = tokio::spawn(async move { axum::serve(listener, router).await });
        let mut config = Config::new(format!("http://localhost:{port}").parse().unwrap());
        config.auth_info.token = Some("secret".to_owned().into());
        let found = client(&config, Limits::default()).unwrap().apiserver_version().await.unwrap();
        assert_eq!(found.minor, "34");
        config.auth_info.token = None;
        assert!(client(&config, Limits::default()).unwrap().apiserver_version().await.is_err());
        server.abort();
    }

    #[tokio::test]
    async fn an_answer_that_never_comes_or_stops_on_its_way_is_given_up() {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};

        let limit = Duration::from_millis(200);
        for part in
            ["", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\nContent-Type: application/json\r\n\r\n{\"maj"]
        {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = tokio::spawn(async move {
                let mut held = Vec::new();
                while let Ok((mut stream, _)) = listener.accept().await {
                    let mut request = [0; 1024];
                    let _ = stream.read(&mut request).await;
                    stream.write_all(part.as_bytes()).await.unwrap();
                    held.push(stream);
                }
            });
            let mut config = Config::new(format!("http://localhost:{port}").parse().unwrap());
            config.default_retry = false;
            let client = client(&config, Limits { silence: limit, watch: limit }).unwrap();
            let started = tokio::time::Instant::now();
            let error = client.apiserver_version().await.unwrap_err();
            let mut causes =
                std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
            assert!(causes.any(|cause| cause.to_string().contains("silent")), "{error:?}");
            assert!(started.elapsed() < Duration::from_mins(5));
            server.abort();
        }
    }

    #[tokio::test]
    async fn a_proxy_is_refused_as_kube_refuses_it() {
        let mut config = Config::new("https://localhost:6443".parse().unwrap());
        config.proxy_url = Some("http://proxy.test:3128".parse().unwrap());
        let error = client(&config, Limits::default()).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("proxy.test"), "{error}");
    }
}
