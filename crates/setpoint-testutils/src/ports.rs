//! Free TCP and UDP ports on the loopback interface, each leased to one part at a time on the whole machine.
//!
//! Asking the kernel for a free port and giving it back leaves a moment in which another test gets the same one.
//! A lease is a name that only one process at a time can hold (an abstract Unix socket, which leaves no file
//! behind), for a port outside of the range from which the kernel picks by itself. It lasts until it is dropped: a
//! part can be stopped and started again on its port.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{self, UnixListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that Linux hands out by itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port that nobody else uses while this lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lease: UnixListener,
}

impl Port {
    /// Leases a free port.
    pub fn lease() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let start = std::process::id().wrapping_mul(97);
        for _ in 0..COUNT {
            let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
            let offset = u16::try_from(start.wrapping_add(step) % u32::from(COUNT)).unwrap_or_default();
            let number = FIRST + offset;
            if let Some(lease) = hold(number)
                && is_free(number)
            {
                return Self { number, _lease: lease };
            }
        }
        panic!("no port is free between {FIRST} and {}", FIRST + COUNT);
    }

    /// The number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// The port on the loopback interface.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.number).into()
    }

    /// The base URL of an HTTP server on the port.
    pub fn http(&self) -> String {
        format!("http://{}", self.address())
    }
}

/// Takes hold of the name that stands for a port, unless another has.
fn hold(number: u16) -> Option<UnixListener> {
    let name = net::SocketAddr::from_abstract_name(format!("setpoint-port-{number}")).ok()?;
    UnixListener::bind_addr(&name).ok()
}

fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::UNSPECIFIED, number)).is_ok()
        && UdpSocket::bind((Ipv4Addr::UNSPECIFIED, number)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn leases_are_distinct_and_can_be_bound() {
        let ports: Vec<_> = (0..50).map(|_| Port::lease()).collect();
        let numbers: BTreeSet<_> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), ports.len());
        for port in &ports {
            TcpListener::bind(port.address()).unwrap();
        }
    }

    #[test]
    fn a_port_can_be_leased_again_only_when_its_lease_has_ended() {
        let port = Port::lease();
        let number = port.number();
        assert!(hold(number).is_none());
        drop(port);
        assert!(hold(number).is_some());
    }
}
