//! The client of Kubernetes, whose names are resolved by [`names`](crate::names).
//!
//! It is the client that `kube` makes of a configuration, with another resolver below: `kube` has no setting for that, so
//! its layers are put together here in its order.

use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use kube::client::retry::RetryPolicy;
use kube::client::{Body, ClientBuilder, ConfigExt as _};
use kube::{Client, Config};
use tower::retry::RetryLayer;
use tower::{BoxError, ServiceBuilder};

use crate::names::Resolver;

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
