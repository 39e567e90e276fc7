//! The file `/etc/hosts`, and the names of this host that need no file.

use std::net::IpAddr;

/// The addresses that a hosts file lists for a name, in its order.
pub(super) fn addresses(file: &[u8], name: &str) -> Vec<IpAddr> {
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
pub(super) fn is_localhost(name: &str) -> bool {
    let name = without_root(name).to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn without_root(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}
