//! The forms of values that HAProxy accepts, by the names that rows use for them.

use std::net::IpAddr;

use super::accepted;
use super::limits::Complaint;
use super::patterns::{is_hex, is_regex};
use super::samples::{SampleContext, criterion, expression, format, leading};
use super::units::{read_number, read_size, read_time};
use crate::keywords::{ALL_STAGES, Place};
use crate::model::Version;

/// A form that values have.
#[derive(Debug)]
pub(crate) struct Form {
    pub(super) name: &'static str,
    /// What HAProxy wants, in words.
    pub(super) wants: &'static str,
    pub(super) fits: Fits,
}

/// How it is seen whether words have a form.
#[derive(Debug)]
pub(super) enum Fits {
    /// Each word has to fit.
    Word(fn(&str) -> bool),
    /// All words together have to; this says what is wrong with them.
    Words(fn(&[String], SampleContext) -> Option<Complaint>),
}

/// What of the words of a value are sample expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// All of them are one.
    Expression,
    /// The first one is.
    Criterion,
    /// They stand in brackets.
    Format,
}

impl Form {
    /// Returns what of such values are sample expressions.
    pub(crate) fn holds(&self) -> Option<Holds> {
        match self.name {
            "format" => Some(Holds::Format),
            "criterion" => Some(Holds::Criterion),
            "sample" | "anywhere" | "leading" => Some(Holds::Expression),
            name if name.ends_with("-or-sample") => Some(Holds::Expression),
            _ => None,
        }
    }
}

/// Finds a form by its name.
pub(crate) fn form(name: &str) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.name == name)
}

const fn each(name: &'static str, wants: &'static str, fits: fn(&str) -> bool) -> Form {
    Form { name, wants, fits: Fits::Word(fits) }
}

const fn all(
    name: &'static str,
    wants: &'static str,
    complain: fn(&[String], SampleContext) -> Option<Complaint>,
) -> Form {
    Form { name, wants, fits: Fits::Words(complain) }
}

/// The forms, by the names that rows use.
const FORMS: &[Form] = &[
    all("sample", "a sample expression", expression),
    // Some actions do not look at when their expression is evaluated.
    all("anywhere", "a sample expression", |words, sample_cx| {
        expression(words, SampleContext { stages: ALL_STAGES, ..sample_cx })
    }),
    // What follows an expression and is none of it is not looked at.
    all("leading", "a sample expression", leading),
    each("negative", "a number", |word| {
        word.strip_prefix('-').is_some_and(|digits| digits.parse::<u64>().is_ok())
    }),
    each("statuses", "status codes and ranges of them, with commas", is_ranges),
    each("network", "an address, perhaps with a mask", is_network),
    each("networks", "addresses, perhaps with masks, and commas between them", |word| {
        word.split(',').all(is_network)
    }),
    each("not-host", "another header than `Host`", |word| !word.eq_ignore_ascii_case("host")),
    // C reads the digits that a word begins with, and a zero where there are none.
    each("letters", "a number", |word| {
        !word.starts_with(['-', '+']) && !word.bytes().all(|byte| byte.is_ascii_digit())
    }),
    each("number-then-letters", "a number", |word| {
        word.starts_with(|c: char| c.is_ascii_digit()) && !word.bytes().all(|byte| byte.is_ascii_digit())
    }),
    each("regex", "a regular expression", is_regex),
    each("acl-name", "letters, digits, `_`, `-`, `.` and `:`, but not `or`", |word| {
        is_identifier(word) && !word.eq_ignore_ascii_case("or")
    }),
    each("cookie-attribute", "no `;`", |word| !word.bytes().any(|byte| byte == b';' || byte < b' ')),
    each("domain", "letters, digits, `_`, `-` and `.`", is_plain),
    all("retry-conditions", "conditions, or `none` alone", |words, sample_cx| {
        let known = |word: &&String| accepted().has_word("retry-condition", word, sample_cx.version);
        if let Some(word) = words.iter().find(|word| !known(word)) {
            let known = accepted().list("retry-condition", sample_cx.version);
            return Some(Complaint::one_of("a condition", word, &known));
        }
        let none = words.iter().find(|word| *word == "none").filter(|_| words.len() > 1)?;
        Some(Complaint { word: Some(none.clone()), ..Complaint::new("`none` stands alone") })
    }),
    all("format", "a format", format),
    all("criterion", "what an ACL compares", criterion),
    all("time-or-sample", "a time or a sample expression", |words, sample_cx| {
        let is_time = |word: &str| read_time(word, 1).is_some();
        unless_alone(words, is_time, "neither a time nor", sample_cx)
    }),
    all("size-or-sample", "a size or a sample expression", |words, sample_cx| {
        unless_alone(words, |word| read_size(word).is_some(), "neither a size nor", sample_cx)
    }),
    all("number-or-sample", "a number or a sample expression", |words, sample_cx| {
        unless_alone(words, is_number, "neither a number nor", sample_cx)
    }),
    all("service", "a service", |words, sample_cx| {
        let word = words.first()?;
        let known = sample_cx.knows(&[Place::Service], word);
        (!known).then(|| Complaint::unknown("service", word, &[Place::Service], sample_cx.version))
    }),
    all("mux", "a multiplexer", |words, sample_cx| {
        let word = words.first()?;
        let known = sample_cx.knows(&[Place::Mux], word);
        (!known).then(|| Complaint::unknown("protocol", word, &[Place::Mux], sample_cx.version))
    }),
    all("listener-mux", "a multiplexer of listeners", |words, sample_cx| {
        let word = words.first()?;
        // These speak to servers only.
        let known = !matches!(word.as_str(), "fcgi" | "spop") && sample_cx.knows(&[Place::Mux], word);
        (!known).then(|| Complaint::unknown("protocol of listeners", word, &[Place::Mux], sample_cx.version))
    }),
    all("one", "one word", |words, _| words.get(1).map(too_many)),
    all("codes", "a list of status codes", |words, _| {
        let is_code =
            |word: &&String| word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'-'));
        let not_a_code = words.first().filter(|word| !is_code(word)).map(|word| Complaint {
            word: Some(word.clone()),
            ..Complaint::new(format!("`{word}` is no list of status codes"))
        });
        not_a_code.or_else(|| one_pattern(words))
    }),
    all("pattern", "one word", |words, _| one_pattern(words)),
    all("bind-options", "options of `bind`", |words, sample_cx| options(words, Place::BindOption, sample_cx)),
    all("server-options", "options of `server`", |words, sample_cx| {
        options(words, Place::ServerOption, sample_cx)
    }),
    each("store", "names of what is stored, with commas", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b'(' | b')'))
    }),
    each("http-version", "a version of HTTP", |word| !word.contains(['\r', '\n'])),
    each("factor", "0, or more than 100", |word| {
        read_number(word).is_some_and(|number| number == 0 || number > 100)
    }),
    each("profile", "letters, digits, `_` and `-`", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    }),
    each("proc-variable", "a variable such as `proc.name`", |word| {
        word.strip_prefix("proc.").is_some_and(is_variable)
    }),
    each("cpus", "numbers of CPUs and ranges of them", |word| {
        // A range without an end goes as far as there are CPUs.
        matches!(word, "all" | "odd" | "even")
            || word.split(',').all(|part| is_ranges(part.strip_suffix('-').unwrap_or(part)))
    }),
    each("dns-families", "`ipv4`, `ipv6` or both, with a comma", |word| {
        word == "auto" || word.split(',').all(|family| matches!(family, "ipv4" | "ipv6"))
    }),
    each("scope", "`proc`, `sess`, `txn`, `req`, `res` or `check`", |word| {
        matches!(word, "proc" | "sess" | "txn" | "req" | "res" | "check")
    }),
    each("variable", "letters, digits, `.` and `_`, perhaps conditions after a comma", |word| {
        let mut parts = word.split(',');
        let is_condition = |word: &str| accepted().has_word("variable-condition", word, Version::LATEST);
        is_variable(parts.next().unwrap_or_default()) && parts.all(is_condition)
    }),
    each("bare-variable", "letters, digits, `.` and `_`", is_variable),
    each("libraries", "names of libraries, with commas", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b','))
    }),
    each("octal", "an octal number", |word| !word.is_empty() && i64::from_str_radix(word, 8).is_ok()),
    each("integer", "a whole number", |word| word.parse::<i64>().is_ok()),
    each("positive", "a number from 1 on", |word| word.parse::<i64>().is_ok_and(|number| number > 0)),
    each("byte", "a number from 0 to 255, perhaps in hexadecimal", |word| {
        read_number(word).is_some_and(|number| number <= 255)
    }),
    each("mss", "a number from 1 to 65535, perhaps negative", |word| {
        word.parse::<i64>().is_ok_and(|number| (1..=65535).contains(&number.abs()))
    }),
    each("hex", "pairs of hexadecimal digits", is_hex),
    each("plain", "letters, digits, `_`, `-` and `.`", is_plain),
    each("identifier", "letters, digits, `_`, `-`, `.` and `:`", is_identifier),
    each("shards", "a number from 1 to 1024, `by-thread` or `by-group`", |word| {
        matches!(word, "by-thread" | "by-group")
            || read_number(word).is_some_and(|number| (1..=1024).contains(&number))
    }),
    each("init-addr", "`last`, `libc`, `none` and addresses, with commas", |word| {
        let is_way = |way: &str| matches!(way, "last" | "libc" | "none") || way.parse::<IpAddr>().is_ok();
        word.split(',').all(is_way)
    }),
    each("resolve-opts", "`allow-dup-ip`, `ignore-weight` and `prevent-dup-ip`, with commas", |word| {
        word.split(',').all(|option| matches!(option, "allow-dup-ip" | "ignore-weight" | "prevent-dup-ip"))
    }),
    all("capabilities", "capabilities, with commas", |words, sample_cx| {
        let is_known = |name: &&str| accepted().has_word("capability", name, sample_cx.version);
        let unknown = words.first()?.split(',').find(|name| !is_known(name))?;
        Some(Complaint::one_of("a capability", unknown, &accepted().list("capability", sample_cx.version)))
    }),
    each("challenge", "`http-01`, `dns-01` or `dns-persist-01`", |word| {
        ["http-01", "dns-01", "dns-persist-01"].iter().any(|known| word.eq_ignore_ascii_case(known))
    }),
    each("timed", "a time", |word| read_time(word, 1).is_some()),
    each("sized", "a size", |word| read_size(word).is_some()),
    each("errors", "`all`, or numbers and names of errors, with commas", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b','))
    }),
    each("range", "a number from 1 on, or two with a `-` between them", |word| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        matches!((read_number(first), read_number(last)), (Some(first), Some(last)) if 1 <= first && first <= last)
    }),
    each("ranges", "numbers and ranges of them, with commas", is_ranges),
    each("threads", "`all`, `odd`, `even`, or numbers of threads, perhaps after `group/`", |word| {
        word.split(',').all(|part| {
            let set = part.split_once('/').map_or(part, |(_, set)| set);
            matches!(set, "all" | "odd" | "even" | "")
                || set.split('-').all(|end| end.is_empty() || read_number(end).is_some())
        })
    }),
];

/// Returns the complaint that a word is one too many.
fn too_many(word: &String) -> Complaint {
    Complaint { word: Some(word.clone()), ..Complaint::new(format!("`{word}` is one word too many")) }
}

/// Returns the complaint that what a check expects is more than one word; options may follow it.
fn one_pattern(words: &[String]) -> Option<Complaint> {
    let is_option = |word: &String| accepted().begins_option("check_option", word);
    words.get(1).filter(|word| !is_option(word)).map(too_many)
}

/// Returns what is wrong with options that hold for all lines of a kind; versions of TLS stand between them.
fn options(words: &[String], place: Place, sample_cx: SampleContext) -> Option<Complaint> {
    let known = |word: &&String| {
        word.starts_with("TLSv") || word.starts_with("SSLv") || sample_cx.knows(&[place], word)
    };
    let word = words.iter().find(|word| !known(word))?;
    Some(Complaint::unknown("option", word, &[place], sample_cx.version))
}

/// Returns whether a word is letters, digits, `_`, `-` and `.`.
fn is_plain(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// Returns whether a word is letters, digits, `_`, `-`, `.` and `:`.
fn is_identifier(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':'))
}

/// Returns whether a word can name a variable.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'))
}

/// Returns whether a word is numbers and ranges of them with commas between them.
fn is_ranges(word: &str) -> bool {
    word.split(',').all(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        read_number(first).is_some() && read_number(last).is_some()
    })
}

/// Returns whether a word is an address, perhaps with a mask.
pub(super) fn is_network(word: &str) -> bool {
    let (address, mask) = word.split_once('/').unwrap_or((word, "0"));
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let most = if address.is_ipv4() { 32 } else { 128 };
    mask.parse::<u8>().is_ok_and(|bits| bits <= most) || mask.parse::<IpAddr>().is_ok()
}

/// Returns the complaint that some words are neither a value on their own nor an expression.
fn unless_alone(
    words: &[String],
    is_value: fn(&str) -> bool,
    neither: &str,
    sample_cx: SampleContext,
) -> Option<Complaint> {
    match words {
        [word] if is_value(word) => None,
        words => expression(words, sample_cx).map(|complaint| Complaint {
            why: format!("{}, so that it is {neither} a sample expression", complaint.why),
            ..complaint
        }),
    }
}

fn is_number(word: &str) -> bool {
    read_number(word.strip_prefix('-').unwrap_or(word)).is_some()
}
