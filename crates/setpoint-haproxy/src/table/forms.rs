//! The forms of values that HAProxy accepts, by the names that rows use for them.

use std::net::{IpAddr, Ipv4Addr};

use super::accepted;
use super::address::{Accepted, complaint, is_wrong_ipv4};
use super::limits::Complaint;
use super::patterns::{is_hex, is_regex};
use super::samples::{SampleContext, criterion, expression, format, leading};
use super::units::{LONGEST_TIME, read_number, read_size, read_time};
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
    all("endpoint", "an address, perhaps with a port", |words, sample_cx| {
        let address = words.first()?;
        if address.rsplit_once(':').is_some_and(|(_, port)| port.starts_with(['+', '-'])) {
            let why = format!("`{address}` has no port but an offset, which HAProxy does not take here");
            return Some(Complaint { word: Some(address.clone()), ..Complaint::new(why) });
        }
        complaint(address, Accepted { ported: false, ranged: false }, sample_cx.version)
    }),
    each("host", "an IP address or the name of a host, without a port", is_host),
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
        let is_time = |word: &str| read_time(word, 1).is_some_and(|time| time <= LONGEST_TIME);
        unless_alone(words, is_time, "neither a time nor", sample_cx)
    }),
    all("size-or-sample", "a size or a sample expression", |words, sample_cx| {
        unless_alone(words, |word| read_size(word).is_some(), "neither a size nor", sample_cx)
    }),
    all("number-or-sample", "a number or a sample expression", |words, sample_cx| {
        unless_alone(words, is_number, "neither a number nor", sample_cx)
    }),
    all("port-or-sample", "a port or a sample expression", |words, sample_cx| match words {
        [port] if is_number(port) && !is_port(port) => Some(Complaint {
            word: Some(port.clone()),
            ..Complaint::new(format!("`{port}` is no port: HAProxy wants a number from 1 to 65535"))
        }),
        words => unless_alone(words, is_port, "neither a port nor", sample_cx),
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
    all("one-sample", "a sample expression of one word", |words, sample_cx| {
        words.get(1).map(too_many).or_else(|| expression(words, sample_cx))
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
    all("store", "names of what is stored, with commas", |words, sample_cx| {
        words.iter().flat_map(|word| stored(word)).find_map(|what| unknown_data(what, sample_cx))
    }),
    all("log-address", "an address", |words, sample_cx| {
        let word = words.first()?;
        let (host, port) = word.rsplit_once(':')?;
        let is_number = port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit());
        // The oldest one does not look at what follows the number.
        let is_believed = !is_number && sample_cx.version == Version::V2_6;
        let is_fine = is_believed || port.is_empty() || is_number && port.parse::<u16>().is_ok();
        (host.parse::<Ipv4Addr>().is_ok() && !is_fine).then(|| Complaint {
            word: Some(port.to_owned()),
            ..Complaint::new(format!("`{port}` is no port"))
        })
    }),
    each("status-ranges", "status codes from 100 to 599 and ranges of them, perhaps after a sign", |word| {
        let codes = word.strip_prefix(['+', '-']).unwrap_or(word);
        codes.split(',').all(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            matches!((first.parse::<u16>(), last.parse::<u16>()), (Ok(first), Ok(last)) if 100 <= first && first <= last && last <= 599)
        })
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
    each("cpus-then-letters", "numbers of CPUs and ranges of them", |word| {
        is_ranges(word.trim_end_matches(|c: char| c.is_ascii_alphabetic()))
    }),
    each(
        "thread-sets",
        "`all`, `odd`, `even`, or a number or a range of them, perhaps for each group",
        |word| {
            let is_set = |set: &str| {
                let (first, last) = set.split_once('-').unwrap_or((set, set));
                let is_number =
                    |text: &str| text.parse::<u64>().is_ok_and(|number| (1..=64).contains(&number));
                matches!(set, "all" | "odd" | "even")
                    || is_number(first) && (last.is_empty() || is_number(last))
            };
            let sets = word.strip_prefix("auto:").unwrap_or(word);
            sets.split_once('/').map_or(is_set(sets), |(groups, threads)| is_set(groups) && is_set(threads))
        },
    ),
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
    all("shards", "a number from 1 to 1024, `by-thread` or `by-group`", |words, sample_cx| {
        let word = words.first()?;
        let is_number = || read_number(word).is_some_and(|number| (1..=1024).contains(&number));
        let has_groups = sample_cx.version > Version::V2_6;
        let fits = word == "by-thread" || word == "by-group" && has_groups || is_number();
        let wanted = if has_groups { "`by-thread` or `by-group`" } else { "or `by-thread`" };
        let why =
            || format!("`{word}` is no number of shards: HAProxy wants a number from 1 to 1024, {wanted}");
        (!fits).then(|| Complaint { word: Some(word.clone()), ..Complaint::new(why()) })
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
    // How many errors there are is the library's to say; none has so many.
    each("errors", "`all`, or numbers and names of errors, with commas", |word| {
        word.split(',').all(|error| {
            let is_name = error.starts_with(|c: char| !c.is_ascii_digit());
            error.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && (is_name || error.parse::<u8>().is_ok())
        })
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

/// Returns what is wrong with options that hold for all lines of a kind; a version of TLS follows some of them.
fn options(words: &[String], place: Place, sample_cx: SampleContext) -> Option<Complaint> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !sample_cx.knows(&[place], word) {
            return Some(Complaint::unknown("option", word, &[place], sample_cx.version));
        }
        if !matches!(word.as_str(), "ssl-min-ver" | "ssl-max-ver") {
            continue;
        }
        let version = words.next().map(String::as_str).unwrap_or_default();
        if version.is_empty() {
            let why = format!("`{word}` needs a version of TLS");
            return Some(Complaint { word: Some(word.clone()), ..Complaint::new(why) });
        }
        if !accepted().has_word("tls-version", version, sample_cx.version) {
            return Some(Complaint::one_of(
                word,
                version,
                &accepted().list("tls-version", sample_cx.version),
            ));
        }
    }
    None
}

/// Splits what a stick table stores at the commas that stand in no parentheses.
fn stored(word: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    word.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .filter(|what| !what.is_empty())
}

/// What stands in parentheses after something that a stick table stores, by the list that has it.
const STORED: [(&str, &str); 4] = [
    ("stored", ""),
    ("stored-rate", "a period such as `10s`"),
    ("stored-array", "how many there are"),
    ("stored-array-rate", "how many there are, and a period such as `10s`"),
];

/// Returns what is wrong with something that a stick table stores: its name, or that nothing stands in parentheses after it.
fn unknown_data(what: &str, sample_cx: SampleContext) -> Option<Complaint> {
    let (name, has_argument) = what.split_once('(').map_or((what, false), |(name, _)| (name, true));
    let version = sample_cx.version;
    let Some((_, wants)) = STORED.iter().find(|(list, _)| accepted().has_word(list, name, version)) else {
        let known: Vec<_> = STORED.iter().flat_map(|(list, _)| accepted().list(list, version)).collect();
        return Some(Complaint::one_of("what is stored", name, &known));
    };
    let why = match (has_argument, wants.is_empty()) {
        (true, true) => format!("`{name}` has nothing in parentheses"),
        (false, false) => format!("`{name}` needs {wants} in parentheses"),
        _ => return None,
    };
    Some(Complaint { word: Some(what.to_owned()), ..Complaint::new(why) })
}

fn is_port(word: &str) -> bool {
    word.parse::<u16>().is_ok_and(|port| port > 0)
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

/// Returns whether a word is an IP address, or can be the name of one: whether that is known is the machine's to say.
fn is_host(word: &str) -> bool {
    let address = word.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')).unwrap_or(word);
    word == "*" || address.parse::<IpAddr>().is_ok() || is_plain(word) && !is_wrong_ipv4(word)
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
