//! Asks name servers for what this host does not know by itself, as HTTP clients want to be answered.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use hickory_resolver::TokioResolver;
use hickory_resolver::config::{LookupIpStrategy, ResolveHosts};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::parse_resolv_conf;

use crate::hosts;

/// The name server that is asked where no file names one, as `resolv.conf(5)` has it.
const DEFAULT_SERVER: &[u8] = b"\nnameserver 127.0.0.1\n";

/// Why a name has no addresses. What led to it is its source, and not in its text.
#[derive(Debug, thiserror::Error)]
pub enum NameError {
    /// A file can't be read.
    #[error("can't read {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file with the name servers can't be used.
    #[error("can't use {}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// Why.
        source: NetError,
    },
    /// The name servers say that there is no such name, or that it has no addresses.
    #[error("no name server knows {0}")]
    Unknown(String),
    /// No name server answered as it should.
    #[error("can't resolve {name}")]
    Lookup {
        /// The name.
        name: String,
        /// Why.
        source: NetError,
    },
}

/// Resolves names of hosts; a clone shares what it has read.
#[derive(Clone)]
pub struct Resolver(Arc<Shared>);

struct Shared {
    hosts: PathBuf,
    servers: PathBuf,
    /// Where name servers listen, unless it is the usual port.
    port: Option<u16>,
    /// What asks the name servers, and the text of the file that it was made from.
    client: Mutex<Option<(Vec<u8>, TokioResolver)>>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { hosts, servers, .. } = &*self.0;
        f.debug_struct("Resolver").field("hosts", hosts).field("servers", servers).finish_non_exhaustive()
    }
}

impl Default for Resolver {
    /// Resolves names by the files of the system.
    fn default() -> Self {
        Self::with_files("/etc/hosts", "/etc/resolv.conf", None)
    }
}

impl Resolver {
    fn with_files(hosts: impl Into<PathBuf>, servers: impl Into<PathBuf>, port: Option<u16>) -> Self {
        let (hosts, servers) = (hosts.into(), servers.into());
        Self(Arc::new(Shared { hosts, servers, port, client: Mutex::new(None) }))
    }

    /// Looks up the addresses of a name, in the order in which they are to be tried.
    pub async fn lookup(&self, name: &str) -> Result<Vec<IpAddr>, NameError> {
        let known = hosts::addresses(&read(&self.0.hosts).await?, name);
        if !known.is_empty() {
            return Ok(known);
        }
        let client = self.client(read(&self.0.servers).await?)?;
        let failed = |source: NetError| {
            let name = name.to_owned();
            if source.is_no_records_found() {
                NameError::Unknown(name)
            } else {
                NameError::Lookup { name, source }
            }
        };
        Ok(client.lookup_ip(name).await.map_err(failed)?.iter().collect())
    }

    /// What asks the name servers that `text` names.
    fn client(&self, text: Vec<u8>) -> Result<TokioResolver, NameError> {
        let mut kept = self.0.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((from, client)) = &*kept
            && *from == text
        {
            return Ok(client.clone());
        }
        let failed = |source| NameError::Configuration { path: self.0.servers.clone(), source };
        let client = self.make(&text).map_err(failed)?;
        *kept = Some((text, client.clone()));
        Ok(client)
    }

    fn make(&self, text: &[u8]) -> Result<TokioResolver, NetError> {
        let (config, mut options) = if names_a_server(text) {
            parse_resolv_conf(text)?
        } else {
            parse_resolv_conf([text, DEFAULT_SERVER].concat())?
        };
        options.use_hosts_file = ResolveHosts::Never;
        options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
        options.cache_size = 0;
        let (domain, search, mut servers) = config.into_parts();
        if let Some(port) = self.0.port {
            servers.iter_mut().flat_map(|server| &mut server.connections).for_each(|at| at.port = port);
        }
        let config = hickory_resolver::config::ResolverConfig::from_parts(domain, search, servers);
        TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            .with_options(options)
            .build()
    }

    /// The addresses as connectors take them: with a port of 0, which stands for that of the URL.
    async fn sockets(self, name: String) -> Result<std::vec::IntoIter<SocketAddr>, NameError> {
        let addresses = self.lookup(&name).await?;
        let sockets: Vec<_> = addresses.into_iter().map(|address| SocketAddr::new(address, 0)).collect();
        Ok(sockets.into_iter())
    }
}

/// The bytes of a file; none where there is no file.
async fn read(path: &Path) -> Result<Vec<u8>, NameError> {
    match tokio::fs::read(path).await {
        Ok(bytes) => Ok(bytes),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(NameError::File { path: path.to_owned(), source }),
    }
}

fn names_a_server(text: &[u8]) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| line.trim_ascii_start().starts_with(b"nameserver"))
}

/// As the connector of `kube` asks.
impl tower::Service<hyper_util::client::legacy::connect::dns::Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = NameError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: hyper_util::client::legacy::connect::dns::Name) -> Self::Future {
        Box::pin(self.clone().sockets(name.as_str().to_owned()))
    }
}

/// As `reqwest` asks.
impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let resolver = self.clone();
        Box::pin(async move {
            let sockets = resolver.sockets(name.as_str().to_owned()).await?;
            Ok(Box::new(sockets) as reqwest::dns::Addrs)
        })
    }
}

#[cfg(test)]
mod tests;
