//! What HAProxy accepts as an address: `host:port`, `:port`, a path, or something of a family such as `unix@/run/s`.

use std::net::IpAddr;
use std::str::FromStr;

use super::limits::Complaint;
use crate::model::Version;

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
    /// By datagrams.
    Datagram,
    /// By a file descriptor, or otherwise.
    Otherwise,
}

/// A family of addresses: what stands before the `@` of one. What HAProxy knows of them is the same in every line, so that
/// they are listed here and not in rows.
struct Family {
    name: &'static str,
    /// The first version that knows it.
    since: Version,
    /// Whether its addresses have ports.
    has_port: bool,
    reached: Reached,
}

const fn family(name: &'static str, since: Version, has_port: bool, reached: Reached) -> Family {
    Family { name, since, has_port, reached }
}

const FAMILIES: [Family; 23] = [
    family("ipv4", Version::V2_6, true, Reached::Ip),
    family("ipv6", Version::V2_6, true, Reached::Ip),
    family("tcp", Version::V2_6, true, Reached::Ip),
    family("tcp4", Version::V2_6, true, Reached::Ip),
    family("tcp6", Version::V2_6, true, Reached::Ip),
    family("mptcp", Version::V3_1, true, Reached::Ip),
    family("mptcp4", Version::V3_1, true, Reached::Ip),
    family("mptcp6", Version::V3_1, true, Reached::Ip),
    family("udp", Version::V2_6, true, Reached::Datagram),
    family("udp4", Version::V2_6, true, Reached::Datagram),
    family("udp6", Version::V2_6, true, Reached::Datagram),
    family("quic", Version::V2_6, true, Reached::Quic),
    family("quic4", Version::V2_6, true, Reached::Quic),
    family("quic6", Version::V2_6, true, Reached::Quic),
    family("unix", Version::V2_6, false, Reached::Socket),
    family("uxst", Version::V2_6, false, Reached::Socket),
    family("uxdg", Version::V2_6, false, Reached::Datagram),
    family("abns", Version::V2_6, false, Reached::Socket),
    family("abnsz", Version::V3_1, false, Reached::Socket),
    family("fd", Version::V2_6, false, Reached::Otherwise),
    family("sockpair", Version::V2_6, false, Reached::Otherwise),
    family("ring", Version::V2_6, false, Reached::Otherwise),
    family("rhttp", Version::V2_9, false, Reached::Otherwise),
];

impl Family {
    /// Finds the family of an address, if it names one.
    fn of(address: &str) -> Option<&'static Self> {
        let (name, _) = address.split_once('@')?;
        FAMILIES.iter().find(|family| family.name == name)
    }
}

/// Returns how HAProxy reaches an address that is given without its port.
pub(crate) fn reached(text: &str) -> Reached {
    let (name, host) = text.split_once('@').unwrap_or(("", text));
    let by_family = match name {
        "" => Reached::Ip,
        _ => Family::of(text).map_or(Reached::Otherwise, |family| family.reached),
    };
    if by_family != Reached::Ip {
        return by_family;
    }
    let is_ip = IpAddr::from_str(host.trim_matches(['[', ']'])).is_ok();
    match host {
        host if host.starts_with('/') => Reached::Socket,
        "" | "*" => Reached::Ip,
        _ if is_ip => Reached::Ip,
        _ => Reached::Name,
    }
}

/// Returns whether two addresses without ports are spellings of the same one.
pub(crate) fn is_same(a: &str, b: &str) -> bool {
    let split = |text: &str| -> Option<(String, IpAddr)> {
        let (family, host) = text.split_at(text.find('@').map_or(0, |at| at + 1));
        Some((family.to_owned(), IpAddr::from_str(host.trim_matches(['[', ']'])).ok()?))
    };
    a == b || split(a).is_some_and(|a| Some(a) == split(b))
}

/// Returns whether an address is a path, or of a family whose addresses have no port.
pub(super) fn is_portless(text: &str) -> bool {
    text.starts_with('/') || Family::of(text).is_some_and(|family| !family.has_port)
}

/// Returns whether an address is one of IP that is no other's, without the port that it is reached at.
pub(crate) fn lacks_port(text: &str) -> bool {
    let bare = text.rsplit_once('@').map_or(text, |(_, bare)| bare);
    let (host, port) = if IpAddr::from_str(bare).is_ok() { (bare, None) } else { split(bare) };
    let is_ip = IpAddr::from_str(host).is_ok_and(|address| !address.is_unspecified());
    let has_port = port.is_some_and(|port| !port.starts_with(['+', '-']) && port.parse() != Ok(0_u16));
    is_ip && !has_port
}

/// What HAProxy accepts of addresses in a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Accepted {
    /// Whether it wants a port.
    pub(super) ported: bool,
    /// Whether it takes a range of ports.
    pub(super) ranged: bool,
}

/// Returns what is wrong with an address, if something is.
pub(super) fn complaint(text: &str, accepted: Accepted, version: Version) -> Option<Complaint> {
    // A variable stands in double quotes; elsewhere, its sign is a character as others are.
    if text.contains("${") || text.contains('"') {
        return None;
    }
    let families = text.split(',').filter_map(Family::of);
    if let Some(Family { name, since, .. }) = families.clone().find(|family| family.since > version) {
        let why = format!("HAProxy {version} knows no addresses that begin with `{name}@`; {since} does");
        return Some(Complaint { word: Some(format!("{name}@")), ..Complaint::new(why) });
    }
    if text.starts_with('/') || families.into_iter().any(|family| !family.has_port) {
        return None;
    }
    text.split(',').find_map(|address| one(address, accepted, version))
}

fn one(text: &str, Accepted { ported, ranged }: Accepted, version: Version) -> Option<Complaint> {
    let bare = text.rsplit_once('@').map_or(text, |(_, bare)| bare);
    if bare.starts_with('/') {
        return None;
    }
    let wrong =
        |word: &str, why: String| Some(Complaint { word: Some(word.to_owned()), ..Complaint::new(why) });
    let (host, port) = split(bare);
    // Colons stand in addresses of IPv6 only.
    if is_wrong_ipv4(host) || host.contains(':') && IpAddr::from_str(host).is_err() {
        return wrong(host, format!("`{host}` is no address"));
    }
    let Some(port) = port.filter(|port| !port.is_empty()) else {
        return (ported && !host.is_empty()).then(|| Complaint {
            word: Some(text.to_owned()),
            hint: Some(format!("write `{text}:` and a port")),
            ..Complaint::new(format!("the address `{text}` has no port"))
        });
    };
    // `+80` and `-80` are offsets, `80-90` is a range.
    if ported && port.starts_with(['+', '-']) {
        return wrong(port, format!("`{port}` is an offset: HAProxy wants a port here"));
    }
    let digits = port.strip_prefix(['+', '-']).unwrap_or(port);
    let (first, last) = digits.split_once('-').unwrap_or((digits, digits));
    if !ranged && digits.contains('-') {
        return wrong(port, format!("`{port}` is a range: HAProxy wants one port here"));
    }
    for end in [first, last] {
        match end.parse::<u32>() {
            Ok(number) if number <= 65535 => {}
            Ok(number) => {
                return wrong(end, format!("a port can't be {number}: HAProxy wants from 0 to 65535"));
            }
            Err(_)
                if version.ignores_what_follows_ports() && end.starts_with(|c: char| c.is_ascii_digit()) => {}
            Err(_) => return wrong(port, format!("`{port}` is no port")),
        }
    }
    if ported && first.parse() == Ok(0_u32) {
        return wrong(first, "a port can't be 0: HAProxy wants from 1 to 65535".to_owned());
    }
    match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(first), Ok(last)) if last < first => {
            wrong(port, format!("a range of ports can't go from {first} to {last}"))
        }
        _ => None,
    }
}

/// Returns whether a host is four numbers, and no address to the system's resolver: it takes one that begins with a zero for octal.
pub(super) fn is_wrong_ipv4(host: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let value = |part: &str| match part.strip_prefix('0') {
        Some(octal) if !octal.is_empty() => u8::from_str_radix(octal, 8),
        _ => part.parse::<u8>(),
    };
    let parts = || host.split('.');
    parts().count() == 4 && parts().all(is_number) && parts().any(|part| value(part).is_err())
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

    /// What is wrong with an address that may have a range of ports.
    fn complaint(text: &str, ported: bool, version: Version) -> Option<Complaint> {
        super::complaint(text, Accepted { ported, ranged: true }, version)
    }

    #[test]
    fn an_address_is_one_and_has_one_port_where_haproxy_wants_that() {
        for text in ["127.0.0.1:80-90", "h:80-90"] {
            let accepted = Accepted { ported: false, ranged: false };
            assert!(super::complaint(text, accepted, Version::V3_4).is_some(), "{text}");
        }
        for text in ["300.1.1.1:80", "256.256.256.256:80"] {
            assert!(complaint(text, true, Version::V3_4).is_some(), "{text}");
        }
        for text in ["127.1:80", "1.2.3:80", "1.2.3.4:80", "a.b.c.d:80"] {
            assert_eq!(complaint(text, true, Version::V3_4), None, "{text}");
        }
        for (text, lacks) in [
            ("127.0.0.1", true),
            ("127.0.0.1:+5", true),
            ("127.0.0.1:0", true),
            ("::1", true),
            ("udp@127.0.0.1", true),
            ("127.0.0.1:80", false),
            ("[::1]:80", false),
            ("*", false),
            ("0.0.0.0", false),
            ("host", false),
            ("/run/s", false),
        ] {
            assert_eq!(lacks_port(text), lacks, "{text}");
        }
    }

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
            "127.0.0.1:80x",
        ];
        for text in fine {
            assert_eq!(complaint(text, true, Version::V2_6), None, "{text}");
        }
        for text in [
            "127.0.0.1",
            "127.0.0.1:",
            "127.0.0.1:0",
            "127.0.0.1:0-9",
            "a:b",
            "a:70000",
            "a:9-8",
            "127.0.0.1:80,10.0.0.1",
        ] {
            assert!(complaint(text, true, Version::V3_4).is_some(), "{text}");
        }
        assert!(complaint("127.0.0.1:80x", true, Version::V3_0).is_some());
        assert!(complaint("h:+1", true, Version::V3_0).is_some());
        assert_eq!(complaint("h:+1", false, Version::V3_4), None);
        assert_eq!(complaint("host", false, Version::V3_4), None);
        assert_eq!(complaint("127.0.0.1:0", false, Version::V3_4), None);
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
