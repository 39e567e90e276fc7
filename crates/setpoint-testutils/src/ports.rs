//! Free TCP and UDP ports on the loopback interface, each leased to one part at a time on the whole machine.
//!
//! Asking the kernel for a free port and giving it back leaves a moment in which another test gets the same one.
//! A lease is a locked file instead, outside of the range from which the kernel picks ports by itself, and lasts
//! until it is dropped: a part can be stopped and started again on its port.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ports that Linux hands out by itself.
const FIRST: u16 = 20_000;
const COUNT: u16 = 12_000;

/// A port that nobody else uses while this lives.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Leases a free port.
    pub fn lease() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let folder = std::env::temp_dir().join("setpoint-ports");
        fs::create_dir_all(&folder).expect("a folder in the temporary directory can be made");
        let start = std::process::id().wrapping_mul(97);
        for _ in 0..COUNT {
            let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
            let offset = u16::try_from(start.wrapping_add(step) % u32::from(COUNT)).unwrap_or_default();
            let number = FIRST + offset;
            let Ok(lock) = File::create(folder.join(number.to_string())) else { continue };
            if lock.try_lock().is_ok() && is_free(number) {
                return Self { number, _lock: lock };
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
    fn a_leased_port_can_not_be_locked_by_another() {
        let port = Port::lease();
        let file = File::create(std::env::temp_dir().join("setpoint-ports").join(port.number().to_string()));
        assert!(file.unwrap().try_lock().is_err());
    }
}
