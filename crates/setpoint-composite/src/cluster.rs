//! The client of Kubernetes, whose names are resolved by [`setpoint_names`].
//!
//! It is the client that `kube` makes of a configuration, with another resolver below: `kube` has no setting for that, so
//! its layers are put together here in its order.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use setpoint_names::Resolver;
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

/// Makes a client of a configuration; it connects when it is first used.
pub fn client(config: &Config) -> Result<Client, kube::Error> {
    if let Some(proxy) = &config.proxy_url {
        // As `kube` answers without its features for proxies.
        let (proxy_url, protocol_feature) = (Box::new(proxy.clone()), "kube/http-proxy");
        return Err(kube::Error::ProxyProtocolDisabled { proxy_url, protocol_feature });
    }
    let mut plain = HttpConnector::new_with_resolver(Resolver::default());
    plain.enforce_http(false);
    let mut connector = TimeoutConnector::new(config.rustls_https_connector_with_connector(plain)?);
    connector.set_connect_timeout(config.connect_timeout);
    connector.set_read_timeout(config.read_timeout);
    connector.set_write_timeout(config.write_timeout);
    connector.set_reset_reader_on_write(config.reset_reader_on_write);
    let client = hyper_util::client::legacy::Builder::new(TokioExecutor::new()).build::<_, Body>(connector);

    let retries = config.default_retry.then(|| RetryLayer::new(RetryPolicy::server_retry()));
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(retries)
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
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

    /// What an API server says of itself, where the right token is shown.
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
        let found = client(&config).unwrap().apiserver_version().await.unwrap();
        assert_eq!(found.minor, "34");
        config.auth_info.token = None;
        assert!(client(&config).unwrap().apiserver_version().await.is_err());
        server.abort();
    }

    #[tokio::test]
    async fn a_proxy_is_refused_as_kube_refuses_it() {
        let mut config = Config::new("https://localhost:6443".parse().unwrap());
        config.proxy_url = Some("http://proxy.test:3128".parse().unwrap());
        let error = client(&config).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("proxy.test"), "{error}");
    }
}
