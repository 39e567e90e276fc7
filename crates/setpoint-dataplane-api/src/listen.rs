//! Where the API is served: TCP, with or without TLS, and Unix sockets.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::time::timeout;

use crate::tls::{Tls, TlsError, TlsFiles};

/// How long a client may take to agree on TLS.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);

/// An address to serve on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Plain HTTP.
    Tcp(SocketAddr),
    /// HTTP over TLS.
    Tls(SocketAddr, TlsFiles),
    /// A Unix socket that only its owner and its group may use.
    Unix(PathBuf),
    /// A Unix socket that only its owner may use, who needs no password.
    Owner(PathBuf),
}

/// Why an address can't be served on.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// The address can't be used.
    #[error("can't listen on {address}: {source}")]
    Address {
        /// The address.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// The certificate can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Who is at the other end, as far as limits go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    /// An address; one network of 64 bits counts as one in version 6.
    Ip(IpAddr),
    /// Somebody on this machine.
    Local,
    /// Who serves, or the administrator of the machine: nobody else may open the socket.
    Owner,
}

impl Peer {
    fn of(address: IpAddr) -> Self {
        Self::Ip(match address.to_canonical() {
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64))),
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Local => f.write_str("local"),
            Self::Owner => f.write_str("owner"),
        }
    }
}

/// What is sent and received on.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send {}
impl<T: AsyncRead + AsyncWrite + Send> Stream for T {}
pub(crate) type BoxedStream = Pin<Box<dyn Stream>>;

/// An address that is listened on.
#[derive(Debug)]
pub struct Listener {
    socket: Socket,
    tls: Option<std::sync::Arc<Tls>>,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix { listener: UnixListener, path: PathBuf, peer: Peer },
}

/// Somebody who connected, and has not agreed on TLS yet.
pub(crate) struct Connection {
    stream: BoxedStream,
    tls: Option<std::sync::Arc<Tls>>,
    pub(crate) peer: Peer,
}

impl Listener {
    /// Listens on an address.
    pub async fn bind(address: Address) -> Result<Self, ListenError> {
        let failed = |shown: String| |source| ListenError::Address { address: shown, source };
        Ok(match address {
            Address::Tcp(address) => {
                let socket = TcpListener::bind(address).await.map_err(failed(address.to_string()))?;
                Self { socket: Socket::Tcp(socket), tls: None }
            }
            Address::Tls(address, files) => {
                let tls = Tls::load(files)?;
                let socket = TcpListener::bind(address).await.map_err(failed(address.to_string()))?;
                Self { socket: Socket::Tcp(socket), tls: Some(tls.into()) }
            }
            Address::Unix(path) => Self::unix(path, 0o660, Peer::Local)?,
            Address::Owner(path) => Self::unix(path, 0o600, Peer::Owner)?,
        })
    }

    fn unix(path: PathBuf, mode: u32, peer: Peer) -> Result<Self, ListenError> {
        let listener = bind_unix(&path, mode);
        let listener = listener
            .map_err(|source| ListenError::Address { address: path.display().to_string(), source })?;
        Ok(Self { socket: Socket::Unix { listener, path, peer }, tls: None })
    }

    /// Where the API is, as a client writes it; a port that was left open is known here.
    pub fn url(&self) -> String {
        match &self.socket {
            Socket::Tcp(socket) => {
                let scheme = if self.tls.is_some() { "https" } else { "http" };
                let address =
                    socket.local_addr().map_or_else(|_| String::new(), |address| address.to_string());
                format!("{scheme}://{address}/v3")
            }
            Socket::Unix { path, .. } => format!("unix:{}", path.display()),
        }
    }

    /// The address of a socket of TCP; a port that was left open is known here.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        match &self.socket {
            Socket::Tcp(socket) => socket.local_addr().ok(),
            Socket::Unix { .. } => None,
        }
    }

    pub(crate) async fn accept(&self) -> io::Result<Connection> {
        let (stream, peer): (BoxedStream, _) = match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, address) = socket.accept().await?;
                // Answers are small and wait for nothing.
                let _ = stream.set_nodelay(true);
                (Box::pin(stream), Peer::of(address.ip()))
            }
            Socket::Unix { listener, peer, .. } => (Box::pin(listener.accept().await?.0), *peer),
        };
        Ok(Connection { stream, tls: self.tls.clone(), peer })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Socket::Unix { path, .. } = &self.socket {
            // The next one replaces it if it stays.
            let _ = fs::remove_file(path);
        }
    }
}

impl Connection {
    /// Agrees on TLS, if it is asked for.
    pub(crate) async fn handshake(self) -> io::Result<BoxedStream> {
        let Some(tls) = self.tls else { return Ok(self.stream) };
        let agreed = timeout(HANDSHAKE_WITHIN, tls.acceptor().accept(self.stream)).await;
        Ok(Box::pin(agreed.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??))
    }
}

/// Listens on a Unix socket. One that nobody answers on is replaced; it appears with its mode.
fn bind_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    if let Ok(status) = fs::symlink_metadata(path) {
        if !status.file_type().is_socket() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something that is no socket"));
        }
        if std::os::unix::net::UnixStream::connect(path).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AddrInUse, "another program answers on it"));
        }
    }
    let mut draft = path.as_os_str().to_owned();
    draft.push(format!(".{}", std::process::id()));
    let draft = PathBuf::from(draft);
    let socket = UnixListener::bind(&draft)?;
    let placed =
        fs::set_permissions(&draft, fs::Permissions::from_mode(mode)).and_then(|()| fs::rename(&draft, path));
    if placed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    placed.map(|()| socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_version_6_is_one_peer() {
        let peer = |text: &str| Peer::of(text.parse().unwrap());
        assert_eq!(peer("2001:db8:0:1::1"), peer("2001:db8:0:1:ffff::2"));
        assert_ne!(peer("2001:db8:0:1::1"), peer("2001:db8:0:2::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
        assert_ne!(peer("192.0.2.1"), peer("192.0.2.2"));
    }

    #[tokio::test]
    async fn a_socket_is_replaced_only_if_nobody_answers_on_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("api.sock");
        let first = Listener::bind(Address::Unix(path.clone())).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        let second = Listener::bind(Address::Unix(path.clone())).await.unwrap_err().to_string();
        assert!(second.contains("another program answers on it"), "{second}");
        drop(first);
        // What a program that was killed leaves behind.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let third = Listener::bind(Address::Unix(path.clone())).await.unwrap();
        drop(third);
        assert!(!path.exists());
        fs::write(&path, "mine").unwrap();
        let file = Listener::bind(Address::Unix(path.clone())).await.unwrap_err().to_string();
        assert!(file.contains("no socket"), "{file}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
