//! The file `/etc/hosts`, and the names of this host that need no file.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::path::Path;

/// The file that lists names and their addresses.
const HOSTS: &str = "/etc/hosts";

/// Looks up where a port of a host is, if this host knows the name without asking a name server: an address, also one with
/// the link that it belongs to (`fe80::1%eth0`), a name in `/etc/hosts`, or `localhost`. None if it does not know the name.
///
/// ```
/// let addresses = setpoint_names::known_here("::1", 80)?;
/// assert_eq!(addresses, ["[::1]:80".parse()?]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn known_here(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    known_by(Path::new(HOSTS), name, port)
}

fn known_by(hosts: &Path, name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    if let Some((address, link)) = on_link(name) {
        return Ok(vec![SocketAddrV6::new(address, port, 0, index(link)?).into()]);
    }
    let file = match std::fs::read(hosts) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        file => file.unwrap_or_default(),
    };
    Ok(addresses(&file, name).into_iter().map(|address| SocketAddr::new(address, port)).collect())
}

/// An IPv6 address and the link that it belongs to (RFC 4007).
fn on_link(name: &str) -> Option<(Ipv6Addr, &str)> {
    let (address, link) = name.split_once('%')?;
    Some((address.parse().ok()?, link))
}

/// The index of a link that is written as such, or by its name.
fn index(link: &str) -> io::Result<u32> {
    if let Ok(index) = link.parse() {
        return Ok(index);
    }
    if link.is_empty() || link.starts_with('.') || link.contains('/') {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("`{link}` is no name of a network interface"),
        ));
    }
    let index = std::fs::read_to_string(Path::new("/sys/class/net").join(link).join("ifindex"))
        .map_err(|error| io::Error::new(error.kind(), format!("no network interface `{link}`: {error}")))?;
    index.trim().parse().map_err(io::Error::other)
}

/// The addresses of a name by a hosts file alone: those that it lists, in its order, or else those of `localhost`.
pub(super) fn addresses(file: &[u8], name: &str) -> Vec<IpAddr> {
    let listed = listed(file, name);
    if listed.is_empty() && is_localhost(name) {
        return vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    }
    listed
}

/// The addresses that a hosts file lists for a name.
fn listed(file: &[u8], name: &str) -> Vec<IpAddr> {
    let name = without_root(name);
    let text = String::from_utf8_lossy(file);
    let listed = text.lines().filter_map(|line| {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let address: IpAddr = words.next()?.parse().ok()?;
        words.any(|word| without_root(word).eq_ignore_ascii_case(name)).then_some(address)
    });
    let mut found = Vec::new();
    for address in listed {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    found
}

/// Returns whether a name means this host wherever it is asked for: `localhost`, and all below it (RFC 6761).
fn is_localhost(name: &str) -> bool {
    let name = without_root(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_this_host_knows_is_an_address_a_listed_name_or_localhost() {
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("hosts");
        let known = |name: &str| {
            let addresses = known_by(&hosts, name, 1).unwrap();
            addresses.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>().join(" ")
        };
        // Without the file, too.
        assert_eq!(known("localhost"), "127.0.0.1 ::1");
        assert_eq!(known("::1"), "::1");
        assert_eq!(known("db"), "");
        std::fs::write(&hosts, "192.0.2.7 db DB.test # ours\n127.0.0.9 localhost\n").unwrap();
        assert_eq!((known("Db"), known("db.test.")), ("192.0.2.7".to_owned(), "192.0.2.7".to_owned()));
        assert_eq!(known("localhost"), "127.0.0.9");
        assert_eq!(known("192.0.2.9"), "192.0.2.9");
        assert!(known_by(folder.path(), "db", 1).is_err(), "a folder is no list");
    }

    #[test]
    fn an_address_of_one_link_is_reached_by_the_name_or_the_index_of_that_link() {
        let at = |name: &str| known_here(name, 80);
        let scope = |name: &str| match at(name).unwrap().as_slice() {
            [SocketAddr::V6(address)] => (address.ip().to_string(), address.scope_id()),
            other => panic!("{other:?}"),
        };
        assert_eq!(scope("fe80::1%7"), ("fe80::1".to_owned(), 7));
        // The loopback interface is there first in every network namespace.
        assert_eq!(scope("fe80::1%lo"), ("fe80::1".to_owned(), 1));
        let message = at("fe80::1%eth-none").unwrap_err().to_string();
        assert!(message.starts_with("no network interface `eth-none`: "), "{message}");
        for bad in ["fe80::1%", "fe80::1%../lo", "fe80::1%a/b"] {
            assert_eq!(at(bad).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{bad}");
        }
    }
}
