//! The parts of a sample expression: a name, and arguments in parentheses.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::limits::Complaint;
use crate::keywords::{Argument, Place, Signature, signature};
use crate::model::Version;

/// A fetch or a converter with its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'t> {
    pub(crate) name: &'t str,
    /// What stands in parentheses.
    arguments: Option<&'t str>,
    /// Whether the parenthesis is closed.
    is_closed: bool,
    /// What follows.
    pub(crate) rest: &'t str,
}

impl<'t> Call<'t> {
    /// Splits a name off a text, and what it has in parentheses.
    pub(crate) fn read(text: &'t str) -> Self {
        let is_name =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b':');
        let end = text.bytes().position(|byte| !is_name(byte)).unwrap_or(text.len());
        let (name, rest) = text.split_at(end);
        let Some(inside) = rest.strip_prefix('(') else {
            return Self { name, arguments: None, is_closed: true, rest };
        };
        match closing(inside) {
            Some(end) => {
                let (arguments, rest) = (inside.get(..end), inside.get(end + 1..).unwrap_or_default());
                Self { name, arguments, is_closed: true, rest }
            }
            None => Self { name, arguments: Some(inside), is_closed: false, rest: "" },
        }
    }

    /// Returns the arguments, without quotes.
    pub(crate) fn arguments(&self) -> Vec<String> {
        self.arguments.map(split).unwrap_or_default()
    }

    /// Returns what is wrong with the arguments, if something is.
    pub(super) fn wrong_arguments(&self, signature: &Signature, version: Version) -> Option<Complaint> {
        let name = self.name;
        let wrong =
            |why: String, word: &str| Some(Complaint { word: Some(word.to_owned()), ..Complaint::new(why) });
        let missing = || {
            let count = signature.least;
            let noun = if count == 1 { "argument" } else { "arguments" };
            wrong(format!("`{name}` needs {count} {noun}"), name)
        };
        let Some(text) = self.arguments else {
            // The first is there, and empty.
            let is_fine = match signature.least {
                0 => true,
                1 => !signature.arguments.first().is_some_and(Argument::must_be_given),
                _ => false,
            };
            return if is_fine { None } else { missing() };
        };
        if !self.is_closed {
            return wrong(format!("`{name}(` has no `)`"), name);
        }
        if signature.arguments.is_empty() {
            return if text.is_empty() { None } else { wrong(format!("`{name}` has no arguments"), name) };
        }
        let given = split(text);
        let most = signature.most(version);
        if given.len() > most {
            return wrong(format!("`{name}` has at most {most} arguments"), name);
        }
        for (position, (given, argument)) in given.iter().zip(&signature.arguments).enumerate() {
            if given.is_empty() {
                if argument.must_be_given() && position < signature.least {
                    return missing();
                }
                continue;
            }
            let is_asked = signature.is_asked(position, version);
            if let Some(wants) = argument.refuses(given).filter(|_| is_asked) {
                return wrong(format!("`{given}` is no argument of `{name}`: HAProxy wants {wants}"), given);
            }
        }
        if given.len() < signature.least { missing() } else { None }
    }
}

impl Argument {
    /// Returns what HAProxy wants, if it is not this.
    fn refuses(&self, text: &str) -> Option<String> {
        let is_number = || {
            let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_from = |least: i64| is_number() && text.parse::<i64>().is_ok_and(|number| number >= least);
        match self {
            Self::Text | Self::Named(_) | Self::Other => None,
            Self::Integer if is_number() => None,
            Self::Integer => Some("a whole number".to_owned()),
            Self::From(least) if is_from(*least) => None,
            Self::From(least) => Some(format!("a whole number from {least} on")),
            Self::Mask4 if is_mask::<Ipv4Addr>(text, 32) => None,
            Self::Mask4 => Some("a mask of IPv4".to_owned()),
            Self::Mask6 if is_mask::<Ipv6Addr>(text, 128) => None,
            Self::Mask6 => Some("a mask of IPv6".to_owned()),
            Self::Variable { or_from, .. } if is_variable(text) || or_from.is_some_and(is_from) => None,
            Self::Variable { or_from: Some(least), .. } => {
                let from = if *least == i64::MIN { String::new() } else { format!(" from {least} on") };
                Some(format!("a number{from} or a variable such as `txn.name`"))
            }
            Self::Variable { or_from: None, .. } => Some("a variable such as `txn.name`".to_owned()),
            Self::Character if text.chars().count() == 1 => None,
            Self::Character => Some("one character".to_owned()),
            Self::Words { words, .. } if words.contains(&text) => None,
            Self::Words { words, .. } => Some(format!(
                "one of {}",
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            )),
        }
    }
}

/// Returns whether a text is a number of bits, or an address.
fn is_mask<A: std::str::FromStr>(text: &str, most: u8) -> bool {
    text.parse::<u8>().is_ok_and(|bits| bits <= most) || text.parse::<A>().is_ok()
}

/// Returns whether a text is the name of a variable with its scope.
fn is_variable(text: &str) -> bool {
    const SCOPES: [&str; 10] =
        ["proc", "sess", "txn", "req", "res", "check", "psess", "ptxn", "preq", "pres"];
    text.split_once('.').is_some_and(|(scope, name)| {
        SCOPES.contains(&scope)
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'))
    })
}

/// Lists the fetches and converters of a text: an expression.
pub(crate) fn calls(text: &str) -> Vec<(Call<'_>, Option<&'static Signature>)> {
    let mut found = Vec::new();
    let (mut rest, mut place) = (text, Place::Fetch);
    loop {
        let call = Call::read(rest);
        if call.name.is_empty() {
            return found;
        }
        found.push((call, signature(place, call.name)));
        place = Place::Converter;
        match call.rest.strip_prefix(',') {
            Some(after) => rest = after.trim_start_matches(','),
            None => return found,
        }
    }
}

/// Lists the texts of the expressions in a format such as `%[src]:%[src_port]`.
pub(crate) fn in_format(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let inner =
            after.split_once('[').filter(|(before, _)| before.is_empty() || before.ends_with(['}', ')']));
        match inner {
            Some((_, expression)) => {
                found.push(expression);
                rest = expression;
            }
            None => rest = after,
        }
    }
    found
}

/// Splits arguments at commas that are not in quotes, which are taken off.
fn split(text: &str) -> Vec<String> {
    let (mut arguments, mut current) = (Vec::new(), String::new());
    let (mut quote, mut escaped) = (None, false);
    for character in text.chars() {
        match (quote, character) {
            _ if escaped => {
                escaped = false;
                current.push(character);
            }
            (None | Some('"'), '\\') => escaped = true,
            (None, '"' | '\'') => quote = Some(character),
            (Some(open), character) if open == character => quote = None,
            (None, ',') => arguments.push(std::mem::take(&mut current)),
            (_, character) => current.push(character),
        }
    }
    arguments.push(current);
    arguments
}

/// Finds the parenthesis that closes arguments, which may be in quotes and escaped.
fn closing(arguments: &str) -> Option<usize> {
    let (mut quote, mut escaped) = (None, false);
    for (position, byte) in arguments.bytes().enumerate() {
        match (quote, byte) {
            _ if escaped => escaped = false,
            (None | Some(b'"'), b'\\') => escaped = true,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            (None, b')') => return Some(position),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> Option<String> {
        wrong_for(Version::V3_4, text)
    }

    fn wrong_for(version: Version, text: &str) -> Option<String> {
        let all = calls(text);
        all.iter().find_map(|(call, signature)| call.wrong_arguments(signature.as_ref()?, version)?.word)
    }

    #[test]
    fn arguments_are_judged_by_their_number_and_type() {
        for fine in [
            "src",
            "src()",
            "nbsrv",
            "nbsrv(b)",
            "req.hdr(host,-1)",
            "path,field(1,/)",
            "path,field(1,\",\")",
            "int(3),add(txn.x)",
            "str(a),concat(b,,c)",
            "date(0,ms)",
            "var(txn.a)",
            "str(a),sha2(256)",
            "path,url_enc",
            "payload_lv(0,1,+2)",
            "src,ipmask(255.255.255.0,64)",
            "src,ipmask(24,ffff::)",
        ] {
            assert_eq!(wrong(fine), None, "{fine}");
        }
        for (text, word) in [
            ("src(x)", "src"),
            ("path,field", "field"),
            ("path,field(x,/)", "x"),
            ("path,lower(x)", "lower"),
            ("req.hdr(a,1,2)", "req.hdr"),
            ("req.hdr(a", "req.hdr"),
            ("int(3),add(x)", "x"),
            ("var(a)", "a"),
            ("date(0,hours)", "hours"),
            ("str(a),sha2(7)", "7"),
            ("str(a),strcmp(b)", "b"),
            ("payload_lv(-1,1)", "-1"),
            ("payload_lv(0,0)", "0"),
            ("payload_lv(0,1,x)", "x"),
            ("src,ipmask(33)", "33"),
            ("src,ipmask(8,a)", "a"),
        ] {
            assert_eq!(wrong(text).as_deref(), Some(word), "{text}");
        }
    }

    #[test]
    fn what_is_asked_of_arguments_depends_on_the_version() {
        let five = "str(a),aes_gcm_enc(128,a,b,c,d)";
        assert_eq!(wrong_for(Version::V3_4, five), None);
        assert_eq!(wrong_for(Version::V3_0, five).as_deref(), Some("aes_gcm_enc"));
        assert_eq!(wrong_for(Version::V2_6, "path,bytes(-1)"), None);
        assert_eq!(wrong_for(Version::V3_0, "path,bytes(-1)").as_deref(), Some("-1"));
        assert_eq!(wrong("query,param(a,::)").as_deref(), Some("::"));
    }

    #[test]
    fn the_expressions_of_a_format_are_found() {
        assert_eq!(in_format("%ci %[src,lower] %{+Q}[path]"), ["src,lower] %{+Q}[path]", "path]"]);
        assert_eq!(in_format("100%%[src]"), [""; 0]);
    }
}
