//! The file `/etc/hosts`, and the names of this host that need no file.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

/// The file that lists names and their addresses.
const HOSTS: &str = "/etc/hosts";

/// Looks up the addresses of a name that this host knows without asking a name server: an address, a name in `/etc/hosts`,
/// or `localhost`. None if it does not know the name.
///
/// ```
/// let addresses = setpoint_names::known_here("localhost")?;
/// assert!(!addresses.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn known_here(name: &str) -> io::Result<Vec<IpAddr>> {
    known_by(Path::new(HOSTS), name)
}

fn known_by(hosts: &Path, name: &str) -> io::Result<Vec<IpAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    match std::fs::read(hosts) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        file => Ok(addresses(&file.unwrap_or_default(), name)),
    }
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
            let addresses = known_by(&hosts, name).unwrap();
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        };
        // Without the file, too.
        assert_eq!(known("localhost"), "127.0.0.1 ::1");
        assert_eq!(known("::1"), "::1");
        assert_eq!(known("db"), "");
        std::fs::write(&hosts, "192.0.2.7 db DB.test # ours\n127.0.0.9 localhost\n").unwrap();
        assert_eq!((known("Db"), known("db.test.")), ("192.0.2.7".to_owned(), "192.0.2.7".to_owned()));
        assert_eq!(known("localhost"), "127.0.0.9");
        assert_eq!(known("192.0.2.9"), "192.0.2.9");
        assert!(known_by(folder.path(), "db").is_err(), "a folder is no list");
    }
}
