//! When a process that was started is ready.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Invocation, RootPath, Wait, quoted};

/// What a process that was started must show, and within which time, before what comes after it may begin.
///
/// It is asked for when the process starts. One that runs counts as ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// What it must show.
    #[serde(flatten)]
    pub condition: Readiness,
    /// How long that may take.
    pub timeout: Wait,
}

/// What shows that a process is ready.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readiness {
    /// An address accepts connections.
    Port(Address),
    /// A file, or anything else, is at a path.
    File(RootPath),
    /// A command succeeds.
    Command(Invocation),
    /// A line that the process has written to its log since it was started contains a text.
    Log(String),
}

impl fmt::Display for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.condition {
            Readiness::Port(address) => write!(f, "port {address}")?,
            Readiness::File(path) => write!(f, "file {path}")?,
            Readiness::Command(run) => write!(f, "command {run}")?,
            Readiness::Log(text) => write!(f, "log {}", quoted(text))?,
        }
        write!(f, ", within {}", self.timeout)
    }
}

/// A host and a port as manifests write them: `8080` for one of this machine, or `host:8080`.
///
/// ```
/// let address: setpoint_host::Address = "8080".parse()?;
/// assert_eq!(address.to_string(), "127.0.0.1:8080");
/// # Ok::<(), setpoint_host::AddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    host: String,
    port: u16,
}

/// A text that is neither a port nor a host with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a port is a number from 1 to 65535, or one after a host, such as \"db:5432\"")]
pub struct AddressError;

impl Address {
    /// The host: a name or an IP address, without brackets.
    pub fn host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (host, port) = text.rsplit_once(':').unwrap_or(("127.0.0.1", text));
        let bracketed = host.starts_with('[') && host.ends_with(']');
        if host.is_empty() || host.contains(char::is_whitespace) || (host.contains(':') && !bracketed) {
            return Err(AddressError);
        }
        if !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(AddressError);
        }
        let port = port.parse().ok().filter(|&port| port != 0).ok_or(AddressError)?;
        Ok(Self { host: host.to_owned(), port })
    }
}

impl TryFrom<String> for Address {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_port_or_a_host_with_a_port() {
        for (text, host, port) in [
            ("1", "127.0.0.1", 1),
            ("db:5432", "db", 5432),
            ("[::1]:65535", "::1", 65535),
            ("0.0.0.0:80", "0.0.0.0", 80),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!((address.host(), address.port()), (host, port));
            assert_eq!(address.to_string().parse(), Ok(address));
        }
        for bad in ["", "0", "65536", "+80", "http", "db:", ":80", "::1:80", "a b:80", "db:http", "-1"] {
            assert_eq!(bad.parse::<Address>(), Err(AddressError), "{bad:?}");
        }
    }

    #[test]
    fn what_shows_readiness_is_kept_as_it_was() {
        let ready =
            Ready { condition: Readiness::Port("8080".parse().unwrap()), timeout: Wait::from_millis(5000) };
        let json = serde_json::to_string(&ready).unwrap();
        assert_eq!(json, r#"{"port":"127.0.0.1:8080","timeout":"5s"}"#);
        assert_eq!(serde_json::from_str::<Ready>(&json).unwrap(), ready);
        assert_eq!(ready.to_string(), "port 127.0.0.1:8080, within 5s");
    }
}
