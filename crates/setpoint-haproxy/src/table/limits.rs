//! What HAProxy accepts of a value beyond its type, so that what it would refuse is refused before it is written.
//!
//! A row says it in brackets after a type: `int[1..]` are numbers, `word[str|beg]` and `word[=none]` are words, and
//! `word[octal]`, or just `octal`, is one of the [forms](FORMS). Values are held to it when they are written, and when a text is checked; they are
//! read whatever they are.

use super::samples::{Scene, criterion, expression, format};
use super::units::{read_size, read_time};
use crate::keywords::Place;
use crate::model::spelling::{one_word, split, words};
use crate::model::{Fields, Value, Version};
use crate::text::nearest;

/// Why HAProxy would refuse something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) why: String,
    /// The word it is about.
    pub(crate) word: Option<String>,
    /// What could be meant.
    pub(crate) hint: Option<String>,
}

impl Complaint {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), word: None, hint: None }
    }

    /// Says that a version does not know a word.
    pub(crate) fn unknown(what: &str, word: &str, place: Place, version: Version) -> Self {
        let known = crate::keywords::in_place(place, version);
        Self {
            why: format!("HAProxy {version} knows no {what} `{word}`"),
            word: Some(word.to_owned()),
            hint: nearest(word, known).map(|best| format!("did you mean `{best}`?")),
        }
    }
}

/// The least and the greatest number that HAProxy accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    least: i64,
    most: i64,
}

impl Bounds {
    /// Reads `1..` or `0..2`.
    fn read(text: &str) -> Option<Self> {
        let (least, most) = text.split_once("..")?;
        let most = if most.is_empty() { i64::MAX } else { most.parse().ok()? };
        Some(Self { least: least.parse().ok()?, most })
    }

    fn contain(self, number: i64) -> bool {
        (self.least..=self.most).contains(&number)
    }
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.most {
            i64::MAX => write!(f, "at least {}", self.least),
            most => write!(f, "from {} to {most}", self.least),
        }
    }
}

/// What HAProxy accepts of a value.
#[derive(Clone, Debug)]
pub(crate) enum Limit {
    /// Numbers between these.
    Between(Bounds),
    /// One of these words.
    Words(Vec<&'static str>),
    /// What has a form.
    Form(&'static Form),
}

impl Limit {
    /// Reads what stands in brackets after a type.
    pub(crate) fn read(text: &'static str) -> Option<Self> {
        if text.contains("..") {
            return Bounds::read(text).map(Self::Between);
        }
        match (form(text), text.strip_prefix('=')) {
            (Some(form), _) => Some(Self::Form(form)),
            (None, Some(word)) => Some(Self::Words(vec![word])),
            (None, None) if text.contains('|') => Some(Self::Words(text.split('|').collect())),
            (None, None) => None,
        }
    }

    /// Says whether it is about sample expressions.
    pub(crate) fn is_of_samples(&self) -> bool {
        matches!(self, Self::Form(Form { name: "sample", .. }))
    }

    /// Says what is wrong with the value of a field, if something is. `several` says that a text may be more than one word.
    pub(crate) fn complain(
        &self,
        path: &str,
        value: &Value,
        several: bool,
        scene: Scene,
    ) -> Option<Complaint> {
        match value {
            Value::Int(number) => match self {
                Self::Between(bounds) if !bounds.contain(*number) => {
                    let why = format!("{path} can't be {number}: HAProxy wants {bounds}");
                    Some(Complaint { word: Some(number.to_string()), ..Complaint::new(why) })
                }
                Self::Between(_) => None,
                _ => self.complain_of(path, &[number.to_string()], scene),
            },
            Value::Text(text) => {
                // What a variable stands for is not known.
                if text.contains('$') {
                    return None;
                }
                let spelled = if several { words(text) } else { one_word(text) };
                let decoded = split(&spelled)?;
                self.complain_of(path, &decoded, scene)
            }
            Value::List(values) => {
                values.iter().find_map(|value| self.complain(path, value, several, scene))
            }
            Value::Bool(_) | Value::Object(_) | Value::Json(_) => None,
        }
    }

    fn complain_of(&self, path: &str, words: &[String], scene: Scene) -> Option<Complaint> {
        match self {
            Self::Between(_) => None,
            Self::Words(known) => {
                let word = words.iter().find(|word| !known.contains(&word.as_str()))?;
                let list = known.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
                Some(Complaint {
                    why: format!("{path} can't be `{word}`: HAProxy wants one of {list}"),
                    word: Some(word.clone()),
                    hint: nearest(word, known.iter().copied()).map(|best| format!("did you mean `{best}`?")),
                })
            }
            Self::Form(form) => match form.fits {
                Fits::Word(fits) => {
                    let word = words.iter().find(|word| !fits(word))?;
                    let why = format!("{path} can't be `{word}`: HAProxy wants {}", form.wants);
                    Some(Complaint { word: Some(word.clone()), ..Complaint::new(why) })
                }
                Fits::Words(complain) => complain(words, scene),
            },
        }
    }
}

/// A form that values have.
#[derive(Debug)]
pub(crate) struct Form {
    name: &'static str,
    wants: &'static str,
    fits: Fits,
}

#[derive(Debug)]
enum Fits {
    /// Each word has to fit.
    Word(fn(&str) -> bool),
    /// All words together have to; this says what is wrong with them.
    Words(fn(&[String], Scene) -> Option<Complaint>),
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
    complain: fn(&[String], Scene) -> Option<Complaint>,
) -> Form {
    Form { name, wants, fits: Fits::Words(complain) }
}

/// The forms, by the names that rows use.
const FORMS: &[Form] = &[
    all("sample", "a sample expression", expression),
    all("format", "a format", format),
    all("criterion", "what an ACL compares", criterion),
    all("time-or-sample", "a time or a sample expression", |words, scene| {
        let is_time = |word: &str| read_time(word, 1).is_some();
        unless_alone(words, is_time, "neither a time nor", scene)
    }),
    all("size-or-sample", "a size or a sample expression", |words, scene| {
        unless_alone(words, |word| read_size(word).is_some(), "neither a size nor", scene)
    }),
    all("number-or-sample", "a number or a sample expression", |words, scene| {
        unless_alone(words, is_number, "neither a number nor", scene)
    }),
    all("service", "a service", |words, scene| {
        let word = words.first()?;
        let known = scene.knows(&[Place::Service], word);
        (!known).then(|| Complaint::unknown("service", word, Place::Service, scene.version))
    }),
    all("mux", "a multiplexer", |words, scene| {
        let word = words.first()?;
        let known = scene.knows(&[Place::Mux], word);
        (!known).then(|| Complaint::unknown("protocol", word, Place::Mux, scene.version))
    }),
    all("one", "one word", |words, _| words.get(1).map(too_many)),
    all("codes", "a list of status codes", |words, _| {
        let is_code = |word: &&String| word.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'-'));
        let not_a_code = words.first().filter(|word| !is_code(word)).map(|word| Complaint {
            word: Some(word.clone()),
            ..Complaint::new(format!("`{word}` is no list of status codes"))
        });
        not_a_code.or_else(|| one_pattern(words))
    }),
    all("pattern", "one word", |words, _| one_pattern(words)),
    all("bind-options", "options of `bind`", |words, scene| options(words, Place::BindOption, scene)),
    all("server-options", "options of `server`", |words, scene| options(words, Place::ServerOption, scene)),
    each("store", "names of what is stored, with commas", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b'(' | b')'))
    }),
    each("cpu-policy", "a policy", |word| CPU_POLICIES.contains(&word)),
    each("facility", "a syslog facility", |word| FACILITIES.contains(&word)),
    each("severity", "a level of syslog", |word| SEVERITIES.contains(&word)),
    each("log-format", "a format of logs", |word| LOG_FORMATS.contains(&word)),
    each("http-version", "a version of HTTP", |word| !word.contains(['\r', '\n'])),
    each("factor", "0, or more than 100", |word| {
        number(word).is_some_and(|number| number == 0 || number > 100)
    }),
    each("profile", "letters, digits, `_` and `-`", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    }),
    each("proc-variable", "a variable such as `proc.name`", |word| {
        word.strip_prefix("proc.").is_some_and(|name| is_variable(name))
    }),
    each("cpus", "numbers of CPUs and ranges of them", |word| {
        matches!(word, "all" | "odd" | "even") || is_ranges(word)
    }),
    each("dns-families", "`ipv4`, `ipv6` or both, with a comma", |word| {
        word == "auto" || word.split(',').all(|family| matches!(family, "ipv4" | "ipv6"))
    }),
    each("scope", "`proc`, `sess`, `txn`, `req`, `res` or `check`", |word| {
        matches!(word, "proc" | "sess" | "txn" | "req" | "res" | "check")
    }),
    each("variable", "letters, digits, `.` and `_`, perhaps conditions after a comma", |word| {
        is_variable(word.split(',').next().unwrap_or_default())
    }),
    each("octal", "an octal number", |word| !word.is_empty() && i64::from_str_radix(word, 8).is_ok()),
    each("integer", "a whole number", |word| word.parse::<i64>().is_ok()),
    each("byte", "a number from 0 to 255, perhaps in hexadecimal", |word| {
        number(word).is_some_and(|number| number <= 255)
    }),
    each("mss", "a number from 1 to 65535, perhaps negative", |word| {
        word.parse::<i64>().is_ok_and(|number| (1..=65535).contains(&number.abs()))
    }),
    each("hex", "pairs of hexadecimal digits", |word| {
        word.len() % 2 == 0 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
    }),
    each("plain", "letters, digits, `_`, `-` and `.`", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    }),
    each("errors", "`all`, or numbers and names of errors, with commas", |word| {
        word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b','))
    }),
    each("range", "a number from 1 on, or two with a `-` between them", |word| {
        let (first, last) = word.split_once('-').unwrap_or((word, word));
        matches!((number(first), number(last)), (Some(first), Some(last)) if 1 <= first && first <= last)
    }),
    each("ranges", "numbers and ranges of them, with commas", is_ranges),
    each("threads", "`all`, `odd`, `even`, or numbers of threads, perhaps after `group/`", |word| {
        word.split(',').all(|part| {
            let set = part.split_once('/').map_or(part, |(_, set)| set);
            matches!(set, "all" | "odd" | "even" | "")
                || set.split('-').all(|end| end.is_empty() || number(end).is_some())
        })
    }),
];

/// What syslog calls the origins of messages.
const FACILITIES: [&str; 24] = [
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp", "audit",
    "alert", "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

/// What syslog calls the levels of messages.
const SEVERITIES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

/// The formats in which HAProxy sends logs.
const LOG_FORMATS: [&str; 9] =
    ["local", "rfc3164", "rfc5424", "priority", "short", "timed", "iso", "raw", "unspec"];

/// How HAProxy can distribute its threads.
const CPU_POLICIES: [&str; 13] = [
    "none",
    "first-usable-node",
    "group-by-ccx",
    "group-by-2-ccx",
    "group-by-3-ccx",
    "group-by-4-ccx",
    "group-by-cluster",
    "group-by-2-clusters",
    "group-by-3-clusters",
    "group-by-4-clusters",
    "performance",
    "efficiency",
    "resource",
];

/// Says that a word is one too many.
fn too_many(word: &String) -> Complaint {
    Complaint { word: Some(word.clone()), ..Complaint::new(format!("`{word}` is one word too many")) }
}

/// Says that what a check expects is more than one word; options may follow it.
fn one_pattern(words: &[String]) -> Option<Complaint> {
    const OPTIONS: [&str; 8] = [
        "comment",
        "ok-status",
        "error-status",
        "tout-status",
        "on-success",
        "on-error",
        "status-code",
        "min-recv",
    ];
    words.get(1).filter(|word| !OPTIONS.contains(&word.as_str())).map(too_many)
}

/// Says what is wrong with options that hold for all lines of a kind; versions of TLS stand between them.
fn options(words: &[String], place: Place, scene: Scene) -> Option<Complaint> {
    let known = |word: &&String| {
        word.starts_with("TLSv") || word.starts_with("SSLv") || scene.knows(&[place], word)
    };
    let word = words.iter().find(|word| !known(word))?;
    Some(Complaint::unknown("option", word, place, scene.version))
}

/// Says whether a word can name a variable.
fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'))
}

/// Says whether a word is numbers and ranges of them with commas between them.
fn is_ranges(word: &str) -> bool {
    word.split(',').all(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        number(first).is_some() && number(last).is_some()
    })
}

/// What holds between the values of a line.
#[derive(Debug)]
pub(crate) struct Rule {
    name: &'static str,
    complain: fn(&Fields) -> Option<String>,
}

impl Rule {
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        RULES.iter().find(|rule| rule.name == name)
    }

    /// Says what is wrong with the values of a line, if something is.
    pub(crate) fn complain(&self, fields: &Fields) -> Option<Complaint> {
        (self.complain)(fields).map(Complaint::new)
    }
}

fn get<'f>(fields: &'f Fields, path: &str) -> Option<&'f Value> {
    fields.iter().find(|(field, _)| field.path() == path).map(|(_, value)| value)
}

fn text<'f>(fields: &'f Fields, path: &str) -> &'f str {
    get(fields, path).and_then(Value::as_str).unwrap_or_default()
}

/// The rules, by the names that rows use.
const RULES: &[Rule] = &[
    Rule {
        name: "length",
        complain: |fields| {
            let has_length = get(fields, "type_len").is_some() && !matches!(text(fields, "type"), "string" | "binary");
            has_length.then(|| "only keys that are a `string` or `binary` have a length".to_owned())
        },
    },
    Rule {
        name: "multiplexed",
        complain: |fields| {
            let many = get(fields, "max_reqs").and_then(Value::as_int).is_some_and(|count| count > 1);
            (many && text(fields, "mpxs_conns") != "enabled")
                .then(|| "more than one request at a time needs `option mpxs-conns`".to_owned())
        },
    },
    Rule {
        name: "case",
        complain: |fields| {
            (!text(fields, "from").eq_ignore_ascii_case(text(fields, "to")))
                .then(|| "the name of a header can be changed in nothing but its case".to_owned())
        },
    },
    Rule {
        name: "bound",
        complain: |fields| {
            let size = |set: &str| -> Option<u64> {
                let part = |part: &str| {
                    let (first, last) = part.split_once('-').unwrap_or((part, part));
                    Some(number(last)?.checked_sub(number(first)?)? + 1)
                };
                set.split([',', ' ']).filter(|part| !part.is_empty()).map(part).sum()
            };
            let threads = text(fields, "process").strip_prefix("auto:")?;
            let (threads, cpus) = (size(threads)?, size(text(fields, "cpu_set"))?);
            (threads != cpus).then(|| format!("{threads} threads can't be bound to {cpus} CPUs, one to each"))
        },
    },
];

/// Says that some words are neither a value on their own nor an expression.
fn unless_alone(
    words: &[String],
    is_value: fn(&str) -> bool,
    neither: &str,
    scene: Scene,
) -> Option<Complaint> {
    match words {
        [word] if is_value(word) => None,
        words => expression(words, scene).map(|complaint| Complaint {
            why: format!("{}, so that it is {neither} a sample expression", complaint.why),
            ..complaint
        }),
    }
}

/// Reads a number as HAProxy does, decimal or after `0x` hexadecimal.
fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok())?,
    }
}

fn is_number(word: &str) -> bool {
    number(word.strip_prefix('-').unwrap_or(word)).is_some()
}
