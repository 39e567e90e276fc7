//! What HAProxy accepts as an address: `host:port`, `:port`, a path, or something of a family such as `unix@/run/s`.

use std::net::IpAddr;
use std::str::FromStr;

use super::limits::Complaint;
use crate::model::Version;

/// A family of addresses.
struct Family {
    prefix: &'static str,
    /// The first version that knows it.
    since: Version,
    /// Whether its addresses have ports.
    has_port: bool,
}

const fn family(prefix: &'static str, since: Version, has_port: bool) -> Family {
    Family { prefix, since, has_port }
}

/// The families whose addresses have no port, or that not every version knows.
const FAMILIES: [Family; 12] = [
    family("unix@", Version::V2_6, false),
    family("uxst@", Version::V2_6, false),
    family("uxdg@", Version::V2_6, false),
    family("abns@", Version::V2_6, false),
    family("fd@", Version::V2_6, false),
    family("sockpair@", Version::V2_6, false),
    family("ring@", Version::V2_6, false),
    family("rhttp@", Version::V2_9, false),
    family("abnsz@", Version::V3_1, false),
    family("mptcp@", Version::V3_1, true),
    family("mptcp4@", Version::V3_1, true),
    family("mptcp6@", Version::V3_1, true),
];

/// How HAProxy reaches an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// By an IP address, or all of them.
    Ip,
    /// By a name that has to be resolved.
    Name,
    /// By a socket of this machine.
    Socket,
    /// By QUIC.
    Quic,
    /// By datagrams, a file descriptor, or otherwise.
    Otherwise,
}

/// Returns how HAProxy reaches an address that is given without its port.
pub(crate) fn reached(text: &str) -> Reached {
    let (family, host) = text.split_once('@').unwrap_or(("", text));
    match family {
        "" | "ipv4" | "ipv6" | "tcp" | "tcp4" | "tcp6" | "mptcp" | "mptcp4" | "mptcp6" => {
            let is_ip = IpAddr::from_str(host.trim_matches(['[', ']'])).is_ok();
            match host {
                host if host.starts_with('/') => Reached::Socket,
                "" | "*" => Reached::Ip,
                _ if is_ip => Reached::Ip,
                _ => Reached::Name,
            }
        }
        "unix" | "uxst" | "abns" | "abnsz" => Reached::Socket,
        "quic" | "quic4" | "quic6" => Reached::Quic,
        _ => Reached::Otherwise,
    }
}

/// Returns whether an address is a path, or of a family whose addresses have no port.
pub(super) fn is_portless(text: &str) -> bool {
    let is_of = |family: &Family| !family.has_port && text.starts_with(family.prefix);
    text.starts_with('/') || FAMILIES.iter().any(is_of)
}

/// Says what is wrong with an address, if something is; `ported` says that HAProxy wants a port.
pub(super) fn complaint(text: &str, ported: bool, version: Version) -> Option<Complaint> {
    if text.contains('$') {
        return None;
    }
    let unknown = |family: &&Family| {
        family.since > version && text.split(',').any(|one| one.starts_with(family.prefix))
    };
    if let Some(Family { prefix, since, .. }) = FAMILIES.iter().find(unknown) {
        let why = format!("HAProxy {version} knows no addresses that begin with `{prefix}`; {since} does");
        return Some(Complaint { word: Some((*prefix).to_owned()), ..Complaint::new(why) });
    }
    if text.starts_with('/') || FAMILIES.iter().any(|family| !family.has_port && text.contains(family.prefix))
    {
        return None;
    }
    text.split(',').find_map(|address| one(address, ported))
}

fn one(text: &str, ported: bool) -> Option<Complaint> {
    let bare = text.rsplit_once('@').map_or(text, |(_, bare)| bare);
    if bare.starts_with('/') {
        return None;
    }
    let wrong =
        |word: &str, why: String| Some(Complaint { word: Some(word.to_owned()), ..Complaint::new(why) });
    let (host, port) = split(bare);
    let Some(port) = port.filter(|port| !port.is_empty()) else {
        return (ported && !host.is_empty()).then(|| Complaint {
            word: Some(text.to_owned()),
            hint: Some(format!("write `{text}:` and a port")),
            ..Complaint::new(format!("the address `{text}` has no port"))
        });
    };
    // `+80` and `-80` are offsets, `80-90` is a range.
    let digits = port.strip_prefix(['+', '-']).unwrap_or(port);
    let (first, last) = digits.split_once('-').unwrap_or((digits, digits));
    for end in [first, last] {
        match end.parse::<u32>() {
            Ok(number) if number <= 65535 => {}
            Ok(number) => {
                return wrong(end, format!("a port can't be {number}: HAProxy wants from 0 to 65535"));
            }
            Err(_) => return wrong(port, format!("`{port}` is no port")),
        }
    }
    match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(first), Ok(last)) if last < first => {
            wrong(port, format!("a range of ports can't go from {first} to {last}"))
        }
        _ => None,
    }
}

/// Splits an address into host and port: the port follows the last colon, unless all of it is an IPv6 address.
fn split(text: &str) -> (&str, Option<&str>) {
    if let Some((host, rest)) = text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        return (host, rest.strip_prefix(':'));
    }
    match text.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_judged_by_their_ports() {
        let fine = [
            "127.0.0.1:80",
            ":80",
            "*:8080",
            "::1:80",
            "[::1]:80",
            "a:80-90",
            "/run/s",
            "unix@/run/s",
            "h:+1",
        ];
        for text in fine {
            assert_eq!(complaint(text, true, Version::V2_6), None, "{text}");
        }
        for text in ["127.0.0.1", "127.0.0.1:", "a:b", "a:70000", "a:9-8", "127.0.0.1:80,10.0.0.1"] {
            assert!(complaint(text, true, Version::V3_4).is_some(), "{text}");
        }
        assert_eq!(complaint("host", false, Version::V3_4), None);
    }

    #[test]
    fn a_family_is_known_from_a_version_on() {
        for (text, before, since) in [
            ("rhttp@b/s", Version::V2_6, Version::V3_0),
            ("abnsz@name", Version::V3_0, Version::V3_2),
            ("mptcp@[::]:5000", Version::V3_0, Version::V3_2),
        ] {
            assert!(complaint(text, true, before).is_some(), "{text}");
            assert_eq!(complaint(text, true, since), None, "{text}");
        }
    }
}
