//! What an ACL compares with: the patterns after its criterion, as far as HAProxy surely refuses them.

use super::calls::Call;
use super::forms::is_network;
use super::limits::Complaint;
use super::samples::{SampleContext, given_by};
use crate::keywords::SampleType;

/// What patterns have to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compared {
    Numbers,
    /// Versions of TLS: numbers with a point.
    Dotted,
    Addresses,
    Bytes,
    Expressions,
}

impl Compared {
    /// What the word after `-m` makes of patterns.
    fn by_method(method: &str) -> Option<Self> {
        match method {
            "int" | "len" => Some(Self::Numbers),
            "ip" => Some(Self::Addresses),
            "bin" => Some(Self::Bytes),
            "reg" | "regm" => Some(Self::Expressions),
            _ => None,
        }
    }

    /// What a criterion makes of patterns: the end of its name tells, or the type of what it gives.
    fn by_criterion(criterion: &str, sample_cx: SampleContext) -> Option<Self> {
        let call = Call::read(criterion);
        match call.name.rsplit('_').next() {
            Some("reg") if call.rest.is_empty() => return Some(Self::Expressions),
            Some("len") if call.rest.is_empty() => return Some(Self::Numbers),
            Some("ver") if call.rest.is_empty() && call.name.ends_with("ssl_ver") => {
                return Some(Self::Dotted);
            }
            Some("ver") => return None,
            _ => {}
        }
        match given_by(criterion, sample_cx) {
            Some(SampleType::Integer) => Some(Self::Numbers),
            Some(SampleType::Address | SampleType::Ipv4 | SampleType::Ipv6) => Some(Self::Addresses),
            _ => None,
        }
    }

    fn complaint(self, pattern: &str) -> Option<Complaint> {
        let (fits, what) = match self {
            Self::Numbers => (is_number(pattern), "number, and no range of numbers"),
            Self::Dotted => (is_dotted(pattern), "number with a point, and no range of such numbers"),
            Self::Addresses => (may_be_address(pattern), "address"),
            Self::Bytes => (is_hex(pattern), "row of pairs of hexadecimal digits"),
            Self::Expressions => (is_regex(pattern), "regular expression"),
        };
        let why = format!("`{pattern}` is no {what}");
        (!fits).then(|| Complaint { word: Some(pattern.to_owned()), ..Complaint::new(why) })
    }
}

/// Finds a pattern that HAProxy refuses, among the words after a criterion: which word it is, and why.
pub(crate) fn wrong_pattern(
    criterion: &str,
    words: &[impl AsRef<str>],
    sample_cx: SampleContext,
) -> Option<(usize, Complaint)> {
    let word = |at: usize| words.get(at).map(AsRef::as_ref);
    let (mut at, mut method) = (0, None);
    while let Some(flag) = word(at).filter(|word| word.starts_with('-')) {
        match flag {
            "--" => {
                at += 1;
                break;
            }
            "-f" if word(at + 1).is_none() => return Some((at, Complaint::new("`-f` wants a file"))),
            "-m" => method = word(at + 1),
            _ => {}
        }
        at += if matches!(flag, "-m" | "-f" | "-u") { 2 } else { 1 };
    }
    let compared = match method {
        Some(method) => Compared::by_method(method)?,
        None => Compared::by_criterion(criterion, sample_cx)?,
    };
    words.iter().map(AsRef::as_ref).enumerate().skip(at).find_map(|(at, pattern)| {
        let is_operator = matches!(pattern, "eq" | "ge" | "gt" | "le" | "lt");
        let complaint = compared.complaint(pattern);
        let has_operators = matches!(compared, Compared::Numbers | Compared::Dotted);
        Some((at, complaint.filter(|_| !(is_operator && has_operators))?))
    })
}

/// Returns whether a word is a number, or two with a colon or a dash between them that are in order; either may be left out.
fn is_number(word: &str) -> bool {
    let number = |text: &str| match text {
        // A sign alone is zero.
        "-" => Some(0),
        text if text.starts_with('+') => None,
        text => text.parse::<i64>().ok(),
    };
    match word.split_once([':', '-']) {
        None => number(word).is_some(),
        Some(("", end) | (end, "")) => number(end).is_some(),
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) => first <= last,
            _ => false,
        },
    }
}

/// Returns whether a word may be numbers with points, or a range of such numbers.
fn is_dotted(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':' | b'-'))
}

/// Returns whether a word is an address, a network, or something that may be the name of a host.
fn may_be_address(word: &str) -> bool {
    let (host, mask) = word.split_once('/').map_or((word, None), |(host, mask)| (host, Some(mask)));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_dotted = host.split('.').count() >= 4 && host.split('.').all(is_number);
    let is_address = is_dotted || host.contains(':') || host.parse::<std::net::IpAddr>().is_ok();
    // What has fewer numbers is an address to the system's resolver.
    !is_address || if mask.is_some() { is_network(word) } else { is_network(host) }
}

/// Returns whether a word is pairs of hexadecimal digits.
pub(super) fn is_hex(word: &str) -> bool {
    word.len().is_multiple_of(2) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether a word may be a regular expression: parentheses and brackets are closed, and what repeats follows something.
/// Forms that switch to another syntax are believed.
pub(super) fn is_regex(word: &str) -> bool {
    if ["\\Q", "(?#", "(?x", "(*"].iter().any(|other| word.contains(other)) {
        return true;
    }
    let (mut depth, mut repeats) = (0_usize, false);
    let mut bytes = word.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'\\' => {
                if bytes.next().is_none() {
                    return false;
                }
                repeats = true;
            }
            b'[' => {
                let Some(length) = class(word.get(at..).unwrap_or_default()) else { return false };
                // The bracket that opens it has been read.
                let _ = bytes.nth(length.saturating_sub(2));
                repeats = true;
            }
            b'(' => {
                depth += 1;
                repeats = false;
                if word.get(at + 1..).is_some_and(|rest| rest.starts_with('?')) {
                    let _ = bytes.next();
                }
            }
            b')' => {
                let Some(outer) = depth.checked_sub(1) else { return false };
                depth = outer;
                repeats = true;
            }
            b'|' | b'^' => repeats = false,
            b'*' | b'+' | b'?' if !repeats => return false,
            _ => repeats = true,
        }
    }
    depth == 0
}

/// Returns how long the class of characters is that a text begins with; none if it is not closed.
fn class(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate().skip(1).peekable();
    bytes.next_if(|(_, byte)| *byte == b'^');
    // A bracket at the beginning is one of its characters.
    bytes.next_if(|(_, byte)| *byte == b']');
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b']' => return Some(at + 1),
            b'\\' => drop(bytes.next()),
            b'[' if bytes.peek().is_some_and(|(_, next)| matches!(next, b':' | b'.' | b'=')) => {
                let rest = text.get(at + 2..)?;
                let end = rest.find(']')?;
                let _ = bytes.nth(end + 1);
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regular_expressions_are_judged_by_what_is_open_in_them() {
        for fine in [
            "",
            "a++",
            "(?i)x",
            "(?:a|b)+",
            "(?=a)b",
            "[]a]",
            "[^]]",
            "[[:alpha:]]x",
            "[[:alpha:]_]*",
            "a{2",
            "\\(",
            "[(]",
            "^/a(/.*)?$",
            "(a)(b)",
            "[\\]]",
            "a|b",
        ] {
            assert!(is_regex(fine), "{fine}");
        }
        for wrong in ["(", "a)", "[", "[a-z", "*a", "+a", "^*", "a|*b", "a\\", "(a", "([a)", "[[:alpha:]"] {
            assert!(!is_regex(wrong), "{wrong}");
        }
    }

    #[test]
    fn numbers_and_addresses_are_judged_by_their_form() {
        for fine in ["5", "-5", "5:", ":5", "1:2", "2:2"] {
            assert!(is_number(fine), "{fine}");
        }
        for wrong in ["x", "80:70", "1.5", ":", "a:1", ""] {
            assert!(!is_number(wrong), "{wrong}");
        }
        for fine in
            ["1.2.3.4", "10.0.0.0/8", "10.0.0.0/255.0.0.0", "::1", "fe80::/10", "10", "10.0.0", "host"]
        {
            assert!(may_be_address(fine), "{fine}");
        }
        for wrong in ["1.2.3.400", "1.2.3.4/33", "::1/129", "fe80::g", "1.2.3.4.5"] {
            assert!(!may_be_address(wrong), "{wrong}");
        }
    }
}
